// Every op of the dialect, printed, read back and printed the same.
//
// RUN: sparkc-opt %s --verify-roundtrip | FileCheck %s
// RUN: sparkc-opt %s --mlir-print-op-generic | sparkc-opt | FileCheck %s
// RUN: sparkc-opt %s --emit-bytecode | sparkc-opt | FileCheck %s

// CHECK: spark.config {
// CHECK-SAME: context = 64 : i64
// CHECK-SAME: scheme = "bf16"
// CHECK-SAME: window = 16 : i64
spark.config {vocab = 24 : i64, hidden = 8 : i64, intermediate = 16 : i64,
  layers = 1 : i64, heads = 2 : i64, kv_heads = 1 : i64, head_dim = 4 : i64,
  window = 16 : i64, max_context = 128 : i64, context = 64 : i64,
  prefill_block = 32 : i64, scheme = "bf16"}

// CHECK: spark.weight @embedding : tensor<24x8xbf16> from <"dir/model 1.safetensors", BF16, offset = 100, bytes = 384>
spark.weight @embedding : tensor<24x8xbf16>
  from <"dir/model 1.safetensors", BF16, offset = 100, bytes = 384>
// CHECK: spark.weight @layers.0.norm : tensor<8xf32> from <"m", F32, offset = 0, bytes = 32>
spark.weight @layers.0.norm : tensor<8xf32> from <"m", F32, offset = 0, bytes = 32>
// A span may lie beyond 4 GiB.
// CHECK: spark.weight @half : tensor<16x8xf16> from <"m", F16, offset = 8589934592, bytes = 256>
spark.weight @half : tensor<16x8xf16> from <"m", F16, offset = 8589934592, bytes = 256>
// CHECK: spark.weight @q4 : tensor<16x8xi4, #spark.grid<bits = 4, group = 64>> from
spark.weight @q4 : tensor<16x8xi4, #spark.grid<bits = 4, group = 64>>
  from <"m", BF16, offset = 0, bytes = 256>
// CHECK: spark.weight @q6 : tensor<16x8xi6, #spark.grid<bits = 6, group = 32, symmetric = true>> from
spark.weight @q6 : tensor<16x8xi6, #spark.grid<bits = 6, group = 32, symmetric = true>>
  from <"m", BF16, offset = 0, bytes = 256>

// CHECK: spark.weight @codes : tensor<8x64xi4, #spark.grid<bits = 4, group = 64>> from <"m", AWQ4, offset = 0, bytes = 256, group = 64, with = [#spark.source<"m", F16, offset = 256, bytes = 16>, #spark.source<"n", I32, offset = 0, bytes = 4>]>
spark.weight @codes : tensor<8x64xi4, #spark.grid<bits = 4, group = 64>>
  from <"m", AWQ4, offset = 0, bytes = 256, group = 64,
    with = [#spark.source<"m", F16, offset = 256, bytes = 16>,
            #spark.source<"n", I32, offset = 0, bytes = 4>]>

// What is done to the values of a source, and to a norm that went elsewhere.
// CHECK: spark.weight @folded : tensor<8xf32> from <"m", F32, offset = 0, bytes = 32> through [#spark.folded]
spark.weight @folded : tensor<8xf32> from <"m", F32, offset = 0, bytes = 32>
  through [#spark.folded]
// CHECK: spark.weight @rotated : tensor<16x8xf32> from <"m", F32, offset = 0, bytes = 512> through [#spark.fold<@folded>, #spark.rotate_in<size = 8, seed = 18446744073709551615>, #spark.rotate_out<size = 4, seed = 2, first = 12>, #spark.rotate_out<size = 16, seed = 1>]
spark.weight @rotated : tensor<16x8xf32> from <"m", F32, offset = 0, bytes = 512>
  through [#spark.fold<@folded>,
           #spark.rotate_in<size = 8, seed = 18446744073709551615>,
           #spark.rotate_out<size = 4, seed = 2, first = 12>,
           #spark.rotate_out<seed = 1, size = 16>]

// CHECK: spark.asset "tokenizer" from "dir/tokenizer.json"
spark.asset "tokenizer" from "dir/tokenizer.json"

// CHECK: spark.kv_cache @kv.0 heads 1 head_dim 4 ring 64 : f16
spark.kv_cache @kv.0 heads 1 head_dim 4 ring 64 : f16
// CHECK: spark.kv_cache @kv.1 heads 1 head_dim 4 ring 0 : f32
spark.kv_cache @kv.1 heads 1 head_dim 4 ring 0 : f32
// CHECK: spark.kv_cache @kv.2 heads 1 head_dim 4 ring 128 : i8
spark.kv_cache @kv.2 heads 1 head_dim 4 ring 128 : i8

// CHECK-LABEL: func.func @maths(
// CHECK-SAME:    %[[TOKEN:.*]]: tensor<1xi32>, %[[POS:.*]]: index)
func.func @maths(%token: tensor<1xi32>, %pos: index) -> tensor<1x8xf32> {
  // CHECK-NEXT: %[[X:.*]] = spark.embed @embedding[%[[TOKEN]]] : tensor<1xi32> -> tensor<1x8xf32>
  %x = spark.embed @embedding[%token] : tensor<1xi32> -> tensor<1x8xf32>
  // CHECK-NEXT: %[[N:.*]] = spark.rms_norm %[[X]], @layers.0.norm eps 1.000000e+00 : tensor<1x8xf32>
  %n = spark.rms_norm %x, @layers.0.norm eps 1.0 : tensor<1x8xf32>
  // CHECK-NEXT: %[[L:.*]] = spark.linear %[[N]], @q4 : tensor<1x8xf32> -> tensor<1x16xf32>
  %l = spark.linear %n, @q4 : tensor<1x8xf32> -> tensor<1x16xf32>
  // CHECK-NEXT: %[[S:.*]]:3 = spark.split %[[L]] : tensor<1x16xf32> -> tensor<1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>
  %q, %k, %v = spark.split %l
    : tensor<1x16xf32> -> tensor<1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>
  // CHECK-NEXT: %[[R:.*]] = spark.rope %[[S]]#0 at %[[POS]] heads 2 rope <theta = 1.000000e+04, width = 4> : tensor<1x8xf32>
  %r = spark.rope %q at %pos heads 2 rope <theta = 1.0e+04, width = 4>
    : tensor<1x8xf32>
  // CHECK-NEXT: spark.kv_write %[[S]]#1, %[[S]]#2, @kv.0 at %[[POS]] : tensor<1x4xf32>
  spark.kv_write %k, %v, @kv.0 at %pos : tensor<1x4xf32>
  // CHECK-NEXT: %[[O:.*]] = spark.attention %[[R]], @kv.0 at %[[POS]] heads 2 window 16 scale 5.000000e-01 chunk 64 : tensor<1x8xf32>
  %o = spark.attention %r, @kv.0 at %pos heads 2 window 16 scale 0.5 chunk 64
    : tensor<1x8xf32>
  // CHECK-NEXT: %[[P:.*]] = spark.attention %[[R]], @kv.1 at %[[POS]] heads 2 window 0 scale 5.000000e-01 chunk 16 : tensor<1x8xf32>
  %p = spark.attention %r, @kv.1 at %pos heads 2 window 0 scale 0.5 chunk 16
    : tensor<1x8xf32>
  // CHECK-NEXT: %[[G:.*]] = spark.head_gate %[[O]], %{{.*}} : tensor<1x8xf32>, tensor<1x4xf32>
  %g = spark.head_gate %o, %k : tensor<1x8xf32>, tensor<1x4xf32>
  // CHECK-NEXT: %[[F:.*]] = spark.geglu %[[G]], %[[P]] : tensor<1x8xf32>
  %f = spark.geglu %g, %p : tensor<1x8xf32>
  // CHECK-NEXT: %[[A:.*]] = spark.add %[[X]], %[[F]] : tensor<1x8xf32>
  %a = spark.add %x, %f : tensor<1x8xf32>
  return %a : tensor<1x8xf32>
}

// CHECK-LABEL: func.func @structure(
// CHECK-SAME:    %[[X:.*]]: tensor<2x8xf32>)
func.func @structure(%x: tensor<2x8xf32>) -> tensor<2x16xf32> {
  // CHECK-NEXT: %[[Y:.*]] = spark.layer 3(%[[X]]) {
  // CHECK-NEXT: ^bb0(%[[H:.*]]: tensor<2x8xf32>):
  // CHECK-NEXT:   spark.yield %[[H]] : tensor<2x8xf32>
  // CHECK-NEXT: } : tensor<2x8xf32>
  %y = spark.layer 3 (%x) {
  ^bb0(%h: tensor<2x8xf32>):
    spark.yield %h : tensor<2x8xf32>
  } : tensor<2x8xf32>
  // CHECK-NEXT: %[[F:.*]]:2 = spark.fused_linear(%[[Y]], %[[X]]) prologue {
  // CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<2x8xf32>, %[[B:.*]]: tensor<2x8xf32>):
  // CHECK-NEXT:   %[[C:.*]] = spark.add %[[A]], %[[B]] : tensor<2x8xf32>
  // CHECK-NEXT:   spark.yield %[[C]] : tensor<2x8xf32>
  // CHECK-NEXT: } segments [@q4, @q6] epilogue {
  // CHECK-NEXT: ^bb0(%[[D:.*]]: tensor<2x16xf32>, %[[E:.*]]: tensor<2x16xf32>):
  // CHECK-NEXT:   %[[S:.*]] = spark.add %[[D]], %[[E]] : tensor<2x16xf32>
  // CHECK-NEXT:   spark.yield %[[S]], %[[E]] : tensor<2x16xf32>, tensor<2x16xf32>
  // CHECK-NEXT: } : (tensor<2x8xf32>, tensor<2x8xf32>) -> (tensor<2x16xf32>, tensor<2x16xf32>)
  %f, %g = spark.fused_linear (%y, %x) prologue {
  ^bb0(%a: tensor<2x8xf32>, %b: tensor<2x8xf32>):
    %c = spark.add %a, %b : tensor<2x8xf32>
    spark.yield %c : tensor<2x8xf32>
  } segments [@q4, @q6] epilogue {
  ^bb0(%d: tensor<2x16xf32>, %e: tensor<2x16xf32>):
    %s = spark.add %d, %e : tensor<2x16xf32>
    spark.yield %s, %e : tensor<2x16xf32>, tensor<2x16xf32>
  } : (tensor<2x8xf32>, tensor<2x8xf32>) -> (tensor<2x16xf32>, tensor<2x16xf32>)
  return %f : tensor<2x16xf32>
}

// An epilogue may keep everything to itself.
// CHECK-LABEL: func.func @no_results(
func.func @no_results(%x: tensor<1x8xf32>, %pos: index) {
  // CHECK:      spark.yield{{$}}
  // CHECK-NEXT: } : (tensor<1x8xf32>) -> ()
  spark.fused_linear (%x) prologue {
  ^bb0(%a: tensor<1x8xf32>):
    spark.yield %a : tensor<1x8xf32>
  } segments [@q4] epilogue {
  ^bb0(%y: tensor<1x16xf32>):
    %q, %k, %v = spark.split %y
      : tensor<1x16xf32> -> tensor<1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>
    spark.kv_write %k, %v, @kv.0 at %pos : tensor<1x4xf32>
    spark.yield
  } : (tensor<1x8xf32>) -> ()
  return
}
