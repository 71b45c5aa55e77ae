//===- StepDialect.td - The schedule, on memory ------------*- tablegen -*-===//
//
// Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef SPARKC_DIALECT_STEP_DIALECT
#define SPARKC_DIALECT_STEP_DIALECT

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"

def Step_Dialect : Dialect {
  let name = "step";
  let cppNamespace = "::sparkc::step";
  let summary = "One decode step as a static schedule on memory";
  let description = [{
    Every thread of a call runs the same functions. Work stands in
    `step.phase` ops; whatever a phase writes to shared memory is visible to
    all threads after the next `step.barrier`. Memory is what the call's ctx
    points to: the packed weights (`step.pack` places them), the KV caches and
    the arena (`step.slot` places values there). All offsets are in the IR, in
    bytes: constants, or a + b * ctx.capacity where they depend on the session.

    `!step.vec` values are private to a thread or views of a slot; they live in
    the stack frame of the function that makes them.
  }];
  let dependentDialects = ["::sparkc::spark::SparkDialect"];
  let useDefaultAttributePrinterParser = 1;
  let useDefaultTypePrinterParser = 1;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

class Step_Type<string name, string typeMnemonic>
    : TypeDef<Step_Dialect, name> {
  let mnemonic = typeMnemonic;
}

def Step_Vec : Step_Type<"Vec", "vec"> {
  let summary = "f32 elements in memory, readable by this thread";
  let description = [{
    `size` elements, 64-byte aligned, zero up to the next multiple of 128.

    ```mlir
    !step.vec<2048>
    ```
  }];
  let parameters = (ins "int64_t":$size);
  let assemblyFormat = "`<` $size `>`";
  let genVerifyDecl = 1;
}

/// `i8` is not written out.
def Step_Element : DefaultValuedParameter<"::mlir::Type",
    "::mlir::IntegerType::get($_ctxt, 8)">;

def Step_QVec : Step_Type<"QVec", "qvec"> {
  let summary = "An activation in groups of int8 or bf16, private to a thread";
  let description = [{
    `size` elements, padded with 0 to the next multiple of 128, in groups of 16,
    32, 64 or 128. Each group of `i8`, the default, shares a scale: x ~ scale *
    code, codes in [-127, 127], scale = max |x| / 127. In memory: the codes, then
    a float scale a group, then the sum of the codes of each group as int32, each
    part on a multiple of 64.

    Elements of `bf16` are rounded to that. In memory: the elements, each four of
    them in the order 0, 2, 1, 3, which makes a word of 4 bytes of two columns
    that meet in a word of unpacked codes; then, on a multiple of 64, the sum of
    each group's rounded elements as float.

    ```mlir
    !step.qvec<2048, 64>
    !step.qvec<2048, 64, bf16>
    ```
  }];
  let parameters = (ins "int64_t":$size, "int64_t":$group, Step_Element:$element);
  let assemblyFormat = "`<` $size `,` $group (`,` $element^)? `>`";
  let genVerifyDecl = 1;
}

def Step_Block : Step_Type<"Block", "block"> {
  let summary = "The activations of a block of tokens, four by four";
  let description = [{
    `size` elements a token, padded with 0 to the next multiple of 128, in
    groups of bytes as in !step.qvec, but with 128 added to each code (0 to
    255), or floats where `group` is 0. Four tokens are interleaved by words of 4 bytes (4 codes or 1 float): word w of token t
    of a quad is at byte 16 w + 4 t of it. Then, in integer blocks, 4 float
    scales a group and 4 words a group that hold minus the sum of the group's
    codes as int16 and 0; each part is on a multiple of 64 bytes.

    In blocks of `bf16` the words are those of such a !step.qvec, interleaved
    alike; 4 floats a group follow, the sums.

    A block of integers may lie token by token instead, where the ops that write
    and view it say `by_token`: the !step.qvec of each token as it is, one behind
    the other.

    ```mlir
    !step.block<2048, 64>
    !step.block<2048, 64, bf16>
    ```
  }];
  let parameters = (ins "int64_t":$size, "int64_t":$group, Step_Element:$element);
  let assemblyFormat = "`<` $size `,` $group (`,` $element^)? `>`";
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

class Step_Attr<string name, string attrMnemonic>
    : AttrDef<Step_Dialect, name> {
  let mnemonic = attrMnemonic;
}

def Step_AffineAttr : Step_Attr<"Affine", "affine"> {
  let summary = "constant + per_position * ctx.capacity, in bytes";
  let description = [{
    A size or an offset that may depend on the session: ctx.capacity is the
    number of positions that full layers remember. Neither part is negative.

    ```mlir
    #step.affine<1024>
    #step.affine<1024 + 12 * capacity>
    ```
  }];
  let parameters = (ins "int64_t":$constant,
                        DefaultValuedParameter<"int64_t", "0">:$per_position);
  let assemblyFormat = "`<` $constant (`+` $per_position^ `*` `capacity`)? `>`";
  let genVerifyDecl = 1;
}

def Step_LanesAttr : Step_Attr<"Lanes", "lanes"> {
  let summary = "Which element each lane of a run of tiles stands for";
  let description = [{
    Lane l of the run's tile t has number j = 16 t + l. It is valid iff
    j < heads * width and then stands for element
    base + (j / width) * stride + j % width.

    ```mlir
    #step.lanes<heads = 8, width = 128, stride = 256, base = 128>
    ```
  }];
  let parameters = (ins "int64_t":$heads, "int64_t":$width, "int64_t":$stride,
                        DefaultValuedParameter<"int64_t", "0">:$base);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Valid lanes.
    int64_t getCount() const { return getHeads() * getWidth(); }
    /// Do the 16 lanes of every tile stand for consecutive elements?
    bool isContiguous() const { return getHeads() == 1 || getWidth() % 16 == 0; }
  }];
}

def Step_RunAttr : Step_Attr<"Run", "run"> {
  let summary = "A run of tiles of a packed matrix: which rows its lanes hold";
  let description = [{
    As #step.lanes, with the weight (index into the pack's list) and the row
    base of the A tiles, and of the B tiles where the run is paired; paired
    tiles alternate, A first.

    All rows of a matrix of 40; then the pairs that RoPE turns, dim d of each of
    8 heads with dim d + 128, d < 128, in heads of 256:

    ```mlir
    #step.run<heads = 1, width = 40, stride = 40>
    #step.run<heads = 8, width = 128, stride = 256, weight_b = 0, base_b = 128>
    ```
  }];
  let parameters = (ins
    "int64_t":$heads, "int64_t":$width, "int64_t":$stride,
    DefaultValuedParameter<"int64_t", "0">:$weight_a,
    DefaultValuedParameter<"int64_t", "0">:$base_a,
    DefaultValuedParameter<"int64_t", "-1">:$weight_b,
    DefaultValuedParameter<"int64_t", "0">:$base_b);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Step_CacheAttr : Step_Attr<"Cache", "cache"> {
  let summary = "Geometry of the KV cache that a layer function is given";
  let description = [{
    `positions` is the ring, or 0 for ctx.capacity positions. The K area comes
    first, [kv_head][position / 16][dim][position % 16], then the V area,
    [kv_head][position][head_dim rounded up to 16].

    Elements are `f32`, `f16` or `i8`. Of `i8`, every 16 dims of a key or a value
    (the last of them may be fewer) share an f16 scale: an element is its scale
    times its code, which float holds exactly; codes are in [-127, 127]. Before
    the 16 dims of a block of keys come the scales of its 16 keys, behind the
    codes of a value those of its groups:

        K  [kv_head][position / 16][group] { f16 [position % 16],
                                             i8 [dim of group][position % 16] }
        V  [kv_head][position] { i8 [head_dim rounded up to 16], f16 [group] }

    ```mlir
    #step.cache<heads = 2, head_dim = 256, positions = 512, element = f16>
    #step.cache<heads = 2, head_dim = 256, positions = 0, element = i8>
    ```
  }];
  let parameters = (ins "int64_t":$heads, "int64_t":$head_dim,
                        "int64_t":$positions, "::mlir::Type":$element);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// Codes with scales?
    bool isQuantized() const { return getElement().isSignlessInteger(8); }
    /// Bytes of the key and of the value of one head and position, scales
    /// included.
    int64_t getKeyBytes() const;
    int64_t getValueBytes() const;
  }];
}

#endif // SPARKC_DIALECT_STEP_DIALECT
