// Every message of the dialect's verifiers.
//
// RUN: sparkc-opt %s --split-input-file --verify-diagnostics

//===--- Attributes ---===//

// expected-error@+1 {{unknown source type 'I64'; expected F32, F16 or BF16}}
spark.weight @w : tensor<4x8xf32> from <"m", I64, offset = 0, bytes = 256>

// -----

// expected-error@+1 {{has a source of I32, which only zero points are}}
spark.weight @w : tensor<4x8xf32> from <"m", I32, offset = 0, bytes = 128>

// -----

// expected-error@+1 {{AWQ and GPTQ sources alone have a group}}
spark.weight @w : tensor<8x64xf32> from <"m", AWQ4, offset = 0, bytes = 256>

// -----

// expected-error@+1 {{a group has 32, 64 or 128 columns, not 16}}
spark.weight @w : tensor<8x64xf32> from <"m", GPTQ4, offset = 0, bytes = 256, group = 16, with = []>

// -----

// expected-error@+1 {{expects an F16 source of scales and an I32 source of zero points}}
spark.weight @w : tensor<8x64xf32> from <"m", GPTQ4, offset = 0, bytes = 256, group = 64, with = [#spark.source<"m", F32, offset = 0, bytes = 32>, #spark.source<"m", I32, offset = 0, bytes = 4>]>

// -----

// expected-error@+1 {{expects 16 bytes of scales and 4 of zero points}}
spark.weight @w : tensor<8x64xf32> from <"m", GPTQ4, offset = 0, bytes = 256, group = 64, with = [#spark.source<"m", F16, offset = 0, bytes = 32>, #spark.source<"m", I32, offset = 0, bytes = 4>]>

// -----

// expected-error@+1 {{expects a matrix of whole eights of rows and groups of 64 columns}}
spark.weight @w : tensor<8x32xf32> from <"m", GPTQ4, offset = 0, bytes = 128, group = 64, with = [#spark.source<"m", F16, offset = 0, bytes = 16>, #spark.source<"m", I32, offset = 0, bytes = 4>]>

// -----

// expected-error@+1 {{source span overflows: offset 18446744073709551615, bytes 128}}
spark.weight @w : tensor<4x8xf32> from <"m", F32, offset = 18446744073709551615, bytes = 128>

// -----

// expected-error@+1 {{a grid has 4, 5, 6 or 8 bits, not 3}}
spark.weight @w : tensor<4x8xi3, #spark.grid<bits = 3, group = 64>> from <"m", F32, offset = 0, bytes = 128>

// -----

// expected-error@+1 {{a grid of the form super_minimum has 4 or 5 bits, not 6}}
spark.weight @w : tensor<4x256xi6, #spark.grid<bits = 6, group = 32, form = super_minimum>> from <"m", Q6_K, offset = 0, bytes = 840>

// -----

// expected-error@+1 {{a grid of the form super has groups of 16 columns, not 32}}
spark.weight @w : tensor<4x256xi6, #spark.grid<bits = 6, group = 32, form = super>> from <"m", Q6_K, offset = 0, bytes = 840>

// -----

// expected-error@+1 {{only grids with zero points are symmetric}}
spark.weight @w : tensor<4x32xi4, #spark.grid<bits = 4, group = 32, symmetric = true, form = minimum>> from <"m", Q4_1, offset = 0, bytes = 80>

// -----

// expected-error@+1 {{has rows of 100 elements, which are not whole blocks of Q4_K (256)}}
spark.weight @w : tensor<4x100xf32> from <"m", Q4_K, offset = 0, bytes = 576>

// -----

// expected-error@+1 {{expects a source of 576 bytes, not 580}}
spark.weight @w : tensor<4x256xf32> from <"m", Q4_K, offset = 0, bytes = 580>

// -----

// expected-error@+1 {{a group has 32, 64 or 128 columns, not 48}}
spark.weight @w : tensor<4x8xi4, #spark.grid<bits = 4, group = 48>> from <"m", F32, offset = 0, bytes = 128>

// -----

func.func @f(%x: tensor<1x8xf32>, %pos: index) {
  // expected-error@+1 {{rope theta must be positive}}
  %r = spark.rope %x at %pos heads 1 rope <theta = -1.0, width = 8> : tensor<1x8xf32>
  return
}

// -----

func.func @f(%x: tensor<1x8xf32>, %pos: index) {
  // expected-error@+1 {{rope theta must be positive}}
  %r = spark.rope %x at %pos heads 1 rope <theta = 0.0, width = 8> : tensor<1x8xf32>
  return
}

// -----

func.func @f(%x: tensor<1x8xf32>, %pos: index) {
  // expected-error@+1 {{rotary width must be even and positive, not 3}}
  %r = spark.rope %x at %pos heads 1 rope <theta = 1.0, width = 3> : tensor<1x8xf32>
  return
}

// -----

func.func @f(%x: tensor<1x8xf32>, %pos: index) {
  // expected-error@+1 {{rotary width must be even and positive, not 0}}
  %r = spark.rope %x at %pos heads 1 rope <theta = 1.0, width = 0> : tensor<1x8xf32>
  return
}

// -----

// expected-error@+1 {{a rotation has a size, not 0}}
spark.weight @w : tensor<4x8xf32> from <"m", F32, offset = 0, bytes = 128> through [#spark.rotate_in<size = 0, seed = 1>]

// -----

// expected-error@+1 {{a rotation has a size, not 0}}
spark.weight @w : tensor<4x8xf32> from <"m", F32, offset = 0, bytes = 128> through [#spark.rotate_out<size = 0, seed = 1>]

// -----

//===--- Module level ---===//

// expected-error@+1 {{has 8 columns, which are not whole runs of 6}}
spark.weight @w : tensor<4x8xf32> from <"m", F32, offset = 0, bytes = 128> through [#spark.rotate_in<size = 6, seed = 1>]

// -----

// expected-error@+1 {{has 12 rows, which from row 2 on are not whole runs of 4}}
spark.weight @w : tensor<12x8xf32> from <"m", F32, offset = 0, bytes = 384> through [#spark.rotate_out<size = 4, seed = 1, first = 2>]

// -----

// expected-error@+1 {{has 12 rows, which from row 12 on are not whole runs of 4}}
spark.weight @w : tensor<12x8xf32> from <"m", F32, offset = 0, bytes = 384> through [#spark.rotate_out<size = 4, seed = 1, first = 12>]

// -----

// expected-error@+1 {{matrices are rotated and have norms folded into them, vectors are #spark.folded; 'tensor<8xf32>' is not for #spark.rotate_in<size = 8, seed = 1>}}
spark.weight @w : tensor<8xf32> from <"m", F32, offset = 0, bytes = 32> through [#spark.rotate_in<size = 8, seed = 1>]

// -----

// expected-error@+1 {{'tensor<4x8xf32>' is not for #spark.folded}}
spark.weight @w : tensor<4x8xf32> from <"m", F32, offset = 0, bytes = 128> through [#spark.folded]

// -----

// expected-error@+1 {{holds codes (Q8_0), which no transform leaves on their grid}}
spark.weight @w : tensor<4x32xf32> from <"m", Q8_0, offset = 0, bytes = 136> through [#spark.rotate_in<size = 8, seed = 1>]

// -----

// expected-error@+1 {{an array of transforms of weights}}
spark.weight @w : tensor<4x8xf32> from <"m", F32, offset = 0, bytes = 128> through [1 : i64]

// -----

// expected-error@+1 {{refers to @norm, which is no spark.weight}}
spark.weight @w : tensor<4x8xf32> from <"m", F32, offset = 0, bytes = 128> through [#spark.fold<@norm>]

// -----

// expected-note@+1 {{the weight is declared here}}
spark.weight @norm : tensor<4xf32> from <"m", F32, offset = 0, bytes = 16> through [#spark.folded]
// expected-error@+1 {{expects @norm to be [8], not [4]}}
spark.weight @w : tensor<4x8xf32> from <"m", F32, offset = 0, bytes = 128> through [#spark.fold<@norm>]

// -----

spark.weight @norm : tensor<8xf32> from <"m", F32, offset = 0, bytes = 32>
// expected-error@+1 {{folds @norm, which is no #spark.folded: it would count twice}}
spark.weight @w : tensor<4x8xf32> from <"m", F32, offset = 0, bytes = 128> through [#spark.fold<@norm>]

// -----

// expected-error@+1 {{'layers' must be positive, not 0}}
spark.config {vocab = 24 : i64, hidden = 8 : i64, intermediate = 16 : i64,
  layers = 0 : i64, heads = 2 : i64, kv_heads = 1 : i64, head_dim = 4 : i64,
  window = 16 : i64, max_context = 128 : i64, context = 64 : i64,
  prefill_block = 32 : i64, scheme = "bf16"}

// -----

// expected-error@+1 {{'context' must be positive, not -64}}
spark.config {vocab = 24 : i64, hidden = 8 : i64, intermediate = 16 : i64,
  layers = 1 : i64, heads = 2 : i64, kv_heads = 1 : i64, head_dim = 4 : i64,
  window = 16 : i64, max_context = 128 : i64, context = -64 : i64,
  prefill_block = 32 : i64, scheme = "bf16"}

// -----

// expected-error@+1 {{context (256) exceeds max_context (128)}}
spark.config {vocab = 24 : i64, hidden = 8 : i64, intermediate = 16 : i64,
  layers = 1 : i64, heads = 2 : i64, kv_heads = 1 : i64, head_dim = 4 : i64,
  window = 16 : i64, max_context = 128 : i64, context = 256 : i64,
  prefill_block = 32 : i64, scheme = "bf16"}

// -----

// expected-error@+1 {{'window' must not be negative, not -1}}
spark.config {vocab = 24 : i64, hidden = 8 : i64, intermediate = 16 : i64,
  layers = 1 : i64, heads = 2 : i64, kv_heads = 1 : i64, head_dim = 4 : i64,
  window = -1 : i64, max_context = 128 : i64, context = 64 : i64,
  prefill_block = 32 : i64, scheme = "bf16"}

// -----

// expected-error@+1 {{heads (3) must be a multiple of kv_heads (2)}}
spark.config {vocab = 24 : i64, hidden = 8 : i64, intermediate = 16 : i64,
  layers = 1 : i64, heads = 3 : i64, kv_heads = 2 : i64, head_dim = 4 : i64,
  window = 16 : i64, max_context = 128 : i64, context = 64 : i64,
  prefill_block = 32 : i64, scheme = "bf16"}

// -----

// expected-error@+1 {{expects a static vector or matrix, not 'tensor<?x8xf32>'}}
spark.weight @w : tensor<?x8xf32> from <"m", F32, offset = 0, bytes = 128>

// -----

// expected-error@+1 {{attribute 'type' failed to satisfy constraint: type attribute of ranked tensor of any type values}}
spark.weight @w : tensor<*xf32> from <"m", F32, offset = 0, bytes = 128>

// -----

// expected-error@+1 {{expects a static vector or matrix, not 'tensor<2x2x8xf32>'}}
spark.weight @w : tensor<2x2x8xf32> from <"m", F32, offset = 0, bytes = 128>

// -----

// expected-error@+1 {{expects a static vector or matrix, not 'tensor<0x8xf32>'}}
spark.weight @w : tensor<0x8xf32> from <"m", F32, offset = 0, bytes = 0>

// -----

// expected-error@+1 {{is too large: 'tensor<4611686018427387905x4xf32>'}}
spark.weight @w : tensor<4611686018427387905x4xf32> from <"m", F32, offset = 0, bytes = 16>

// -----

// expected-error@+1 {{is too large: 'tensor<2305843009213693953x2xf32>'}}
spark.weight @w : tensor<2305843009213693953x2xf32> from <"m", F32, offset = 0, bytes = 8>

// -----

// expected-error@+1 {{has a grid of 4 bits but elements of type 'i8'}}
spark.weight @w : tensor<4x8xi8, #spark.grid<bits = 4, group = 64>> from <"m", F32, offset = 0, bytes = 128>

// -----

// expected-error@+1 {{only matrices have a grid}}
spark.weight @w : tensor<8xi4, #spark.grid<bits = 4, group = 64>> from <"m", F32, offset = 0, bytes = 32>

// -----

// expected-error@+1 {{expects f32, bf16, f16 or a grid, not 'i8'}}
spark.weight @w : tensor<4x8xi8> from <"m", F32, offset = 0, bytes = 128>

// -----

// expected-error@+1 {{expects a source of 64 bytes, not 128}}
spark.weight @w : tensor<4x8xbf16> from <"m", BF16, offset = 0, bytes = 128>

// -----

// expected-error@+1 {{unknown kind 'picture'}}
spark.asset "picture" from "dir/cat.png"

// -----

// expected-error@+1 {{expects f32, f16 or i8 elements, not 'i16'}}
spark.kv_cache @kv heads 1 head_dim 4 ring 0 : i16

// -----

// expected-error@+1 {{expects positive heads and head_dim, not 0}}
spark.kv_cache @kv heads 0 head_dim 4 ring 0 : f16

// -----

// expected-error@+1 {{expects positive heads and head_dim, not -4}}
spark.kv_cache @kv heads 1 head_dim -4 ring 0 : f16

// -----

// expected-error@+1 {{ring must not be negative, not -64}}
spark.kv_cache @kv heads 1 head_dim 4 ring -64 : f16

// -----

//===--- Structure ---===//

func.func @f(%x: tensor<1x8xf32>) {
  // expected-error@+1 {{its body expects one argument of type 'tensor<1x8xf32>'}}
  %y = spark.layer 0 (%x) {
    spark.yield %x : tensor<1x8xf32>
  } : tensor<1x8xf32>
  return
}

// -----

func.func @f(%x: tensor<1x8xf32>, %z: tensor<1x4xf32>) {
  // expected-error@+1 {{its body must yield one value of type 'tensor<1x8xf32>'}}
  %y = spark.layer 0 (%x) {
  ^bb0(%h: tensor<1x8xf32>):
    spark.yield %z : tensor<1x4xf32>
  } : tensor<1x8xf32>
  return
}

// -----

func.func @f(%x: tensor<1x8xf32>) {
  // expected-error@+1 {{expects parent op to be one of 'spark.layer, spark.fused_linear'}}
  spark.yield %x : tensor<1x8xf32>
}

// -----

func.func @f(%x: tensor<?x8xf32>) {
  // expected-error@+1 {{operand #0 must be static [tokens, features] tensor of f32, but got 'tensor<?x8xf32>'}}
  %y = spark.add %x, %x : tensor<?x8xf32>
  return
}

// -----

func.func @f(%x: tensor<1x0xf32>) {
  // expected-error@+1 {{operand #0 must be static [tokens, features] tensor of f32, but got 'tensor<1x0xf32>'}}
  %y = spark.add %x, %x : tensor<1x0xf32>
  return
}

// -----

//===--- Weights ---===//

func.func @f(%t: tensor<1xi32>) {
  // expected-error@+1 {{refers to @w, which is no spark.weight}}
  %x = spark.embed @w[%t] : tensor<1xi32> -> tensor<1x8xf32>
  return
}

// -----

// expected-note@+1 {{the weight is declared here}}
spark.weight @w : tensor<24x8xf32> from <"m", F32, offset = 0, bytes = 768>
func.func @f(%t: tensor<1xi32>) {
  // expected-error@+1 {{expects @w to be [24, 16], not [24, 8]}}
  %x = spark.embed @w[%t] : tensor<1xi32> -> tensor<1x16xf32>
  return
}

// -----

spark.weight @w : tensor<24x8xf32> from <"m", F32, offset = 0, bytes = 768>
func.func @f(%t: tensor<?xi32>) {
  // expected-error@+1 {{operand #0 must be static [tokens] tensor of i32, but got 'tensor<?xi32>'}}
  %x = spark.embed @w[%t] : tensor<?xi32> -> tensor<1x8xf32>
  return
}

// -----

spark.weight @w : tensor<24x8xf32> from <"m", F32, offset = 0, bytes = 768>
func.func @f(%t: tensor<2xi32>) {
  // expected-error@+1 {{expects 2 tokens, not 1}}
  %x = spark.embed @w[%t] : tensor<2xi32> -> tensor<1x8xf32>
  return
}

// -----

// expected-note@+1 {{the weight is declared here}}
spark.weight @n : tensor<4xf32> from <"m", F32, offset = 0, bytes = 16>
func.func @f(%x: tensor<1x8xf32>) {
  // expected-error@+1 {{expects @n to be [8], not [4]}}
  %y = spark.rms_norm %x, @n eps 1.0 : tensor<1x8xf32>
  return
}

// -----

func.func @n() { return }
func.func @f(%x: tensor<1x8xf32>) {
  // expected-error@+1 {{refers to @n, which is no spark.weight}}
  %y = spark.rms_norm %x, @n eps 1.0 : tensor<1x8xf32>
  return
}

// -----

spark.weight @n : tensor<8xf32> from <"m", F32, offset = 0, bytes = 32>
func.func @f(%x: tensor<1x8xf32>) {
  // expected-error@+1 {{eps must be finite and not negative, not -1.000000e+00}}
  %y = spark.rms_norm %x, @n eps -1.0 : tensor<1x8xf32>
  return
}

// -----

// expected-note@+1 {{the weight is declared here}}
spark.weight @w : tensor<16x8xf32> from <"m", F32, offset = 0, bytes = 512>
func.func @f(%x: tensor<1x16xf32>) {
  // expected-error@+1 {{expects @w to be [8, 16], not [16, 8]}}
  %y = spark.linear %x, @w : tensor<1x16xf32> -> tensor<1x8xf32>
  return
}

// -----

spark.weight @w : tensor<16x8xf32> from <"m", F32, offset = 0, bytes = 512>
func.func @f(%x: tensor<1x8xf32>) {
  // expected-error@+1 {{expects 1 tokens, not 4}}
  %y = spark.linear %x, @w : tensor<1x8xf32> -> tensor<4x16xf32>
  return
}

// -----

//===--- Ranges, rope, gate ---===//

func.func @f(%x: tensor<1x8xf32>) {
  // expected-error@+1 {{splits 8 features into 7}}
  %a, %b = spark.split %x : tensor<1x8xf32> -> tensor<1x4xf32>, tensor<1x3xf32>
  return
}

// -----

func.func @f(%x: tensor<1x8xf32>) {
  // expected-error@+1 {{expects 1 tokens, not 2}}
  %a, %b = spark.split %x : tensor<1x8xf32> -> tensor<1x4xf32>, tensor<2x4xf32>
  return
}

// -----

func.func @f(%x: tensor<1x8xf32>, %pos: index) {
  // expected-error@+1 {{8 features are not a multiple of 3 heads}}
  %r = spark.rope %x at %pos heads 3 rope <theta = 1.0, width = 2> : tensor<1x8xf32>
  return
}

// -----

func.func @f(%x: tensor<1x8xf32>, %pos: index) {
  // expected-error@+1 {{8 features are not a multiple of -2 heads}}
  %r = spark.rope %x at %pos heads -2 rope <theta = 1.0, width = 2> : tensor<1x8xf32>
  return
}

// -----

func.func @f(%x: tensor<1x8xf32>, %pos: index) {
  // expected-error@+1 {{rotary width 6 exceeds head_dim 4}}
  %r = spark.rope %x at %pos heads 2 rope <theta = 1.0, width = 6> : tensor<1x8xf32>
  return
}

// -----

func.func @f(%x: tensor<1x8xf32>, %g: tensor<1x3xf32>) {
  // expected-error@+1 {{8 features are not a multiple of 3 gates}}
  %r = spark.head_gate %x, %g : tensor<1x8xf32>, tensor<1x3xf32>
  return
}

// -----

func.func @f(%x: tensor<1x8xf32>, %g: tensor<2x4xf32>) {
  // expected-error@+1 {{expects 1 tokens, not 2}}
  %r = spark.head_gate %x, %g : tensor<1x8xf32>, tensor<2x4xf32>
  return
}

// -----

//===--- Caches ---===//

func.func @f(%x: tensor<1x8xf32>, %pos: index) {
  // expected-error@+1 {{refers to @kv, which is no spark.kv_cache}}
  spark.kv_write %x, %x, @kv at %pos : tensor<1x8xf32>
  return
}

// -----

spark.kv_cache @kv heads 2 head_dim 8 ring 0 : f16
func.func @f(%x: tensor<1x8xf32>, %pos: index) {
  // expected-error@+1 {{expects 16 features (heads x head_dim of the cache), not 8}}
  spark.kv_write %x, %x, @kv at %pos : tensor<1x8xf32>
  return
}

// -----

spark.weight @kv : tensor<8xf32> from <"m", F32, offset = 0, bytes = 32>
func.func @f(%x: tensor<1x8xf32>, %pos: index) {
  // expected-error@+1 {{refers to @kv, which is no spark.kv_cache}}
  %o = spark.attention %x, @kv at %pos heads 1 window 0 scale 1.0 chunk 64 : tensor<1x8xf32>
  return
}

// -----

spark.kv_cache @kv heads 1 head_dim 8 ring 0 : f16
func.func @f(%x: tensor<1x8xf32>, %pos: index) {
  // expected-error@+1 {{expects 16 features (heads x head_dim), not 8}}
  %o = spark.attention %x, @kv at %pos heads 2 window 0 scale 1.0 chunk 64 : tensor<1x8xf32>
  return
}

// -----

spark.kv_cache @kv heads 2 head_dim 8 ring 0 : f16
func.func @f(%x: tensor<1x24xf32>, %pos: index) {
  // expected-error@+1 {{heads (3) must be a multiple of the cache's (2)}}
  %o = spark.attention %x, @kv at %pos heads 3 window 0 scale 1.0 chunk 64 : tensor<1x24xf32>
  return
}

// -----

spark.kv_cache @kv heads 1 head_dim 8 ring 64 : f16
func.func @f(%x: tensor<1x8xf32>, %pos: index) {
  // expected-error@+1 {{has a window of 65 but its cache a ring of 64}}
  %o = spark.attention %x, @kv at %pos heads 1 window 65 scale 1.0 chunk 64 : tensor<1x8xf32>
  return
}

// -----

spark.kv_cache @kv heads 1 head_dim 8 ring 64 : f16
func.func @f(%x: tensor<1x8xf32>, %pos: index) {
  // expected-error@+1 {{sees all keys but its cache is a ring}}
  %o = spark.attention %x, @kv at %pos heads 1 window 0 scale 1.0 chunk 64 : tensor<1x8xf32>
  return
}

// -----

spark.kv_cache @kv heads 1 head_dim 8 ring 80 : f16
func.func @f(%x: tensor<1x8xf32>, %pos: index) {
  // expected-error@+1 {{the cache's ring (80) must be a multiple of the chunk (64)}}
  %o = spark.attention %x, @kv at %pos heads 1 window 16 scale 1.0 chunk 64 : tensor<1x8xf32>
  return
}

// -----

spark.kv_cache @kv heads 1 head_dim 8 ring 64 : f16
func.func @f(%x: tensor<1x8xf32>, %pos: index) {
  // expected-error@+1 {{window must not be negative, not -16}}
  %o = spark.attention %x, @kv at %pos heads 1 window -16 scale 1.0 chunk 64 : tensor<1x8xf32>
  return
}

// -----

spark.kv_cache @kv heads 1 head_dim 8 ring 0 : f16
func.func @f(%x: tensor<1x8xf32>, %pos: index) {
  // expected-error@+1 {{chunk must be a positive multiple of 16, not 24}}
  %o = spark.attention %x, @kv at %pos heads 1 window 0 scale 1.0 chunk 24 : tensor<1x8xf32>
  return
}

// -----

spark.kv_cache @kv heads 1 head_dim 8 ring 0 : f16
func.func @f(%x: tensor<1x8xf32>, %pos: index) {
  // expected-error@+1 {{chunk must be a positive multiple of 16, not 0}}
  %o = spark.attention %x, @kv at %pos heads 1 window 0 scale 1.0 chunk 0 : tensor<1x8xf32>
  return
}

// -----

spark.kv_cache @kv heads 1 head_dim 8 ring 0 : f16
func.func @f(%x: tensor<1x8xf32>, %pos: index) {
  // expected-error@+1 {{8 features are not a multiple of 0 heads}}
  %o = spark.attention %x, @kv at %pos heads 0 window 0 scale 1.0 chunk 64 : tensor<1x8xf32>
  return
}

// -----

//===--- The fused form ---===//

spark.weight @w : tensor<16x8xf32> from <"m", F32, offset = 0, bytes = 512>
func.func @f(%x: tensor<1x8xf32>) {
  // expected-error@+1 {{the prologue's arguments must have the types of the inputs}}
  %y = spark.fused_linear (%x) prologue {
  ^bb0(%a: tensor<1x8xf32>, %b: tensor<1x8xf32>):
    spark.yield %a : tensor<1x8xf32>
  } segments [@w] epilogue {
  ^bb0(%c: tensor<1x16xf32>):
    spark.yield %c : tensor<1x16xf32>
  } : (tensor<1x8xf32>) -> tensor<1x16xf32>
  return
}

// -----

spark.weight @w : tensor<16x8xf32> from <"m", F32, offset = 0, bytes = 512>
func.func @f(%x: tensor<1x8xf32>) {
  // expected-error@+1 {{the prologue must yield one activation}}
  %y = spark.fused_linear (%x) prologue {
  ^bb0(%a: tensor<1x8xf32>):
    spark.yield %a, %a : tensor<1x8xf32>, tensor<1x8xf32>
  } segments [@w] epilogue {
  ^bb0(%c: tensor<1x16xf32>):
    spark.yield %c : tensor<1x16xf32>
  } : (tensor<1x8xf32>) -> tensor<1x16xf32>
  return
}

// -----

spark.weight @w : tensor<16x8xf32> from <"m", F32, offset = 0, bytes = 512>
spark.kv_cache @kv heads 1 head_dim 8 ring 0 : f16
func.func @f(%x: tensor<1x8xf32>, %pos: index) {
  %y = spark.fused_linear (%x) prologue {
  ^bb0(%a: tensor<1x8xf32>):
    // expected-error@+1 {{has side effects, which a prologue must not}}
    spark.kv_write %a, %a, @kv at %pos : tensor<1x8xf32>
    spark.yield %a : tensor<1x8xf32>
  } segments [@w] epilogue {
  ^bb0(%c: tensor<1x16xf32>):
    spark.yield %c : tensor<1x16xf32>
  } : (tensor<1x8xf32>) -> tensor<1x16xf32>
  return
}

// -----

spark.weight @w : tensor<16x8xf32> from <"m", F32, offset = 0, bytes = 512>
func.func @f(%x: tensor<1x8xf32>) {
  // expected-error@+1 {{expects a non-empty block}}
  spark.fused_linear (%x) prologue {
  ^bb0(%a: tensor<1x8xf32>):
  } segments [@w] epilogue {
  ^bb0(%y: tensor<1x16xf32>):
    spark.yield
  } : (tensor<1x8xf32>) -> ()
  return
}

// -----

func.func @f(%x: tensor<1x8xf32>) {
  // expected-error@+1 {{expects a non-empty block}}
  %y = spark.layer 0 (%x) {
  ^bb0(%h: tensor<1x8xf32>):
  } : tensor<1x8xf32>
  return
}

// -----

func.func @f(%x: tensor<1x8xf32>) {
  // expected-error@+1 {{expects at least one segment}}
  spark.fused_linear (%x) prologue {
  ^bb0(%a: tensor<1x8xf32>):
    spark.yield %a : tensor<1x8xf32>
  } segments [] epilogue {
    spark.yield
  } : (tensor<1x8xf32>) -> ()
  return
}

// -----

spark.weight @w : tensor<16x8xf32> from <"m", F32, offset = 0, bytes = 512>
func.func @f(%x: tensor<1x8xf32>) {
  // expected-error@+1 {{expects one epilogue argument for each of its 2 segments, not 1}}
  %y = spark.fused_linear (%x) prologue {
  ^bb0(%a: tensor<1x8xf32>):
    spark.yield %a : tensor<1x8xf32>
  } segments [@w, @w] epilogue {
  ^bb0(%c: tensor<1x16xf32>):
    spark.yield %c : tensor<1x16xf32>
  } : (tensor<1x8xf32>) -> tensor<1x16xf32>
  return
}

// -----

spark.weight @w : tensor<16x8xf32> from <"m", F32, offset = 0, bytes = 512>
func.func @f(%x: tensor<1x8xf32>) {
  // expected-error@+1 {{the epilogue must yield the results}}
  %y = spark.fused_linear (%x) prologue {
  ^bb0(%a: tensor<1x8xf32>):
    spark.yield %a : tensor<1x8xf32>
  } segments [@w] epilogue {
  ^bb0(%c: tensor<1x16xf32>):
    spark.yield
  } : (tensor<1x8xf32>) -> tensor<1x16xf32>
  return
}

// -----

// expected-note@+1 {{the weight is declared here}}
spark.weight @w : tensor<16x8xf32> from <"m", F32, offset = 0, bytes = 512>
func.func @f(%x: tensor<1x8xf32>) {
  // expected-error@+1 {{expects @w to be [12, 8], not [16, 8]}}
  %y = spark.fused_linear (%x) prologue {
  ^bb0(%a: tensor<1x8xf32>):
    spark.yield %a : tensor<1x8xf32>
  } segments [@w] epilogue {
  ^bb0(%c: tensor<1x12xf32>):
    spark.yield %c : tensor<1x12xf32>
  } : (tensor<1x8xf32>) -> tensor<1x12xf32>
  return
}

// -----

spark.weight @w : tensor<16x8xf32> from <"m", F32, offset = 0, bytes = 512>
func.func @f(%x: tensor<1x8xf32>) {
  // expected-error@+1 {{expects 1 tokens, not 2}}
  %y = spark.fused_linear (%x) prologue {
  ^bb0(%a: tensor<1x8xf32>):
    spark.yield %a : tensor<1x8xf32>
  } segments [@w] epilogue {
  ^bb0(%c: tensor<2x16xf32>):
    spark.yield %c : tensor<2x16xf32>
  } : (tensor<1x8xf32>) -> tensor<2x16xf32>
  return
}
