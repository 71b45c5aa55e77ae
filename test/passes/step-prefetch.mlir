// step-prefetch: a barrier names the weights that are read next, wherever they
// are read.
//
// RUN: sparkc-opt %s --step-prefetch | FileCheck %s

step.slot @x size <512>

// CHECK-LABEL: step.func @layer
step.func @layer {
^bb0(%t: !step.vec<32>):
  step.phase "qkv" linear {
    step.stream 64 bytes 1000
  }
  // An attention reads no weights: the phase behind it is what comes.
  // CHECK: step.barrier prefetch 1064 bytes 300
  step.barrier
  step.phase "attention" attention {
    step.embed @x weight 0 layout "rows_f32" hidden 8
  }
  // CHECK: step.barrier prefetch 1064 bytes 300
  step.barrier
  step.phase "out" linear {
    step.stream 1064 bytes 300
  }
  // The layer that follows lies behind this one's last byte, and is taken to
  // begin with as much as this one.
  // CHECK: step.barrier prefetch 1364 bytes 1000
  step.barrier
  step.return
}

// What no weights are read after keeps nothing to prefetch.
// CHECK-LABEL: step.func @dry
step.func @dry {
^bb0(%t: !step.vec<32>):
  // CHECK: step.barrier{{$}}
  step.barrier
  step.return
}

// CHECK-LABEL: step.func entry @step
step.func entry @step {
  %t = step.rope_table <theta = 1.0e+04, width = 8> : !step.vec<32>
  step.phase "embed" other {
    step.embed @x weight 0 layout "rows_f32" hidden 8
  }
  // Through a call: the callee's first stream, from where the caller's base is.
  // CHECK: step.barrier prefetch 4160 bytes 1000
  step.barrier
  step.call @layer(%t) layer 0 weights 4096 kv <0> : !step.vec<32>
  // Past a callee that reads none.
  // CHECK: step.barrier prefetch 8256 bytes 1000
  step.barrier
  step.call @dry(%t) layer 1 weights 6000 kv <0> : !step.vec<32>
  step.call @layer(%t) layer 2 weights 8192 kv <0> : !step.vec<32>
  // CHECK: step.barrier prefetch 16384 bytes 77
  step.barrier
  step.phase "head" linear {
    step.stream 16384 bytes 77
  }
  // Behind the entry's last phase comes nothing of this step.
  // CHECK: step.barrier{{$}}
  step.barrier
  step.return
}
