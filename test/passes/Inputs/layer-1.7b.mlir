// One sliding layer of the 1.7B shapes, as an importer writes it.
module {
  spark.config {vocab = 131072 : i64, hidden = 2048 : i64, intermediate = 6656 : i64,
    layers = 1 : i64, heads = 8 : i64, kv_heads = 2 : i64, head_dim = 256 : i64,
    window = 512 : i64, max_context = 4096 : i64, context = 4096 : i64,
    prefill_block = 1 : i64, scheme = "bf16"}
  spark.weight @embedding : tensor<131072x2048xbf16>
    from <"m", BF16, offset = 0, bytes = 536870912>
  spark.weight @layers.0.input_layernorm : tensor<2048xbf16>
    from <"m", BF16, offset = 536870912, bytes = 4096>
  spark.weight @layers.0.q_k_v_proj : tensor<3072x2048xbf16>
    from <"m", BF16, offset = 536875008, bytes = 12582912>
  spark.weight @layers.0.g_proj : tensor<8x2048xbf16>
    from <"m", BF16, offset = 549457920, bytes = 32768>
  spark.weight @layers.0.out_proj : tensor<2048x2048xbf16>
    from <"m", BF16, offset = 549490688, bytes = 8388608>
  spark.weight @layers.0.post_attention_layernorm : tensor<2048xbf16>
    from <"m", BF16, offset = 557879296, bytes = 4096>
  spark.weight @layers.0.gate_proj : tensor<6656x2048xbf16>
    from <"m", BF16, offset = 557883392, bytes = 27262976>
  spark.weight @layers.0.up_proj : tensor<6656x2048xbf16>
    from <"m", BF16, offset = 585146368, bytes = 27262976>
  spark.weight @layers.0.down_proj : tensor<2048x6656xbf16>
    from <"m", BF16, offset = 612409344, bytes = 27262976>
  spark.weight @norm : tensor<2048xbf16>
    from <"m", BF16, offset = 639672320, bytes = 4096>
  spark.kv_cache @kv.0 heads 2 head_dim 256 ring 512 : f16
  func.func @step(%token: tensor<1xi32>, %pos: index) -> tensor<1x131072xf32> {
    %x0 = spark.embed @embedding[%token] : tensor<1xi32> -> tensor<1x2048xf32>
    %x1 = spark.layer 0 (%x0) {
    ^bb0(%h: tensor<1x2048xf32>):
      %n = spark.rms_norm %h, @layers.0.input_layernorm eps 1.0e-06
        : tensor<1x2048xf32>
      %qkv = spark.linear %n, @layers.0.q_k_v_proj
        : tensor<1x2048xf32> -> tensor<1x3072xf32>
      %g = spark.linear %n, @layers.0.g_proj
        : tensor<1x2048xf32> -> tensor<1x8xf32>
      %q, %k, %v = spark.split %qkv
        : tensor<1x3072xf32> -> tensor<1x2048xf32>, tensor<1x512xf32>, tensor<1x512xf32>
      %qr = spark.rope %q at %pos heads 8 rope <theta = 1.0e+04, width = 256>
        : tensor<1x2048xf32>
      %kr = spark.rope %k at %pos heads 2 rope <theta = 1.0e+04, width = 256>
        : tensor<1x512xf32>
      spark.kv_write %kr, %v, @kv.0 at %pos : tensor<1x512xf32>
      %o = spark.attention %qr, @kv.0 at %pos heads 8 window 512 scale 0.0625
        chunk 64 : tensor<1x2048xf32>
      %og = spark.head_gate %o, %g : tensor<1x2048xf32>, tensor<1x8xf32>
      %a = spark.linear %og, @layers.0.out_proj
        : tensor<1x2048xf32> -> tensor<1x2048xf32>
      %r = spark.add %h, %a : tensor<1x2048xf32>
      %n2 = spark.rms_norm %r, @layers.0.post_attention_layernorm eps 1.0e-06
        : tensor<1x2048xf32>
      %gate = spark.linear %n2, @layers.0.gate_proj
        : tensor<1x2048xf32> -> tensor<1x6656xf32>
      %up = spark.linear %n2, @layers.0.up_proj
        : tensor<1x2048xf32> -> tensor<1x6656xf32>
      %f = spark.geglu %gate, %up : tensor<1x6656xf32>
      %d = spark.linear %f, @layers.0.down_proj
        : tensor<1x6656xf32> -> tensor<1x2048xf32>
      %s = spark.add %r, %d : tensor<1x2048xf32>
      spark.yield %s : tensor<1x2048xf32>
    } : tensor<1x2048xf32>
    %n = spark.rms_norm %x1, @norm eps 1.0e-06 : tensor<1x2048xf32>
    %logits = spark.linear %n, @embedding : tensor<1x2048xf32> -> tensor<1x131072xf32>
    return %logits : tensor<1x131072xf32>
  }
}
