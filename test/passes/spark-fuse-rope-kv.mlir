// RUN: sparkc-opt %s --spark-fuse-rope-kv | FileCheck %s

spark.weight @qkv : tensor<16x8xf32> from <"m", F32, offset = 0, bytes = 512>
spark.weight @g : tensor<2x8xf32> from <"m", F32, offset = 0, bytes = 64>
spark.kv_cache @kv heads 1 head_dim 4 ring 0 : f16
spark.kv_cache @other heads 1 head_dim 4 ring 0 : f16

// CHECK-LABEL: func.func @fuse(
// CHECK-SAME:    %[[N:.*]]: tensor<1x8xf32>, %[[POS:.*]]: index)
// CHECK-NEXT:    %[[Q:.*]] = spark.fused_linear(%[[N]]) prologue {
// CHECK:         } segments [@qkv] epilogue {
// CHECK-NEXT:    ^bb0(%[[Y:.*]]: tensor<1x16xf32>):
// CHECK-NEXT:      %[[S:.*]]:3 = spark.split %[[Y]]
// CHECK-NEXT:      %[[QR:.*]] = spark.rope %[[S]]#0 at %[[POS]]
// CHECK-NEXT:      %[[KR:.*]] = spark.rope %[[S]]#1 at %[[POS]]
// CHECK-NEXT:      spark.kv_write %[[KR]], %[[S]]#2, @kv at %[[POS]]
// CHECK-NEXT:      spark.yield %[[QR]] : tensor<1x8xf32>
// CHECK-NEXT:    } : (tensor<1x8xf32>) -> tensor<1x8xf32>
// CHECK-NEXT:    spark.attention %[[Q]], @kv
func.func @fuse(%n: tensor<1x8xf32>, %pos: index) -> tensor<1x8xf32> {
  %qkv = spark.linear %n, @qkv : tensor<1x8xf32> -> tensor<1x16xf32>
  %q, %k, %v = spark.split %qkv : tensor<1x16xf32> -> tensor<1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>
  %qr = spark.rope %q at %pos heads 2 rope <theta = 1.0e+04, width = 4> : tensor<1x8xf32>
  %kr = spark.rope %k at %pos heads 1 rope <theta = 1.0e+04, width = 4> : tensor<1x4xf32>
  spark.kv_write %kr, %v, @kv at %pos : tensor<1x4xf32>
  %o = spark.attention %qr, @kv at %pos heads 2 window 0 scale 0.5 chunk 64 : tensor<1x8xf32>
  return %o : tensor<1x8xf32>
}

// Of a fused linear, only its own segment's results change; the gate leaves as
// it did.
// CHECK-LABEL: func.func @second_segment(
// CHECK:         %[[R:.*]]:2 = spark.fused_linear
// CHECK:         } segments [@g, @qkv] epilogue {
// CHECK-NEXT:    ^bb0(%[[G:.*]]: tensor<1x2xf32>, %[[Y:.*]]: tensor<1x16xf32>):
// CHECK-NEXT:      spark.split %[[Y]]
// CHECK-NEXT:      spark.rope
// CHECK-NEXT:      %[[QR:.*]] = spark.rope {{.*}} heads 2
// CHECK-NEXT:      spark.kv_write
// CHECK-NEXT:      spark.yield %[[G]], %[[QR]]
// CHECK:         return %[[R]]#0, %[[R]]#1
func.func @second_segment(%n: tensor<1x8xf32>, %pos: index) -> (tensor<1x2xf32>, tensor<1x8xf32>) {
  %g, %qkv = spark.fused_linear (%n) prologue {
  ^bb0(%a: tensor<1x8xf32>):
    spark.yield %a : tensor<1x8xf32>
  } segments [@g, @qkv] epilogue {
  ^bb0(%y0: tensor<1x2xf32>, %y1: tensor<1x16xf32>):
    spark.yield %y0, %y1 : tensor<1x2xf32>, tensor<1x16xf32>
  } : (tensor<1x8xf32>) -> (tensor<1x2xf32>, tensor<1x16xf32>)
  %q, %k, %v = spark.split %qkv : tensor<1x16xf32> -> tensor<1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>
  %kr = spark.rope %k at %pos heads 1 rope <theta = 1.0e+04, width = 4> : tensor<1x4xf32>
  %qr = spark.rope %q at %pos heads 2 rope <theta = 1.0e+04, width = 4> : tensor<1x8xf32>
  spark.kv_write %kr, %v, @kv at %pos : tensor<1x4xf32>
  return %g, %qr : tensor<1x2xf32>, tensor<1x8xf32>
}

// The keys are read elsewhere too.
// CHECK-LABEL: func.func @extra_user(
// CHECK-NEXT:    spark.linear
// CHECK-NEXT:    spark.split
func.func @extra_user(%n: tensor<1x8xf32>, %pos: index) -> (tensor<1x8xf32>, tensor<1x4xf32>) {
  %qkv = spark.linear %n, @qkv : tensor<1x8xf32> -> tensor<1x16xf32>
  %q, %k, %v = spark.split %qkv : tensor<1x16xf32> -> tensor<1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>
  %qr = spark.rope %q at %pos heads 2 rope <theta = 1.0e+04, width = 4> : tensor<1x8xf32>
  %kr = spark.rope %k at %pos heads 1 rope <theta = 1.0e+04, width = 4> : tensor<1x4xf32>
  spark.kv_write %kr, %v, @kv at %pos : tensor<1x4xf32>
  return %qr, %kr : tensor<1x8xf32>, tensor<1x4xf32>
}

// So are the rows before the split.
// CHECK-LABEL: func.func @rows_leave(
// CHECK-NEXT:    spark.linear
// CHECK-NEXT:    spark.split
func.func @rows_leave(%n: tensor<1x8xf32>, %pos: index) -> (tensor<1x8xf32>, tensor<1x16xf32>) {
  %qkv = spark.linear %n, @qkv : tensor<1x8xf32> -> tensor<1x16xf32>
  %q, %k, %v = spark.split %qkv : tensor<1x16xf32> -> tensor<1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>
  %qr = spark.rope %q at %pos heads 2 rope <theta = 1.0e+04, width = 4> : tensor<1x8xf32>
  %kr = spark.rope %k at %pos heads 1 rope <theta = 1.0e+04, width = 4> : tensor<1x4xf32>
  spark.kv_write %kr, %v, @kv at %pos : tensor<1x4xf32>
  return %qr, %qkv : tensor<1x8xf32>, tensor<1x16xf32>
}

// An attention before the write must not see what is written after it.
// CHECK-LABEL: func.func @read_before_write(
// CHECK-NEXT:    spark.linear
// CHECK:         spark.attention
// CHECK-NEXT:    spark.kv_write
func.func @read_before_write(%n: tensor<1x8xf32>, %pos: index) -> tensor<1x8xf32> {
  %qkv = spark.linear %n, @qkv : tensor<1x8xf32> -> tensor<1x16xf32>
  %q, %k, %v = spark.split %qkv : tensor<1x16xf32> -> tensor<1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>
  %qr = spark.rope %q at %pos heads 2 rope <theta = 1.0e+04, width = 4> : tensor<1x8xf32>
  %kr = spark.rope %k at %pos heads 1 rope <theta = 1.0e+04, width = 4> : tensor<1x4xf32>
  %o = spark.attention %qr, @kv at %pos heads 2 window 0 scale 0.5 chunk 64 : tensor<1x8xf32>
  spark.kv_write %kr, %v, @kv at %pos : tensor<1x4xf32>
  return %o : tensor<1x8xf32>
}

// Keys without a rope are another model.
// CHECK-LABEL: func.func @no_rope(
// CHECK-NEXT:    spark.linear
// CHECK-NEXT:    spark.split
func.func @no_rope(%n: tensor<1x8xf32>, %pos: index) -> tensor<1x8xf32> {
  %qkv = spark.linear %n, @qkv : tensor<1x8xf32> -> tensor<1x16xf32>
  %q, %k, %v = spark.split %qkv : tensor<1x16xf32> -> tensor<1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>
  spark.kv_write %k, %v, @kv at %pos : tensor<1x4xf32>
  return %q : tensor<1x8xf32>
}

// Keys and values swapped: not the shape this pass knows.
// CHECK-LABEL: func.func @swapped(
// CHECK-NEXT:    spark.linear
// CHECK-NEXT:    spark.split
func.func @swapped(%n: tensor<1x8xf32>, %pos: index) -> tensor<1x8xf32> {
  %qkv = spark.linear %n, @qkv : tensor<1x8xf32> -> tensor<1x16xf32>
  %q, %v, %k = spark.split %qkv : tensor<1x16xf32> -> tensor<1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>
  %qr = spark.rope %q at %pos heads 2 rope <theta = 1.0e+04, width = 4> : tensor<1x8xf32>
  %kr = spark.rope %k at %pos heads 1 rope <theta = 1.0e+04, width = 4> : tensor<1x4xf32>
  spark.kv_write %kr, %v, @kv at %pos : tensor<1x4xf32>
  return %qr : tensor<1x8xf32>
}
