// RUN: sparkc-opt %s --spark-fuse-head-gate | FileCheck %s
// RUN: sparkc-opt %s --spark-fuse-head-gate --mlir-print-debuginfo \
// RUN:     --mlir-print-local-scope \
// RUN:   | FileCheck %s --check-prefix=LOC

spark.weight @qkv : tensor<16x8xf32> from <"m", F32, offset = 0, bytes = 512>
spark.weight @g : tensor<2x8xf32> from <"m", F32, offset = 0, bytes = 64>
spark.weight @out : tensor<8x16xf32> from <"m", F32, offset = 0, bytes = 512>
spark.weight @norm : tensor<8xf32> from <"m", F32, offset = 0, bytes = 32>
spark.kv_cache @kv heads 1 head_dim 8 ring 0 : f16

// Both halves: the gate's rows join, the gate moves.
// CHECK-LABEL: func.func @fuse(
// CHECK-SAME:    %[[N:.*]]: tensor<1x8xf32>)
// CHECK-NEXT:    %[[R:.*]]:2 = spark.fused_linear(%[[N]]) prologue {
// CHECK-NEXT:    ^bb0(%[[A:.*]]: tensor<1x8xf32>):
// CHECK-NEXT:      spark.yield %[[A]]
// CHECK-NEXT:    } segments [@qkv, @g] epilogue {
// CHECK-NEXT:    ^bb0(%[[Y0:.*]]: tensor<1x16xf32>, %[[Y1:.*]]: tensor<1x2xf32>):
// CHECK-NEXT:      spark.yield %[[Y0]], %[[Y1]]
// CHECK-NEXT:    } : (tensor<1x8xf32>) -> (tensor<1x16xf32>, tensor<1x2xf32>)
// CHECK-NEXT:    %[[O:.*]] = spark.fused_linear(%[[R]]#0, %[[R]]#1) prologue {
// CHECK-NEXT:    ^bb0(%[[A:.*]]: tensor<1x16xf32>, %[[B:.*]]: tensor<1x2xf32>):
// CHECK-NEXT:      %[[H:.*]] = spark.head_gate %[[A]], %[[B]]
// CHECK-NEXT:      spark.yield %[[H]]
// CHECK-NEXT:    } segments [@out] epilogue {
// CHECK:         return %[[O]]
// LOC-LABEL: func.func @fuse(
// LOC:         } segments [@qkv, @g] epilogue {
// LOC:         } : (tensor<1x8xf32>) -> (tensor<1x16xf32>, tensor<1x2xf32>) loc(fused["L.qkv", "L.g"])
// LOC:         spark.head_gate {{.*}} loc("L.gate")
func.func @fuse(%n: tensor<1x8xf32>) -> tensor<1x8xf32> {
  %qkv = spark.linear %n, @qkv : tensor<1x8xf32> -> tensor<1x16xf32> loc("L.qkv")
  %g = spark.linear %n, @g : tensor<1x8xf32> -> tensor<1x2xf32> loc("L.g")
  %h = spark.head_gate %qkv, %g : tensor<1x16xf32>, tensor<1x2xf32> loc("L.gate")
  %y = spark.linear %h, @out : tensor<1x16xf32> -> tensor<1x8xf32> loc("L.out")
  return %y : tensor<1x8xf32>
}

// The gate's rows come first in the block, last in the segments.
// CHECK-LABEL: func.func @gate_first(
// CHECK:         segments [@qkv, @g] epilogue
// CHECK-NOT:     spark.linear
func.func @gate_first(%n: tensor<1x8xf32>) -> tensor<1x8xf32> {
  %g = spark.linear %n, @g : tensor<1x8xf32> -> tensor<1x2xf32>
  %qkv = spark.linear %n, @qkv : tensor<1x8xf32> -> tensor<1x16xf32>
  %h = spark.head_gate %qkv, %g : tensor<1x16xf32>, tensor<1x2xf32>
  %y = spark.linear %h, @out : tensor<1x16xf32> -> tensor<1x8xf32>
  return %y : tensor<1x8xf32>
}

// Different inputs: the rows stay apart.
// CHECK-LABEL: func.func @other_input(
// CHECK-NEXT:    spark.linear %{{.*}}, @qkv
// CHECK-NEXT:    spark.linear %{{.*}}, @g
func.func @other_input(%n: tensor<1x8xf32>, %m: tensor<1x8xf32>) -> tensor<1x8xf32> {
  %qkv = spark.linear %n, @qkv : tensor<1x8xf32> -> tensor<1x16xf32>
  %g = spark.linear %m, @g : tensor<1x8xf32> -> tensor<1x2xf32>
  %h = spark.head_gate %qkv, %g : tensor<1x16xf32>, tensor<1x2xf32>
  %y = spark.linear %h, @out : tensor<1x16xf32> -> tensor<1x8xf32>
  return %y : tensor<1x8xf32>
}

// Two candidates: no choice is made.
// CHECK-LABEL: func.func @ambiguous(
// CHECK-COUNT-3: = spark.linear
func.func @ambiguous(%n: tensor<1x8xf32>) -> (tensor<1x16xf32>, tensor<1x16xf32>) {
  %qkv = spark.linear %n, @qkv : tensor<1x8xf32> -> tensor<1x16xf32>
  %other = spark.linear %n, @qkv : tensor<1x8xf32> -> tensor<1x16xf32>
  %g = spark.linear %n, @g : tensor<1x8xf32> -> tensor<1x2xf32>
  %h = spark.head_gate %qkv, %g : tensor<1x16xf32>, tensor<1x2xf32>
  return %h, %other : tensor<1x16xf32>, tensor<1x16xf32>
}

// The gated value is read elsewhere too: it must reach memory.
// CHECK-LABEL: func.func @extra_user(
// CHECK:         %[[H:.*]] = spark.head_gate
// CHECK-NEXT:    spark.linear %[[H]], @out
func.func @extra_user(%n: tensor<1x8xf32>) -> (tensor<1x8xf32>, tensor<1x16xf32>) {
  %qkv = spark.linear %n, @qkv : tensor<1x8xf32> -> tensor<1x16xf32>
  %g = spark.linear %n, @g : tensor<1x8xf32> -> tensor<1x2xf32>
  %h = spark.head_gate %qkv, %g : tensor<1x16xf32>, tensor<1x2xf32>
  %y = spark.linear %h, @out : tensor<1x16xf32> -> tensor<1x8xf32>
  return %y, %h : tensor<1x8xf32>, tensor<1x16xf32>
}

// A gate that no linear computes moves all the same; nothing joins.
// CHECK-LABEL: func.func @gate_from_outside(
// CHECK-SAME:    %[[O:.*]]: tensor<1x16xf32>, %[[G:.*]]: tensor<1x2xf32>)
// CHECK-NEXT:    spark.fused_linear(%[[O]], %[[G]]) prologue {
func.func @gate_from_outside(%o: tensor<1x16xf32>, %g: tensor<1x2xf32>) -> tensor<1x8xf32> {
  %h = spark.head_gate %o, %g : tensor<1x16xf32>, tensor<1x2xf32>
  %y = spark.linear %h, @out : tensor<1x16xf32> -> tensor<1x8xf32>
  return %y : tensor<1x8xf32>
}

// One reads the norm, the other what the norm reads.
// CHECK-LABEL: func.func @prologue_differs(
// CHECK:         segments [@qkv] epilogue
// CHECK:         spark.linear %{{.*}}, @g
func.func @prologue_differs(%n: tensor<1x8xf32>) -> tensor<1x8xf32> {
  %qkv = spark.fused_linear (%n) prologue {
  ^bb0(%a: tensor<1x8xf32>):
    %m = spark.rms_norm %a, @norm eps 1.0e-06 : tensor<1x8xf32>
    spark.yield %m : tensor<1x8xf32>
  } segments [@qkv] epilogue {
  ^bb0(%a: tensor<1x16xf32>):
    spark.yield %a : tensor<1x16xf32>
  } : (tensor<1x8xf32>) -> tensor<1x16xf32>
  %g = spark.linear %n, @g : tensor<1x8xf32> -> tensor<1x2xf32>
  %h = spark.head_gate %qkv, %g : tensor<1x16xf32>, tensor<1x2xf32>
  %y = spark.linear %h, @out : tensor<1x16xf32> -> tensor<1x8xf32>
  return %y : tensor<1x8xf32>
}
