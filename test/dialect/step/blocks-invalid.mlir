// What verifiers say about the ops of a prefill.
//
// RUN: sparkc-opt %s --split-input-file --verify-diagnostics

step.slot @x size <512>
step.func @f {
  step.phase "head" linear {
    // expected-error@+1 {{'step.view' op needs rows in @x, which has none}}
    %x = step.view @x last : !step.vec<96>
  }
  step.return
}

// -----

step.slot @x size <512>
step.func @f {
  step.phase "rope" other {
    step.tokens {
      %t = step.rope_table <theta = 1.0e+04, width = 32> : !step.vec<32>
      // expected-error@+1 {{'step.keep' op needs rows in @x, which has none}}
      step.keep %t, @x : !step.vec<32>
    }
  }
  step.return
}

// -----

step.func @f {
  step.phase "rope" other {
    step.tokens {
      %t = step.rope_table <theta = 1.0e+04, width = 32> : !step.vec<32>
      // expected-error@+1 {{'step.put' op refers to @y, which is no step.slot}}
      step.put %t, @y : !step.vec<32>
    }
  }
  step.return
}

// -----

step.slot @q size <576> row 576
step.slot @o size <512>
step.func @f {
  step.phase "attention" attention {
    // expected-error@+1 {{'step.block_attention' op needs rows in @o, which has none}}
    step.block_attention @q, @o
      cache <heads = 1, head_dim = 32, positions = 32, element = f16>
      heads 3 window 16 scale 0.125 chunk 64
  }
  step.return
}

// -----

step.slot @b size <4096>
step.func @f {
  step.phase "tiles" linear {
    // expected-error@+1 {{'step.block_view' op lies token by token, as only int8 does, but has '!step.block<96, 64, bf16>'}}
    %b = step.block_view @b by_token : !step.block<96, 64, bf16>
  }
  step.return
}

// -----

step.slot @b size <4096>
step.slot @x size <4096> row 512
step.func @f {
  step.phase "tokens" linear {
    step.tokens {
      %x = step.view @x : !step.vec<96>
      // expected-error@+1 {{'step.put' op lies token by token, as only int8 does, but has '!step.vec<96>'}}
      step.put %x, @b by_token : !step.vec<96>
    }
  }
  step.return
}

// -----

step.slot @b size <4096>
step.func @f {
  step.phase "tiles" linear {
    %b = step.block_view @b : !step.block<96, 0>
    // expected-error@+1 {{'step.tiles' op has a group but activations that are not quantized}}
    step.tiles %b at 0 layout "tile16_q4" cols 96 group 64 units 1 {
    ^bb0(%a: vector<16xf32>, %j: index):
    } : !step.block<96, 0>
  }
  step.return
}

// -----

step.slot @b size <4096>
step.func @f {
  step.phase "tiles" linear {
    %b = step.block_view @b : !step.block<96, 64>
    // expected-error@+1 {{'step.tiles' op activations in groups of 64 do not divide its group of 32}}
    step.tiles %b at 0 layout "tile16_q4" cols 96 group 32 units 1 {
    ^bb0(%a: vector<16xf32>, %j: index):
    } : !step.block<96, 64>
  }
  step.return
}

// -----

step.slot @q size <576> row 576
step.slot @o size <576> row 576
step.func @f {
  step.phase "p" attention {
    // expected-error@+1 {{'step.block_attention' op a chunk is a multiple of 16 keys, not 8}}
    step.block_attention @q, @o
      cache <heads = 1, head_dim = 32, positions = 0, element = f16>
      heads 3 window 0 scale 0.125 chunk 8
  }
  step.return
}

// -----

step.slot @q size <576> row 576
step.slot @o size <576> row 576
step.func @f {
  step.phase "p" attention {
    // expected-error@+1 {{'step.block_attention' op window -4 is negative}}
    step.block_attention @q, @o
      cache <heads = 1, head_dim = 32, positions = 0, element = f16>
      heads 3 window -4 scale 0.125 chunk 64
  }
  step.return
}

// -----

step.slot @q size <576> row 576
step.slot @o size <576> row 576
step.func @f {
  step.phase "p" attention {
    // expected-error@+1 {{'step.block_attention' op 3 heads are not a multiple of 2 in the cache}}
    step.block_attention @q, @o
      cache <heads = 2, head_dim = 32, positions = 0, element = f16>
      heads 3 window 0 scale 0.125 chunk 64
  }
  step.return
}

// -----

step.slot @q size <576> row 576
step.slot @o size <576> row 576
step.func @f {
  step.phase "p" linear {
    // expected-error@+1 {{a group has 16, 32, 64 or 128 elements, not 8}}
    %b = step.block_view @q : !step.block<96, 8>
  }
  step.return
}
