// step-lower-to-llvm: functions of the schedule may have any name, those of
// kernels and of the pass itself too; whichever comes later gets an x.
//
// RUN: sparkc-opt %s --step-lower-to-llvm --canonicalize --cse | FileCheck %s

step.slot @x size <512> at 256
step.slot @y size <512> at 1024

// CHECK:       llvm.func internal @barrier(
// CHECK-LABEL: llvm.func internal @scheduled.step(
// CHECK:         llvm.call @scheduled.step.linear(
step.func @scheduled.step {
  // CHECK-LABEL: llvm.func internal @scheduled.step.linear(
  // CHECK:         %[[SUM:.*]] = llvm.call @dot_f32.16.0.0.0.1(%{{.*}}) : (!llvm.ptr, !llvm.ptr) -> !llvm.struct<(vector<16xf32>)>
  step.phase "linear" linear {
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

// CHECK-LABEL: llvm.func internal @dot_f32.16.0.0.0.1(
// CHECK-SAME:    -> !llvm.struct<(vector<16xf32>)>

// CHECK-LABEL: llvm.func internal @dot_f32.16.0.0.0.1x(
// CHECK:         llvm.return
step.func @dot_f32.16.0.0.0.1 {
  step.return
}

// CHECK-LABEL: llvm.func internal @barrierx(
step.func @barrier {
  step.return
}

// CHECK-LABEL: llvm.func internal @sparkc_step(
// CHECK:         llvm.call @scheduled.step(
// CHECK:         llvm.call @dot_f32.16.0.0.0.1x(
// CHECK:         llvm.call @barrierx(
step.func entry @step {
  step.call @scheduled.step() layer 0 weights 0 kv <0>
  step.call @dot_f32.16.0.0.0.1() layer 1 weights 0 kv <0>
  step.call @barrier() layer 2 weights 0 kv <0>
  step.return
}
