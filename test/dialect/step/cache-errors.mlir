// What the verifiers say of KV caches and the ops that use them.
//
// RUN: sparkc-opt %s --split-input-file --verify-diagnostics

step.slot @q size <512>
step.slot @k size <512>
step.func @f {
  step.phase "attention" attention {
    // expected-error@+1 {{a cache expects f32, f16 or i8 elements, not 'i16'}}
    step.attention @q, @q cache <heads = 1, head_dim = 8, positions = 0, element = i16> heads 2 window 0 scale 0.5 chunk 64
  }
  step.return
}

// -----

step.slot @q size <512>
step.slot @k size <512>
step.func @f {
  step.phase "attention" attention {
    // expected-error@+1 {{a cache expects f32, f16 or i8 elements, not 'si8'}}
    step.attention @q, @q cache <heads = 1, head_dim = 8, positions = 0, element = si8> heads 2 window 0 scale 0.5 chunk 64
  }
  step.return
}

// -----

step.slot @q size <512>
step.slot @k size <512>
step.func @f {
  step.phase "attention" attention {
    // expected-error@+1 {{a cache expects positive heads and head_dim and no negative positions, not 0, 8 and 0}}
    step.attention @q, @q cache <heads = 0, head_dim = 8, positions = 0, element = f32> heads 2 window 0 scale 0.5 chunk 64
  }
  step.return
}

// -----

step.slot @q size <512>
step.slot @k size <512>
step.func @f {
  step.phase "attention" attention {
    // expected-error@+1 {{not 1, 8 and -64}}
    step.attention @q, @q cache <heads = 1, head_dim = 8, positions = -64, element = f32> heads 2 window 0 scale 0.5 chunk 64
  }
  step.return
}

// -----

step.slot @q size <512>
step.slot @k size <512>
step.func @f {
  step.phase "attention" attention {
    // expected-error@+1 {{expects slots of the token's key and value, which it writes to a cache of 'i8'}}
    step.attention @q, @q cache <heads = 1, head_dim = 8, positions = 0, element = i8> heads 2 window 0 scale 0.5 chunk 64
  }
  step.return
}

// -----

step.slot @q size <512>
step.slot @k size <512>
step.func @f {
  step.phase "attention" attention {
    // expected-error@+1 {{has slots of the token's key and value, but does not write a cache of 'f16'}}
    step.attention @q, @q cache <heads = 1, head_dim = 8, positions = 0, element = f16> token @k, @k heads 2 window 0 scale 0.5 chunk 64
  }
  step.return
}

// -----

step.slot @q size <512>
step.slot @k size <512>
step.func @f {
  step.phase "attention" attention {
    // expected-error@+1 {{writes to a ring of 64 positions while others read; its window needs 128}}
    step.attention @q, @q cache <heads = 1, head_dim = 8, positions = 64, element = i8> token @k, @k heads 2 window 2 scale 0.5 chunk 64
  }
  step.return
}

// -----

step.slot @q size <512>
step.slot @k size <512>
step.func @f {
  step.phase "attention" attention {
    // expected-error@+1 {{a chunk is a multiple of 16 keys, not 0}}
    step.attention @q, @q cache <heads = 1, head_dim = 8, positions = 0, element = f16> heads 2 window 0 scale 0.5 chunk 0
  }
  step.return
}

// -----

step.slot @q size <512>
step.slot @k size <512>
step.func @f {
  step.phase "attention" attention {
    // expected-error@+1 {{a chunk is a multiple of 16 keys, not 24}}
    step.attention @q, @q cache <heads = 1, head_dim = 8, positions = 0, element = f16> heads 2 window 0 scale 0.5 chunk 24
  }
  step.return
}

// -----

step.slot @q size <512>
step.slot @k size <512>
step.func @f {
  step.phase "attention" attention {
    // expected-error@+1 {{refers to @none, which is no step.slot}}
    step.attention @q, @q cache <heads = 1, head_dim = 8, positions = 0, element = i8> token @k, @none heads 2 window 0 scale 0.5 chunk 64
  }
  step.return
}

// -----

step.slot @x size <512>
step.func @f {
  step.phase "q_k_v_proj" linear {
    %x = step.view @x : !step.vec<8>
    step.tiles %x at 0 layout "tile16_f32" cols 8 group 0 units 1 {
    ^bb0(%a: vector<16xf32>, %j: index):
      // expected-error@+1 {{cannot write to a cache of 'i8'; step.attention does}}
      step.kv_store key %a[%j] cache <heads = 1, head_dim = 8, positions = 0, element = i8> lanes <heads = 1, width = 8, stride = 8>
    } : !step.vec<8>
  }
  step.return
}

// -----

step.slot @q size <512>
step.slot @k size <512>
step.func @f {
  step.phase "p" attention {
    // expected-error@+1 {{a chunk is a multiple of 16 keys, not -16}}
    step.attention @q, @q cache <heads = 1, head_dim = 8, positions = 0, element = f16> heads 2 window 0 scale 0.5 chunk -16
  }
  step.return
}

// -----

step.slot @q size <512>
step.slot @k size <512>
step.func @f {
  step.phase "p" attention {
    // expected-error@+1 {{'step.attention' op window -1 is negative}}
    step.attention @q, @q cache <heads = 1, head_dim = 8, positions = 0, element = f16> heads 2 window -1 scale 0.5 chunk 64
  }
  step.return
}

// -----

step.slot @q size <512>
step.slot @k size <512>
step.func @f {
  step.phase "p" attention {
    // expected-error@+1 {{'step.attention' op 3 heads are not a multiple of 2 in the cache}}
    step.attention @q, @q cache <heads = 2, head_dim = 8, positions = 0, element = f16> heads 3 window 0 scale 0.5 chunk 64
  }
  step.return
}

// -----

step.slot @q size <512>
step.slot @k size <512>
step.func @f {
  step.phase "p" attention {
    // expected-error@+1 {{'step.attention' op 0 heads are not a multiple of 1 in the cache}}
    step.attention @q, @q cache <heads = 1, head_dim = 8, positions = 0, element = f16> heads 0 window 0 scale 0.5 chunk 64
  }
  step.return
}
