// step-merge-barriers: a barrier goes where nothing has been done since the one
// before it.
//
// RUN: sparkc-opt %s --step-merge-barriers | FileCheck %s
// A second run finds nothing more.
// RUN: sparkc-opt %s --step-merge-barriers -o %t.mlir
// RUN: sparkc-opt %t.mlir --step-merge-barriers | diff %t.mlir -
// The compiler's own schedules have none to spare.
// RUN: sparkc-opt %S/Inputs/two-layers.mlir --sparkc-graph-pipeline --sparkc-fuse-pipeline --spark-to-step -o %t.two.mlir
// RUN: sparkc-opt %t.two.mlir --step-merge-barriers | diff %t.two.mlir -

// Two in a row: the first stays, with what it prefetches.
// CHECK-LABEL: step.func @twice
// CHECK-NEXT:    step.phase "a" other {
// CHECK:         step.barrier prefetch 64 bytes 128
// CHECK-NEXT:    step.phase "b" other {
// CHECK:         step.barrier{{$}}
// CHECK-NEXT:    step.return
step.slot @x size <512>
step.func @twice {
  step.phase "a" other {
    step.embed @x weight 0 layout "rows_f32" hidden 8
  }
  step.barrier prefetch 64 bytes 128
  step.barrier prefetch 192 bytes 256
  step.barrier
  step.phase "b" other {
    step.embed @x weight 0 layout "rows_f32" hidden 8
  }
  step.barrier
  step.return
}

// A phase without ops and a table, which every thread makes for itself, are no
// work that another thread could wait for.
// CHECK-LABEL: step.func @nothing_between
// CHECK:         step.barrier
// CHECK-NEXT:    step.phase "empty" other {
// CHECK-NEXT:    }
// CHECK-NEXT:    step.rope_table
// CHECK-NEXT:    step.phase "b" other {
// CHECK:         step.barrier
// CHECK-NEXT:    step.return
step.func @nothing_between {
  step.phase "a" other {
    step.embed @x weight 0 layout "rows_f32" hidden 8
  }
  step.barrier
  step.phase "empty" other {
  }
  step.barrier
  %t = step.rope_table <theta = 1.0e+04, width = 8> : !step.vec<32>
  step.barrier
  step.phase "b" other {
    step.embed @x weight 0 layout "rows_f32" hidden 8
  }
  step.barrier
  step.return
}

// What a callee does counts, and what a caller has done before: neither the
// barriers around a call nor the first of a function go.
// CHECK-LABEL: step.func entry @calls
// CHECK-NEXT:    step.rope_table
// CHECK-NEXT:    step.barrier
// CHECK-NEXT:    step.call @callee
// CHECK-NEXT:    step.barrier
// CHECK-NEXT:    step.call @callee
// CHECK-NEXT:    step.barrier
// CHECK-NEXT:    step.return
step.func entry @calls {
  %t = step.rope_table <theta = 1.0e+04, width = 8> : !step.vec<32>
  step.barrier
  step.call @callee(%t) layer 0 weights 0 kv <0> : !step.vec<32>
  step.barrier
  step.call @callee(%t) layer 1 weights 0 kv <0> : !step.vec<32>
  step.barrier
  step.return
}
step.func @callee {
^bb0(%t: !step.vec<32>):
  step.return
}
