//===- SparkDialect.td - The model's own words -------------*- tablegen -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_DIALECT_SPARK_DIALECT
#define SPARKC_DIALECT_SPARK_DIALECT

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"

def Spark_Dialect : Dialect {
  let name = "spark";
  let cppNamespace = "::sparkc::spark";
  let summary = "A Spark-X2.5 model on tensors; reads like the model card";
  let description = [{
    Tensors have a leading token dimension: 1 for the decode step. Activations
    are `f32`. Weights are symbols: `spark.weight` says where the bytes lie in
    the checkpoint's files and how they will be stored; the bytes themselves
    never enter the IR.

    A model is a builtin module that holds one `spark.config`, the weights, the
    KV caches and one function, `@step`: token and position in, logits out.
  }];
  let useDefaultAttributePrinterParser = 1;
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

class Spark_Attr<string name, string attrMnemonic>
    : AttrDef<Spark_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def Spark_SourceAttr : Spark_Attr<"Source", "source"> {
  let summary = "Where the bytes of a weight lie";
  let description = [{
    A file, the element type there (`F32`, `BF16`, `F16`, or a quantized one of
    GGUF: `Q4_0`, `Q4_1`, `Q5_0`, `Q5_1`, `Q8_0`, `Q4_K`, `Q5_K`, `Q6_K`), and
    the span of the tensor in bytes from the start of the file.

    `AWQ4`, `GPTQ4` and `GPTQ4_V2` are the codes (`qweight`) of a checkpoint of
    that kind, in groups of `group` columns; `with` says where the scales (`F16`)
    and the zero points (`I32`: eight to a word) lie.

    ```mlir
    #spark.source<"model.safetensors", BF16, offset = 4096, bytes = 1024>
    #spark.source<"model.safetensors", AWQ4, offset = 0, bytes = 8192, group = 64,
      with = [#spark.source<"model.safetensors", F16, offset = 9216, bytes = 512>,
              #spark.source<"model.safetensors", I32, offset = 9728, bytes = 128>]>
    ```
  }];
  let parameters = (ins "::mlir::StringAttr":$file, StringRefParameter<"element type in the file">:$dtype,
                        "uint64_t":$offset, "uint64_t":$bytes,
                        DefaultValuedParameter<"uint64_t", "0">:$group,
                        OptionalParameter<"::mlir::ArrayAttr">:$parts);
  let assemblyFormat = [{
    `<` $file `,` custom<Keyword>($dtype) `,` `offset` `=` $offset `,`
        `bytes` `=` $bytes (`,` `group` `=` $group^ `,` `with` `=` $parts)? `>`
  }];
  let extraClassDeclaration = [{
    /// Scales and zero points of codes in groups.
    SourceAttr getScales() { return ::llvm::cast<SourceAttr>(getParts()[0]); }
    SourceAttr getZeros() { return ::llvm::cast<SourceAttr>(getParts()[1]); }
  }];
  let genVerifyDecl = 1;
}

def Spark_GridAttr : Spark_Attr<"Grid", "grid"> {
  let summary = "The encoding of a quantized weight";
  let description = [{
    Groups of `group` columns of a row share one scale s and one zero point z:
    w = s (code - z), codes of `bits` bits. Scales are f16, zero points integers
    of `bits` bits. `symmetric` fixes z at 2^(bits-1).

    Other forms are those of GGUF's quantized types:

    | form | w | scales | types |
    |---|---|---|---|
    | `zero` | s (code - z) | s f16 a group | Q4_0, Q5_0, Q8_0 (symmetric, group 32) |
    | `minimum` | s code + m | s, m f16 a group of 32 | Q4_1, Q5_1 |
    | `super_minimum` | d u code + e v | d, e f16 for 256 columns, u, v of 6 bits a group of 32 | Q4_K, Q5_K |
    | `super` | d u (code - 2^(bits-1)) | d f16 for 256 columns, u int8 a group of 16 | Q6_K |

    ```mlir
    tensor<3072x2048xi4, #spark.grid<bits = 4, group = 64>>
    tensor<3072x2048xi6, #spark.grid<bits = 6, group = 16, form = super>>
    ```
  }];
  let parameters = (ins "unsigned":$bits, "unsigned":$group,
                        DefaultValuedParameter<"bool", "false">:$symmetric,
                        DefaultValuedParameter<"::sparkc::spark::GridForm",
                            "::sparkc::spark::GridForm::zero">:$form);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Spark_FoldAttr : Spark_Attr<"Fold", "fold"> {
  let summary = "Columns times the weights of a norm";
  let description = [{
    Column c of the matrix is multiplied by weight c of a norm, whose output it
    reads; the norm itself is `#spark.folded`.

    ```mlir
    #spark.fold<@layers.0.input_layernorm>
    ```
  }];
  let parameters = (ins "::mlir::FlatSymbolRefAttr":$norm);
  let assemblyFormat = "`<` $norm `>`";
}

def Spark_FoldedAttr : Spark_Attr<"Folded", "folded"> {
  let summary = "Ones, in place of a norm's weights";
  let description = [{
    The weights of the norm went into the matrices that read its output, each of
    which has a `#spark.fold`.

    ```mlir
    #spark.folded
    ```
  }];
}

def Spark_RotateInAttr : Spark_Attr<"RotateIn", "rotate_in"> {
  let summary = "Rows, `size` columns at a time, times a rotation";
  let description = [{
    Each run v of `size` columns of a row becomes v R. R is orthogonal, fixed by
    `size` and `seed`: signs drawn from the seed, then the Kronecker product of a
    Hartley transform of the odd factor of `size` and a Hadamard matrix.

    ```mlir
    #spark.rotate_in<size = 2048, seed = 1>
    ```
  }];
  let parameters = (ins "uint64_t":$size, "uint64_t":$seed);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Spark_RotateOutAttr : Spark_Attr<"RotateOut", "rotate_out"> {
  let summary = "Columns, `size` rows at a time, times a rotation";
  let description = [{
    Each run v of `size` rows of a column, from row `first` to the last, becomes
    v R, with the R of `#spark.rotate_in`.

    ```mlir
    #spark.rotate_out<size = 256, seed = 2, first = 2560>
    ```
  }];
  let parameters = (ins "uint64_t":$size, "uint64_t":$seed,
                        DefaultValuedParameter<"uint64_t", "0">:$first);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Spark_RopeAttr : Spark_Attr<"Rope", "rope"> {
  let summary = "Rotary embedding of one layer kind";
  let description = [{
    Pairs (i, i + width/2), i < width/2, of every head are rotated by
    position * theta^(-2i/width); dims from `width` on pass through.

    ```mlir
    #spark.rope<theta = 5.0e+06, width = 64>
    ```
  }];
  let parameters = (ins APFloatParameter<"base of the frequencies">:$theta,
                        "int64_t":$width);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif // SPARKC_DIALECT_SPARK_DIALECT
