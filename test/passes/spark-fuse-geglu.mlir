// RUN: sparkc-opt %s --spark-fuse-geglu | FileCheck %s

spark.weight @gate : tensor<16x8xf32> from <"m", F32, offset = 0, bytes = 512>
spark.weight @up : tensor<16x8xf32> from <"m", F32, offset = 0, bytes = 512>
spark.weight @norm : tensor<8xf32> from <"m", F32, offset = 0, bytes = 32>

// CHECK-LABEL: func.func @fuse(
// CHECK-SAME:    %[[N:.*]]: tensor<1x8xf32>)
// CHECK-NEXT:    %[[F:.*]] = spark.fused_linear(%[[N]]) prologue {
// CHECK-NEXT:    ^bb0(%[[A:.*]]: tensor<1x8xf32>):
// CHECK-NEXT:      spark.yield %[[A]]
// CHECK-NEXT:    } segments [@gate, @up] epilogue {
// CHECK-NEXT:    ^bb0(%[[G:.*]]: tensor<1x16xf32>, %[[U:.*]]: tensor<1x16xf32>):
// CHECK-NEXT:      %[[R:.*]] = spark.geglu %[[G]], %[[U]]
// CHECK-NEXT:      spark.yield %[[R]]
// CHECK-NEXT:    } : (tensor<1x8xf32>) -> tensor<1x16xf32>
// CHECK-NEXT:    return %[[F]]
func.func @fuse(%n: tensor<1x8xf32>) -> tensor<1x16xf32> {
  %g = spark.linear %n, @gate : tensor<1x8xf32> -> tensor<1x16xf32>
  %u = spark.linear %n, @up : tensor<1x8xf32> -> tensor<1x16xf32>
  %f = spark.geglu %g, %u : tensor<1x16xf32>
  return %f : tensor<1x16xf32>
}

// The gate is the first segment, wherever it stands.
// CHECK-LABEL: func.func @up_first(
// CHECK:         segments [@gate, @up] epilogue {
// CHECK-NEXT:    ^bb0(%[[G:.*]]: tensor<1x16xf32>, %[[U:.*]]: tensor<1x16xf32>):
// CHECK-NEXT:      spark.geglu %[[G]], %[[U]]
func.func @up_first(%n: tensor<1x8xf32>) -> tensor<1x16xf32> {
  %u = spark.linear %n, @up : tensor<1x8xf32> -> tensor<1x16xf32>
  %g = spark.linear %n, @gate : tensor<1x8xf32> -> tensor<1x16xf32>
  %f = spark.geglu %g, %u : tensor<1x16xf32>
  return %f : tensor<1x16xf32>
}

// CHECK-LABEL: func.func @other_input(
// CHECK-COUNT-2: = spark.linear
// CHECK-NEXT:    spark.geglu
func.func @other_input(%n: tensor<1x8xf32>, %m: tensor<1x8xf32>) -> tensor<1x16xf32> {
  %g = spark.linear %n, @gate : tensor<1x8xf32> -> tensor<1x16xf32>
  %u = spark.linear %m, @up : tensor<1x8xf32> -> tensor<1x16xf32>
  %f = spark.geglu %g, %u : tensor<1x16xf32>
  return %f : tensor<1x16xf32>
}

// CHECK-LABEL: func.func @extra_user(
// CHECK-COUNT-2: = spark.linear
// CHECK-NEXT:    spark.geglu
func.func @extra_user(%n: tensor<1x8xf32>) -> (tensor<1x16xf32>, tensor<1x16xf32>) {
  %g = spark.linear %n, @gate : tensor<1x8xf32> -> tensor<1x16xf32>
  %u = spark.linear %n, @up : tensor<1x8xf32> -> tensor<1x16xf32>
  %f = spark.geglu %g, %u : tensor<1x16xf32>
  return %f, %u : tensor<1x16xf32>, tensor<1x16xf32>
}

// One linear for both is no pair of segments.
// CHECK-LABEL: func.func @same(
// CHECK-NEXT:    spark.linear
// CHECK-NEXT:    spark.geglu
func.func @same(%n: tensor<1x8xf32>) -> tensor<1x16xf32> {
  %g = spark.linear %n, @gate : tensor<1x8xf32> -> tensor<1x16xf32>
  %f = spark.geglu %g, %g : tensor<1x16xf32>
  return %f : tensor<1x16xf32>
}

// Prologues that do the same are one; here each norm has its own epsilon.
// CHECK-LABEL: func.func @fused_apart(
// CHECK:         segments [@gate] epilogue
// CHECK:         segments [@up] epilogue
// CHECK:         spark.geglu
func.func @fused_apart(%n: tensor<1x8xf32>) -> tensor<1x16xf32> {
  %g = spark.fused_linear (%n) prologue {
  ^bb0(%a: tensor<1x8xf32>):
    %m = spark.rms_norm %a, @norm eps 1.0e-06 : tensor<1x8xf32>
    spark.yield %m : tensor<1x8xf32>
  } segments [@gate] epilogue {
  ^bb0(%a: tensor<1x16xf32>):
    spark.yield %a : tensor<1x16xf32>
  } : (tensor<1x8xf32>) -> tensor<1x16xf32>
  %u = spark.fused_linear (%n) prologue {
  ^bb0(%a: tensor<1x8xf32>):
    %m = spark.rms_norm %a, @norm eps 1.0e-05 : tensor<1x8xf32>
    spark.yield %m : tensor<1x8xf32>
  } segments [@up] epilogue {
  ^bb0(%a: tensor<1x16xf32>):
    spark.yield %a : tensor<1x16xf32>
  } : (tensor<1x8xf32>) -> tensor<1x16xf32>
  %f = spark.geglu %g, %u : tensor<1x16xf32>
  return %f : tensor<1x16xf32>
}
