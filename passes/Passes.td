//===- Passes.td - sparkc's passes -------------------------*- tablegen -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One entry a pass, in alphabetical order; each has a .cpp of its own and a
// test in test/passes of the pass's name.
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_PASSES
#define SPARKC_PASSES

include "mlir/Pass/PassBase.td"

def SparkCheckConfig : Pass<"spark-check-config", "::mlir::ModuleOp"> {
  let summary = "Checks a model's graph against its config";
  let description = [{
    Verifiers see one op at a time; this pass sees the model. It refuses a
    module unless

    - it has one `spark.config` and one function `@step` of a token and a
      position, which gives one row of `vocab` logits,
    - the layers are numbered 0, 1, …; the first takes the embedding, each other
      the result of the one before; there are as many as the config says,
    - activations have the config's sizes: `hidden` between layers, `heads` and
      `kv_heads` times `head_dim` in attention, `intermediate` at `spark.geglu`,
    - every layer writes, then reads, one cache of its own; caches have the
      config's `kv_heads` and `head_dim` and one element type; a sliding
      layer's ring holds `window + prefill_block - 1` positions, a full layer's
      cache is no ring; every position is the step's,
    - windows are the config's or 0, scores are scaled by 1/sqrt(`head_dim`),
      and all layers use one chunk; layers of one kind use one rope, and a
      layer's queries and keys the same,
    - all norms have one epsilon, and no weight or cache is left over.

    It changes nothing, and holds for the fused form as well.
  }];
}

def SparkFuseGeglu : Pass<"spark-fuse-geglu", "::mlir::func::FuncOp"> {
  let summary = "Moves erf-GELU times up into one fused linear";
  let description = [{
    Two linears of one input whose results only meet in a `spark.geglu` become
    the two segments of one fused linear, gate first.

    ```mlir
    %g = spark.linear %n, @gate_proj : tensor<1x8xf32> -> tensor<1x16xf32>
    %u = spark.linear %n, @up_proj : tensor<1x8xf32> -> tensor<1x16xf32>
    %f = spark.geglu %g, %u : tensor<1x16xf32>
    ```

    becomes

    ```mlir
    %f = spark.fused_linear (%n) prologue {
    ^bb0(%a: tensor<1x8xf32>):
      spark.yield %a : tensor<1x8xf32>
    } segments [@gate_proj, @up_proj] epilogue {
    ^bb0(%g: tensor<1x16xf32>, %u: tensor<1x16xf32>):
      %r = spark.geglu %g, %u : tensor<1x16xf32>
      spark.yield %r : tensor<1x16xf32>
    } : (tensor<1x8xf32>) -> tensor<1x16xf32>
    ```
  }];
  let dependentDialects = ["::sparkc::spark::SparkDialect"];
}

def SparkFuseHeadGate : Pass<"spark-fuse-head-gate", "::mlir::func::FuncOp"> {
  let summary = "Folds the head gate's rows into QKV, the gate into out_proj";
  let description = [{
    The linear that computes a head gate joins the one other linear of the same
    input as a second segment: a few rows are no phase of their own. The
    `spark.head_gate` itself moves into the prologue of the linear that reads
    it.

    ```mlir
    %qkv = spark.linear %n, @q_k_v_proj : tensor<1x8xf32> -> tensor<1x16xf32>
    %g = spark.linear %n, @g_proj : tensor<1x8xf32> -> tensor<1x2xf32>
    …
    %h = spark.head_gate %o, %g : tensor<1x8xf32>, tensor<1x2xf32>
    %y = spark.linear %h, @out_proj : tensor<1x8xf32> -> tensor<1x8xf32>
    ```

    becomes

    ```mlir
    %qkv, %g = spark.fused_linear (%n) prologue {
    ^bb0(%a: tensor<1x8xf32>):
      spark.yield %a : tensor<1x8xf32>
    } segments [@q_k_v_proj, @g_proj] epilogue {
    ^bb0(%y0: tensor<1x16xf32>, %y1: tensor<1x2xf32>):
      spark.yield %y0, %y1 : tensor<1x16xf32>, tensor<1x2xf32>
    } : (tensor<1x8xf32>) -> (tensor<1x16xf32>, tensor<1x2xf32>)
    …
    %y = spark.fused_linear (%o, %g) prologue {
    ^bb0(%a: tensor<1x8xf32>, %b: tensor<1x2xf32>):
      %h = spark.head_gate %a, %b : tensor<1x8xf32>, tensor<1x2xf32>
      spark.yield %h : tensor<1x8xf32>
    } segments [@out_proj] epilogue { … }
    ```
  }];
  let dependentDialects = ["::sparkc::spark::SparkDialect"];
}

def SparkFuseNorm : Pass<"spark-fuse-norm", "::mlir::func::FuncOp"> {
  let summary = "Moves RMSNorm into the prologue of the linears that read it";
  let description = [{
    Every linear that reads a `spark.rms_norm` gets a copy of it in its prologue
    and reads the residual instead. Nothing happens unless all users of the norm
    are such linears.

    ```mlir
    %n = spark.rms_norm %x, @norm eps 1.0e-06 : tensor<1x8xf32>
    %y = spark.linear %n, @w : tensor<1x8xf32> -> tensor<1x16xf32>
    ```

    becomes

    ```mlir
    %y = spark.fused_linear (%x) prologue {
    ^bb0(%a: tensor<1x8xf32>):
      %n = spark.rms_norm %a, @norm eps 1.0e-06 : tensor<1x8xf32>
      spark.yield %n : tensor<1x8xf32>
    } segments [@w] epilogue {
    ^bb0(%r: tensor<1x16xf32>):
      spark.yield %r : tensor<1x16xf32>
    } : (tensor<1x8xf32>) -> tensor<1x16xf32>
    ```
  }];
  let dependentDialects = ["::sparkc::spark::SparkDialect"];
}

def SparkFuseResidual : Pass<"spark-fuse-residual", "::mlir::func::FuncOp"> {
  let summary = "Moves the residual addition into the epilogue of its linear";
  let description = [{
    A `spark.add` of a linear's result, which nothing else reads, and a value
    that is there before the linear moves into the linear's epilogue.

    ```mlir
    %y = spark.linear %f, @down_proj : tensor<1x16xf32> -> tensor<1x8xf32>
    %s = spark.add %x, %y : tensor<1x8xf32>
    ```

    becomes

    ```mlir
    %s = spark.fused_linear (%f) prologue {
    ^bb0(%a: tensor<1x16xf32>):
      spark.yield %a : tensor<1x16xf32>
    } segments [@down_proj] epilogue {
    ^bb0(%y: tensor<1x8xf32>):
      %r = spark.add %x, %y : tensor<1x8xf32>
      spark.yield %r : tensor<1x8xf32>
    } : (tensor<1x16xf32>) -> tensor<1x8xf32>
    ```
  }];
  let dependentDialects = ["::sparkc::spark::SparkDialect"];
}

def SparkFuseRopeKV : Pass<"spark-fuse-rope-kv", "::mlir::func::FuncOp"> {
  let summary = "Moves RoPE and the cache write into the epilogue of QKV";
  let description = [{
    The split of a linear's rows into queries, keys and values, the rope of
    queries and keys, and the write to the cache become its epilogue; only the
    turned queries leave it. Nothing happens where one of those values is read
    elsewhere, or where an op with side effects stands between.

    ```mlir
    %qkv = spark.linear %n, @q_k_v_proj : tensor<1x8xf32> -> tensor<1x16xf32>
    %q, %k, %v = spark.split %qkv : tensor<1x16xf32>
      -> tensor<1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>
    %qr = spark.rope %q at %pos heads 2 rope <theta = 1.0e+04, width = 4>
      : tensor<1x8xf32>
    %kr = spark.rope %k at %pos heads 1 rope <theta = 1.0e+04, width = 4>
      : tensor<1x4xf32>
    spark.kv_write %kr, %v, @kv.0 at %pos : tensor<1x4xf32>
    ```

    becomes

    ```mlir
    %qr = spark.fused_linear (%n) prologue {
    ^bb0(%a: tensor<1x8xf32>):
      spark.yield %a : tensor<1x8xf32>
    } segments [@q_k_v_proj] epilogue {
    ^bb0(%qkv: tensor<1x16xf32>):
      %q, %k, %v = spark.split %qkv : …
      %r = spark.rope %q …
      %s = spark.rope %k …
      spark.kv_write %s, %v, @kv.0 at %pos : tensor<1x4xf32>
      spark.yield %r : tensor<1x8xf32>
    } : (tensor<1x8xf32>) -> tensor<1x8xf32>
    ```
  }];
  let dependentDialects = ["::sparkc::spark::SparkDialect"];
}

def SparkQuantize : Pass<"spark-quantize", "::mlir::ModuleOp"> {
  let summary = "Decides how each weight is stored";
  let description = [{
    Sets the types of the weights. Vectors are always stored as f32. `scheme`
    decides the matrices:

    - `stored`: as the checkpoint has them; f16 is widened to f32,
    - `f32`, `bf16`: this type, whatever the checkpoint has (a conversion to
      bf16 rounds to nearest even),
    - `q4`, `q5`, `q6`, `q8`, with `:g32`, `:g64` (default) or `:g128` and
      `:sym`: an integer grid for what linears read. The embedding stays as it
      is stored; a tied head becomes a weight of its own, `@lm_head`.

    `rules`, as `lm_head=q6,*.down_proj=q8`, override the scheme for the weights
    whose name a glob matches; the last that matches wins, one that matches
    nothing is an error. With `keep-codes` the scheme is for floats alone: what
    is codes in its file keeps them where no rule names it. Two weights that meet
    in a `spark.geglu` get the finer of their grids; where codes are to be kept,
    f32, which holds either.

    It depends on the weights' sources alone, so that a second run changes what
    the first decided. `spark.config` keeps the scheme in words: the type of all
    matrices, or `mixed`.

    ```mlir
    spark.weight @norm : tensor<8xbf16> from <"a", BF16, offset = 0, bytes = 16>
    spark.weight @embedding : tensor<4x8xbf16>
      from <"a", BF16, offset = 16, bytes = 64>
    ```

    becomes with `scheme=stored`

    ```mlir
    spark.weight @norm : tensor<8xf32> from <"a", BF16, offset = 0, bytes = 16>
    spark.weight @embedding : tensor<4x8xbf16>
      from <"a", BF16, offset = 16, bytes = 64>
    ```
  }];
  let options = [
    Option<"scheme", "scheme", "std::string", /*default=*/"\"stored\"",
           "How matrices are stored: stored, f32, bf16 or a grid">,
    Option<"rules", "rules", "std::string", /*default=*/"\"\"",
           "Exceptions: GLOB=SCHEME, separated by commas">,
    Option<"keepCodes", "keep-codes", "bool", /*default=*/"false",
           "Only rules change matrices that are codes in their file">
  ];
  let dependentDialects = ["::sparkc::spark::SparkDialect"];
}

def SparkRotate : Pass<"spark-rotate", "::mlir::ModuleOp"> {
  let summary = "Rotates the residual stream and the heads, within the weights";
  let description = [{
    Outliers among weights and activations cost a grid its precision; a rotation
    spreads them. Here x is the residual stream, R an orthogonal matrix of its
    size, Q one of head_dim for each layer (`#spark.rotate_in` says which), and W
    matrices as [out, in]:

    | weight | becomes |
    |---|---|
    | embedding E | E R: the stream is x R |
    | norms w | ones, since x R has the root mean square of x |
    | readers of a norm: q/k/v, gate, up, head | W diag(w) R |
    | writers to the stream: out_proj, down_proj | Rᵀ W |
    | rows of V, head by head | Qᵀ W: values are v Q |
    | columns of out_proj, head by head | W Q |

    So every linear but down_proj reads rotated inputs, and the logits are those
    of before, to rounding. The function does not change: the weights are
    transformed when they are read. A tied head becomes a weight of its own,
    `@lm_head`.

    Weights that are codes in their file are refused, and so is a residual stream
    that anything but norms, layers and residual additions meets; the pass runs
    before anything is fused.

    ```mlir
    spark.weight @norm : tensor<8xbf16> from <"a", BF16, offset = 0, bytes = 16>
    spark.weight @gate_proj : tensor<16x8xbf16>
      from <"a", BF16, offset = 16, bytes = 256>
    spark.weight @down_proj : tensor<8x16xbf16>
      from <"a", BF16, offset = 272, bytes = 256>
    ```

    becomes

    ```mlir
    spark.weight @norm : tensor<8xbf16> from <"a", BF16, offset = 0, bytes = 16>
      through [#spark.folded]
    spark.weight @gate_proj : tensor<16x8xbf16>
      from <"a", BF16, offset = 16, bytes = 256>
      through [#spark.fold<@norm>, #spark.rotate_in<size = 8, seed = 1>]
    spark.weight @down_proj : tensor<8x16xbf16>
      from <"a", BF16, offset = 272, bytes = 256>
      through [#spark.rotate_out<size = 8, seed = 1>]
    ```
  }];
  let options = [
    Option<"seed", "seed", "uint64_t", /*default=*/"1",
           "Of the signs: the stream's; layer i takes seed + 1 + i">
  ];
  let dependentDialects = ["::sparkc::spark::SparkDialect"];
}

def SparkToStep : Pass<"spark-to-step", "::mlir::ModuleOp"> {
  let summary = "Schedules the fused model: phases, barriers, packs, slots";
  let description = [{
    Every fused linear and every attention becomes a phase with a barrier behind
    it; every layer a private `step.func` that layers of one signature share,
    called with the offsets of its weights and its cache. Weights get their
    place in the payload (`step.pack`), in the order in which the step reads
    them, with their rows permuted so that what meets in an epilogue shares a
    lane of a pair of tiles. Values between phases get a `step.slot`; a residual
    add writes in place where the old value is not read again.

    ```mlir
    %f = spark.fused_linear (%x) prologue {norm} segments [@gate, @up]
      epilogue {geglu} : ...
    ```

    becomes

    ```mlir
    step.phase "gate" linear {
      step.stream 512 bytes 131584
      %v = step.view @x : !step.vec<128>
      %n = step.rms_norm %v weight 512 eps 1.0e-06 : !step.vec<128>
      step.tiles %n at 1024 layout "tile16_bf16" cols 128 group 0 units 16 paired {
      ^bb0(%a: vector<16xf32>, %b: vector<16xf32>, %j: index):
        %g = step.geglu %a, %b
        step.store %g, @gate.0[%j] lanes <heads = 1, width = 256, stride = 256>
      } : !step.vec<128>
    }
    step.barrier
    ```
  }];
  let dependentDialects = ["::sparkc::step::StepDialect"];
}

def StepLowerToLLVM : Pass<"step-lower-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Emits functions for the schedule";
  let description = [{
    Every `step.func`, every phase, every kernel at a shape and the barrier become
    LLVM functions, made of LLVM, arith, math, vector and scf ops by the builders
    of codegen/microkernels. The config, the weights, the packs and the descriptor
    stay: they say what to pack and what the object's descriptor holds.
  }];
  let options = [
    Option<"sanitizeThread", "sanitize-thread", "bool", /*default=*/"false",
           "Announce accesses to shared memory to ThreadSanitizer">,
    Option<"isa", "isa", "std::string", /*default=*/"\"avx2\"",
           "Instruction set of the kernels' bodies">
  ];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect",
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::vector::VectorDialect", "::mlir::scf::SCFDialect"];
}

def StepMergeBarriers : Pass<"step-merge-barriers", "::mlir::ModuleOp"> {
  let summary = "Drops barriers with no work since the one before";
  let description = [{
    Of two barriers of a function between which no phase has an op and no call
    stands, the later goes; the first keeps what it prefetches. A
    `step.rope_table` between them is no work that others wait for: every thread
    makes its own. What callers and callees do is not looked at: a call counts
    as work, and so does what comes before a function's first barrier.

    ```mlir
    step.barrier
    step.phase "empty" other {
    }
    step.barrier
    ```

    becomes

    ```mlir
    step.barrier
    step.phase "empty" other {
    }
    ```
  }];
}

def StepPlanArena : Pass<"step-plan-arena", "::mlir::ModuleOp"> {
  let summary = "Gives every slot its offset in the arena";
  let description = [{
    Offsets are constants, multiples of 64. The slot that grows with the
    session's context, if any, goes last.

    ```mlir
    step.slot @x size <1024>
    step.slot @attention size <2560 + 12 * capacity>
    ```

    becomes

    ```mlir
    step.slot @x size <1024> at 0
    step.slot @attention size <2560 + 12 * capacity> at 1024
    ```
  }];
}

def StepPrefetch : Pass<"step-prefetch", "::mlir::ModuleOp"> {
  let summary = "Tells every barrier which weights the next phase streams";
  let description = [{
    Reads the `step.stream` of the phase that follows a barrier, through calls,
    and at the end of a layer's function assumes the next layer behind it.

    ```mlir
    step.barrier
    step.phase "attention" attention { ... }
    step.barrier
    step.phase "out_proj" linear {
      step.stream 1088 bytes 320
      ...
    }
    ```

    becomes

    ```mlir
    step.barrier prefetch 1088 bytes 320
    step.phase "attention" attention { ... }
    step.barrier prefetch 1088 bytes 320
    step.phase "out_proj" linear {
      step.stream 1088 bytes 320
      ...
    }
    ```
  }];
}

def StepAddPrefill : Pass<"step-add-prefill", "::mlir::ModuleOp"> {
  let summary = "Adds the entry that reads blocks of tokens";
  let description = [{
    For a `prefill_block` above 1 in `spark.config`, every `step.func` gets a
    twin that works on up to so many tokens: `@prefill` of `@step`,
    `@NAME.prefill` of the others. A phase of tiles becomes two with a barrier
    in between: its prologue for each token, split by token, then its tiles,
    each times all tokens, with the same epilogues. Slots get a row a token.
    The head is there twice: for the last token and for all.

    ```mlir
    step.phase "down" linear {
      %x = step.view @gate.0 : !step.vec<256>
      %q = step.quantize %x : !step.vec<256> -> !step.qvec<256, 64>
      step.tiles %q at 4096 layout "tile16_q4" cols 256 group 64 units 8 { ... }
    }
    ```

    gives

    ```mlir
    step.phase "down.in" other {
      step.tokens {
        %x = step.view @gate.0 : !step.vec<256>
        %q = step.quantize %x : !step.vec<256> -> !step.qvec<256, 64>
        step.put %q, @block.activations : !step.qvec<256, 64>
      }
    }
    step.barrier
    step.phase "down" linear {
      %b = step.block_view @block.activations : !step.block<256, 64>
      step.tiles %b at 4096 layout "tile16_q4" cols 256 group 64 units 8 { ... }
    }
    ```
  }];
}

def StepSelectMicrokernel
    : Pass<"step-select-microkernel", "::mlir::ModuleOp"> {
  let summary = "Names the kernel of every step.tiles";
  let description = [{
    The best that the table of codegen/microkernels has for the layout on the
    instruction set; one for blocks where the activation is a !step.block: that
    of the host where `prefill_gemm` of `spark.config` says so, which refuses
    layouts of integers. Activations of bf16 have kernels of their own; `bf16`
    says that the machine has AVX512-BF16, which the instruction sets do not
    name. A name that is there already is replaced. Tiles of
    integers times one token are told to prefetch lines `ahead` bytes before they
    read them, with `once` past the L2 cache, and with `serial` to read one unit
    after the other rather than two side by side.

    ```mlir
    step.tiles %q at 512 layout "tile16_q4" cols 128 group 64 units 2 { ... }
      : !step.qvec<128, 64>
    ```

    becomes with `isa=avxvnni`

    ```mlir
    step.tiles %q at 512 layout "tile16_q4" cols 128 group 64 units 2
      kernel "dot_q4_avxvnni" ahead 3072 { ... } : !step.qvec<128, 64>
    ```
  }];
  let options = [
    Option<"isa", "isa", "std::string", /*default=*/"\"avx2\"",
           "avx2, avxvnni, avx512, avx512vnni or amx">,
    Option<"ahead", "ahead", "int64_t", /*default=*/"3072",
           "Bytes ahead at which a step's kernels prefetch weights; 0: not">,
    Option<"once", "once", "bool", /*default=*/"false",
           "Prefetch them past the L2 cache">,
    Option<"serial", "serial", "bool", /*default=*/"false",
           "Read one unit of weights after the other, not two side by side">,
    Option<"bf16", "bf16", "bool", /*default=*/"false",
           "The machine has AVX512-BF16">
  ];
}

def StepVerifyStatic : Pass<"step-verify-static", "::mlir::ModuleOp"> {
  let summary = "Refuses whatever is not decided at compile time";
  let description = [{
    At the step stage: slots without offset, tiles without kernel, layouts that
    an op cannot read, reads of weights where others or none are packed, values
    larger than their slot, slots outside the arena, caches outside the session's
    KV memory. Afterwards: stack frames of dynamic size, functions and
    variables outside the object, whether called or only named, inline assembly,
    whatever LLVM may turn into a call of libm or the C library, shapes that are
    not bounded. (What is called through ctx are pointers.)
  }];
}

#endif // SPARKC_PASSES
