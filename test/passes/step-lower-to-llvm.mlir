// step-lower-to-llvm: a function for every step.func and one for every phase,
// in a plain and a profiled form that call the same phases.
//
// The fields of ctx, by their offsets in sparkc_abi.h: weights 0, kv 8, arena
// 16, tokens 24, pos 40, capacity 48, profile 88, profile_capacity 96.
//
// RUN: sparkc-opt %s --step-lower-to-llvm --canonicalize --cse -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: FileCheck %s --check-prefix=LEFT < %t.mlir
// Of the schedule only what the object's descriptor says is left.
// LEFT-NOT: {{ step\.[a-ce-z]}}
// LEFT-NOT: __tsan
// LEFT:     step.descriptor
// LEFT-NOT: {{ step\.}}
// LEFT-NOT: __tsan

step.slot @x size <512> at 256
step.slot @y size <512> at 1024

// Barriers are counted call by call; phases are numbered as they are met, the
// layers' first.
// CHECK:      step.descriptor {
// CHECK-SAME:   barriers = 5 : i64
// CHECK-SAME:   phases = [
// CHECK-SAME:     {bytes = 3136 : i64, kind = 0 : i64, name = "layer.linear"},
// CHECK-SAME:     {bytes = 0 : i64, kind = 1 : i64, name = "layer.linearx"},
// CHECK-SAME:     {bytes = 0 : i64, kind = 2 : i64, name = "step.embed"}]
step.descriptor {kv = #step.affine<0>, arena = #step.affine<1536>,
  payload = 0 : i64, bytes_per_step = 0 : i64, linear_weights = 0 : i64,
  full_layers = 0 : i64, ring = 0 : i64, capacity_multiple = 16 : i64,
  barriers = 0 : i64, kv_type = "f16"}

// ctx, tid, n, where to prefetch, how many bytes.
// CHECK-LABEL: llvm.func internal @barrier(
// CHECK-SAME:    %{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: !llvm.ptr, %{{.*}}: i64) attributes {no_inline, passthrough = {{\[\[}}"no-jump-tables", "true"]]}

// ctx, tid, n, weights, kv, and the tables that the layer is given.
// CHECK-LABEL: llvm.func internal @layer(
// CHECK-SAME:    %[[CTX:.*]]: !llvm.ptr, %[[TID:.*]]: i64, %[[N:.*]]: i64, %[[W:.*]]: !llvm.ptr, %[[KV:.*]]: !llvm.ptr, %[[ROPE:.*]]: !llvm.ptr) attributes {no_inline, passthrough = {{\[\[}}"no-jump-tables", "true"]]}
// CHECK-DAG:     %[[C0:.*]] = arith.constant 0 : i64
// CHECK-DAG:     %[[BYTES:.*]] = arith.constant 640 : i64
// A phase's weights start at 0; here at the stream's offset.
// CHECK:         %[[W64:.*]] = llvm.getelementptr inbounds %[[W]][64]
// CHECK-NEXT:    llvm.call @layer.linear(%[[CTX]], %[[TID]], %[[N]], %[[W64]], %[[KV]], %[[ROPE]])
// CHECK-NEXT:    %[[AT:.*]] = llvm.getelementptr inbounds %[[W]][4096]
// CHECK-NEXT:    llvm.call @barrier(%[[CTX]], %[[TID]], %[[N]], %[[AT]], %[[BYTES]])
// Tables are passed to the phases that read them only.
// CHECK-NEXT:    llvm.call @layer.linearx(%[[CTX]], %[[TID]], %[[N]], %[[W]], %[[KV]]) :
// CHECK-NEXT:    llvm.call @barrier(%[[CTX]], %[[TID]], %[[N]], %[[W]], %[[C0]])
// CHECK-NEXT:    llvm.return
step.func @layer {
^bb0(%rope: !step.vec<32>):
  // The thread's share of 3072 bytes: a unit of two tiles, and one of one.
  // CHECK-LABEL: llvm.func internal @layer.linear(
  // CHECK-SAME:    %[[CTX:.*]]: !llvm.ptr, %[[TID:.*]]: i64, %[[N:.*]]: i64, %[[W:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr, %[[ROPE:[a-z0-9]*]]: !llvm.ptr)
  // CHECK-DAG:     %[[ALL:.*]] = arith.constant 3072 : i64
  step.phase "linear" linear {
    step.stream 64 bytes 3136
    // The activation lies in the arena.
    // CHECK:       %[[FIELD:.*]] = llvm.getelementptr inbounds %[[CTX]][16]
    // CHECK:       %[[ARENA:.*]] = llvm.load %[[FIELD]] {{.*}} -> !llvm.ptr
    // CHECK:       %[[X:.*]] = llvm.getelementptr inbounds %[[ARENA]][256]
    // CHECK:       %[[WORK:.*]] = arith.muli %[[TID]], %[[ALL]] : i64
    // CHECK:       arith.divui %[[WORK]], %[[N]] : i64
    %x = step.view @x : !step.vec<16>
    // CHECK:       %[[TILES:.*]] = llvm.getelementptr inbounds %[[W]][64]
    // CHECK:       scf.for %[[UNIT:.*]] = %{{.*}} to
    // Both tiles of the pair by the same code.
    // CHECK:         %[[A:.*]] = llvm.call @dot_f32.16.0.0.0.1(%{{.*}}, %[[X]])
    // CHECK-NEXT:    %[[SUMS:.*]] = llvm.extractvalue %[[A]][0]
    // CHECK:         llvm.call @dot_f32.16.0.0.0.1(%{{.*}}, %[[X]])
    // CHECK-NEXT:    llvm.extractvalue
    // The angles of the unit's lanes, then the turn.
    // CHECK:         llvm.getelementptr inbounds %[[ROPE]]
    // CHECK:         arith.mulf %[[SUMS]]
    // CHECK:         %[[ARENA2:.*]] = llvm.load %[[FIELD]] {{.*}} -> !llvm.ptr
    // CHECK:         llvm.getelementptr inbounds %[[ARENA2]][1024]
    // CHECK:         llvm.store {{.*}} : vector<16xf32>, !llvm.ptr
    step.tiles %x at 128 layout "tile16_f32" cols 16 group 0 units 1 paired
      kernel "dot_f32" {
    ^bb0(%a: vector<16xf32>, %b: vector<16xf32>, %j: index):
      %f, %s = step.rotate %a, %b by %rope[%j] : !step.vec<32>
      step.store %f, @y[%j] lanes <heads = 1, width = 16, stride = 16>
    } : !step.vec<16>
    // CHECK:       llvm.getelementptr inbounds %[[W]][2112]
    // CHECK:       scf.for
    // CHECK:         llvm.call @dot_f32.16.0.0.0.1(%{{.*}}, %[[X]])
    // Three lanes of the last tile are rows.
    // CHECK:         llvm.intr.masked.store
    step.tiles %x at 2176 layout "tile16_f32" cols 16 group 0 units 1
      kernel "dot_f32" {
    ^bb0(%a: vector<16xf32>, %j: index):
      step.store %a, @y[%j] lanes <heads = 1, width = 3, stride = 3>
    } : !step.vec<16>
  }
  // The kernel of all three tiles.
  // CHECK-LABEL: llvm.func internal @dot_f32.16.0.0.0.1(
  // CHECK-SAME:    %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr) -> !llvm.struct<(vector<16xf32>)> attributes {no_inline
  // CHECK-COUNT-16: math.fma
  // CHECK:         %[[ALL:.*]] = llvm.insertvalue
  // CHECK-NEXT:    llvm.return %[[ALL]]
  step.barrier prefetch 4096 bytes 640
  // A second phase of one name gets a name of its own.
  // CHECK-LABEL: llvm.func internal @layer.linearx(
  step.phase "linear" attention {
    step.embed @x weight 0 layout "rows_f32" hidden 8
  }
  step.barrier
  step.return
}

// The entry: threads run it under the default floating-point environment.
// CHECK-LABEL: llvm.func internal @sparkc_step(
// CHECK-SAME:    %[[CTX:.*]]: !llvm.ptr, %[[TID32:.*]]: i32, %[[N32:.*]]: i32)
// CHECK-DAG:     %[[C0:.*]] = arith.constant 0 : i64
// CHECK-DAG:     %[[MXCSR:.*]] = arith.constant 8064 : i32
// CHECK-DAG:     %[[PER:.*]] = arith.constant 256 : i64
// CHECK-DAG:     %[[FREQ:.*]] = llvm.mlir.addressof @[[TABLE:frequencies.8.[0-9a-fx]*]]
// CHECK-DAG:     %[[TID:.*]] = arith.extui %[[TID32]] : i32 to i64
// CHECK-DAG:     %[[N:.*]] = arith.extui %[[N32]] : i32 to i64
// CHECK-DAG:     %[[W:.*]] = llvm.load %[[CTX]] {{.*}} -> !llvm.ptr
// CHECK-DAG:     %[[KVF:.*]] = llvm.getelementptr inbounds %[[CTX]][8]
// CHECK:         %[[KV:.*]] = llvm.load %[[KVF]]
// CHECK:         llvm.call_intrinsic "llvm.x86.sse.stmxcsr"(%[[SAVED:.*]]) :
// CHECK:         llvm.store %[[MXCSR]], %[[OURS:.*]] {
// CHECK-NEXT:    llvm.call_intrinsic "llvm.x86.sse.ldmxcsr"(%[[OURS]])
// The table of this position.
// CHECK:         llvm.getelementptr inbounds %[[CTX]][40]
// CHECK:         llvm.load %[[FREQ]] {{.*}} -> vector<16xf64>
// CHECK:         llvm.store {{.*}}, %[[ROPE:[a-z0-9]+]] {{.*}} : vector<16xf32>
// CHECK:         llvm.store {{.*}} : vector<16xf32>
// CHECK:         llvm.call @step.embed(%[[CTX]], %[[TID]], %[[N]], %[[W]], %[[KV]]) :
// CHECK-NEXT:    llvm.call @barrier(%[[CTX]], %[[TID]], %[[N]], %[[W]], %[[C0]])
// CHECK-NEXT:    %[[W0:.*]] = llvm.getelementptr inbounds %[[W]][8192]
// CHECK-NEXT:    %[[CAPF:.*]] = llvm.getelementptr inbounds %[[CTX]][48]
// CHECK-NEXT:    %[[CAP:.*]] = llvm.load %[[CAPF]]
// CHECK-NEXT:    %[[GROWS:.*]] = arith.muli %[[CAP]], %[[PER]]
// CHECK-NEXT:    %[[KVAT:.*]] = arith.addi %[[GROWS]],
// CHECK-NEXT:    %[[KV0:.*]] = llvm.getelementptr inbounds %[[KV]][%[[KVAT]]]
// CHECK-NEXT:    llvm.call @layer(%[[CTX]], %[[TID]], %[[N]], %[[W0]], %[[KV0]], %[[ROPE]])
// CHECK-NEXT:    %[[W1:.*]] = llvm.getelementptr inbounds %[[W]][16384]
// CHECK:         llvm.call @layer(%[[CTX]], %[[TID]], %[[N]], %[[W1]], %{{.*}}, %[[ROPE]])
// The host's environment comes back.
// CHECK-NEXT:    llvm.call_intrinsic "llvm.x86.sse.ldmxcsr"(%[[SAVED]])
// CHECK-NEXT:    llvm.return
// theta^(-2i/8), i mod 4, for 16 lanes.
// CHECK:         llvm.mlir.global internal constant @[[TABLE]](dense<[1.000000e+00, 1.000000e-01, 1.000000e-02, 1.000000e-03, 1.000000e+00,
// CHECK-LABEL: llvm.func internal @step.embed(
step.func entry @step {
  %t = step.rope_table <theta = 1.0e+04, width = 8> : !step.vec<32>
  step.phase "embed" other {
    step.embed @x weight 0 layout "rows_f32" hidden 8
  }
  step.barrier
  step.call @layer(%t) layer 0 weights 8192 kv <64 + 256 * capacity>
    : !step.vec<32>
  step.call @layer(%t) layer 7 weights 16384 kv <128 + 256 * capacity>
    : !step.vec<32>
  step.return
}

// Profiled: an event of 32 bytes a phase (index, layer, begin, end, resumed),
// in this thread's row of the host's buffer, or on the stack past its end.
// CHECK-LABEL: llvm.func internal @layer.profile(
// CHECK-SAME:    %[[CTX:.*]]: !llvm.ptr, %[[TID:.*]]: i64, %{{.*}}: i64, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %[[COUNTER:.*]]: !llvm.ptr, %[[LAYER:[a-z0-9]*]]: i64)
// CHECK-DAG:     %[[C32:.*]] = arith.constant 32 : i64
// CHECK-DAG:     %[[PHASE0:.*]] = arith.constant 0 : i32
// CHECK-DAG:     %[[PHASE1:.*]] = arith.constant 1 : i32
// CHECK:         %[[I:.*]] = llvm.load %[[COUNTER]]
// CHECK:         llvm.store %{{.*}}, %[[COUNTER]]
// CHECK:         %[[CAPF:.*]] = llvm.getelementptr inbounds %[[CTX]][96]
// CHECK:         %[[CAP:.*]] = llvm.load %[[CAPF]]
// CHECK:         %[[BUFF:.*]] = llvm.getelementptr inbounds %[[CTX]][88]
// CHECK:         %[[BUF:.*]] = llvm.load %[[BUFF]]
// CHECK:         %[[ROW:.*]] = arith.muli %[[TID]], %[[CAP]]
// CHECK-NEXT:    %[[NTH:.*]] = arith.addi %[[ROW]], %[[I]]
// CHECK-NEXT:    %[[OFF:.*]] = arith.muli %[[NTH]], %[[C32]]
// CHECK-NEXT:    %[[IN:.*]] = llvm.getelementptr inbounds %[[BUF]][%[[OFF]]]
// CHECK-NEXT:    %[[ROOM:.*]] = arith.cmpi ult, %[[I]], %[[CAP]]
// CHECK-NEXT:    %[[EVENT:.*]] = arith.select %[[ROOM]], %[[IN]], %{{.*}} : !llvm.ptr
// CHECK-NEXT:    llvm.store %[[PHASE0]], %[[EVENT]]
// CHECK-NEXT:    %[[AT4:.*]] = llvm.getelementptr inbounds %[[EVENT]][4]
// CHECK-NEXT:    %[[L32:.*]] = arith.trunci %[[LAYER]] : i64 to i32
// CHECK-NEXT:    llvm.store %[[L32]], %[[AT4]]
// CHECK-NEXT:    %[[AT8:.*]] = llvm.getelementptr inbounds %[[EVENT]][8]
// CHECK-NEXT:    %[[BEGIN:.*]] = llvm.call_intrinsic "llvm.x86.rdtsc"()
// CHECK-NEXT:    llvm.store %[[BEGIN]], %[[AT8]]
// CHECK-NEXT:    llvm.call @layer.linear(
// CHECK-NEXT:    %[[AT16:.*]] = llvm.getelementptr inbounds %[[EVENT]][16]
// CHECK-NEXT:    %[[END:.*]] = llvm.call_intrinsic "llvm.x86.rdtsc"()
// CHECK-NEXT:    llvm.store %[[END]], %[[AT16]]
// CHECK:         llvm.call @barrier(
// CHECK-NEXT:    %[[AT24:.*]] = llvm.getelementptr inbounds %[[EVENT]][24]
// CHECK-NEXT:    %[[RESUMED:.*]] = llvm.call_intrinsic "llvm.x86.rdtsc"()
// CHECK-NEXT:    llvm.store %[[RESUMED]], %[[AT24]]
// CHECK:         llvm.store %[[PHASE1]], %[[EVENT1:.*]] {
// CHECK:         llvm.call @layer.linearx(
// CHECK:         llvm.call @barrier(
// CHECK:         llvm.return

// Outside of layers the layer is the largest uint32.
// CHECK-LABEL: llvm.func internal @sparkc_step_profile(
// CHECK-SAME:    %[[CTX:.*]]: !llvm.ptr, %{{.*}}: i32, %{{.*}}: i32)
// CHECK-DAG:     %[[NONE:.*]] = arith.constant -1 : i32
// CHECK-DAG:     %[[FIRST:.*]] = arith.constant 0 : i64
// CHECK-DAG:     %[[SEVENTH:.*]] = arith.constant 7 : i64
// CHECK:         llvm.store %[[NONE]],
// CHECK:         llvm.call @step.embed(
// CHECK:         llvm.call @barrier(
// CHECK:         llvm.call @layer.profile({{.*}}, %[[FIRST]]) :
// CHECK:         llvm.call @layer.profile({{.*}}, %[[SEVENTH]]) :
// CHECK-NEXT:    llvm.call_intrinsic "llvm.x86.sse.ldmxcsr"
// CHECK-NEXT:    llvm.return
// CHECK-NOT:   llvm.func

// For ThreadSanitizer every access to shared memory is announced, and the
// barrier says who waited for whom.
// RUN: sparkc-opt %s --step-lower-to-llvm=sanitize-thread --canonicalize --cse | FileCheck %s --check-prefix=TSAN
// TSAN-DAG:   llvm.func @__tsan_read_range(!llvm.ptr, i64)
// TSAN-DAG:   llvm.func @__tsan_write_range(!llvm.ptr, i64)
// TSAN-DAG:   llvm.func @__tsan_acquire(!llvm.ptr)
// TSAN-DAG:   llvm.func @__tsan_release(!llvm.ptr)
// TSAN-LABEL: llvm.func internal @barrier(
// TSAN:         llvm.call @__tsan_release(
// TSAN:         llvm.atomicrmw add
// TSAN:         llvm.call @__tsan_acquire(
// TSAN-NEXT:    llvm.return
// TSAN-LABEL: llvm.func internal @layer.linear(
// TSAN:         llvm.call @__tsan_write_range(%[[AT:.*]], %{{.*}})
// TSAN-NEXT:    llvm.store {{.*}}, %[[AT]] {{.*}} vector<16xf32>
