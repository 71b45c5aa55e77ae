// RUN: sparkc-opt %s --spark-quantize | FileCheck %s --check-prefixes=CHECK,STORED
// RUN: sparkc-opt %s --spark-quantize=scheme=stored | FileCheck %s --check-prefixes=CHECK,STORED
// RUN: sparkc-opt %s --spark-quantize=scheme=f32 | FileCheck %s --check-prefixes=CHECK,F32
// RUN: sparkc-opt %s --spark-quantize=scheme=bf16 | FileCheck %s --check-prefixes=CHECK,BF16
// The sources decide, not what an earlier run decided.
// RUN: sparkc-opt %s --spark-quantize=scheme=bf16 --spark-quantize=scheme=stored | FileCheck %s --check-prefixes=CHECK,STORED
// The pipeline hands the option on.
// RUN: sparkc-opt %S/Inputs/two-layers.mlir --sparkc-graph-pipeline | FileCheck %s --check-prefix=PIPE-STORED
// RUN: sparkc-opt %S/Inputs/two-layers.mlir --sparkc-graph-pipeline=scheme=f32 | FileCheck %s --check-prefix=PIPE-F32

// STORED: spark.config {{.*}} scheme = "mixed"
// F32:    spark.config {{.*}} scheme = "f32"
// BF16:   spark.config {{.*}} scheme = "bf16"
spark.config {vocab = 24 : i64, hidden = 8 : i64, intermediate = 16 : i64,
  layers = 2 : i64, heads = 2 : i64, kv_heads = 1 : i64, head_dim = 4 : i64,
  window = 3 : i64, max_context = 64 : i64, context = 64 : i64,
  prefill_block = 1 : i64, scheme = "mixed"}

// Vectors are f32, whatever happens.
// CHECK: spark.weight @norm_bf16 : tensor<8xf32> from <"m", BF16, offset = 0, bytes = 16>
spark.weight @norm_bf16 : tensor<8xbf16> from <"m", BF16, offset = 0, bytes = 16>
// CHECK: spark.weight @norm_f16 : tensor<8xf32> from <"m", F16, offset = 0, bytes = 16>
spark.weight @norm_f16 : tensor<8xf16> from <"m", F16, offset = 0, bytes = 16>

// STORED: spark.weight @f32 : tensor<4x8xf32> from <"m", F32, offset = 0, bytes = 128>
// F32:    spark.weight @f32 : tensor<4x8xf32> from <"m", F32, offset = 0, bytes = 128>
// BF16:   spark.weight @f32 : tensor<4x8xbf16> from <"m", F32, offset = 0, bytes = 128>
spark.weight @f32 : tensor<4x8xf32> from <"m", F32, offset = 0, bytes = 128>

// STORED: spark.weight @f16 : tensor<4x8xf32> from <"m", F16, offset = 0, bytes = 64>
// F32:    spark.weight @f16 : tensor<4x8xf32> from <"m", F16, offset = 0, bytes = 64>
// BF16:   spark.weight @f16 : tensor<4x8xbf16> from <"m", F16, offset = 0, bytes = 64>
spark.weight @f16 : tensor<4x8xf16> from <"m", F16, offset = 0, bytes = 64>

// STORED: spark.weight @bf16 : tensor<4x8xbf16> from <"m", BF16, offset = 0, bytes = 64>
// F32:    spark.weight @bf16 : tensor<4x8xf32> from <"m", BF16, offset = 0, bytes = 64>
// BF16:   spark.weight @bf16 : tensor<4x8xbf16> from <"m", BF16, offset = 0, bytes = 64>
spark.weight @bf16 : tensor<4x8xbf16> from <"m", BF16, offset = 0, bytes = 64>

// PIPE-STORED: spark.config {{.*}} scheme = "bf16"
// PIPE-STORED: spark.weight @embedding : tensor<24x8xbf16>
// PIPE-STORED: spark.weight @layers.0.input_layernorm : tensor<8xf32>
// PIPE-F32: spark.config {{.*}} scheme = "f32"
// PIPE-F32: spark.weight @embedding : tensor<24x8xf32>
