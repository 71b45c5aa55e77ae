// What step-lower-to-llvm refuses.
//
// RUN: sparkc-opt %s --split-input-file --verify-diagnostics --step-lower-to-llvm

step.func @layer {
^bb0(%x: !step.vec<128>):
  step.phase "p" linear {
    // expected-error@+1 {{'step.tiles' op has no kernel; run step-select-microkernel}}
    step.tiles %x at 0 layout "tile16_bf16" cols 128 group 0 units 1 {
    ^bb0(%a: vector<16xf32>, %j: index):
    } : !step.vec<128>
  }
  step.return
}

// -----

step.func @layer {
^bb0(%x: !step.vec<128>):
  step.phase "p" linear {
    // expected-error@+1 {{'step.tiles' op kernel 'dot_f32' does not read layout 'tile16_bf16'}}
    step.tiles %x at 0 layout "tile16_bf16" cols 128 group 0 units 1
      kernel "dot_f32" {
    ^bb0(%a: vector<16xf32>, %j: index):
    } : !step.vec<128>
  }
  step.return
}

// -----

step.func @layer {
^bb0(%x: !step.vec<128>):
  step.phase "p" linear {
    // expected-error@+1 {{'step.tiles' op kernel 'dot_q3' does not read layout 'tile16_bf16'}}
    step.tiles %x at 0 layout "tile16_bf16" cols 128 group 0 units 1
      kernel "dot_q3" {
    ^bb0(%a: vector<16xf32>, %j: index):
    } : !step.vec<128>
  }
  step.return
}

// -----

step.func entry @step {
  // expected-error@+1 {{'arith.constant' op cannot be lowered here}}
  %c = arith.constant 0 : index
  step.return
}

// -----

step.func entry @step {
  step.phase "p" other {
    // expected-error@+1 {{'arith.constant' op cannot be lowered in a phase}}
    %c = arith.constant 0 : index
  }
  step.return
}

// -----

step.func @layer {
^bb0(%x: !step.vec<128>):
  step.phase "p" linear {
    step.tiles %x at 0 layout "tile16_bf16" cols 128 group 0 units 1
      kernel "dot_bf16" {
    ^bb0(%a: vector<16xf32>, %j: index):
      // expected-error@+1 {{'arith.addf' op cannot be lowered in an epilogue}}
      %twice = arith.addf %a, %a : vector<16xf32>
    } : !step.vec<128>
  }
  step.return
}
