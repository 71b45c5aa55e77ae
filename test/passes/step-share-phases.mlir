// Phases that do the same on other weights, of another kind of layers, go to the
// function of the first; each has a symbol and a line in the table of phases.
//
// RUN: sparkc-opt %s --step-lower-to-llvm --canonicalize --cse -o %t.mlir
// RUN: FileCheck %s < %t.mlir

step.slot @x size <512> at 256
step.slot @y size <512> at 1024

// CHECK: {bytes = 1024 : i64, kind = 0 : i64, name = "layer.near.down"},
// CHECK-SAME: {bytes = 1024 : i64, kind = 0 : i64, name = "layer.far.down"},
// CHECK-SAME: {bytes = 1024 : i64, kind = 0 : i64, name = "layer.far.up"},
// CHECK-SAME: {bytes = 1024 : i64, kind = 0 : i64, name = "layer.other.down"}]
step.descriptor {kv = #step.affine<0>, arena = #step.affine<1536>,
  payload = 0 : i64, bytes_per_step = 0 : i64, linear_weights = 0 : i64,
  full_layers = 0 : i64, ring = 0 : i64, capacity_multiple = 16 : i64,
  barriers = 0 : i64, kv_type = "f16"}

// CHECK-LABEL: llvm.func internal @layer.near(
// CHECK-SAME:    %{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64, %[[W:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr) attributes
// CHECK:         llvm.call @layer.near.down(%{{.*}}, %{{.*}}, %{{.*}}, %[[W]], %{{.*}})
// CHECK-LABEL: llvm.func internal @layer.near.down(
step.func @layer.near {
  step.phase "down" linear {
    step.stream 0 bytes 1024
    %x = step.view @x : !step.vec<16>
    step.tiles %x at 0 layout "tile16_f32" cols 16 group 0 units 1
      kernel "dot_f32" {
    ^bb0(%a: vector<16xf32>, %j: index):
      step.store %a, @y[%j] lanes <heads = 1, width = 16, stride = 16>
    } : !step.vec<16>
  }
  step.barrier
  step.return
}

// CHECK-LABEL: llvm.func internal @layer.far(
// CHECK-SAME:    %{{.*}}: !llvm.ptr, %{{.*}}: i64, %{{.*}}: i64, %[[W:.*]]: !llvm.ptr, %{{.*}}: !llvm.ptr) attributes
// CHECK:         %[[AT:.*]] = llvm.getelementptr inbounds %[[W]][4096]
// CHECK-NEXT:    llvm.call @layer.far.down(%{{.*}}, %{{.*}}, %{{.*}}, %[[AT]], %{{.*}})
// CHECK:         llvm.call @layer.far.up(
// CHECK-LABEL: llvm.func internal @layer.far.down(
// CHECK-SAME:    %[[CTX:.*]]: !llvm.ptr, %[[TID:.*]]: i64, %[[N:.*]]: i64, %[[W:.*]]: !llvm.ptr, %[[KV:.*]]: !llvm.ptr) attributes
// CHECK-NEXT:    llvm.call @layer.near.down(%[[CTX]], %[[TID]], %[[N]], %[[W]], %[[KV]])
// CHECK-NEXT:    llvm.return
// A phase of another name is another phase.
// CHECK-LABEL: llvm.func internal @layer.far.up(
// CHECK:         scf.for
step.func @layer.far {
  step.phase "down" linear {
    step.stream 4096 bytes 1024
    %x = step.view @x : !step.vec<16>
    step.tiles %x at 4096 layout "tile16_f32" cols 16 group 0 units 1
      kernel "dot_f32" {
    ^bb0(%a: vector<16xf32>, %j: index):
      step.store %a, @y[%j] lanes <heads = 1, width = 16, stride = 16>
    } : !step.vec<16>
  }
  step.barrier
  step.phase "up" linear {
    step.stream 0 bytes 1024
    %x = step.view @x : !step.vec<16>
    step.tiles %x at 0 layout "tile16_f32" cols 16 group 0 units 1
      kernel "dot_f32" {
    ^bb0(%a: vector<16xf32>, %j: index):
      step.store %a, @y[%j] lanes <heads = 1, width = 16, stride = 16>
    } : !step.vec<16>
  }
  step.barrier
  step.return
}

// What is stored elsewhere is another phase.
// CHECK-LABEL: llvm.func internal @layer.other(
// CHECK:         llvm.call @layer.other.down(
// CHECK-LABEL: llvm.func internal @layer.other.down(
// CHECK:         scf.for
step.func @layer.other {
  step.phase "down" linear {
    step.stream 0 bytes 1024
    %x = step.view @x : !step.vec<16>
    step.tiles %x at 0 layout "tile16_f32" cols 16 group 0 units 1
      kernel "dot_f32" {
    ^bb0(%a: vector<16xf32>, %j: index):
      step.store %a, @x[%j] lanes <heads = 1, width = 16, stride = 16>
    } : !step.vec<16>
  }
  step.barrier
  step.return
}
