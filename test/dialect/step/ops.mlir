// Every op of the dialect, printed, read back and printed the same.
//
// RUN: sparkc-opt %s | sparkc-opt | FileCheck %s
// RUN: sparkc-opt %s --verify-roundtrip | FileCheck %s
// RUN: sparkc-opt %s --mlir-print-op-generic | sparkc-opt | FileCheck %s
// RUN: sparkc-opt %s --emit-bytecode | sparkc-opt | FileCheck %s

//===--- Module level ---===//

// What packs refer to is spark's.
spark.weight @norm : tensor<96xf32> from <"m", F32, offset = 0, bytes = 384>
spark.weight @qkv : tensor<96x96xi4, #spark.grid<bits = 4, group = 32>>
  from <"m", BF16, offset = 384, bytes = 18432>
spark.weight @gate_proj : tensor<3x96xi4, #spark.grid<bits = 4, group = 32>>
  from <"m", BF16, offset = 18816, bytes = 576>

// CHECK: step.pack @pack.norm at 0 layout "vector_f32" cols 96 group 0
// CHECK-SAME: runs [#step.run<heads = 1, width = 1, stride = 1>] of [@norm]{{$}}
step.pack @pack.norm at 0 layout "vector_f32" cols 96 group 0
  runs [#step.run<heads = 1, width = 1, stride = 1>] of [@norm]
// An offset may lie beyond 4 GiB.
// CHECK: step.pack @pack.qkv at 8589934592 layout "tile16_q4" cols 96 group 32
// CHECK-SAME: runs [#step.run<heads = 3, width = 8, stride = 32, weight_b = 0, base_b = 8>, #step.run<heads = 1, width = 3, stride = 3, weight_a = 1>] of [@qkv, @gate_proj]{{$}}
step.pack @pack.qkv at 8589934592 layout "tile16_q4" cols 96 group 32
  runs [#step.run<heads = 3, width = 8, stride = 32, weight_b = 0, base_b = 8>,
        #step.run<heads = 1, width = 3, stride = 3, weight_a = 1>]
  of [@qkv, @gate_proj]

// CHECK: step.slot @x size <512> at 0
step.slot @x size <512> at 0
// CHECK: step.slot @gate size <64> at 512
step.slot @gate size <64> at 512
// Not placed yet.
// CHECK: step.slot @partials size <640 + 12 * capacity>{{$}}
step.slot @partials size <640 + 12 * capacity>

// CHECK:      step.descriptor {
// CHECK-SAME:   arena = #step.affine<576 + 12 * capacity>
// CHECK-SAME:   barriers = 9 : i64
// CHECK-SAME:   bytes_per_step = 1000 : i64
// CHECK-SAME:   capacity_multiple = 64 : i64
// CHECK-SAME:   fold_layers = 7 : i64
// CHECK-SAME:   fold_threshold = 2048 : i64
// CHECK-SAME:   full_layers = 1 : i64
// CHECK-SAME:   kv = #step.affine<4096>
// CHECK-SAME:   kv_type = "f16"
// CHECK-SAME:   linear_weights = 900 : i64
// CHECK-SAME:   payload = 1100 : i64
// CHECK-SAME:   phases = [{bytes = 64 : i64, kind = 0 : i64, name = "step.head"}]
// CHECK-SAME:   ring = 32 : i64
step.descriptor {kv = #step.affine<4096>, arena = #step.affine<576 + 12 * capacity>,
  payload = 1100 : i64, bytes_per_step = 1000 : i64, linear_weights = 900 : i64,
  full_layers = 1 : i64, ring = 32 : i64, capacity_multiple = 64 : i64,
  barriers = 9 : i64, kv_type = "f16", fold_layers = 7 : i64,
  fold_threshold = 2048 : i64,
  phases = [{name = "step.head", kind = 0 : i64, bytes = 64 : i64}]}

//===--- Functions, phases, what a thread does for itself ---===//

// CHECK-LABEL: step.func @layer {
// CHECK-NEXT:  ^bb0(%[[ROPE:.*]]: !step.vec<32>):
step.func @layer {
^bb0(%rope: !step.vec<32>):
  // CHECK-NEXT: step.phase "qkv" linear {
  step.phase "qkv" linear {
    // CHECK-NEXT: step.stream 64 bytes 4096
    step.stream 64 bytes 4096
    // CHECK-NEXT: %[[X:.*]] = step.view @x : <96>
    %x = step.view @x : !step.vec<96>
    // CHECK-NEXT: %[[N:.*]] = step.rms_norm %[[X]] weight 64 eps 1.000000e+00 : <96>
    %n = step.rms_norm %x weight 64 eps 1.0 : !step.vec<96>
    // CHECK-NEXT: %[[Q:.*]] = step.quantize %[[N]] : <96> -> <96, 32>
    %q = step.quantize %n : !step.vec<96> -> !step.qvec<96, 32>
    // Paired, on a quantized activation, with a kernel.
    // CHECK-NEXT: step.tiles %[[Q]] at 512 layout "tile16_q4" cols 96 group 64 units 2 paired kernel "dot_q4_avx2" {
    // CHECK-NEXT: ^bb0(%[[A:.*]]: vector<16xf32>, %[[B:.*]]: vector<16xf32>, %[[J:.*]]: index):
    step.tiles %q at 512 layout "tile16_q4" cols 96 group 64 units 2 paired
      kernel "dot_q4_avx2" {
    ^bb0(%a: vector<16xf32>, %b: vector<16xf32>, %j: index):
      // CHECK-NEXT: %[[FIRST:.*]], %[[SECOND:.*]] = step.rotate %[[A]], %[[B]] by %[[ROPE]][%[[J]]] : <32>
      %first, %second = step.rotate %a, %b by %rope[%j] : !step.vec<32>
      // CHECK-NEXT: step.kv_store key %[[FIRST]][%[[J]]] cache <heads = 1, head_dim = 32, positions = 32, element = f16> lanes <heads = 1, width = 16, stride = 32>
      step.kv_store key %first[%j]
        cache <heads = 1, head_dim = 32, positions = 32, element = f16>
        lanes <heads = 1, width = 16, stride = 32>
      // CHECK-NEXT: step.kv_store value %[[SECOND]][%[[J]]] cache <heads = 1, head_dim = 32, positions = 0, element = f32> lanes <heads = 1, width = 16, stride = 32, base = 16>
      step.kv_store value %second[%j]
        cache <heads = 1, head_dim = 32, positions = 0, element = f32>
        lanes <heads = 1, width = 16, stride = 32, base = 16>
      // CHECK-NEXT: %[[E:.*]] = step.geglu %[[FIRST]], %[[SECOND]]{{$}}
      %e = step.geglu %first, %second
      // CHECK-NEXT: %[[R:.*]] = step.residual %[[E]], @x[%[[J]]] lanes <heads = 1, width = 32, stride = 32>
      %r = step.residual %e, @x[%j] lanes <heads = 1, width = 32, stride = 32>
      // CHECK-NEXT: step.store %[[R]], @x[%[[J]]] lanes <heads = 1, width = 32, stride = 32>
      step.store %r, @x[%j] lanes <heads = 1, width = 32, stride = 32>
    // CHECK-NEXT: } : !step.qvec<96, 32>
    } : !step.qvec<96, 32>
  // CHECK-NEXT: }
  }
  // CHECK-NEXT: step.barrier prefetch 4160 bytes 65536
  step.barrier prefetch 4160 bytes 65536
  // CHECK-NEXT: step.phase "attention" attention {
  step.phase "attention" attention {
    // CHECK-NEXT: step.attention @x, @partials cache <heads = 1, head_dim = 32, positions = 32, element = f16> heads 3 window 16 scale 1.250000e-01 chunk 64
    step.attention @x, @partials
      cache <heads = 1, head_dim = 32, positions = 32, element = f16>
      heads 3 window 16 scale 0.125 chunk 64
  }
  // CHECK: step.barrier{{$}}
  step.barrier
  // CHECK-NEXT: step.phase "out" linear {
  step.phase "out" linear {
    // CHECK-NEXT: %[[O:.*]] = step.fold @partials heads 3 head_dim 32 window 16 chunk 64 : <96>
    %o = step.fold @partials heads 3 head_dim 32 window 16 chunk 64
      : !step.vec<96>
    // CHECK-NEXT: %[[G:.*]] = step.view @gate : <3>
    %g = step.view @gate : !step.vec<3>
    // CHECK-NEXT: step.head_gate %[[O]], %[[G]] : <96>, <3>
    %h = step.head_gate %o, %g : !step.vec<96>, !step.vec<3>
  }
  // CHECK: step.return
  step.return
}

// CHECK-LABEL: step.func entry @step {
step.func entry @step {
  // CHECK-NEXT: %[[T:.*]] = step.rope_table <theta = 1.000000e+04, width = 8> : <32>
  %t = step.rope_table <theta = 1.0e+04, width = 8> : !step.vec<32>
  // CHECK-NEXT: step.phase "embed" other {
  step.phase "embed" other {
    // CHECK-NEXT: step.embed @x weight 128 layout "rows_bf16" hidden 96
    step.embed @x weight 128 layout "rows_bf16" hidden 96
  }
  // A phase without work is still a phase.
  // CHECK: step.phase "nothing" other {
  // CHECK-NEXT: }
  step.phase "nothing" other {
  }
  // CHECK-NEXT: step.call @layer(%[[T]]) layer 3 weights 4096 kv <64 + 256 * capacity> : !step.vec<32>
  step.call @layer(%t) layer 3 weights 4096 kv <64 + 256 * capacity>
    : !step.vec<32>
  // CHECK-NEXT: step.phase "head" linear {
  step.phase "head" linear {
    // CHECK-NEXT: %[[X:.*]] = step.view @x
    %x = step.view @x : !step.vec<96>
    // Not paired, on floats, no kernel yet.
    // CHECK-NEXT: step.tiles %[[X]] at 0 layout "tile16_bf16" cols 96 group 0 units 5 {
    // CHECK-NEXT: ^bb0(%[[A:.*]]: vector<16xf32>, %[[J:.*]]: index):
    step.tiles %x at 0 layout "tile16_bf16" cols 96 group 0 units 5 {
    ^bb0(%a: vector<16xf32>, %j: index):
      // CHECK-NEXT: step.logits %[[A]][%[[J]]] lanes <heads = 1, width = 70, stride = 70>
      step.logits %a[%j] lanes <heads = 1, width = 70, stride = 70>
    // CHECK-NEXT: } : !step.vec<96>
    } : !step.vec<96>
  }
  step.return
}
