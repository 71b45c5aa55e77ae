// What spark-to-step refuses.
//
// RUN: sparkc-opt %s --split-input-file --verify-diagnostics --spark-to-step

// expected-error@+1 {{expects a spark.config and a function @step}}
module {
  func.func @step() {
    return
  }
}

// -----

// expected-error@+1 {{expects a spark.config and a function @step}}
module {
  spark.config {vocab = 8 : i64, hidden = 8 : i64, intermediate = 8 : i64,
    layers = 1 : i64, heads = 2 : i64, kv_heads = 1 : i64, head_dim = 4 : i64,
    window = 0 : i64, max_context = 64 : i64, context = 64 : i64,
    prefill_block = 1 : i64, scheme = "f32"}
}

// -----

// The fusion passes have not run.
spark.config {vocab = 8 : i64, hidden = 8 : i64, intermediate = 8 : i64,
  layers = 1 : i64, heads = 2 : i64, kv_heads = 1 : i64, head_dim = 4 : i64,
  window = 0 : i64, max_context = 64 : i64, context = 64 : i64,
  prefill_block = 1 : i64, scheme = "f32"}
spark.weight @w : tensor<8x8xf32> from <"m", F32, offset = 0, bytes = 256>
func.func @step(%token: tensor<1xi32>, %pos: index) -> tensor<1x8xf32> {
  %x = spark.embed @w[%token] : tensor<1xi32> -> tensor<1x8xf32>
  // expected-error@+1 {{'spark.linear' cannot be scheduled outside a fused linear; run the fusion passes first}}
  %y = spark.linear %x, @w : tensor<1x8xf32> -> tensor<1x8xf32>
  return %y : tensor<1x8xf32>
}

// -----

// spark-quantize has not run.
spark.config {vocab = 8 : i64, hidden = 8 : i64, intermediate = 8 : i64,
  layers = 1 : i64, heads = 2 : i64, kv_heads = 1 : i64, head_dim = 4 : i64,
  window = 0 : i64, max_context = 64 : i64, context = 64 : i64,
  prefill_block = 1 : i64, scheme = "f32"}
spark.weight @w : tensor<8x8xf32> from <"m", F32, offset = 0, bytes = 256>
// expected-error@+1 {{cannot be packed as 'f16'; run spark-quantize first}}
spark.weight @half : tensor<8x8xf16> from <"m", F16, offset = 0, bytes = 128>
func.func @step(%token: tensor<1xi32>, %pos: index) -> tensor<1x8xf32> {
  %x = spark.embed @w[%token] : tensor<1xi32> -> tensor<1x8xf32>
  %y = spark.fused_linear (%x) prologue {
  ^bb0(%a: tensor<1x8xf32>):
    spark.yield %a : tensor<1x8xf32>
  } segments [@half] epilogue {
  ^bb0(%y0: tensor<1x8xf32>):
    spark.yield %y0 : tensor<1x8xf32>
  } : (tensor<1x8xf32>) -> tensor<1x8xf32>
  return %y : tensor<1x8xf32>
}

// -----

// A value from nowhere.
spark.config {vocab = 8 : i64, hidden = 8 : i64, intermediate = 8 : i64,
  layers = 1 : i64, heads = 2 : i64, kv_heads = 1 : i64, head_dim = 4 : i64,
  window = 0 : i64, max_context = 64 : i64, context = 64 : i64,
  prefill_block = 1 : i64, scheme = "f32"}
spark.weight @w : tensor<8x8xf32> from <"m", F32, offset = 0, bytes = 256>
func.func @step(%token: tensor<1xi32>, %pos: index, %h: tensor<1x8xf32>) -> tensor<1x8xf32> {
  %x = spark.embed @w[%token] : tensor<1xi32> -> tensor<1x8xf32>
  // expected-error@+1 {{cannot be scheduled: it reads a value that no phase has stored}}
  %y = spark.fused_linear (%h) prologue {
  ^bb0(%a: tensor<1x8xf32>):
    spark.yield %a : tensor<1x8xf32>
  } segments [@w] epilogue {
  ^bb0(%y0: tensor<1x8xf32>):
    spark.yield %y0 : tensor<1x8xf32>
  } : (tensor<1x8xf32>) -> tensor<1x8xf32>
  return %y : tensor<1x8xf32>
}

// -----

// What an attention leaves is folded in the prologue of a linear, and nowhere else.
spark.config {vocab = 8 : i64, hidden = 8 : i64, intermediate = 8 : i64,
  layers = 1 : i64, heads = 2 : i64, kv_heads = 1 : i64, head_dim = 4 : i64,
  window = 0 : i64, max_context = 64 : i64, context = 64 : i64,
  prefill_block = 1 : i64, scheme = "f32"}
spark.weight @w : tensor<8x8xf32> from <"m", F32, offset = 0, bytes = 256>
spark.kv_cache @kv heads 1 head_dim 4 ring 0 : f16
func.func @step(%token: tensor<1xi32>, %pos: index) -> tensor<1x8xf32> {
  %x = spark.embed @w[%token] : tensor<1xi32> -> tensor<1x8xf32>
  %o = spark.attention %x, @kv at %pos heads 2 window 0 scale 0.5 chunk 64 : tensor<1x8xf32>
  // expected-error@+1 {{cannot be scheduled: it uses a value that no fused linear has stored}}
  %p = spark.attention %o, @kv at %pos heads 2 window 0 scale 0.5 chunk 64 : tensor<1x8xf32>
  %y = spark.fused_linear (%p) prologue {
  ^bb0(%a: tensor<1x8xf32>):
    spark.yield %a : tensor<1x8xf32>
  } segments [@w] epilogue {
  ^bb0(%y0: tensor<1x8xf32>):
    spark.yield %y0 : tensor<1x8xf32>
  } : (tensor<1x8xf32>) -> tensor<1x8xf32>
  return %y : tensor<1x8xf32>
}

// -----

spark.config {vocab = 8 : i64, hidden = 8 : i64, intermediate = 8 : i64,
  layers = 1 : i64, heads = 2 : i64, kv_heads = 1 : i64, head_dim = 4 : i64,
  window = 0 : i64, max_context = 64 : i64, context = 64 : i64,
  prefill_block = 1 : i64, scheme = "f32"}
spark.weight @w : tensor<8x8xf32> from <"m", F32, offset = 0, bytes = 256>
spark.kv_cache @kv heads 1 head_dim 4 ring 0 : f16
func.func @step(%token: tensor<1xi32>, %pos: index, %other: index) -> tensor<1x8xf32> {
  %x = spark.embed @w[%token] : tensor<1xi32> -> tensor<1x8xf32>
  // expected-error@+1 {{cannot be scheduled at a position other than the step's}}
  %o = spark.attention %x, @kv at %other heads 2 window 0 scale 0.5 chunk 64 : tensor<1x8xf32>
  %y = spark.fused_linear (%o) prologue {
  ^bb0(%a: tensor<1x8xf32>):
    spark.yield %a : tensor<1x8xf32>
  } segments [@w] epilogue {
  ^bb0(%y0: tensor<1x8xf32>):
    spark.yield %y0 : tensor<1x8xf32>
  } : (tensor<1x8xf32>) -> tensor<1x8xf32>
  return %y : tensor<1x8xf32>
}

// -----

spark.config {vocab = 8 : i64, hidden = 8 : i64, intermediate = 8 : i64,
  layers = 1 : i64, heads = 2 : i64, kv_heads = 1 : i64, head_dim = 4 : i64,
  window = 0 : i64, max_context = 64 : i64, context = 64 : i64,
  prefill_block = 1 : i64, scheme = "f32"}
spark.weight @w : tensor<8x8xf32> from <"m", F32, offset = 0, bytes = 256>
spark.kv_cache @kv heads 1 head_dim 4 ring 0 : f16
spark.weight @kv_proj : tensor<16x8xf32> from <"m", F32, offset = 0, bytes = 512>
func.func @step(%token: tensor<1xi32>, %pos: index, %other: index) -> tensor<1x8xf32> {
  %x = spark.embed @w[%token] : tensor<1xi32> -> tensor<1x8xf32>
  %y = spark.fused_linear (%x) prologue {
  ^bb0(%a: tensor<1x8xf32>):
    spark.yield %a : tensor<1x8xf32>
  } segments [@kv_proj] epilogue {
  ^bb0(%r: tensor<1x16xf32>):
    %q, %k, %v = spark.split %r : tensor<1x16xf32> -> tensor<1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>
    // expected-error@+1 {{cannot be scheduled at a position other than the step's}}
    spark.kv_write %k, %v, @kv at %other : tensor<1x4xf32>
    spark.yield %q : tensor<1x8xf32>
  } : (tensor<1x8xf32>) -> tensor<1x8xf32>
  return %y : tensor<1x8xf32>
}

// -----

spark.config {vocab = 8 : i64, hidden = 8 : i64, intermediate = 8 : i64,
  layers = 1 : i64, heads = 2 : i64, kv_heads = 1 : i64, head_dim = 4 : i64,
  window = 0 : i64, max_context = 64 : i64, context = 64 : i64,
  prefill_block = 1 : i64, scheme = "f32"}
spark.weight @w : tensor<8x8xf32> from <"m", F32, offset = 0, bytes = 256>
func.func @step(%token: tensor<1xi32>, %pos: index) -> tensor<1x8xf32> {
  %x = spark.embed @w[%token] : tensor<1xi32> -> tensor<1x8xf32>
  %y = spark.fused_linear (%x) prologue {
  ^bb0(%a: tensor<1x8xf32>):
    // expected-error@+1 {{cannot be scheduled in a prologue}}
    %s = spark.add %a, %a : tensor<1x8xf32>
    spark.yield %s : tensor<1x8xf32>
  } segments [@w] epilogue {
  ^bb0(%y0: tensor<1x8xf32>):
    spark.yield %y0 : tensor<1x8xf32>
  } : (tensor<1x8xf32>) -> tensor<1x8xf32>
  return %y : tensor<1x8xf32>
}

// -----

// Rows that are turned cannot be turned again: a run of tiles has one pairing.
spark.config {vocab = 8 : i64, hidden = 8 : i64, intermediate = 8 : i64,
  layers = 1 : i64, heads = 2 : i64, kv_heads = 1 : i64, head_dim = 4 : i64,
  window = 0 : i64, max_context = 64 : i64, context = 64 : i64,
  prefill_block = 1 : i64, scheme = "f32"}
spark.weight @w : tensor<8x8xf32> from <"m", F32, offset = 0, bytes = 256>
func.func @step(%token: tensor<1xi32>, %pos: index) -> tensor<1x8xf32> {
  %x = spark.embed @w[%token] : tensor<1xi32> -> tensor<1x8xf32>
  // expected-error@+1 {{cannot be scheduled: its epilogue applies something other than split before an operation on rows}}
  %y = spark.fused_linear (%x) prologue {
  ^bb0(%a: tensor<1x8xf32>):
    spark.yield %a : tensor<1x8xf32>
  } segments [@w] epilogue {
  ^bb0(%y0: tensor<1x8xf32>):
    %r = spark.rope %y0 at %pos heads 2 rope <theta = 1.0e+04, width = 4> : tensor<1x8xf32>
    %s = spark.rope %r at %pos heads 2 rope <theta = 1.0e+04, width = 4> : tensor<1x8xf32>
    spark.yield %s : tensor<1x8xf32>
  } : (tensor<1x8xf32>) -> tensor<1x8xf32>
  return %y : tensor<1x8xf32>
}

// -----

// What meets in an epilogue lies in pairs of tiles of one pack.
spark.config {vocab = 8 : i64, hidden = 8 : i64, intermediate = 8 : i64,
  layers = 1 : i64, heads = 2 : i64, kv_heads = 1 : i64, head_dim = 4 : i64,
  window = 0 : i64, max_context = 64 : i64, context = 64 : i64,
  prefill_block = 1 : i64, scheme = "f32"}
spark.weight @w : tensor<8x8xf32> from <"m", F32, offset = 0, bytes = 256>
spark.weight @up : tensor<8x8xbf16> from <"m", BF16, offset = 0, bytes = 128>
func.func @step(%token: tensor<1xi32>, %pos: index) -> tensor<1x8xf32> {
  %x = spark.embed @w[%token] : tensor<1xi32> -> tensor<1x8xf32>
  // expected-error@+1 {{pairs rows of @w and @up, whose grids differ}}
  %y = spark.fused_linear (%x) prologue {
  ^bb0(%a: tensor<1x8xf32>):
    spark.yield %a : tensor<1x8xf32>
  } segments [@w, @up] epilogue {
  ^bb0(%y0: tensor<1x8xf32>, %y1: tensor<1x8xf32>):
    %g = spark.geglu %y0, %y1 : tensor<1x8xf32>
    spark.yield %g : tensor<1x8xf32>
  } : (tensor<1x8xf32>) -> tensor<1x8xf32>
  return %y : tensor<1x8xf32>
}

// -----

// A tied embedding is looked up in the head's pack, which must be its own.
spark.config {vocab = 8 : i64, hidden = 8 : i64, intermediate = 8 : i64,
  layers = 1 : i64, heads = 2 : i64, kv_heads = 1 : i64, head_dim = 4 : i64,
  window = 0 : i64, max_context = 64 : i64, context = 64 : i64,
  prefill_block = 1 : i64, scheme = "f32"}
spark.weight @w : tensor<8x8xf32> from <"m", F32, offset = 0, bytes = 256>
spark.weight @other : tensor<8x8xf32> from <"m", F32, offset = 0, bytes = 256>
func.func @step(%token: tensor<1xi32>, %pos: index) -> tensor<1x8xf32> {
  // expected-error@+1 {{reads @w, which the head does not pack alone}}
  %x = spark.embed @w[%token] : tensor<1xi32> -> tensor<1x8xf32>
  %y = spark.fused_linear (%x) prologue {
  ^bb0(%a: tensor<1x8xf32>):
    spark.yield %a : tensor<1x8xf32>
  } segments [@w, @other] epilogue {
  ^bb0(%y0: tensor<1x8xf32>, %y1: tensor<1x8xf32>):
    %g = spark.geglu %y0, %y1 : tensor<1x8xf32>
    spark.yield %g : tensor<1x8xf32>
  } : (tensor<1x8xf32>) -> tensor<1x8xf32>
  return %y : tensor<1x8xf32>
}
