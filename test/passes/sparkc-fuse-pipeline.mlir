// The whole stage on a model of two layers, and the same from every place in
// the order of its passes.
//
// RUN: sparkc-opt %S/Inputs/two-layers.mlir --sparkc-fuse-pipeline \
// RUN:   --spark-check-config -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: sparkc-opt %t.mlir --sparkc-fuse-pipeline | diff %t.mlir -
// RUN: sparkc-opt %S/Inputs/two-layers.mlir --pass-pipeline='builtin.module(func.func(spark-fuse-residual,spark-fuse-geglu,spark-fuse-rope-kv,spark-fuse-norm,spark-fuse-head-gate))' | diff %t.mlir -
// RUN: sparkc-opt %S/Inputs/two-layers.mlir --pass-pipeline='builtin.module(func.func(spark-fuse-norm,spark-fuse-rope-kv,spark-fuse-head-gate,spark-fuse-residual,spark-fuse-geglu))' | diff %t.mlir -
// RUN: sparkc-opt %S/Inputs/two-layers.mlir --pass-pipeline='builtin.module(func.func(spark-fuse-rope-kv,spark-fuse-geglu,spark-fuse-head-gate,spark-fuse-norm,spark-fuse-residual))' | diff %t.mlir -
// RUN: sparkc-opt %S/Inputs/two-layers.mlir --pass-pipeline='builtin.module(func.func(spark-fuse-geglu,spark-fuse-norm,spark-fuse-residual,spark-fuse-head-gate,spark-fuse-rope-kv))' | diff %t.mlir -

// CHECK-LABEL: func.func @step(
// CHECK-SAME:    %[[TOKEN:.*]]: tensor<1xi32>, %[[POS:.*]]: index)
// CHECK-NEXT:    %[[X0:.*]] = spark.embed @embedding[%[[TOKEN]]]
// CHECK-NEXT:    %[[X1:.*]] = spark.layer 0(%[[X0]]) {
// CHECK-NEXT:    ^bb0(%[[H:.*]]: tensor<1x8xf32>):
//
// CHECK-NEXT:      %[[QG:.*]]:2 = spark.fused_linear(%[[H]]) prologue {
// CHECK-NEXT:      ^bb0(%[[IN:.*]]: tensor<1x8xf32>):
// CHECK-NEXT:        %[[N:.*]] = spark.rms_norm %[[IN]], @layers.0.input_layernorm
// CHECK-NEXT:        spark.yield %[[N]]
// CHECK-NEXT:      } segments [@layers.0.q_k_v_proj, @layers.0.g_proj] epilogue {
// CHECK-NEXT:      ^bb0(%[[QKV:.*]]: tensor<1x16xf32>, %[[G:.*]]: tensor<1x2xf32>):
// CHECK-NEXT:        %[[S:.*]]:3 = spark.split %[[QKV]]
// CHECK-NEXT:        %[[Q:.*]] = spark.rope %[[S]]#0 at %[[POS]] heads 2 rope <theta = 1.000000e+04, width = 4>
// CHECK-NEXT:        %[[K:.*]] = spark.rope %[[S]]#1 at %[[POS]] heads 1 rope <theta = 1.000000e+04, width = 4>
// CHECK-NEXT:        spark.kv_write %[[K]], %[[S]]#2, @kv.0 at %[[POS]]
// CHECK-NEXT:        spark.yield %[[Q]], %[[G]]
// CHECK-NEXT:      } : (tensor<1x8xf32>) -> (tensor<1x8xf32>, tensor<1x2xf32>)
//
// CHECK-NEXT:      %[[O:.*]] = spark.attention %[[QG]]#0, @kv.0 at %[[POS]] heads 2 window 3
//
// CHECK-NEXT:      %[[R:.*]] = spark.fused_linear(%[[O]], %[[QG]]#1) prologue {
// CHECK-NEXT:      ^bb0(%[[IN:.*]]: tensor<1x8xf32>, %[[G:.*]]: tensor<1x2xf32>):
// CHECK-NEXT:        %[[HG:.*]] = spark.head_gate %[[IN]], %[[G]]
// CHECK-NEXT:        spark.yield %[[HG]]
// CHECK-NEXT:      } segments [@layers.0.out_proj] epilogue {
// CHECK-NEXT:      ^bb0(%[[Y:.*]]: tensor<1x8xf32>):
// CHECK-NEXT:        %[[A:.*]] = spark.add %[[H]], %[[Y]]
// CHECK-NEXT:        spark.yield %[[A]]
// CHECK-NEXT:      }
//
// CHECK-NEXT:      %[[F:.*]] = spark.fused_linear(%[[R]]) prologue {
// CHECK-NEXT:      ^bb0(%[[IN:.*]]: tensor<1x8xf32>):
// CHECK-NEXT:        %[[N:.*]] = spark.rms_norm %[[IN]], @layers.0.post_attention_layernorm
// CHECK-NEXT:        spark.yield %[[N]]
// CHECK-NEXT:      } segments [@layers.0.gate_proj, @layers.0.up_proj] epilogue {
// CHECK-NEXT:      ^bb0(%[[GATE:.*]]: tensor<1x16xf32>, %[[UP:.*]]: tensor<1x16xf32>):
// CHECK-NEXT:        %[[E:.*]] = spark.geglu %[[GATE]], %[[UP]]
// CHECK-NEXT:        spark.yield %[[E]]
// CHECK-NEXT:      } : (tensor<1x8xf32>) -> tensor<1x16xf32>
//
// CHECK-NEXT:      %[[D:.*]] = spark.fused_linear(%[[F]]) prologue {
// CHECK-NEXT:      ^bb0(%[[IN:.*]]: tensor<1x16xf32>):
// CHECK-NEXT:        spark.yield %[[IN]]
// CHECK-NEXT:      } segments [@layers.0.down_proj] epilogue {
// CHECK-NEXT:      ^bb0(%[[Y:.*]]: tensor<1x8xf32>):
// CHECK-NEXT:        %[[A:.*]] = spark.add %[[R]], %[[Y]]
// CHECK-NEXT:        spark.yield %[[A]]
// CHECK-NEXT:      }
// CHECK-NEXT:      spark.yield %[[D]]
// CHECK-NEXT:    }
//
// CHECK-NEXT:    %[[X2:.*]] = spark.layer 1(%[[X1]]) {
// CHECK:           spark.rope %{{.*}} heads 2 rope <theta = 5.000000e+06, width = 2>
// CHECK:           spark.attention {{.*}} window 0
// CHECK-COUNT-3:   spark.fused_linear
// CHECK-NOT:       spark.fused_linear
// CHECK:         } : tensor<1x8xf32>{{$}}
//
// CHECK-NEXT:    %[[L:.*]] = spark.fused_linear(%[[X2]]) prologue {
// CHECK-NEXT:    ^bb0(%[[IN:.*]]: tensor<1x8xf32>):
// CHECK-NEXT:      %[[N:.*]] = spark.rms_norm %[[IN]], @norm
// CHECK-NEXT:      spark.yield %[[N]]
// CHECK-NEXT:    } segments [@embedding] epilogue {
// CHECK-NEXT:    ^bb0(%[[Y:.*]]: tensor<1x24xf32>):
// CHECK-NEXT:      spark.yield %[[Y]]
// CHECK-NEXT:    } : (tensor<1x8xf32>) -> tensor<1x24xf32>
// CHECK-NEXT:    return %[[L]]
