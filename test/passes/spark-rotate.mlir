// RUN: sparkc-opt %S/Inputs/two-layers.mlir --spark-rotate | FileCheck %s
// RUN: sparkc-opt %S/Inputs/two-layers.mlir --spark-rotate=seed=40 | FileCheck %s --check-prefix=SEED
// The text is all there is to it.
// RUN: sparkc-opt %S/Inputs/two-layers.mlir --spark-rotate --verify-roundtrip | FileCheck %s
// The pipeline hands the seed on, and quantizing keeps what was decided.
// RUN: sparkc-opt %S/Inputs/two-layers.mlir --sparkc-graph-pipeline="rotate=1 scheme=q4:g32 rules=lm_head=q6:g32" | FileCheck %s --check-prefix=PIPE
// RUN: sparkc-opt %S/Inputs/two-layers.mlir --sparkc-graph-pipeline | FileCheck %s --check-prefix=NONE

// The table that tokens are looked up in.
// CHECK:      spark.weight @embedding : tensor<24x8xbf16> from <"m", BF16, offset = 0, bytes = 384> through [#spark.rotate_in<size = 8, seed = 1>]
// Norms become ones, their readers have them.
// CHECK-NEXT: spark.weight @layers.0.input_layernorm : tensor<8xbf16> from <"m", BF16, offset = 384, bytes = 16> through [#spark.folded]
// q and k are no more than readers; v, the last four rows, is rotated by heads.
// CHECK-NEXT: spark.weight @layers.0.q_k_v_proj : {{.*}} through [#spark.fold<@layers.0.input_layernorm>, #spark.rotate_in<size = 8, seed = 1>, #spark.rotate_out<size = 4, seed = 2, first = 12>]
// CHECK-NEXT: spark.weight @layers.0.g_proj : {{.*}} through [#spark.fold<@layers.0.input_layernorm>, #spark.rotate_in<size = 8, seed = 1>]
// CHECK-NEXT: spark.weight @layers.0.out_proj : {{.*}} through [#spark.rotate_in<size = 4, seed = 2>, #spark.rotate_out<size = 8, seed = 1>]
// CHECK-NEXT: spark.weight @layers.0.post_attention_layernorm : {{.*}} through [#spark.folded]
// CHECK-NEXT: spark.weight @layers.0.gate_proj : {{.*}} through [#spark.fold<@layers.0.post_attention_layernorm>, #spark.rotate_in<size = 8, seed = 1>]
// CHECK-NEXT: spark.weight @layers.0.up_proj : {{.*}} through [#spark.fold<@layers.0.post_attention_layernorm>, #spark.rotate_in<size = 8, seed = 1>]
// CHECK-NEXT: spark.weight @layers.0.down_proj : {{.*}} through [#spark.rotate_out<size = 8, seed = 1>]
// Heads of another layer are rotated otherwise.
// CHECK-NEXT: spark.weight @layers.1.input_layernorm
// CHECK-NEXT: spark.weight @layers.1.q_k_v_proj : {{.*}} through [#spark.fold<@layers.1.input_layernorm>, #spark.rotate_in<size = 8, seed = 1>, #spark.rotate_out<size = 4, seed = 3, first = 12>]
// CHECK:      spark.weight @layers.1.out_proj : {{.*}} through [#spark.rotate_in<size = 4, seed = 3>, #spark.rotate_out<size = 8, seed = 1>]
// CHECK:      spark.weight @norm : {{.*}} through [#spark.folded]
// The head read the table; it is another matrix now.
// CHECK-NEXT: spark.weight @lm_head : tensor<24x8xbf16> from <"m", BF16, offset = 0, bytes = 384> through [#spark.fold<@norm>, #spark.rotate_in<size = 8, seed = 1>]
// The function is what it was, but for that.
// CHECK:      spark.embed @embedding
// CHECK:      spark.rms_norm %{{.*}}, @layers.0.input_layernorm eps
// CHECK:      spark.rms_norm %{{.*}}, @norm eps
// CHECK-NEXT: spark.linear %{{.*}}, @lm_head

// SEED: spark.weight @layers.1.q_k_v_proj : {{.*}} #spark.rotate_in<size = 8, seed = 40>, #spark.rotate_out<size = 4, seed = 42, first = 12>]

// PIPE: scheme = "q4:g32, lm_head=q6:g32, rotated"
// PIPE: spark.weight @embedding : tensor<24x8xbf16> from {{.*}} through
// PIPE: spark.weight @layers.0.q_k_v_proj : tensor<16x8xi4, #spark.grid<bits = 4, group = 32>> from {{.*}} through
// PIPE: spark.weight @lm_head : tensor<24x8xi6, #spark.grid<bits = 6, group = 32>> from {{.*}} through

// NONE-NOT: through
// NONE-NOT: rotated
