// Codes of an AWQ or GPTQ checkpoint: they stay as they are beside floats that
// a scheme is for; a scheme for all, or a rule, makes them another grid.
//
// RUN: sparkc-opt %s --spark-quantize="scheme=q6 keep-codes=true" | FileCheck %s --check-prefix=KEEP
// RUN: sparkc-opt %s --spark-quantize="scheme=q6" | FileCheck %s --check-prefix=FIT
// RUN: sparkc-opt %s --spark-quantize="scheme=q6 keep-codes=true rules=down=q8" | FileCheck %s --check-prefix=RULE
// RUN: sparkc-opt %s --spark-quantize="scheme=stored" | FileCheck %s --check-prefix=STORED

// KEEP: spark.config {{.*}} scheme = "stored codes, q6:g64"
// gate meets up in pairs of tiles: f32 holds either.
// KEEP: spark.weight @gate : tensor<64x64xf32> {{.*}} AWQ4,
// KEEP: spark.weight @up : tensor<64x64xf32> {{.*}} BF16,
// KEEP: spark.weight @down : tensor<64x64xi4, #spark.grid<bits = 4, group = 32>>
// KEEP: spark.weight @out : tensor<64x64xi6, #spark.grid<bits = 6, group = 64>>

// FIT: spark.weight @gate : tensor<64x64xi6, #spark.grid<bits = 6, group = 64>>
// FIT: spark.weight @down : tensor<64x64xi6, #spark.grid<bits = 6, group = 64>>

// RULE: spark.weight @down : tensor<64x64xi8, #spark.grid<bits = 8, group = 64>>

// STORED: spark.weight @down : tensor<64x64xi4, #spark.grid<bits = 4, group = 32>>
// STORED: spark.weight @out : tensor<64x64xbf16>

spark.config {vocab = 4 : i64, hidden = 64 : i64, intermediate = 64 : i64, layers = 1 : i64, heads = 1 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, window = 0 : i64, max_context = 16 : i64, context = 16 : i64, prefill_block = 1 : i64, scheme = ""}
spark.weight @gate : tensor<64x64xi4, #spark.grid<bits = 4, group = 64>> from <"m", AWQ4, offset = 0, bytes = 2048, group = 64, with = [#spark.source<"m", F16, offset = 2048, bytes = 128>, #spark.source<"m", I32, offset = 2176, bytes = 32>]>
spark.weight @up : tensor<64x64xbf16> from <"m", BF16, offset = 4096, bytes = 8192>
spark.weight @down : tensor<64x64xi4, #spark.grid<bits = 4, group = 32>> from <"m", GPTQ4, offset = 0, bytes = 2048, group = 32, with = [#spark.source<"m", F16, offset = 2048, bytes = 256>, #spark.source<"m", I32, offset = 2304, bytes = 64>]>
spark.weight @out : tensor<64x64xbf16> from <"m", BF16, offset = 4096, bytes = 8192>
func.func @step(%x: tensor<1x64xf32>) -> tensor<1x64xf32> {
  %g = spark.linear %x, @gate : tensor<1x64xf32> -> tensor<1x64xf32>
  %u = spark.linear %x, @up : tensor<1x64xf32> -> tensor<1x64xf32>
  %f = spark.geglu %g, %u : tensor<1x64xf32>
  %d = spark.linear %f, @down : tensor<1x64xf32> -> tensor<1x64xf32>
  %o = spark.linear %d, @out : tensor<1x64xf32> -> tensor<1x64xf32>
  return %o : tensor<1x64xf32>
}
