//===- StepOps.td - Ops of the step dialect ----------------*- tablegen -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_DIALECT_STEP_OPS
#define SPARKC_DIALECT_STEP_OPS

include "StepDialect.td"
include "dialect/spark/SparkDialect.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/CallInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

class Step_Op<string mnemonic, list<Trait> traits = []>
    : Op<Step_Dialect, mnemonic, traits>;

/// The accumulators of one tile: 16 rows.
def Step_Tile : FixedVectorOfLengthAndType<[16], [F32]>,
    BuildableType<"::mlir::VectorType::get({16}, $_builder.getF32Type())">;

//===----------------------------------------------------------------------===//
// Module level
//===----------------------------------------------------------------------===//

def Step_PackOp : Step_Op<"pack", [Symbol]> {
  let summary = "A packed matrix: what it holds and where it lies";
  let description = [{
    `offset` is in bytes from the start of the weights payload, a multiple of
    64. `layout` names
    a packed layout; the index equation is in codegen/weights/PackedLayout.h.
    Packs lie in the order in which a step reads them.

    ```mlir
    step.pack @layers.0.qkv at 512 layout "tile16_bf16" cols 128 group 0
      runs [#step.run<heads = 4, width = 16, stride = 32, weight_b = 0,
                      base_b = 16>]
      of [@layers.0.q_k_v_proj]
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$offset,
    StrAttr:$layout, I64Attr:$cols, I64Attr:$group,
    TypedArrayAttrBase<Step_RunAttr, "runs">:$runs,
    FlatSymbolRefArrayAttr:$weights);
  let assemblyFormat = [{
    $sym_name `at` $offset `layout` $layout `cols` $cols `group` $group
    `runs` $runs `of` $weights attr-dict
  }];
  let hasVerifier = 1;
}

def Step_SlotOp : Step_Op<"slot", [Symbol]> {
  let summary = "A place in the arena";
  let description = [{
    `size` and `offset` in bytes; the offset, a multiple of 64, is absent until
    `step-plan-arena` has placed the slot. Slots are zero before the first
    step, and what is past their last element stays zero.

    `row`: the slot has a row for each token of a block, that many bytes apart,
    a multiple of 64; a step, which has one token, uses the first.

    ```mlir
    step.slot @x size <1024> at 0
    step.slot @q size <73728> row 576 at 1024
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, Step_AffineAttr:$size,
                       OptionalAttr<I64Attr>:$row,
                       OptionalAttr<I64Attr>:$offset);
  let assemblyFormat = [{
    $sym_name `size` $size (`row` $row^)? (`at` $offset^)? attr-dict
  }];
  let hasVerifier = 1;
}

def Step_DescriptorOp : Step_Op<"descriptor"> {
  let summary = "What the compiled model's descriptor will say";
  let description = [{
    Sizes in bytes; `phases` (name, kind, bytes) is filled in by
    `step-lower-to-llvm` for the profile entries. See `sparkc_descriptor` in runtime/include/sparkc_abi.h.
    One in a module.
  }];
  let arguments = (ins
    Step_AffineAttr:$kv, OptionalAttr<Step_AffineAttr>:$arena, I64Attr:$payload,
    I64Attr:$bytes_per_step, I64Attr:$linear_weights,
    I64Attr:$full_layers, I64Attr:$ring, I64Attr:$capacity_multiple,
    I64Attr:$barriers, StrAttr:$kv_type,
    OptionalAttr<DictArrayAttr>:$phases,
    DefaultValuedAttr<I64Attr, "0">:$fold_layers,
    DefaultValuedAttr<I64Attr, "-1">:$fold_threshold);
  let assemblyFormat = "attr-dict";
}

//===----------------------------------------------------------------------===//
// Functions and phases
//===----------------------------------------------------------------------===//

def Step_FuncOp : Step_Op<"func", [Symbol, SingleBlock, IsolatedFromAbove,
    HasParent<"::mlir::ModuleOp">, AutomaticAllocationScope]> {
  let summary = "A function that all threads of a call run at once";
  let description = [{
    `entry`: called by the host; it takes no arguments. Others are private,
    called by `step.call` of an entry with the base of their layer's weights and
    KV cache, to which the offsets in the body are relative.

    ```mlir
    step.func @layer.sliding {
    ^bb0(%rope: !step.vec<256>):
      step.phase "qkv" linear { ... }
      step.barrier
      step.return
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, UnitAttr:$entry);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "(`entry` $entry^)? $sym_name $body attr-dict";
  let hasRegionVerifier = 1;
}

def Step_ReturnOp : Step_Op<"return", [Terminator, HasParent<"FuncOp">]> {
  let summary = "Ends a step.func";
  let description = [{
    A function has no results: what it computes is in memory.

    ```mlir
    step.return
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Step_CallOp : Step_Op<"call", [HasParent<"FuncOp">,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Runs a layer's function on its weights and its cache";
  let description = [{
    `weights`: byte offset of the layer's first pack in the payload. `kv`: of
    its cache in the session's KV memory. Only an entry calls, and no entry is
    called: the schedule is flat.

    ```mlir
    step.call @layer.full(%rope) layer 3 weights 4096 kv <0 + 256 * capacity>
      : !step.vec<32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<Step_Vec>:$operands,
                       I64Attr:$layer, I64Attr:$weights, Step_AffineAttr:$kv);
  let assemblyFormat = [{
    $callee `(` $operands `)` `layer` $layer `weights` $weights `kv` $kv
    attr-dict (`:` type($operands)^)?
  }];
  let hasVerifier = 1;
}

def Step_PhaseKind : I32EnumAttr<"PhaseKind", "what a phase is, for reports", [
  I32EnumAttrCase<"linear", 0>,
  I32EnumAttrCase<"attention", 1>,
  I32EnumAttrCase<"other", 2>]> {
  let cppNamespace = "::sparkc::step";
}

def Step_Wanted : I32EnumAttr<"Wanted", "which logits a call is asked for", [
  I32EnumAttrCase<"last", 0>,
  I32EnumAttrCase<"all", 1>]> {
  let cppNamespace = "::sparkc::step";
}

def Step_PhaseOp : Step_Op<"phase", [SingleBlock, NoTerminator,
    AutomaticAllocationScope, HasParent<"FuncOp">]> {
  let summary = "Work between two barriers, split over the threads";
  let description = [{
    The ops of the body run in order on every thread. Those that split their
    work (`tiles`, `attention`, `embed`, `tokens`) give each thread its share of
    it; the others are done by every thread for itself. What a phase writes to
    shared memory no other thread reads before the next barrier.

    `when`: there is work only where a prefill is asked for the last token's
    logits, or for those of all.
  }];
  let arguments = (ins StrAttr:$name, Step_PhaseKind:$kind,
                       OptionalAttr<Step_Wanted>:$when);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$name $kind (`when` $when^)? $body attr-dict";
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "PhaseKind":$kind), [{
    build($_builder, $_state, name, kind, WantedAttr());
  }]>];
}

def Step_BarrierOp : Step_Op<"barrier", [HasParent<"FuncOp">]> {
  let summary = "All threads have arrived before any goes on";
  let description = [{
    A thread that waits first prefetches the beginning of its share of the
    `prefetch_bytes` weight bytes at `prefetch` (relative to the function's
    weights), which the next phase streams; then it spins a bounded time, then
    calls ctx->wait. Both are there or neither is.

    ```mlir
    step.barrier prefetch 4096 bytes 65536
    ```
  }];
  let arguments = (ins OptionalAttr<I64Attr>:$prefetch,
                       OptionalAttr<I64Attr>:$prefetch_bytes);
  let assemblyFormat = [{
    (`prefetch` $prefetch^ `bytes` $prefetch_bytes)? attr-dict
  }];
  let hasVerifier = 1;
}

def Step_StreamOp : Step_Op<"stream", [HasParent<"PhaseOp">]> {
  let summary = "The weight bytes that a phase reads, in order";
  let description = [{
    `bytes` bytes at `offset`, relative to the function's weights.

    ```mlir
    step.stream 512 bytes 131584
    ```
  }];
  let arguments = (ins I64Attr:$offset, I64Attr:$bytes);
  let assemblyFormat = "$offset `bytes` $bytes attr-dict";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Blocks of tokens: a prefill
//===----------------------------------------------------------------------===//

class Step_SlotUser<string mnemonic, list<Trait> traits = []>
    : Step_Op<mnemonic, !listconcat(traits,
        [DeclareOpInterfaceMethods<SymbolUserOpInterface>])>;

/// Ops that a step runs in a phase and a prefill for each token.
def Step_InPhase : ParentOneOf<["PhaseOp", "TokensOp"]>;

def Step_TokensOp : Step_Op<"tokens", [SingleBlock, NoTerminator,
    HasParent<"PhaseOp">, AutomaticAllocationScope]> {
  let summary = "Once for each token of the thread's share of the block";
  let description = [{
    Inside, the position is the token's, and a slot means its row for the token.

    ```mlir
    step.tokens {
      %x = step.view @x : !step.vec<128>
      %n = step.rms_norm %x weight 0 eps 1.0e-06 : !step.vec<128>
      %q = step.quantize %n : !step.vec<128> -> !step.qvec<128, 64>
      step.put %q, @block : !step.qvec<128, 64>
    }
    ```
  }];
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$body attr-dict";
}

def Step_PutOp : Step_SlotUser<"put", [HasParent<"TokensOp">]> {
  let summary = "Stores the token's activation to a block of activations";
  let description = [{
    See !step.block for the layout, in quads or `by_token`. The slot has no rows.

    ```mlir
    step.put %q, @block by_token : !step.qvec<128, 64>
    ```
  }];
  let arguments = (ins AnyTypeOf<[Step_Vec, Step_QVec]>:$input,
                       FlatSymbolRefAttr:$slot, UnitAttr:$by_token);
  let assemblyFormat = [{
    $input `,` $slot (`by_token` $by_token^)? attr-dict `:` type($input)
  }];
  let hasVerifier = 1;
}

def Step_KeepOp : Step_SlotUser<"keep", [HasParent<"TokensOp">]> {
  let summary = "Copies a vector to the slot's row for the token";
  let arguments = (ins Step_Vec:$input, FlatSymbolRefAttr:$slot);
  let assemblyFormat = "$input `,` $slot attr-dict `:` type($input)";
}

def Step_BlockViewOp : Step_SlotUser<"block_view", [HasParent<"PhaseOp">]> {
  let summary = "The activations of a block of tokens";
  let description = [{
    As `step.put` has left them, in quads or `by_token`: kernels read either the
    one or the other.

    ```mlir
    %x = step.block_view @block by_token : !step.block<128, 64>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$slot, UnitAttr:$by_token);
  let results = (outs Step_Block:$output);
  let assemblyFormat = [{
    $slot (`by_token` $by_token^)? attr-dict `:` type($output)
  }];
  let hasVerifier = 1;
}

def Step_CacheWriteOp : Step_SlotUser<"cache_write", [HasParent<"TokensOp">]> {
  let summary = "Quantizes the token's key and value into the cache";
  let description = [{
    For a cache of `i8`, as `step.attention` does it for a token. The slots hold
    f32, [kv_head][dim], with a row for each token.

    ```mlir
    step.cache_write @token.key, @token.value cache <...>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$key, FlatSymbolRefAttr:$value,
                       Step_CacheAttr:$cache);
  let assemblyFormat = "$key `,` $value `cache` $cache attr-dict";
  let hasVerifier = 1;
}

def Step_BlockAttentionOp : Step_SlotUser<"block_attention",
    [HasParent<"PhaseOp">]> {
  let summary = "Attention of each token of a block, chunks folded";
  let description = [{
    Items of (KV head, few tokens) are split over the threads. For each token
    and head the same chunks as in `step.attention` give the same partial
    results, folded in the same order, so that `output` gets the bits that
    `step.fold` gives. Keys that a token does not see take no part.

    ```mlir
    step.block_attention @q, @attention cache <...> heads 4 window 16
      scale 0.125 chunk 64
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$query, FlatSymbolRefAttr:$output,
                       Step_CacheAttr:$cache, I64Attr:$heads, I64Attr:$window,
                       F32Attr:$scale, I64Attr:$chunk);
  let assemblyFormat = [{
    $query `,` $output `cache` $cache `heads` $heads `window` $window
    `scale` $scale `chunk` $chunk attr-dict
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Private values of a thread
//===----------------------------------------------------------------------===//

def Step_RopeTableOp : Step_Op<"rope_table"> {
  let summary = "Cosines and sines of this step's position";
  let description = [{
    `period` cosines, then `period` sines; the period is the smallest multiple
    of both width/2 and 16, so that every tile of rotated pairs finds its 16
    angles side by side. Angles and their reduction are in double.

    ```mlir
    %t = step.rope_table <theta = 1.0e+04, width = 32> : !step.vec<32>
    ```
  }];
  let arguments = (ins Spark_RopeAttr:$rope);
  let results = (outs Step_Vec:$table);
  let assemblyFormat = "$rope attr-dict `:` type($table)";
  let hasVerifier = 1;
}

def Step_ViewOp : Step_SlotUser<"view",
    [ParentOneOf<["PhaseOp", "TokensOp", "TilesOp"]>]> {
  let summary = "What a slot holds";
  let description = [{
    `last`: its row for the last token of the call.
  }];
  let arguments = (ins FlatSymbolRefAttr:$slot, UnitAttr:$last);
  let results = (outs Step_Vec:$output);
  let assemblyFormat = "$slot (`last` $last^)? attr-dict `:` type($output)";
}

def Step_RmsNormOp : Step_Op<"rms_norm", [Step_InPhase,
    SameOperandsAndResultType]> {
  let summary = "x / sqrt(mean(x^2) + eps) * w, by every thread for itself";
  let description = [{
    `weight`: byte offset of the f32 weights from the function's weights.

    ```mlir
    %n = step.rms_norm %x weight 0 eps 1.0e-06 : !step.vec<128>
    ```
  }];
  let arguments = (ins Step_Vec:$input, I64Attr:$weight, F64Attr:$eps);
  let results = (outs Step_Vec:$output);
  let assemblyFormat = "$input `weight` $weight `eps` $eps attr-dict `:` type($input)";
  let hasVerifier = 1;
}

def Step_FoldOp : Step_SlotUser<"fold", [Step_InPhase]> {
  let summary = "Folds the chunks of an attention, in order";
  let description = [{
    Reads the partial results that `step.attention` left in `slot`. With the
    running maximum M, sum S and output O, chunk (m, s, o) gives
    M' = max(M, m), a = exp(M - M'), b = exp(m - M'), S = S a + s b,
    O = O a + o b; at the end O / S.

    ```mlir
    %o = step.fold @partials heads 4 head_dim 32 window 16 chunk 64
      : !step.vec<128>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$slot, I64Attr:$heads, I64Attr:$head_dim,
                       I64Attr:$window, I64Attr:$chunk);
  let results = (outs Step_Vec:$output);
  let assemblyFormat = [{
    $slot `heads` $heads `head_dim` $head_dim `window` $window `chunk` $chunk
    attr-dict `:` type($output)
  }];
  let hasVerifier = 1;
}

def Step_QuantizeOp : Step_Op<"quantize", [Step_InPhase]> {
  let summary = "The activation in groups of int8, or rounded to bf16";
  let description = [{
    Codes are x * (127 / max |x|), rounded to nearest even; the scale is
    max |x| / 127. In a group whose maximum is below 2^-120 all codes are 0. The
    scale of a group that holds a NaN is NaN. To bf16 each element is rounded for
    itself, to nearest even.

    ```mlir
    %q = step.quantize %n : !step.vec<128> -> !step.qvec<128, 64>
    %p = step.quantize %n : !step.vec<128> -> !step.qvec<128, 64, bf16>
    ```
  }];
  let arguments = (ins Step_Vec:$input);
  let results = (outs Step_QVec:$output);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($output)";
  let hasVerifier = 1;
}

def Step_HeadGateOp : Step_Op<"head_gate", [Step_InPhase,
    AllTypesMatch<["input", "output"]>]> {
  let summary = "Each head's elements times the sigmoid of its gate";
  let description = [{
    The gate has an element a head; element i of H heads of D is multiplied with
    1 / (1 + exp(-gate[i / D])).

    ```mlir
    %h = step.head_gate %o, %g : !step.vec<128>, !step.vec<4>
    ```
  }];
  let arguments = (ins Step_Vec:$input, Step_Vec:$gate);
  let results = (outs Step_Vec:$output);
  let assemblyFormat = "$input `,` $gate attr-dict `:` type($input) `,` type($gate)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Work that is split over the threads
//===----------------------------------------------------------------------===//

def Step_EmbedOp : Step_SlotUser<"embed", [Step_InPhase]> {
  let summary = "The token's row of the embedding, into a slot";
  let description = [{
    `weight`: byte offset of a pack, with its layout and, where that has any, the
    columns of a group; rows are found through the index equation, so a tied head
    serves as the embedding. Codes become the floats that they stand for.

    ```mlir
    step.embed @x weight 0 layout "tile16_bf16" hidden 128
    step.embed @x weight 0 layout "tile16_q6k" hidden 256 group 16
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$slot, I64Attr:$weight, StrAttr:$layout,
                       I64Attr:$hidden, OptionalAttr<I64Attr>:$group);
  let assemblyFormat = [{
    $slot `weight` $weight `layout` $layout `hidden` $hidden (`group` $group^)?
    attr-dict
  }];
  let hasVerifier = 1;
}

def Step_TilesOp : Step_Op<"tiles", [SingleBlock, NoTerminator,
    HasParent<"PhaseOp">, AutomaticAllocationScope]> {
  let summary = "A run of row tiles times the activation, each with its epilogue";
  let description = [{
    `offset`: byte offset of the run's first tile from the function's weights.
    The work of a phase is the bytes of its runs, in order; thread t of n takes
    the units (tiles, or pairs of tiles) that start in its n-th of them. Tiles
    never depend on the number of threads.

    Float layouts take a !step.vec, integer ones a !step.qvec whose group divides
    the weights' `group`. A prefill takes a !step.block of either: each token's
    accumulators, and what the body does with them, are those of its step.

    `ahead`: how many bytes before it reads a line of an integer layout for one
    token a thread prefetches it, into all caches or, with `once`, past the L2
    cache. It reads two halves of its units side by side or, with `serial`, one
    unit after the other.

    The body is the epilogue: it gets the accumulators of the tile (of both
    tiles where the run is `paired`) and the number j of the first lane.

    ```mlir
    step.tiles %n at 512 layout "tile16_bf16" cols 128 group 0 units 4 paired
      kernel "dot_bf16" {
    ^bb0(%a: vector<16xf32>, %b: vector<16xf32>, %j: index):
      ...
    } : !step.vec<128>
    ```
  }];
  let arguments = (ins AnyTypeOf<[Step_Vec, Step_QVec, Step_Block]>:$activation,
                       I64Attr:$offset, StrAttr:$layout, I64Attr:$cols, I64Attr:$group, I64Attr:$units,
                       UnitAttr:$paired, OptionalAttr<StrAttr>:$kernel,
                       OptionalAttr<I64Attr>:$ahead,
                       UnitAttr:$once, UnitAttr:$serial);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $activation `at` $offset `layout` $layout `cols` $cols `group` $group
    `units` $units (`paired` $paired^)? (`kernel` $kernel^)? (`ahead` $ahead^)?
    (`once` $once^)? (`serial` $serial^)? $body attr-dict
    `:` type($activation)
  }];
  let hasRegionVerifier = 1;
}

def Step_AttentionOp : Step_SlotUser<"attention", [HasParent<"PhaseOp">]> {
  let summary = "Items of (KV head, key chunk), each with all heads of the group";
  let description = [{
    For each chunk that holds a visible key and each query head, leaves in
    `partials` a record of head_dim rounded up to 16, plus 16 floats: the
    output, not divided by the sum; then the maximum and the sum. Record of
    (chunk c, head h): (c - first chunk) * heads + h. Masked keys of a chunk
    take no part and their values are not read.

    A cache of `i8` is written here and not by an epilogue, since a tile need
    not hold all dims that share a scale: `token` names the slots of the token's
    key and value, f32, [kv_head][dim], and the item of its chunk quantizes them
    into the cache before it reads it. So that no other item reads these lines
    meanwhile, a ring has room for a window that begins and ends inside a chunk.

    The scale of 16 dims is max |x| / 127 as f16, at most 65504, and NaN if one
    of them is not finite; codes are x / scale, rounded to nearest even and kept
    within 127, all 0 where the scale is 0. Attention sees the quantized values
    of every position, its own too.

    ```mlir
    step.attention @q, @partials cache <...> heads 4 window 16 scale 0.125
      chunk 64
    step.attention @q, @partials cache <...> token @k, @v heads 4 window 16
      scale 0.125 chunk 64
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$query, FlatSymbolRefAttr:$partials,
                       Step_CacheAttr:$cache,
                       OptionalAttr<FlatSymbolRefAttr>:$key,
                       OptionalAttr<FlatSymbolRefAttr>:$value,
                       I64Attr:$heads, I64Attr:$window,
                       F32Attr:$scale, I64Attr:$chunk);
  let assemblyFormat = [{
    $query `,` $partials `cache` $cache (`token` $key^ `,` $value)?
    `heads` $heads `window` $window `scale` $scale `chunk` $chunk attr-dict
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Epilogues: what is done to a tile before it reaches memory
//===----------------------------------------------------------------------===//

def Step_RotateOp : Step_Op<"rotate", [HasParent<"TilesOp">, Pure,
    AllTypesMatch<["a", "b", "first", "second"]>]> {
  let summary = "Rotary embedding of the pairs (a, b)";
  let description = [{
    first = a cos - b sin, second = b cos + a sin; lane j takes the table's
    angle j modulo its period.

    ```mlir
    %first, %second = step.rotate %a, %b by %rope[%j] : !step.vec<32>
    ```
  }];
  let arguments = (ins Step_Tile:$a, Step_Tile:$b, Step_Vec:$table, Index:$j);
  let results = (outs Step_Tile:$first, Step_Tile:$second);
  let assemblyFormat = [{
    $a `,` $b `by` $table `[` $j `]` attr-dict `:` type($table)
  }];
  let builders = [OpBuilder<(ins "::mlir::Value":$a, "::mlir::Value":$b,
    "::mlir::Value":$table, "::mlir::Value":$j), [{
    build($_builder, $_state, a.getType(), a.getType(), a, b, table, j);
  }]>];
  let hasVerifier = 1;
}

def Step_GegluOp : Step_Op<"geglu", [HasParent<"TilesOp">, Pure,
    SameOperandsAndResultType]> {
  let summary = "gelu_erf(gate) * up";
  let description = [{
    gelu_erf(x) = x (1 + erf(x / sqrt 2)) / 2, lane by lane.

    ```mlir
    %g = step.geglu %gate, %up
    ```
  }];
  let arguments = (ins Step_Tile:$gate, Step_Tile:$up);
  let results = (outs Step_Tile:$output);
  let assemblyFormat = "$gate `,` $up attr-dict";
}

def Step_ResidualOp : Step_SlotUser<"residual", [HasParent<"TilesOp">,
    AllTypesMatch<["update", "output"]>]> {
  let summary = "The slot's elements of these lanes plus the tile";
  let description = [{
    `j` is the number of the tile's first lane; `lanes` says which elements its
    lanes stand for. The others hold nothing that means anything.

    ```mlir
    %r = step.residual %a, @x[%j] lanes <heads = 1, width = 128, stride = 128>
    ```
  }];
  let arguments = (ins Step_Tile:$update, FlatSymbolRefAttr:$slot, Index:$j,
                       Step_LanesAttr:$lanes);
  let results = (outs Step_Tile:$output);
  let assemblyFormat = "$update `,` $slot `[` $j `]` `lanes` $lanes attr-dict";
}

def Step_StoreOp : Step_SlotUser<"store", [HasParent<"TilesOp">]> {
  let summary = "Stores the valid lanes to their elements of a slot";
  let description = [{
    In a prefill, to the token's row of the slot.

    ```mlir
    step.store %r, @x[%j] lanes <heads = 1, width = 128, stride = 128>
    ```
  }];
  let arguments = (ins Step_Tile:$value, FlatSymbolRefAttr:$slot, Index:$j,
                       Step_LanesAttr:$lanes);
  let assemblyFormat = "$value `,` $slot `[` $j `]` `lanes` $lanes attr-dict";
}

def Step_KVKind : I32EnumAttr<"KVKind", "half of a KV cache", [
  I32EnumAttrCase<"key", 0>, I32EnumAttrCase<"value", 1>]> {
  let cppNamespace = "::sparkc::step";
}

def Step_KVStoreOp : Step_Op<"kv_store", [HasParent<"TilesOp">]> {
  let summary = "Stores the valid lanes to the cache, at the token's position";
  let description = [{
    Elements are numbered kv_head * head_dim + dim. Not for a cache of `i8`,
    which `step.attention` writes.
  }];
  let arguments = (ins Step_Tile:$value, Step_KVKind:$kind, Index:$j,
                       Step_CacheAttr:$cache, Step_LanesAttr:$lanes);
  let assemblyFormat = [{
    $kind $value `[` $j `]` `cache` $cache `lanes` $lanes attr-dict
  }];
  let hasVerifier = 1;
}

def Step_LogitsOp : Step_Op<"logits", [HasParent<"TilesOp">]> {
  let summary = "Stores the valid lanes to ctx->logits";
  let description = [{
    Which lanes are valid is how many tokens the vocabulary has. A phase with
    such an op has no work in a call that is asked for no logits.

    ```mlir
    step.logits %a[%j] lanes <heads = 1, width = 70, stride = 70>
    ```
  }];
  let arguments = (ins Step_Tile:$value, Index:$j, Step_LanesAttr:$lanes);
  let assemblyFormat = "$value `[` $j `]` `lanes` $lanes attr-dict";
}

#endif // SPARKC_DIALECT_STEP_OPS
