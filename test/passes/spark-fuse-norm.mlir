// RUN: sparkc-opt %s --spark-fuse-norm | FileCheck %s

spark.weight @w : tensor<16x8xf32> from <"m", F32, offset = 0, bytes = 512>
spark.weight @u : tensor<8x8xf32> from <"m", F32, offset = 0, bytes = 256>
spark.weight @norm : tensor<8xf32> from <"m", F32, offset = 0, bytes = 32>

// Every reader gets its own copy.
// CHECK-LABEL: func.func @fuse(
// CHECK-SAME:    %[[X:.*]]: tensor<1x8xf32>)
// CHECK-NEXT:    %[[Y:.*]] = spark.fused_linear(%[[X]]) prologue {
// CHECK-NEXT:    ^bb0(%[[A:.*]]: tensor<1x8xf32>):
// CHECK-NEXT:      %[[N:.*]] = spark.rms_norm %[[A]], @norm
// CHECK-NEXT:      spark.yield %[[N]]
// CHECK-NEXT:    } segments [@w] epilogue {
// CHECK-NEXT:    ^bb0(%[[R:.*]]: tensor<1x16xf32>):
// CHECK-NEXT:      spark.yield %[[R]]
// CHECK-NEXT:    } : (tensor<1x8xf32>) -> tensor<1x16xf32>
// CHECK-NEXT:    %[[Z:.*]] = spark.fused_linear(%[[X]]) prologue {
// CHECK-NEXT:    ^bb0(%[[A:.*]]: tensor<1x8xf32>):
// CHECK-NEXT:      %[[N:.*]] = spark.rms_norm %[[A]], @norm
// CHECK-NEXT:      spark.yield %[[N]]
// CHECK-NEXT:    } segments [@u] epilogue {
// CHECK:         return %[[Y]], %[[Z]]
func.func @fuse(%x: tensor<1x8xf32>) -> (tensor<1x16xf32>, tensor<1x8xf32>) {
  %n = spark.rms_norm %x, @norm eps 1.0e-06 : tensor<1x8xf32>
  %y = spark.linear %n, @w : tensor<1x8xf32> -> tensor<1x16xf32>
  %z = spark.linear %n, @u : tensor<1x8xf32> -> tensor<1x8xf32>
  return %y, %z : tensor<1x16xf32>, tensor<1x8xf32>
}

// The norm itself leaves: it stays where it is, for all its readers.
// CHECK-LABEL: func.func @extra_user(
// CHECK-NEXT:    %[[N:.*]] = spark.rms_norm
// CHECK-NEXT:    spark.linear %[[N]]
func.func @extra_user(%x: tensor<1x8xf32>) -> (tensor<1x16xf32>, tensor<1x8xf32>) {
  %n = spark.rms_norm %x, @norm eps 1.0e-06 : tensor<1x8xf32>
  %y = spark.linear %n, @w : tensor<1x8xf32> -> tensor<1x16xf32>
  return %y, %n : tensor<1x16xf32>, tensor<1x8xf32>
}

// A prologue holds one op: the norm of a norm stays outside.
// CHECK-LABEL: func.func @twice(
// CHECK-NEXT:    %[[M:.*]] = spark.rms_norm
// CHECK-NEXT:    spark.fused_linear(%[[M]]) prologue {
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      spark.rms_norm
// CHECK-NEXT:      spark.yield
func.func @twice(%x: tensor<1x8xf32>) -> tensor<1x16xf32> {
  %m = spark.rms_norm %x, @norm eps 1.0e-06 : tensor<1x8xf32>
  %n = spark.rms_norm %m, @norm eps 1.0e-06 : tensor<1x8xf32>
  %y = spark.linear %n, @w : tensor<1x8xf32> -> tensor<1x16xf32>
  return %y : tensor<1x16xf32>
}

// The epilogue reads the norm as well as the segment.
// CHECK-LABEL: func.func @read_by_epilogue(
// CHECK-NEXT:    %[[N:.*]] = spark.rms_norm
// CHECK-NEXT:    spark.fused_linear(%[[N]]) prologue {
// CHECK:           spark.add %[[N]]
func.func @read_by_epilogue(%x: tensor<1x8xf32>) -> tensor<1x8xf32> {
  %n = spark.rms_norm %x, @norm eps 1.0e-06 : tensor<1x8xf32>
  %y = spark.fused_linear (%n) prologue {
  ^bb0(%a: tensor<1x8xf32>):
    spark.yield %a : tensor<1x8xf32>
  } segments [@u] epilogue {
  ^bb0(%r: tensor<1x8xf32>):
    %s = spark.add %n, %r : tensor<1x8xf32>
    spark.yield %s : tensor<1x8xf32>
  } : (tensor<1x8xf32>) -> tensor<1x8xf32>
  return %y : tensor<1x8xf32>
}

// Nothing reads it: nothing to fuse with.
// CHECK-LABEL: func.func @unread(
// CHECK-NEXT:    spark.rms_norm
func.func @unread(%x: tensor<1x8xf32>) {
  %n = spark.rms_norm %x, @norm eps 1.0e-06 : tensor<1x8xf32>
  return
}
