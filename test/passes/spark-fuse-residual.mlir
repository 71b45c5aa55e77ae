// RUN: sparkc-opt %s --spark-fuse-residual | FileCheck %s

spark.weight @w : tensor<8x8xf32> from <"m", F32, offset = 0, bytes = 256>
spark.weight @u : tensor<8x8xf32> from <"m", F32, offset = 0, bytes = 256>

// CHECK-LABEL: func.func @fuse(
// CHECK-SAME:    %[[X:.*]]: tensor<1x8xf32>, %[[F:.*]]: tensor<1x8xf32>)
// CHECK-NEXT:    %[[S:.*]] = spark.fused_linear(%[[F]]) prologue {
// CHECK:         } segments [@w] epilogue {
// CHECK-NEXT:    ^bb0(%[[Y:.*]]: tensor<1x8xf32>):
// CHECK-NEXT:      %[[R:.*]] = spark.add %[[X]], %[[Y]]
// CHECK-NEXT:      spark.yield %[[R]]
// CHECK-NEXT:    } : (tensor<1x8xf32>) -> tensor<1x8xf32>
// CHECK-NEXT:    return %[[S]]
func.func @fuse(%x: tensor<1x8xf32>, %f: tensor<1x8xf32>) -> tensor<1x8xf32> {
  %y = spark.linear %f, @w : tensor<1x8xf32> -> tensor<1x8xf32>
  %s = spark.add %x, %y : tensor<1x8xf32>
  return %s : tensor<1x8xf32>
}

// The operands keep their order.
// CHECK-LABEL: func.func @other_side(
// CHECK-SAME:    %[[X:.*]]: tensor<1x8xf32>, %[[F:.*]]: tensor<1x8xf32>)
// CHECK:         } segments [@w] epilogue {
// CHECK-NEXT:    ^bb0(%[[Y:.*]]: tensor<1x8xf32>):
// CHECK-NEXT:      spark.add %[[Y]], %[[X]]
func.func @other_side(%x: tensor<1x8xf32>, %f: tensor<1x8xf32>) -> tensor<1x8xf32> {
  %y = spark.linear %f, @w : tensor<1x8xf32> -> tensor<1x8xf32>
  %s = spark.add %y, %x : tensor<1x8xf32>
  return %s : tensor<1x8xf32>
}

// Of two linears, the addition goes into the later.
// CHECK-LABEL: func.func @two_linears(
// CHECK-NEXT:    %[[Y:.*]] = spark.linear %{{.*}}, @w
// CHECK-NEXT:    spark.fused_linear
// CHECK:         } segments [@u] epilogue {
// CHECK-NEXT:    ^bb0(%[[Z:.*]]: tensor<1x8xf32>):
// CHECK-NEXT:      spark.add %[[Z]], %[[Y]]
func.func @two_linears(%f: tensor<1x8xf32>) -> tensor<1x8xf32> {
  %y = spark.linear %f, @w : tensor<1x8xf32> -> tensor<1x8xf32>
  %z = spark.linear %f, @u : tensor<1x8xf32> -> tensor<1x8xf32>
  %s = spark.add %z, %y : tensor<1x8xf32>
  return %s : tensor<1x8xf32>
}

// The residual is not there yet when the linear runs.
// CHECK-LABEL: func.func @residual_later(
// CHECK-NEXT:    spark.linear
// CHECK-NEXT:    spark.geglu
// CHECK-NEXT:    spark.add
func.func @residual_later(%x: tensor<1x8xf32>, %f: tensor<1x8xf32>) -> tensor<1x8xf32> {
  %y = spark.linear %f, @w : tensor<1x8xf32> -> tensor<1x8xf32>
  %r = spark.geglu %x, %x : tensor<1x8xf32>
  %s = spark.add %r, %y : tensor<1x8xf32>
  return %s : tensor<1x8xf32>
}

// CHECK-LABEL: func.func @extra_user(
// CHECK-NEXT:    spark.linear
// CHECK-NEXT:    spark.add
func.func @extra_user(%x: tensor<1x8xf32>, %f: tensor<1x8xf32>) -> (tensor<1x8xf32>, tensor<1x8xf32>) {
  %y = spark.linear %f, @w : tensor<1x8xf32> -> tensor<1x8xf32>
  %s = spark.add %x, %y : tensor<1x8xf32>
  return %s, %y : tensor<1x8xf32>, tensor<1x8xf32>
}

// CHECK-LABEL: func.func @doubled(
// CHECK-NEXT:    spark.linear
// CHECK-NEXT:    spark.add
func.func @doubled(%f: tensor<1x8xf32>) -> tensor<1x8xf32> {
  %y = spark.linear %f, @w : tensor<1x8xf32> -> tensor<1x8xf32>
  %s = spark.add %y, %y : tensor<1x8xf32>
  return %s : tensor<1x8xf32>
}

// An epilogue holds one residual; the second addition stays.
// CHECK-LABEL: func.func @two_residuals(
// CHECK:         %[[S:.*]] = spark.fused_linear
// CHECK:           spark.add
// CHECK:         spark.add %{{.*}}, %[[S]]
func.func @two_residuals(%x: tensor<1x8xf32>, %f: tensor<1x8xf32>) -> tensor<1x8xf32> {
  %y = spark.linear %f, @w : tensor<1x8xf32> -> tensor<1x8xf32>
  %s = spark.add %x, %y : tensor<1x8xf32>
  %t = spark.add %x, %s : tensor<1x8xf32>
  return %t : tensor<1x8xf32>
}
