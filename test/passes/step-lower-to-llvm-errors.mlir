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

// -----

//===--- What earlier passes had to decide, and layouts ---===//

// expected-error@+1 {{'step.slot' op has no offset; run step-plan-arena}}
step.slot @x size <512>
step.func entry @step {
  step.phase "p" other {
    step.embed @x weight 0 layout "rows_f32" hidden 8
  }
  step.return
}

// -----

step.func @layer {
^bb0(%x: !step.vec<128>):
  step.phase "p" linear {
    // expected-error@+1 {{'step.tiles' op has an unknown layout 'tile16_q3'}}
    step.tiles %x at 0 layout "tile16_q3" cols 128 group 0 units 1
      kernel "dot_q3" {
    ^bb0(%a: vector<16xf32>, %j: index):
    } : !step.vec<128>
  }
  step.return
}

// -----

step.func @layer {
^bb0(%x: !step.vec<128>):
  step.phase "p" linear {
    // expected-error@+1 {{'step.tiles' op layout 'tile16_q4' has groups of 32, 64 or 128, not 0}}
    step.tiles %x at 0 layout "tile16_q4" cols 128 group 0 units 1
      kernel "dot_q4_avx2" {
    ^bb0(%a: vector<16xf32>, %j: index):
    } : !step.vec<128>
  }
  step.return
}

// -----

step.func @layer {
^bb0(%x: !step.vec<128>):
  step.phase "p" linear {
    // expected-error@+1 {{'step.tiles' op layout 'rows_f32' has no tiles}}
    step.tiles %x at 0 layout "rows_f32" cols 128 group 0 units 1
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
    %q = step.quantize %x : !step.vec<128> -> !step.qvec<128, 64>
    // expected-error@+1 {{'step.tiles' op has groups of 64, but layout 'tile16_bf16' has none}}
    step.tiles %q at 0 layout "tile16_bf16" cols 128 group 64 units 1
      kernel "dot_bf16" {
    ^bb0(%a: vector<16xf32>, %j: index):
    } : !step.qvec<128, 64>
  }
  step.return
}

// -----

step.func @layer {
^bb0(%x: !step.vec<128>):
  step.phase "p" linear {
    %q = step.quantize %x : !step.vec<128> -> !step.qvec<128, 64>
    // expected-error@+1 {{'step.tiles' op layout 'tile16_q4' has groups of 32, 64 or 128, not 192}}
    step.tiles %q at 0 layout "tile16_q4" cols 128 group 192 units 1
      kernel "dot_q4_avx2" {
    ^bb0(%a: vector<16xf32>, %j: index):
    } : !step.qvec<128, 64>
  }
  step.return
}

// -----

step.slot @x size <512> at 0
step.func entry @step {
  step.phase "p" other {
    // expected-error@+1 {{'step.embed' op has an unknown layout 'rows_f8'}}
    step.embed @x weight 0 layout "rows_f8" hidden 8
  }
  step.return
}

// -----

step.slot @x size <512> at 0
step.func entry @step {
  step.phase "p" other {
    // expected-error@+1 {{'step.embed' op layout 'tile16_q6' has groups of 32, 64 or 128, not 0}}
    step.embed @x weight 0 layout "tile16_q6" hidden 8
  }
  step.return
}

// -----

step.slot @x size <512> at 0
step.func entry @step {
  step.phase "p" other {
    // expected-error@+1 {{'step.embed' op reads rows, which layout 'vector_f32' does not have}}
    step.embed @x weight 0 layout "vector_f32" hidden 8
  }
  step.return
}

// -----

// expected-error@+1 {{'step.pack' op has an unknown layout 'columns'}}
step.pack @p at 0 layout "columns" cols 128 group 0
  runs [#step.run<heads = 1, width = 16, stride = 16>] of [@w]

// -----

// expected-error@+1 {{'step.pack' op layout 'tile16_q8' has groups of 32, 64 or 128, not 16}}
step.pack @p at 0 layout "tile16_q8" cols 128 group 16
  runs [#step.run<heads = 1, width = 16, stride = 16>] of [@w]
