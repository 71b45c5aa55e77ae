// Every message of the dialect's verifiers.
//
// RUN: sparkc-opt %s --split-input-file --verify-diagnostics

//===--- Attributes ---===//

// expected-error@+1 {{lanes expect positive heads and width, not 0 and 16}}
func.func private @f() attributes {a = #step.lanes<heads = 0, width = 16, stride = 16>}

// -----

// expected-error@+1 {{lanes expect positive heads and width, not 2 and -1}}
func.func private @f() attributes {a = #step.lanes<heads = 2, width = -1, stride = 16>}

// -----

// expected-error@+1 {{lanes of width 16 overlap at a stride of 15}}
func.func private @f() attributes {a = #step.lanes<heads = 2, width = 16, stride = 15>}

// -----

// expected-error@+1 {{lanes begin at a negative element, -1}}
func.func private @f() attributes {a = #step.lanes<heads = 1, width = 16, stride = 16, base = -1>}

// -----

// expected-error@+1 {{bytes cannot be negative: -64 + 0 * capacity}}
func.func private @f() attributes {a = #step.affine<-64>}

// -----

// expected-error@+1 {{bytes cannot be negative: 64 + -4 * capacity}}
func.func private @f() attributes {a = #step.affine<64 + -4 * capacity>}

// -----

// expected-error@+1 {{a run expects positive heads and width, not 0 and 16}}
func.func private @f() attributes {a = #step.run<heads = 0, width = 16, stride = 16>}

// -----

// expected-error@+1 {{a run expects positive heads and width, not 1 and -16}}
func.func private @f() attributes {a = #step.run<heads = 1, width = -16, stride = 16>}

// -----

//===--- Types ---===//

// expected-error@+1 {{expects at least one element, not 0}}
func.func private @f(!step.vec<0>)

// -----

// expected-error@+1 {{expects at least one element, not -8}}
func.func private @f(!step.vec<-8>)

// -----

// expected-error@+1 {{expects at least one element, not 0}}
func.func private @f(!step.qvec<0, 64>)

// -----

// expected-error@+1 {{a group has 16, 32, 64 or 128 elements, not 0}}
func.func private @f(!step.qvec<128, 0>)

// -----

// expected-error@+1 {{a group has 16, 32, 64 or 128 elements, not 48}}
func.func private @f(!step.qvec<128, 48>)

// -----

// expected-error@+1 {{expects at least one element, not -1}}
func.func private @f(!step.block<-1, 64>)

// -----

// expected-error@+1 {{a group has 16, 32, 64 or 128 elements, not 256}}
func.func private @f(!step.block<128, 256>)

// -----

// expected-error@+1 {{activations in groups are i8 or bf16, not 'f16'}}
func.func private @f(!step.qvec<128, 64, f16>)

// -----

// expected-error@+1 {{activations in groups are i8 or bf16, not 'i4'}}
func.func private @f(!step.block<128, 64, i4>)

// -----

// expected-error@+1 {{activations of bf16 are in groups}}
func.func private @f(!step.block<128, 0, bf16>)

// -----

//===--- Module level ---===//

// expected-error@+1 {{'step.pack' op offset -64 is negative}}
step.pack @p at -64 layout "tile16_bf16" cols 128 group 0
  runs [#step.run<heads = 1, width = 16, stride = 16>] of [@w]

// -----

// expected-error@+1 {{'step.pack' op expects at least one run and one weight}}
step.pack @p at 0 layout "tile16_bf16" cols 128 group 0 runs [] of [@w]

// -----

// expected-error@+1 {{'step.pack' op expects at least one run and one weight}}
step.pack @p at 0 layout "tile16_bf16" cols 128 group 0
  runs [#step.run<heads = 1, width = 16, stride = 16>] of []

// -----

// expected-error@+1 {{'step.pack' op has a run of weights 1 and -1, but lists 1}}
step.pack @p at 0 layout "tile16_bf16" cols 128 group 0
  runs [#step.run<heads = 1, width = 16, stride = 16, weight_a = 1>] of [@w]

// -----

// expected-error@+1 {{'step.pack' op 2147483648 rows of 2147483648 columns are too many}}
step.pack @p at 0 layout "tile16_bf16" cols 2147483648 group 0
  runs [#step.run<heads = 1, width = 2147483648, stride = 2147483648>] of [@w]

// -----

// expected-error@+1 {{'step.pack' op has a run of weights 0 and 1, but lists 1}}
step.pack @p at 0 layout "tile16_bf16" cols 128 group 0
  runs [#step.run<heads = 1, width = 16, stride = 16, weight_b = 1>] of [@w]

// -----

// expected-error@+1 {{'step.slot' op offset 32 is not a multiple of 64}}
step.slot @x size <64> at 32

// -----

// expected-error@+1 {{'step.slot' op offset -64 is negative}}
step.slot @x size <64> at -64

// -----

// expected-error@+1 {{'step.slot' op row 0 is not positive}}
step.slot @x size <64> row 0

// -----

// expected-error@+1 {{'step.slot' op row 100 is not a multiple of 64}}
step.slot @x size <1000> row 100

// -----

// expected-error@+1 {{bytes cannot be negative}}
step.slot @x size <-64>

// -----

// expected-error@+1 {{'step.pack' op offset 32 is not a multiple of 64}}
step.pack @p at 32 layout "tile16_bf16" cols 128 group 0
  runs [#step.run<heads = 1, width = 16, stride = 16>] of [@w]

// -----

// expected-note@+1 {{see existing symbol definition here}}
step.slot @x size <64>
// expected-error@+1 {{redefinition of symbol named 'x'}}
step.slot @x size <64>

// -----

//===--- Functions and what they are made of ---===//

// expected-error@+1 {{'step.func' op is an entry, which takes no arguments}}
step.func entry @f {
^bb0(%x: !step.vec<128>):
  step.return
}

// -----

// expected-error@+1 {{'step.func' op has a name that begins with 'llvm.', which is kept for other functions of an object}}
step.func @llvm.memcpy {
  step.return
}

// -----

// expected-error@+1 {{'step.func' op has a name that begins with 'sparkc_'}}
step.func @sparkc_step {
  step.return
}

// -----

step.func @f {
  // expected-error@+1 {{'step.barrier' op expects both of prefetch and prefetch_bytes, or none}}
  "step.barrier"() <{prefetch = 64 : i64}> : () -> ()
  step.return
}

// -----

step.func @f {
  // expected-error@+1 {{'step.barrier' op expects both of prefetch and prefetch_bytes, or none}}
  "step.barrier"() <{prefetch_bytes = 64 : i64}> : () -> ()
  step.return
}

// -----

step.func @f {
  // expected-error@+1 {{'step.barrier' op prefetch -64 is negative}}
  step.barrier prefetch -64 bytes 64
  step.return
}

// -----

step.func @f {
  // expected-error@+1 {{'step.barrier' op prefetch_bytes -1 is negative}}
  step.barrier prefetch 0 bytes -1
  step.return
}

// -----

step.func @f {
  step.phase "p" linear {
    // expected-error@+1 {{'step.stream' op offset -64 is negative}}
    step.stream -64 bytes 64
  }
  step.return
}

// -----

step.func @f {
  step.phase "p" linear {
    // expected-error@+1 {{'step.stream' op bytes -1 is negative}}
    step.stream 0 bytes -1
  }
  step.return
}

// -----

//===--- Where ops may stand ---===//

func.func @f() {
  // expected-error@+1 {{'step.func' op expects parent op 'builtin.module'}}
  step.func @g {
    step.return
  }
  return
}

// -----

// expected-error@+1 {{'step.phase' op expects parent op 'step.func'}}
step.phase "p" other {
}

// -----

// expected-error@+1 {{'step.barrier' op expects parent op 'step.func'}}
step.barrier

// -----

step.func @f {
  // expected-error@+1 {{'step.stream' op expects parent op 'step.phase'}}
  step.stream 0 bytes 64
  step.return
}

// -----

step.slot @x size <512>
step.func @f {
  // expected-error@+1 {{'step.view' op expects parent op to be one of 'step.phase, step.tokens, step.tiles'}}
  %x = step.view @x : !step.vec<128>
  step.return
}

// -----

step.func @f {
^bb0(%x: !step.vec<128>):
  // expected-error@+1 {{'step.tiles' op expects parent op 'step.phase'}}
  step.tiles %x at 0 layout "tile16_bf16" cols 128 group 0 units 1 {
  ^bb0(%a: vector<16xf32>, %j: index):
  } : !step.vec<128>
  step.return
}

// -----

step.func @f {
^bb0(%a: vector<16xf32>, %b: vector<16xf32>):
  step.phase "p" other {
    // expected-error@+1 {{'step.geglu' op expects parent op 'step.tiles'}}
    %g = step.geglu %a, %b
  }
  step.return
}

// -----

//===--- Private values ---===//

step.func @f {
  // The smallest multiple of 3 and 16 is 48: as many cosines, as many sines.
  // expected-error@+1 {{expects a table of 96 elements, not 32}}
  %t = step.rope_table <theta = 1.0e+04, width = 6> : !step.vec<32>
  step.return
}

// -----

step.func @f {
^bb0(%x: !step.vec<128>):
  step.phase "p" other {
    // expected-error@+1 {{quantizes 128 elements into 64}}
    %q = step.quantize %x : !step.vec<128> -> !step.qvec<64, 64>
  }
  step.return
}

// -----

step.func @f {
^bb0(%x: !step.vec<128>):
  step.phase "p" other {
    // expected-error@+1 {{a group has 16, 32, 64 or 128 elements, not 8}}
    %q = step.quantize %x : !step.vec<128> -> !step.qvec<128, 8>
  }
  step.return
}

// -----

step.func @f {
^bb0(%x: !step.vec<128>, %g: !step.vec<3>):
  step.phase "p" other {
    // expected-error@+1 {{128 elements are not a multiple of 3 gates}}
    %h = step.head_gate %x, %g : !step.vec<128>, !step.vec<3>
  }
  step.return
}

// -----

step.func @f {
^bb0(%x: !step.vec<128>):
  step.phase "p" other {
    // expected-error@+1 {{'step.rms_norm' op eps -1.000000e+00 is negative or not finite}}
    %n = step.rms_norm %x weight 0 eps -1.0 : !step.vec<128>
  }
  step.return
}

// -----

step.func @f {
^bb0(%x: !step.vec<128>):
  step.phase "p" other {
    // expected-error@+1 {{is negative or not finite}}
    %n = step.rms_norm %x weight 0 eps 0x7FF8000000000000 : !step.vec<128>
  }
  step.return
}

// -----

step.func @f {
^bb0(%x: !step.vec<128>):
  step.phase "p" other {
    // expected-error@+1 {{'step.rms_norm' op weight 4 is not a multiple of 64}}
    %n = step.rms_norm %x weight 4 eps 1.0 : !step.vec<128>
  }
  step.return
}

// -----

step.func @f {
^bb0(%x: !step.vec<128>):
  step.phase "p" other {
    // expected-error@+1 {{'step.rms_norm' op weight -64 is negative}}
    %n = step.rms_norm %x weight -64 eps 1.0 : !step.vec<128>
  }
  step.return
}

// -----

step.func @f {
^bb0(%x: !step.vec<128>):
  step.phase "p" other {
    // expected-error@+1 {{expects at least one element, not 0}}
    %h = step.head_gate %x, %g : !step.vec<128>, !step.vec<0>
  }
  step.return
}

// -----

step.slot @p size <4096>
step.func @f {
  step.phase "p" other {
    // expected-error@+1 {{'step.fold' op heads 0 is not positive}}
    %o = step.fold @p heads 0 head_dim 32 window 16 chunk 64 : !step.vec<128>
  }
  step.return
}

// -----

step.slot @p size <4096>
step.func @f {
  step.phase "p" other {
    // expected-error@+1 {{'step.fold' op head_dim -32 is not positive}}
    %o = step.fold @p heads 4 head_dim -32 window 16 chunk 64 : !step.vec<128>
  }
  step.return
}

// -----

step.slot @p size <4096>
step.func @f {
  step.phase "p" other {
    // expected-error@+1 {{'step.fold' op 4 heads of 16 are not 128 elements}}
    %o = step.fold @p heads 4 head_dim 16 window 16 chunk 64 : !step.vec<128>
  }
  step.return
}

// -----

step.slot @p size <4096>
step.func @f {
  step.phase "p" other {
    // expected-error@+1 {{'step.fold' op 3 heads of 42 are not 128 elements}}
    %o = step.fold @p heads 3 head_dim 42 window 16 chunk 64 : !step.vec<128>
  }
  step.return
}

// -----

step.slot @p size <4096>
step.func @f {
  step.phase "p" other {
    // expected-error@+1 {{'step.fold' op window -1 is negative}}
    %o = step.fold @p heads 4 head_dim 32 window -1 chunk 64 : !step.vec<128>
  }
  step.return
}

// -----

step.slot @p size <4096>
step.func @f {
  step.phase "p" other {
    // expected-error@+1 {{'step.fold' op a chunk is a multiple of 16 keys, not 0}}
    %o = step.fold @p heads 4 head_dim 32 window 16 chunk 0 : !step.vec<128>
  }
  step.return
}

// -----

step.slot @p size <4096>
step.func @f {
  step.phase "p" other {
    // expected-error@+1 {{'step.fold' op a chunk is a multiple of 16 keys, not -16}}
    %o = step.fold @p heads 4 head_dim 32 window 16 chunk -16 : !step.vec<128>
  }
  step.return
}

// -----

step.slot @p size <4096>
step.func @f {
  step.phase "p" other {
    // expected-error@+1 {{'step.embed' op hidden 0 is not positive}}
    step.embed @p weight 0 layout "rows_f32" hidden 0
  }
  step.return
}

// -----

step.slot @p size <4096>
step.func @f {
  step.phase "p" other {
    // expected-error@+1 {{'step.embed' op weight 32 is not a multiple of 64}}
    step.embed @p weight 32 layout "rows_f32" hidden 8
  }
  step.return
}

// -----

step.slot @p size <4096>
step.func @f {
  step.phase "p" other {
    // expected-error@+1 {{'step.embed' op weight -64 is negative}}
    step.embed @p weight -64 layout "rows_f32" hidden 8
  }
  step.return
}

// -----

//===--- step.tiles ---===//

step.func @f {
^bb0(%x: !step.vec<128>):
  step.phase "p" linear {
    // expected-error@+1 {{'step.tiles' op offset -64 is negative}}
    step.tiles %x at -64 layout "tile16_f32" cols 128 group 0 units -1 {
    ^bb0(%a: vector<16xf32>, %j: index):
    } : !step.vec<128>
  }
  step.return
}

// -----

step.func @f {
^bb0(%x: !step.vec<128>):
  step.phase "p" linear {
    // expected-error@+1 {{'step.tiles' op units -1 is not positive}}
    step.tiles %x at 0 layout "tile16_f32" cols 128 group 0 units -1 {
    ^bb0(%a: vector<16xf32>, %j: index):
    } : !step.vec<128>
  }
  step.return
}

// -----

step.func @f {
^bb0(%x: !step.vec<128>):
  step.phase "p" linear {
    // expected-error@+1 {{'step.tiles' op units 0 is not positive}}
    step.tiles %x at 0 layout "tile16_f32" cols 128 group 0 units 0 {
    ^bb0(%a: vector<16xf32>, %j: index):
    } : !step.vec<128>
  }
  step.return
}

// -----

step.func @f {
^bb0(%x: !step.vec<128>):
  step.phase "p" linear {
    // expected-error@+1 {{'step.tiles' op cols 0 is not positive}}
    step.tiles %x at 0 layout "tile16_f32" cols 0 group 0 units 1 {
    ^bb0(%a: vector<16xf32>, %j: index):
    } : !step.vec<128>
  }
  step.return
}

// -----

step.func @f {
^bb0(%x: !step.vec<128>, %t: !step.vec<48>):
  step.phase "p" linear {
    step.tiles %x at 0 layout "tile16_f32" cols 128 group 0 units 1 paired {
    ^bb0(%a: vector<16xf32>, %b: vector<16xf32>, %j: index):
      // expected-error@+1 {{expects a table of as many cosines as sines, each a multiple of 16, not 48 elements}}
      %f, %s = step.rotate %a, %b by %t[%j] : !step.vec<48>
    } : !step.vec<128>
  }
  step.return
}

// -----

step.func @f {
^bb0(%x: !step.vec<128>):
  step.phase "p" linear {
    // expected-error@+1 {{its body expects 1 of 'vector<16xf32>' and an index}}
    step.tiles %x at 0 layout "tile16_bf16" cols 128 group 0 units 1 {
    ^bb0(%a: vector<16xf32>, %b: vector<16xf32>, %j: index):
    } : !step.vec<128>
  }
  step.return
}

// -----

step.func @f {
^bb0(%x: !step.vec<128>):
  step.phase "p" linear {
    // expected-error@+1 {{its body expects 2 of 'vector<16xf32>' and an index}}
    step.tiles %x at 0 layout "tile16_bf16" cols 128 group 0 units 1 paired {
    ^bb0(%a: vector<16xf32>, %j: index):
    } : !step.vec<128>
  }
  step.return
}

// -----

step.func @f {
^bb0(%x: !step.vec<128>):
  step.phase "p" linear {
    // expected-error@+1 {{its body expects 1 of 'vector<16xf32>' and an index}}
    step.tiles %x at 0 layout "tile16_bf16" cols 128 group 0 units 1 {
    ^bb0(%a: vector<8xf32>, %j: index):
    } : !step.vec<128>
  }
  step.return
}

// -----

step.func @f {
^bb0(%x: !step.vec<128>):
  step.phase "p" linear {
    // expected-error@+1 {{its body expects 1 of 'vector<16xf32>' and an index}}
    step.tiles %x at 0 layout "tile16_bf16" cols 128 group 0 units 1 {
    ^bb0(%a: vector<16xf32>, %j: i64):
    } : !step.vec<128>
  }
  step.return
}

// -----

step.func @f {
^bb0(%x: !step.vec<128>):
  step.phase "p" linear {
    // expected-error@+1 {{'step.tiles' op offset 32 is not a multiple of 64}}
    step.tiles %x at 32 layout "tile16_bf16" cols 128 group 0 units 1 {
    ^bb0(%a: vector<16xf32>, %j: index):
    } : !step.vec<128>
  }
  step.return
}

// -----

step.func @f {
^bb0(%x: !step.vec<128>):
  step.phase "p" linear {
    // expected-error@+1 {{has a group but activations that are not quantized}}
    step.tiles %x at 0 layout "tile16_q4" cols 128 group 64 units 1 {
    ^bb0(%a: vector<16xf32>, %j: index):
    } : !step.vec<128>
  }
  step.return
}

// -----

step.func @f {
^bb0(%x: !step.vec<128>):
  step.phase "p" linear {
    %q = step.quantize %x : !step.vec<128> -> !step.qvec<128, 128>
    // expected-error@+1 {{activations in groups of 128 do not divide its group of 64}}
    step.tiles %q at 0 layout "tile16_q4" cols 128 group 64 units 1 {
    ^bb0(%a: vector<16xf32>, %j: index):
    } : !step.qvec<128, 128>
  }
  step.return
}

// -----

step.func @f {
^bb0(%x: !step.vec<128>):
  step.phase "p" linear {
    %q = step.quantize %x : !step.vec<128> -> !step.qvec<128, 64>
    // expected-error@+1 {{activations in groups of 64 do not divide its group of 0}}
    step.tiles %q at 0 layout "tile16_bf16" cols 128 group 0 units 1 {
    ^bb0(%a: vector<16xf32>, %j: index):
    } : !step.qvec<128, 64>
  }
  step.return
}

// -----

step.func @f {
^bb0(%x: !step.vec<128>):
  step.phase "p" linear {
    // expected-error@+1 {{has 64 columns but 128 activations}}
    step.tiles %x at 0 layout "tile16_bf16" cols 64 group 0 units 1 {
    ^bb0(%a: vector<16xf32>, %j: index):
    } : !step.vec<128>
  }
  step.return
}

// -----

//===--- Uses of symbols ---===//

step.pack @p at 0 layout "tile16_bf16" cols 128 group 0
  runs [#step.run<heads = 1, width = 16, stride = 16>] of [@w]
step.func @f {
  step.phase "p" other {
    // expected-error@+1 {{'step.view' op refers to @p, which is no step.slot}}
    %x = step.view @p : !step.vec<128>
  }
  step.return
}

// -----

step.func @f {
  step.phase "p" other {
    // expected-error@+1 {{'step.fold' op refers to @nothing, which is no step.slot}}
    %x = step.fold @nothing heads 4 head_dim 32 window 16 chunk 64 : !step.vec<128>
  }
  step.return
}

// -----

step.func @f {
  step.phase "p" other {
    // expected-error@+1 {{'step.embed' op refers to @nothing, which is no step.slot}}
    step.embed @nothing weight 0 layout "rows_f32" hidden 128
  }
  step.return
}

// -----

step.func @f {
^bb0(%x: !step.vec<128>):
  step.phase "p" linear {
    step.tiles %x at 0 layout "tile16_bf16" cols 128 group 0 units 1 {
    ^bb0(%a: vector<16xf32>, %j: index):
      // expected-error@+1 {{'step.residual' op refers to @nothing, which is no step.slot}}
      %r = step.residual %a, @nothing[%j] lanes <heads = 1, width = 16, stride = 16>
    } : !step.vec<128>
  }
  step.return
}

// -----

step.func @f {
^bb0(%x: !step.vec<128>):
  step.phase "p" linear {
    step.tiles %x at 0 layout "tile16_bf16" cols 128 group 0 units 1 {
    ^bb0(%a: vector<16xf32>, %j: index):
      // expected-error@+1 {{'step.store' op refers to @nothing, which is no step.slot}}
      step.store %a, @nothing[%j] lanes <heads = 1, width = 16, stride = 16>
    } : !step.vec<128>
  }
  step.return
}

// -----

step.slot @partials size <640>
step.func @f {
  step.phase "p" attention {
    // expected-error@+1 {{'step.attention' op refers to @query, which is no step.slot}}
    step.attention @query, @partials
      cache <heads = 1, head_dim = 32, positions = 32, element = f16>
      heads 4 window 16 scale 0.125 chunk 64
  }
  step.return
}

// -----

step.slot @query size <512>
step.func @f {
  step.phase "p" attention {
    // expected-error@+1 {{'step.attention' op refers to @partials, which is no step.slot}}
    step.attention @query, @partials
      cache <heads = 1, head_dim = 32, positions = 32, element = f16>
      heads 4 window 16 scale 0.125 chunk 64
  }
  step.return
}

// -----

step.slot @x size <512>
step.func entry @step {
  %t = step.rope_table <theta = 1.0e+04, width = 32> : !step.vec<32>
  // expected-error@+1 {{'step.call' op calls @x, which is no step.func}}
  step.call @x(%t) layer 0 weights 0 kv <0> : !step.vec<32>
  step.return
}

// -----

step.func @layer {
^bb0(%t: !step.vec<32>):
  step.return
}
step.func entry @step {
  %t = step.rope_table <theta = 1.0e+04, width = 64> : !step.vec<64>
  // expected-error@+1 {{'step.call' op its operands do not have the types of the arguments of @layer}}
  step.call @layer(%t) layer 0 weights 0 kv <0> : !step.vec<64>
  step.return
}

// -----

step.func @layer {
^bb0(%t: !step.vec<32>):
  step.return
}
step.func entry @step {
  %t = step.rope_table <theta = 1.0e+04, width = 32> : !step.vec<32>
  // expected-error@+1 {{'step.call' op its operands do not have the types of the arguments of @layer}}
  step.call @layer(%t, %t) layer 0 weights 0 kv <0> : !step.vec<32>, !step.vec<32>
  step.return
}

// -----

step.func @f {
  // expected-error@+1 {{'step.call' op calls @f from @f; an entry calls functions that are none}}
  step.call @f() layer 0 weights 0 kv <0>
  step.return
}

// -----

step.func entry @f {
  // expected-error@+1 {{'step.call' op calls @f from @f; an entry calls functions that are none}}
  step.call @f() layer 0 weights 0 kv <0>
  step.return
}

// -----

step.func @f {
  // expected-error@+1 {{'step.call' op calls @layer from @f; an entry calls functions that are none}}
  step.call @layer() layer 0 weights 0 kv <0>
  step.return
}
step.func @layer {
  step.return
}

// -----

step.func entry @step {
  step.return
}
step.func entry @f {
  // expected-error@+1 {{'step.call' op calls @step from @f; an entry calls functions that are none}}
  step.call @step() layer 0 weights 0 kv <0>
  step.return
}

// -----

step.func @layer {
  step.return
}
step.func entry @f {
  // expected-error@+1 {{'step.call' op layer -1 is negative}}
  step.call @layer() layer -1 weights 0 kv <0>
  step.return
}

// -----

step.func @layer {
  step.return
}
step.func entry @f {
  // expected-error@+1 {{'step.call' op weights -64 is negative}}
  step.call @layer() layer 0 weights -64 kv <0>
  step.return
}

// -----

step.func @layer {
  step.return
}
step.func entry @f {
  step.phase "p" other {
    // expected-error@+1 {{'step.call' op expects parent op 'step.func'}}
    step.call @layer() layer 0 weights 0 kv <0>
  }
  step.return
}
