// Types of GGUF: what a file has stays as it is; a scheme makes it another.
//
// RUN: sparkc-opt %s --spark-quantize=scheme=stored | FileCheck %s --check-prefix=STORED
// RUN: sparkc-opt %s --spark-quantize=scheme=q4k | FileCheck %s --check-prefix=Q4K
// RUN: sparkc-opt %s --spark-quantize="scheme=stored rules=up=q8_0" | FileCheck %s --check-prefix=RULE
// RUN: sed '/@up : tensor/s/i4, .*bytes = 36864/i6, #spark.grid<bits = 6, group = 16, form = super>> from <"m.gguf", Q6_K, offset = 65536, bytes = 53760/' %s \
// RUN:   | sparkc-opt --spark-quantize=scheme=stored | FileCheck %s --check-prefix=PAIR
// RUN: sparkc-opt %s --spark-quantize=scheme=f32 | FileCheck %s --check-prefix=F32

// STORED: spark.config {{.*}} scheme = "mixed"
// STORED: spark.weight @embedding : tensor<4x256xi6, #spark.grid<bits = 6, group = 16, form = super>> from <"m.gguf", Q6_K,
// STORED: spark.weight @gate : tensor<256x256xi4, #spark.grid<bits = 4, group = 32, form = super_minimum>>
// STORED: spark.weight @up : tensor<256x256xi4, #spark.grid<bits = 4, group = 32, form = super_minimum>>
// STORED: spark.weight @down : tensor<256x256xi5, #spark.grid<bits = 5, group = 32, symmetric = true>>
// The head is the embedding, codes and all.
// STORED-NOT: spark.weight @lm_head
// STORED: spark.linear {{.*}}, @embedding

// The rows of the embedding stay; the head becomes a weight of its own.
// Q4K: spark.weight @embedding : tensor<4x256xi6, #spark.grid<bits = 6, group = 16, form = super>>
// Q4K: spark.weight @gate : tensor<256x256xi4, #spark.grid<bits = 4, group = 32, form = super_minimum>>
// Q4K: spark.weight @down : tensor<256x256xi4, #spark.grid<bits = 4, group = 32, form = super_minimum>>
// Q4K: spark.weight @lm_head : tensor<4x256xi4, #spark.grid<bits = 4, group = 32, form = super_minimum>> from <"m.gguf", Q6_K,

// Rows that meet in a pair of tiles and cannot both keep their codes: floats
// hold either. Where a rule asks for it they are fitted.
// PAIR: spark.weight @gate : tensor<256x256xf32> {{.*}} Q4_K,
// PAIR: spark.weight @up : tensor<256x256xf32> {{.*}} Q6_K,
// RULE: spark.weight @gate : tensor<256x256xi8, #spark.grid<bits = 8, group = 32, symmetric = true>>
// RULE: spark.weight @up : tensor<256x256xi8, #spark.grid<bits = 8, group = 32, symmetric = true>>
// RULE: spark.weight @down : tensor<256x256xi5

// F32: spark.weight @embedding : tensor<4x256xf32> from <"m.gguf", Q6_K,
// F32: spark.linear {{.*}}, @embedding

spark.config {vocab = 4 : i64, hidden = 256 : i64, intermediate = 256 : i64, layers = 1 : i64, heads = 1 : i64, kv_heads = 1 : i64, head_dim = 8 : i64, window = 0 : i64, max_context = 16 : i64, context = 16 : i64, prefill_block = 1 : i64, scheme = ""}
spark.weight @embedding : tensor<4x256xi6, #spark.grid<bits = 6, group = 16, form = super>> from <"m.gguf", Q6_K, offset = 0, bytes = 840>
spark.weight @gate : tensor<256x256xi4, #spark.grid<bits = 4, group = 32, form = super_minimum>> from <"m.gguf", Q4_K, offset = 1024, bytes = 36864>
spark.weight @up : tensor<256x256xi4, #spark.grid<bits = 4, group = 32, form = super_minimum>> from <"m.gguf", Q4_K, offset = 65536, bytes = 36864>
spark.weight @down : tensor<256x256xi5, #spark.grid<bits = 5, group = 32, symmetric = true>> from <"m.gguf", Q5_0, offset = 131072, bytes = 45056>
func.func @step(%token: tensor<1xi32>, %pos: index) -> tensor<1x4xf32> {
  %x = spark.embed @embedding[%token] : tensor<1xi32> -> tensor<1x256xf32>
  %y = spark.layer 0 (%x) {
  ^bb0(%h: tensor<1x256xf32>):
    %g = spark.linear %h, @gate : tensor<1x256xf32> -> tensor<1x256xf32>
    %u = spark.linear %h, @up : tensor<1x256xf32> -> tensor<1x256xf32>
    %f = spark.geglu %g, %u : tensor<1x256xf32>
    %d = spark.linear %f, @down : tensor<1x256xf32> -> tensor<1x256xf32>
    spark.yield %d : tensor<1x256xf32>
  } : tensor<1x256xf32>
  %z = spark.linear %y, @embedding : tensor<1x256xf32> -> tensor<1x4xf32>
  return %z : tensor<1x4xf32>
}
