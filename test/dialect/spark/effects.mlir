// Pure ops may go when nothing reads them; caches keep their reads and writes
// in order.
//
// RUN: sparkc-opt %s --cse --canonicalize | FileCheck %s

spark.weight @w : tensor<8x8xf32> from <"m", F32, offset = 0, bytes = 256>
spark.kv_cache @kv heads 1 head_dim 8 ring 0 : f16

// CHECK-LABEL: func.func @caches(
// CHECK-NEXT:    %[[A:.*]] = spark.attention
// CHECK-NEXT:    spark.kv_write
// CHECK-NEXT:    %[[B:.*]] = spark.attention
// CHECK-NEXT:    return %[[A]], %[[B]]
func.func @caches(%x: tensor<1x8xf32>, %pos: index) -> (tensor<1x8xf32>, tensor<1x8xf32>) {
  %dead = spark.linear %x, @w : tensor<1x8xf32> -> tensor<1x8xf32>
  %a = spark.attention %x, @kv at %pos heads 1 window 0 scale 1.0 chunk 64
    : tensor<1x8xf32>
  spark.kv_write %x, %x, @kv at %pos : tensor<1x8xf32>
  %b = spark.attention %x, @kv at %pos heads 1 window 0 scale 1.0 chunk 64
    : tensor<1x8xf32>
  return %a, %b : tensor<1x8xf32>, tensor<1x8xf32>
}

// A fused linear or a layer has the effects of what is in it.
// CHECK-LABEL: func.func @regions(
// CHECK-NOT:     spark.layer 0
// CHECK:         spark.layer 1
// CHECK:         spark.kv_write
func.func @regions(%x: tensor<1x8xf32>, %pos: index) {
  %dead = spark.layer 0 (%x) {
  ^bb0(%h: tensor<1x8xf32>):
    %y = spark.linear %h, @w : tensor<1x8xf32> -> tensor<1x8xf32>
    spark.yield %y : tensor<1x8xf32>
  } : tensor<1x8xf32>
  %alive = spark.layer 1 (%x) {
  ^bb0(%h: tensor<1x8xf32>):
    %f = spark.fused_linear (%h) prologue {
    ^bb0(%a: tensor<1x8xf32>):
      spark.yield %a : tensor<1x8xf32>
    } segments [@w] epilogue {
    ^bb0(%y: tensor<1x8xf32>):
      spark.kv_write %y, %y, @kv at %pos : tensor<1x8xf32>
      spark.yield %y : tensor<1x8xf32>
    } : (tensor<1x8xf32>) -> tensor<1x8xf32>
    spark.yield %h : tensor<1x8xf32>
  } : tensor<1x8xf32>
  return
}
