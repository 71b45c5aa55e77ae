// Integer grids: what linears read gets one, the embedding's rows do not.
//
// RUN: sparkc-opt %S/Inputs/two-layers.mlir --spark-quantize=scheme=q4 | FileCheck %s --check-prefixes=ALL,Q4
// RUN: sparkc-opt %S/Inputs/two-layers.mlir --spark-quantize=scheme=q5:g32:sym | FileCheck %s --check-prefixes=ALL,Q5
// RUN: sparkc-opt %S/Inputs/two-layers.mlir --spark-quantize=scheme=q8:sym:g128 | FileCheck %s --check-prefixes=ALL,Q8

// Q4: spark.config {{.*}} scheme = "q4:g64"
// Q5: spark.config {{.*}} scheme = "q5:g32:sym"
// Q8: spark.config {{.*}} scheme = "q8:g128:sym"
// ALL: spark.weight @embedding : tensor<24x8xbf16> from
// ALL: spark.weight @layers.0.input_layernorm : tensor<8xf32>
// Q4:  spark.weight @layers.0.q_k_v_proj : tensor<16x8xi4, #spark.grid<bits = 4, group = 64>> from
// Q5:  spark.weight @layers.0.q_k_v_proj : tensor<16x8xi5, #spark.grid<bits = 5, group = 32, symmetric = true>> from
// Q8:  spark.weight @layers.0.q_k_v_proj : tensor<16x8xi8, #spark.grid<bits = 8, group = 128, symmetric = true>> from
// Q4:  spark.weight @layers.0.g_proj : tensor<2x8xi4, #spark.grid
// Q4:  spark.weight @layers.1.down_proj : tensor<8x16xi4, #spark.grid
// ALL: spark.weight @norm : tensor<8xf32>
// A tied head becomes a weight of its own, with the embedding's source.
// Q4:  spark.weight @lm_head : tensor<24x8xi4, #spark.grid<bits = 4, group = 64>> from <"m", BF16, offset = 0, bytes = 384>
// ALL: spark.embed @embedding
// ALL: spark.linear {{.*}}, @lm_head : tensor<1x8xf32> -> tensor<1x24xf32>

// Unless it is to be stored as the embedding is.
// RUN: sparkc-opt %S/Inputs/two-layers.mlir --spark-quantize="scheme=q4 rules=lm_head=bf16" | FileCheck %s --check-prefix=TIED
// RUN: sparkc-opt %S/Inputs/two-layers.mlir --spark-quantize=scheme=bf16 | FileCheck %s --check-prefix=TIED
// TIED-NOT: spark.weight @lm_head
// TIED: spark.linear {{.*}}, @embedding : tensor<1x8xf32> -> tensor<1x24xf32>

// A grid for the head alone; rules in words.
// RUN: sparkc-opt %S/Inputs/two-layers.mlir --spark-quantize="scheme=stored rules=lm_head=q6" | FileCheck %s --check-prefix=HEAD
// HEAD: spark.config {{.*}} scheme = "stored, lm_head=q6"
// HEAD: spark.weight @layers.0.q_k_v_proj : tensor<16x8xbf16>
// HEAD: spark.weight @lm_head : tensor<24x8xi6, #spark.grid<bits = 6, group = 64>>

// The last rule that matches wins; the pair of a geglu gets the finer grid:
// more bits, then smaller groups, then zero points of its own.
// RUN: sparkc-opt %S/Inputs/two-layers.mlir --spark-quantize="scheme=q4 rules=layers.0.*=q8,layers.?.up_proj=q6,layers.1.gate_proj=q6:g32,layers.1.g_proj=bf16" | FileCheck %s --check-prefix=RULES
// RULES: scheme = "q4:g64, layers.0.*=q8:g64, layers.?.up_proj=q6:g64, layers.1.gate_proj=q6:g32, layers.1.g_proj=bf16"
// RULES: spark.weight @layers.0.q_k_v_proj : tensor<16x8xi8,
// RULES: spark.weight @layers.0.gate_proj : tensor<16x8xi8, #spark.grid<bits = 8, group = 64>>
// RULES: spark.weight @layers.0.up_proj : tensor<16x8xi8, #spark.grid<bits = 8, group = 64>>
// RULES: spark.weight @layers.0.down_proj : tensor<8x16xi8,
// RULES: spark.weight @layers.1.q_k_v_proj : tensor<16x8xi4,
// RULES: spark.weight @layers.1.g_proj : tensor<2x8xbf16>
// RULES: spark.weight @layers.1.gate_proj : tensor<16x8xi6, #spark.grid<bits = 6, group = 32>>
// RULES: spark.weight @layers.1.up_proj : tensor<16x8xi6, #spark.grid<bits = 6, group = 32>>
// RULES: spark.weight @layers.1.down_proj : tensor<8x16xi4,
// RULES: spark.weight @lm_head : tensor<24x8xi4,
// RUN: sparkc-opt %S/Inputs/two-layers.mlir --spark-quantize="scheme=q4:sym rules=*.up_proj=q4" | FileCheck %s --check-prefix=SYM
// SYM: spark.weight @layers.0.gate_proj : tensor<16x8xi4, #spark.grid<bits = 4, group = 64>>
// SYM: spark.weight @layers.0.up_proj : tensor<16x8xi4, #spark.grid<bits = 4, group = 64>>
// SYM: spark.weight @layers.0.down_proj : tensor<8x16xi4, #spark.grid<bits = 4, group = 64, symmetric = true>>

// A second run decides anew.
// RUN: sparkc-opt %S/Inputs/two-layers.mlir --spark-quantize="scheme=q4 rules=*.up_proj=q6" --spark-quantize=scheme=q5 | FileCheck %s --check-prefix=AGAIN
// AGAIN: scheme = "q5:g64"
// AGAIN: spark.weight @layers.0.gate_proj : tensor<16x8xi5, #spark.grid<bits = 5, group = 64>>
// AGAIN: spark.weight @lm_head : tensor<24x8xi5,

// RUN: not sparkc-opt %S/Inputs/two-layers.mlir --spark-quantize=scheme=q3 2>&1 | FileCheck %s --check-prefix=SCHEME
// SCHEME: error: unknown weight scheme 'q3'; expected f32, bf16, q4, q5, q6 or q8, grids also with :g32, :g64, :g128 and :sym
// RUN: not sparkc-opt %S/Inputs/two-layers.mlir --spark-quantize=scheme=q4:g16 2>&1 | FileCheck %s --check-prefix=GROUP
// GROUP: error: group of '16' in weight scheme 'q4:g16'; expected 32, 64 or 128
// RUN: not sparkc-opt %S/Inputs/two-layers.mlir --spark-quantize="scheme=q4 rules=lm_head=q6,layers.2.*=q8" 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: no tensor matches 'layers.2.*'
// RUN: not sparkc-opt %S/Inputs/two-layers.mlir --spark-quantize="scheme=q4 rules=lm_head" 2>&1 | FileCheck %s --check-prefix=RULE
// RULE: error: expected NAME=SCHEME, found 'lm_head'
