// What cannot be rotated, and a graph that is not a model's.
//
// RUN: sparkc-opt %s --spark-rotate --split-input-file --verify-diagnostics

// expected-error@+1 {{holds codes (Q8_0), which cannot be rotated: they would have to be quantized anew}}
spark.weight @w : tensor<4x32xi8, #spark.grid<bits = 8, group = 32, symmetric = true>> from <"m", Q8_0, offset = 0, bytes = 136>

// -----

// expected-error@+1 {{holds codes (GPTQ4), which cannot be rotated}}
spark.weight @w : tensor<8x64xi4, #spark.grid<bits = 4, group = 64>>
  from <"m", GPTQ4, offset = 0, bytes = 256, group = 64,
    with = [#spark.source<"m", F16, offset = 256, bytes = 16>,
            #spark.source<"m", I32, offset = 272, bytes = 4>]>

// -----

// expected-error@+1 {{is transformed already}}
spark.weight @w : tensor<4x8xf32> from <"m", F32, offset = 0, bytes = 128>
  through [#spark.rotate_in<size = 8, seed = 1>]

// -----

spark.weight @embedding : tensor<24x8xf32> from <"m", F32, offset = 0, bytes = 768>
spark.weight @norm : tensor<8xf32> from <"m", F32, offset = 0, bytes = 32>
spark.weight @a : tensor<8x8xf32> from <"m", F32, offset = 0, bytes = 256>
spark.weight @qkv : tensor<16x8xf32> from <"m", F32, offset = 0, bytes = 512>
spark.kv_cache @kv heads 1 head_dim 4 ring 0 : f16
func.func @step(%token: tensor<1xi32>, %pos: index) {
  %x = spark.embed @embedding[%token] : tensor<1xi32> -> tensor<1x8xf32>
  // expected-error@+1 {{meets the residual stream in a way that a rotation does not pass}}
  %y = spark.linear %x, @a : tensor<1x8xf32> -> tensor<1x8xf32>
  return
}

// -----

spark.weight @embedding : tensor<24x8xf32> from <"m", F32, offset = 0, bytes = 768>
spark.weight @norm : tensor<8xf32> from <"m", F32, offset = 0, bytes = 32>
spark.weight @a : tensor<8x8xf32> from <"m", F32, offset = 0, bytes = 256>
spark.weight @qkv : tensor<16x8xf32> from <"m", F32, offset = 0, bytes = 512>
spark.kv_cache @kv heads 1 head_dim 4 ring 0 : f16
func.func @step(%token: tensor<1xi32>, %pos: index) {
  %x = spark.embed @embedding[%token] : tensor<1xi32> -> tensor<1x8xf32>
  // expected-error@+1 {{meets the residual stream in a way that a rotation does not pass}}
  %y = spark.add %x, %x : tensor<1x8xf32>
  return
}

// -----

spark.weight @embedding : tensor<24x8xf32> from <"m", F32, offset = 0, bytes = 768>
spark.weight @norm : tensor<8xf32> from <"m", F32, offset = 0, bytes = 32>
spark.weight @a : tensor<8x8xf32> from <"m", F32, offset = 0, bytes = 256>
spark.weight @qkv : tensor<16x8xf32> from <"m", F32, offset = 0, bytes = 512>
spark.kv_cache @kv heads 1 head_dim 4 ring 0 : f16
func.func @step(%token: tensor<1xi32>, %pos: index) {
  %x = spark.embed @embedding[%token] : tensor<1xi32> -> tensor<1x8xf32>
  %n = spark.rms_norm %x, @norm eps 1.0e-06 : tensor<1x8xf32>
  %u = spark.linear %n, @a : tensor<1x8xf32> -> tensor<1x8xf32>
  // expected-error@+1 {{meets the residual stream in a way that a rotation does not pass}}
  %y = spark.add %u, %x : tensor<1x8xf32>
  return
}

// -----

spark.weight @embedding : tensor<24x8xf32> from <"m", F32, offset = 0, bytes = 768>
spark.weight @norm : tensor<8xf32> from <"m", F32, offset = 0, bytes = 32>
spark.weight @a : tensor<8x8xf32> from <"m", F32, offset = 0, bytes = 256>
spark.weight @qkv : tensor<16x8xf32> from <"m", F32, offset = 0, bytes = 512>
spark.kv_cache @kv heads 1 head_dim 4 ring 0 : f16
func.func @step(%token: tensor<1xi32>, %pos: index) {
  %x = spark.embed @embedding[%token] : tensor<1xi32> -> tensor<1x8xf32>
  %n = spark.rms_norm %x, @norm eps 1.0e-06 : tensor<1x8xf32>
  // expected-error@+1 {{reads a norm whose weights only a spark.linear could take over}}
  %y = spark.geglu %n, %n : tensor<1x8xf32>
  return
}

// -----

spark.weight @embedding : tensor<24x8xf32> from <"m", F32, offset = 0, bytes = 768>
spark.weight @norm : tensor<8xf32> from <"m", F32, offset = 0, bytes = 32>
spark.weight @a : tensor<8x8xf32> from <"m", F32, offset = 0, bytes = 256>
spark.weight @qkv : tensor<16x8xf32> from <"m", F32, offset = 0, bytes = 512>
spark.kv_cache @kv heads 1 head_dim 4 ring 0 : f16
func.func @step(%token: tensor<1xi32>, %pos: index) {
  %x = spark.embed @embedding[%token] : tensor<1xi32> -> tensor<1x8xf32>
  %n = spark.rms_norm %x, @norm eps 1.0e-06 : tensor<1x8xf32>
  // expected-note@+1 {{the other op is here}}
  %u = spark.linear %n, @a : tensor<1x8xf32> -> tensor<1x8xf32>
  // expected-error@+1 {{reads @a, as another op does}}
  %v = spark.linear %n, @a : tensor<1x8xf32> -> tensor<1x8xf32>
  return
}

// -----

// Values are not the last rows.
spark.weight @embedding : tensor<24x8xf32> from <"m", F32, offset = 0, bytes = 768>
spark.weight @norm : tensor<8xf32> from <"m", F32, offset = 0, bytes = 32>
spark.weight @a : tensor<8x8xf32> from <"m", F32, offset = 0, bytes = 256>
spark.weight @qkv : tensor<16x8xf32> from <"m", F32, offset = 0, bytes = 512>
spark.kv_cache @kv heads 1 head_dim 4 ring 0 : f16
func.func @step(%token: tensor<1xi32>, %pos: index) {
  %x = spark.embed @embedding[%token] : tensor<1xi32> -> tensor<1x8xf32>
  %y = spark.layer 0 (%x) {
  ^bb0(%h: tensor<1x8xf32>):
    %n = spark.rms_norm %h, @norm eps 1.0e-06 : tensor<1x8xf32>
    %qkv = spark.linear %n, @qkv : tensor<1x8xf32> -> tensor<1x16xf32>
    %q, %v, %k = spark.split %qkv
      : tensor<1x16xf32> -> tensor<1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>
    // expected-error@+1 {{expects values that are the last rows of a spark.linear, and nothing else}}
    spark.kv_write %k, %v, @kv at %pos : tensor<1x4xf32>
    spark.yield %h : tensor<1x8xf32>
  } : tensor<1x8xf32>
  return
}

// -----

// Heads that something else reads, too.
spark.weight @embedding : tensor<24x8xf32> from <"m", F32, offset = 0, bytes = 768>
spark.weight @norm : tensor<8xf32> from <"m", F32, offset = 0, bytes = 32>
spark.weight @a : tensor<8x8xf32> from <"m", F32, offset = 0, bytes = 256>
spark.weight @qkv : tensor<16x8xf32> from <"m", F32, offset = 0, bytes = 512>
spark.kv_cache @kv heads 1 head_dim 4 ring 0 : f16
func.func @step(%token: tensor<1xi32>, %pos: index) {
  %x = spark.embed @embedding[%token] : tensor<1xi32> -> tensor<1x8xf32>
  %y = spark.layer 0 (%x) {
  ^bb0(%h: tensor<1x8xf32>):
    %n = spark.rms_norm %h, @norm eps 1.0e-06 : tensor<1x8xf32>
    %qkv = spark.linear %n, @qkv : tensor<1x8xf32> -> tensor<1x16xf32>
    %q, %k, %v = spark.split %qkv
      : tensor<1x16xf32> -> tensor<1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>
    spark.kv_write %k, %v, @kv at %pos : tensor<1x4xf32>
    // expected-error@+1 {{expects a spark.head_gate of its heads and a spark.linear of that, and nothing else}}
    %o = spark.attention %q, @kv at %pos heads 2 window 0 scale 0.5 chunk 64
      : tensor<1x8xf32>
    %u = spark.linear %o, @a : tensor<1x8xf32> -> tensor<1x8xf32>
    spark.yield %h : tensor<1x8xf32>
  } : tensor<1x8xf32>
  return
}

// -----

// A fused graph.
spark.weight @embedding : tensor<24x8xf32> from <"m", F32, offset = 0, bytes = 768>
spark.weight @norm : tensor<8xf32> from <"m", F32, offset = 0, bytes = 32>
spark.weight @a : tensor<8x8xf32> from <"m", F32, offset = 0, bytes = 256>
spark.weight @qkv : tensor<16x8xf32> from <"m", F32, offset = 0, bytes = 512>
spark.kv_cache @kv heads 1 head_dim 4 ring 0 : f16
func.func @step(%token: tensor<1xi32>, %pos: index) {
  %x = spark.embed @embedding[%token] : tensor<1xi32> -> tensor<1x8xf32>
  // expected-error@+1 {{meets the residual stream in a way that a rotation does not pass}}
  %y = spark.fused_linear (%x) prologue {
  ^bb0(%a: tensor<1x8xf32>):
    spark.yield %a : tensor<1x8xf32>
  } segments [@a] epilogue {
  ^bb0(%r: tensor<1x8xf32>):
    spark.yield %r : tensor<1x8xf32>
  } : (tensor<1x8xf32>) -> tensor<1x8xf32>
  return
}
