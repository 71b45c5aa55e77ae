// Ops that know a KV cache, printed, read back and printed the same.
//
// RUN: sparkc-opt %s --verify-roundtrip | FileCheck %s

step.slot @q size <512>
step.slot @k size <512>
step.slot @v size <512>
step.slot @partials size <0 + 64 * capacity>

// CHECK-LABEL: step.func @floats
step.func @floats {
  step.phase "attention" attention {
    // CHECK: step.attention @q, @partials cache <heads = 1, head_dim = 8, positions = 64, element = f16> heads 2 window 16 scale 5.000000e-01 chunk 64
    step.attention @q, @partials cache <heads = 1, head_dim = 8, positions = 64, element = f16> heads 2 window 16 scale 0.5 chunk 64
  }
  step.return
}

// CHECK-LABEL: step.func @quantized
step.func @quantized {
  step.phase "attention" attention {
    // A window of 16 keys may lie in two chunks.
    // CHECK: step.attention @q, @partials cache <heads = 1, head_dim = 8, positions = 128, element = i8> token @k, @v heads 2 window 16 scale 5.000000e-01 chunk 64
    step.attention @q, @partials cache <heads = 1, head_dim = 8, positions = 128, element = i8> token @k, @v heads 2 window 16 scale 0.5 chunk 64
    // CHECK: step.attention {{.*}} positions = 64, element = i8> token @k, @v heads 2 window 1 
    step.attention @q, @partials cache <heads = 1, head_dim = 8, positions = 64, element = i8> token @k, @v heads 2 window 1 scale 0.5 chunk 64
    // CHECK: step.attention {{.*}} positions = 0, element = i8> token @k, @v heads 2 window 0 
    step.attention @q, @partials cache <heads = 1, head_dim = 8, positions = 0, element = i8> token @k, @v heads 2 window 0 scale 0.5 chunk 64
  }
  step.return
}
