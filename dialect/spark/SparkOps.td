//===- SparkOps.td - Ops of the spark dialect --------------*- tablegen -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_DIALECT_SPARK_OPS
#define SPARKC_DIALECT_SPARK_OPS

include "SparkDialect.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// Of #spark.grid.
def Spark_GridForm : I32EnumAttr<"GridForm", "how codes become weights", [
    I32EnumAttrCase<"zero", 0>, I32EnumAttrCase<"minimum", 1>,
    I32EnumAttrCase<"super_minimum", 2>, I32EnumAttrCase<"super", 3>]> {
  let cppNamespace = "::sparkc::spark";
  let genSpecializedAttr = 0;
}

class Spark_Op<string mnemonic, list<Trait> traits = []>
    : Op<Spark_Dialect, mnemonic, traits>;

/// [tokens, features], f32, both sizes known and positive.
def Spark_Activation : Type<
    And<[2DTensorOf<[F32]>.predicate, HasStaticShapePred,
         CPred<"::llvm::cast<::mlir::ShapedType>($_self).getNumElements() > 0">]>,
    "static [tokens, features] tensor of f32", "::mlir::RankedTensorType">;

/// [tokens], i32 ids.
def Spark_Tokens : Type<
    And<[1DTensorOf<[I32]>.predicate, HasStaticShapePred]>,
    "static [tokens] tensor of i32", "::mlir::RankedTensorType">;

//===----------------------------------------------------------------------===//
// Module level
//===----------------------------------------------------------------------===//

def Spark_ConfigOp : Spark_Op<"config"> {
  let summary = "What the checkpoint's config says, one in a module";
  let description = [{
    Sizes in elements. `window`: keys that a sliding layer sees, itself
    included; 0 where there is no sliding layer. `max_context` is the model's
    own limit, `context` a session's default. `prefill_block` is the most tokens
    of one prefill call. `prefill_gemm`: whose products a prefill takes, those
    of a library that the host has ("onednn"); its own where there is none.
    `activations`: what the inputs of quantized matrices are rounded to: "bf16",
    or "int8:g32" or "int8:g64", int8 in groups of at most so many elements (the
    head's input: half as many).
    Where there is none, int8 in groups as the weights have them. Where no
    matrix is quantized, `spark-to-step` takes it away.

    ```mlir
    spark.config {vocab = 512 : i64, hidden = 128 : i64, ...}
    ```
  }];
  let arguments = (ins
    I64Attr:$vocab, I64Attr:$hidden, I64Attr:$intermediate, I64Attr:$layers,
    I64Attr:$heads, I64Attr:$kv_heads, I64Attr:$head_dim, I64Attr:$window,
    I64Attr:$max_context, I64Attr:$context, I64Attr:$prefill_block,
    StrAttr:$scheme, OptionalAttr<StrAttr>:$prefill_gemm,
    OptionalAttr<StrAttr>:$activations);
  let assemblyFormat = "attr-dict";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// How weights are stored, and activations where it is said, in words.
    std::string getSchemeInWords();
    /// Are the inputs of quantized matrices rounded to bf16?
    bool hasBF16Activations() { return getActivations() == "bf16"; }
    /// The most elements that share a scale of an int8 activation; 0: as many
    /// as in a group of weights.
    int64_t getActivationGroup() {
      return getActivations() == "int8:g32"   ? 32
             : getActivations() == "int8:g64" ? 64
                                              : 0;
    }
  }];
}

/// What `through` lists.
def Spark_TransformArray : TypedArrayAttrBase<
    AnyAttrOf<[Spark_FoldAttr, Spark_FoldedAttr, Spark_RotateInAttr,
               Spark_RotateOutAttr]>, "an array of transforms of weights">;

def Spark_WeightOp : Spark_Op<"weight", [Symbol,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "A weight: its type as stored in the model, its bytes' source";
  let description = [{
    The type says how the weight will be stored: `f32`, `bf16`, or an integer
    type with a `#spark.grid`. Matrices are [out, in], vectors [n].

    Behind `through` stands what is done to the values of the source: first
    what concerns rows, in that order, then what concerns columns, in f64, the
    results rounded to f32.

    ```mlir
    spark.weight @layers.0.g_proj : tensor<4x128xbf16>
      from <"model.safetensors", BF16, offset = 96, bytes = 1024>
      through [#spark.fold<@layers.0.input_layernorm>,
               #spark.rotate_in<size = 128, seed = 1>]
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<AnyRankedTensor>:$type,
                       Spark_SourceAttr:$source,
                       OptionalAttr<Spark_TransformArray>:$transforms);
  let assemblyFormat = [{
    $sym_name `:` $type `from` $source (`through` $transforms^)? attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getType());
    }
    /// Null where the weight is not quantized.
    GridAttr getGrid() {
      return ::llvm::dyn_cast_or_null<GridAttr>(getTensorType().getEncoding());
    }
    /// Whether ones stand in the place of its values.
    bool isFolded() {
      return getTransforms() &&
             ::llvm::any_of(*getTransforms(),
                            ::llvm::IsaPred<FoldedAttr>);
    }
    /// Makes stored values, which nothing has to be done to, the source.
    void replaceSource(SourceAttr source) {
      setSourceAttr(source);
      removeTransformsAttr();
    }
  }];
}

def Spark_AssetOp : Spark_Op<"asset"> {
  let summary = "A text file that travels with the compiled model";
  let description = [{
    `kind` is `tokenizer`, `tokenizer_config`, `generation_config` or
    `chat_template`; the file becomes a section of the weights file, verbatim.

    ```mlir
    spark.asset "tokenizer" from "model/tokenizer.json"
    ```
  }];
  let arguments = (ins StrAttr:$kind, StrAttr:$file);
  let assemblyFormat = "$kind `from` $file attr-dict";
  let hasVerifier = 1;
}

def Spark_KVCacheOp : Spark_Op<"kv_cache", [Symbol]> {
  let summary = "Keys and values of one layer";
  let description = [{
    `ring` keeps the last positions of a sliding layer (0: every position of the
    session, up to its capacity). K lies in blocks of 16 keys, dims outer:
    [kv_head][position / 16][dim][position % 16]; V key by key:
    [kv_head][position][dim rounded up to 16]. The element type is `f32`,
    `f16` or `i8`, which has a scale for each key and 16 dims and each value and
    16 dims; #step.cache says where they lie.

    ```mlir
    spark.kv_cache @kv.0 heads 2 head_dim 256 ring 576 : f16
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, I64Attr:$heads, I64Attr:$head_dim,
                       I64Attr:$ring, TypeAttr:$element_type);
  let assemblyFormat = [{
    $sym_name `heads` $heads `head_dim` $head_dim `ring` $ring `:` $element_type
    attr-dict
  }];
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Structure
//===----------------------------------------------------------------------===//

def Spark_LayerOp : Spark_Op<"layer", [SingleBlock, RecursiveMemoryEffects,
    AllTypesMatch<["input", "output"]>]> {
  let summary = "One decoder layer";
  let description = [{
    The body may use values from above (the position). Layers stand in the order
    of their index, 0 first, and each takes the result of the one before.

    ```mlir
    %y = spark.layer 3 (%x) {
    ^bb0(%h: tensor<1x128xf32>):
      ...
      spark.yield %out : tensor<1x128xf32>
    } : tensor<1x128xf32>
    ```
  }];
  let arguments = (ins I64Attr:$index, Spark_Activation:$input);
  let results = (outs Spark_Activation:$output);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    $index `(` $input `)` $body attr-dict `:` type($input)
  }];
  let hasRegionVerifier = 1;
}

def Spark_YieldOp : Spark_Op<"yield", [Pure, Terminator, ReturnLike,
    ParentOneOf<["LayerOp", "FusedLinearOp"]>]> {
  let summary = "Ends a region of the dialect and gives its results";
  let arguments = (ins Variadic<Spark_Activation>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

//===----------------------------------------------------------------------===//
// The model's maths
//===----------------------------------------------------------------------===//

def Spark_EmbedOp : Spark_Op<"embed", [Pure,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "Rows of the embedding, as f32, unscaled";
  let description = [{
    ```mlir
    %x = spark.embed @embedding[%token] : tensor<1xi32> -> tensor<1x128xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$weight, Spark_Tokens:$tokens);
  let results = (outs Spark_Activation:$output);
  let assemblyFormat = [{
    $weight `[` $tokens `]` attr-dict `:` type($tokens) `->` type($output)
  }];
  let hasVerifier = 1;
}

def Spark_RmsNormOp : Spark_Op<"rms_norm", [Pure, SameOperandsAndResultType,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "x / sqrt(mean(x^2) + eps) * w over the features of each token";
  let description = [{
    ```mlir
    %n = spark.rms_norm %x, @norm eps 1.0e-06 : tensor<1x128xf32>
    ```
  }];
  let arguments = (ins Spark_Activation:$input, FlatSymbolRefAttr:$weight,
                       F64Attr:$eps);
  let results = (outs Spark_Activation:$output);
  let assemblyFormat = "$input `,` $weight `eps` $eps attr-dict `:` type($input)";
  let hasVerifier = 1;
}

def Spark_LinearOp : Spark_Op<"linear", [Pure,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "x . w^T; one op for every grid";
  let description = [{
    ```mlir
    %y = spark.linear %x, @layers.0.out_proj
      : tensor<1x128xf32> -> tensor<1x128xf32>
    ```
  }];
  let arguments = (ins Spark_Activation:$input, FlatSymbolRefAttr:$weight);
  let results = (outs Spark_Activation:$output);
  let assemblyFormat = [{
    $input `,` $weight attr-dict `:` type($input) `->` type($output)
  }];
  let hasVerifier = 1;
}

def Spark_SplitOp : Spark_Op<"split", [Pure]> {
  let summary = "Consecutive ranges of the features";
  let description = [{
    ```mlir
    %q, %k, %v = spark.split %qkv : tensor<1x256xf32>
      -> tensor<1x128xf32>, tensor<1x64xf32>, tensor<1x64xf32>
    ```
  }];
  let arguments = (ins Spark_Activation:$input);
  let results = (outs Variadic<Spark_Activation>:$outputs);
  let assemblyFormat = "$input attr-dict `:` type($input) `->` type($outputs)";
  let hasVerifier = 1;
}

def Spark_RopeOp : Spark_Op<"rope", [Pure, AllTypesMatch<["input", "output"]>]> {
  let summary = "Rotary position embedding of every head";
  let description = [{
    ```mlir
    %r = spark.rope %q at %pos heads 4 rope <theta = 1.0e+04, width = 32>
      : tensor<1x128xf32>
    ```
  }];
  let arguments = (ins Spark_Activation:$input, Index:$position, I64Attr:$heads,
                       Spark_RopeAttr:$rope);
  let results = (outs Spark_Activation:$output);
  let assemblyFormat = [{
    $input `at` $position `heads` $heads `rope` $rope attr-dict `:` type($input)
  }];
  let hasVerifier = 1;
}

def Spark_KVWriteOp : Spark_Op<"kv_write", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    AllTypesMatch<["key", "value"]>]> {
  let summary = "Stores the keys and values of the tokens at their position";
  let description = [{
    ```mlir
    spark.kv_write %k, %v, @kv.0 at %pos : tensor<1x64xf32>
    ```
  }];
  let arguments = (ins Spark_Activation:$key, Spark_Activation:$value,
                       FlatSymbolRefAttr:$cache, Index:$position);
  let assemblyFormat = [{
    $key `,` $value `,` $cache `at` $position attr-dict `:` type($key)
  }];
}

def Spark_AttentionOp : Spark_Op<"attention", [
    DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    AllTypesMatch<["query", "output"]>]> {
  let summary = "Grouped-query attention over what the cache holds";
  let description = [{
    Token i at position p sees keys j with p - window < j <= p (window 0: every
    j <= p). Scores are scaled by `scale`; softmax in f32. The cache holds the
    keys of this call already. Keys are taken in chunks of `chunk` at absolute
    positions; each chunk starts from zero and chunks are folded in order, which
    fixes the bits.

    ```mlir
    %o = spark.attention %q, @kv.0 at %pos heads 4 window 16 scale 0.125 chunk 64
      : tensor<1x128xf32>
    ```
  }];
  let arguments = (ins Spark_Activation:$query, FlatSymbolRefAttr:$cache,
                       Index:$position, I64Attr:$heads, I64Attr:$window,
                       F32Attr:$scale, I64Attr:$chunk);
  let results = (outs Spark_Activation:$output);
  let assemblyFormat = [{
    $query `,` $cache `at` $position `heads` $heads `window` $window
    `scale` $scale `chunk` $chunk attr-dict `:` type($query)
  }];
  let hasVerifier = 1;
}

def Spark_HeadGateOp : Spark_Op<"head_gate", [Pure,
    AllTypesMatch<["input", "output"]>]> {
  let summary = "Each head's output times the sigmoid of its gate";
  let description = [{
    ```mlir
    %y = spark.head_gate %o, %g : tensor<1x128xf32>, tensor<1x4xf32>
    ```
  }];
  let arguments = (ins Spark_Activation:$input, Spark_Activation:$gate);
  let results = (outs Spark_Activation:$output);
  let assemblyFormat = [{
    $input `,` $gate attr-dict `:` type($input) `,` type($gate)
  }];
  let hasVerifier = 1;
}

def Spark_GegluOp : Spark_Op<"geglu", [Pure, SameOperandsAndResultType]> {
  let summary = "gelu(gate) * up, with the exact erf form of GELU";
  let description = [{
    ```mlir
    %f = spark.geglu %gate, %up : tensor<1x256xf32>
    ```
  }];
  let arguments = (ins Spark_Activation:$gate, Spark_Activation:$up);
  let results = (outs Spark_Activation:$output);
  let assemblyFormat = "$gate `,` $up attr-dict `:` type($gate)";
}

def Spark_AddOp : Spark_Op<"add", [Pure, SameOperandsAndResultType]> {
  let summary = "Residual addition";
  let description = [{
    ```mlir
    %s = spark.add %x, %y : tensor<1x128xf32>
    ```
  }];
  let arguments = (ins Spark_Activation:$residual, Spark_Activation:$update);
  let results = (outs Spark_Activation:$output);
  let assemblyFormat = "$residual `,` $update attr-dict `:` type($residual)";
}

//===----------------------------------------------------------------------===//
// The fused form
//===----------------------------------------------------------------------===//

def Spark_FusedLinearOp : Spark_Op<"fused_linear", [SingleBlock,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>,
    RecursiveMemoryEffects]> {
  let summary = "Row segments over one input, with prologue and epilogue";
  let description = [{
    The prologue maps the inputs to the one activation that all segments read
    (norm, head gate); it has no side effects. Each segment is a weight of its own, with its own grid;
    its rows are one argument of the epilogue, which maps them to the results
    before they reach memory (rope and cache write, geglu, residual add). Ops in
    the regions may use values from above.

    ```mlir
    %y = spark.fused_linear (%x) prologue {
    ^bb0(%h: tensor<1x128xf32>):
      %n = spark.rms_norm %h, @norm eps 1.0e-06 : tensor<1x128xf32>
      spark.yield %n : tensor<1x128xf32>
    } segments [@gate_proj, @up_proj] epilogue {
    ^bb0(%g: tensor<1x256xf32>, %u: tensor<1x256xf32>):
      %f = spark.geglu %g, %u : tensor<1x256xf32>
      spark.yield %f : tensor<1x256xf32>
    } : (tensor<1x128xf32>) -> tensor<1x256xf32>
    ```
  }];
  let arguments = (ins Variadic<Spark_Activation>:$inputs,
                       FlatSymbolRefArrayAttr:$segments);
  let results = (outs Variadic<Spark_Activation>:$outputs);
  let regions = (region SizedRegion<1>:$prologue, SizedRegion<1>:$epilogue);
  let assemblyFormat = [{
    `(` $inputs `)` `prologue` $prologue `segments` $segments
    `epilogue` $epilogue attr-dict `:` functional-type($inputs, $outputs)
  }];
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    YieldOp getPrologueYield();
    YieldOp getEpilogueYield();
    /// The activation that the segments read.
    ::mlir::Value getActivation();
  }];
}

#endif // SPARKC_DIALECT_SPARK_OPS
