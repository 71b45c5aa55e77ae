// A model of two layers, one sliding and one full, as an importer writes it.
module {
  spark.config {vocab = 24 : i64, hidden = 8 : i64, intermediate = 16 : i64,
    layers = 2 : i64, heads = 2 : i64, kv_heads = 1 : i64, head_dim = 4 : i64,
    window = 3 : i64, max_context = 64 : i64, context = 64 : i64,
    prefill_block = 1 : i64, scheme = "bf16"}
  spark.weight @embedding : tensor<24x8xbf16>
    from <"m", BF16, offset = 0, bytes = 384>
  spark.weight @layers.0.input_layernorm : tensor<8xbf16>
    from <"m", BF16, offset = 384, bytes = 16>
  spark.weight @layers.0.q_k_v_proj : tensor<16x8xbf16>
    from <"m", BF16, offset = 400, bytes = 256>
  spark.weight @layers.0.g_proj : tensor<2x8xbf16>
    from <"m", BF16, offset = 656, bytes = 32>
  spark.weight @layers.0.out_proj : tensor<8x8xbf16>
    from <"m", BF16, offset = 688, bytes = 128>
  spark.weight @layers.0.post_attention_layernorm : tensor<8xbf16>
    from <"m", BF16, offset = 816, bytes = 16>
  spark.weight @layers.0.gate_proj : tensor<16x8xbf16>
    from <"m", BF16, offset = 832, bytes = 256>
  spark.weight @layers.0.up_proj : tensor<16x8xbf16>
    from <"m", BF16, offset = 1088, bytes = 256>
  spark.weight @layers.0.down_proj : tensor<8x16xbf16>
    from <"m", BF16, offset = 1344, bytes = 256>
  spark.weight @layers.1.input_layernorm : tensor<8xbf16>
    from <"m", BF16, offset = 1600, bytes = 16>
  spark.weight @layers.1.q_k_v_proj : tensor<16x8xbf16>
    from <"m", BF16, offset = 1616, bytes = 256>
  spark.weight @layers.1.g_proj : tensor<2x8xbf16>
    from <"m", BF16, offset = 1872, bytes = 32>
  spark.weight @layers.1.out_proj : tensor<8x8xbf16>
    from <"m", BF16, offset = 1904, bytes = 128>
  spark.weight @layers.1.post_attention_layernorm : tensor<8xbf16>
    from <"m", BF16, offset = 2032, bytes = 16>
  spark.weight @layers.1.gate_proj : tensor<16x8xbf16>
    from <"m", BF16, offset = 2048, bytes = 256>
  spark.weight @layers.1.up_proj : tensor<16x8xbf16>
    from <"m", BF16, offset = 2304, bytes = 256>
  spark.weight @layers.1.down_proj : tensor<8x16xbf16>
    from <"m", BF16, offset = 2560, bytes = 256>
  spark.weight @norm : tensor<8xbf16>
    from <"m", BF16, offset = 2816, bytes = 16>
  spark.kv_cache @kv.0 heads 1 head_dim 4 ring 64 : f16
  spark.kv_cache @kv.1 heads 1 head_dim 4 ring 0 : f16

  func.func @step(%token: tensor<1xi32>, %pos: index) -> tensor<1x24xf32> {
    %x0 = spark.embed @embedding[%token] : tensor<1xi32> -> tensor<1x8xf32>
    %x1 = spark.layer 0 (%x0) {
    ^bb0(%h: tensor<1x8xf32>):
      %n = spark.rms_norm %h, @layers.0.input_layernorm eps 1.0e-06
        : tensor<1x8xf32>
      %qkv = spark.linear %n, @layers.0.q_k_v_proj
        : tensor<1x8xf32> -> tensor<1x16xf32>
      %g = spark.linear %n, @layers.0.g_proj
        : tensor<1x8xf32> -> tensor<1x2xf32>
      %q, %k, %v = spark.split %qkv
        : tensor<1x16xf32> -> tensor<1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>
      %qr = spark.rope %q at %pos heads 2 rope <theta = 1.0e+04, width = 4>
        : tensor<1x8xf32>
      %kr = spark.rope %k at %pos heads 1 rope <theta = 1.0e+04, width = 4>
        : tensor<1x4xf32>
      spark.kv_write %kr, %v, @kv.0 at %pos : tensor<1x4xf32>
      %o = spark.attention %qr, @kv.0 at %pos heads 2 window 3 scale 0.5
        chunk 64 : tensor<1x8xf32>
      %og = spark.head_gate %o, %g : tensor<1x8xf32>, tensor<1x2xf32>
      %a = spark.linear %og, @layers.0.out_proj
        : tensor<1x8xf32> -> tensor<1x8xf32>
      %r = spark.add %h, %a : tensor<1x8xf32>
      %n2 = spark.rms_norm %r, @layers.0.post_attention_layernorm eps 1.0e-06
        : tensor<1x8xf32>
      %gate = spark.linear %n2, @layers.0.gate_proj
        : tensor<1x8xf32> -> tensor<1x16xf32>
      %up = spark.linear %n2, @layers.0.up_proj
        : tensor<1x8xf32> -> tensor<1x16xf32>
      %f = spark.geglu %gate, %up : tensor<1x16xf32>
      %d = spark.linear %f, @layers.0.down_proj
        : tensor<1x16xf32> -> tensor<1x8xf32>
      %s = spark.add %r, %d : tensor<1x8xf32>
      spark.yield %s : tensor<1x8xf32>
    } : tensor<1x8xf32>
    %x2 = spark.layer 1 (%x1) {
    ^bb0(%h: tensor<1x8xf32>):
      %n = spark.rms_norm %h, @layers.1.input_layernorm eps 1.0e-06
        : tensor<1x8xf32>
      %qkv = spark.linear %n, @layers.1.q_k_v_proj
        : tensor<1x8xf32> -> tensor<1x16xf32>
      %g = spark.linear %n, @layers.1.g_proj
        : tensor<1x8xf32> -> tensor<1x2xf32>
      %q, %k, %v = spark.split %qkv
        : tensor<1x16xf32> -> tensor<1x8xf32>, tensor<1x4xf32>, tensor<1x4xf32>
      %qr = spark.rope %q at %pos heads 2 rope <theta = 5.0e+06, width = 2>
        : tensor<1x8xf32>
      %kr = spark.rope %k at %pos heads 1 rope <theta = 5.0e+06, width = 2>
        : tensor<1x4xf32>
      spark.kv_write %kr, %v, @kv.1 at %pos : tensor<1x4xf32>
      %o = spark.attention %qr, @kv.1 at %pos heads 2 window 0 scale 0.5
        chunk 64 : tensor<1x8xf32>
      %og = spark.head_gate %o, %g : tensor<1x8xf32>, tensor<1x2xf32>
      %a = spark.linear %og, @layers.1.out_proj
        : tensor<1x8xf32> -> tensor<1x8xf32>
      %r = spark.add %h, %a : tensor<1x8xf32>
      %n2 = spark.rms_norm %r, @layers.1.post_attention_layernorm eps 1.0e-06
        : tensor<1x8xf32>
      %gate = spark.linear %n2, @layers.1.gate_proj
        : tensor<1x8xf32> -> tensor<1x16xf32>
      %up = spark.linear %n2, @layers.1.up_proj
        : tensor<1x8xf32> -> tensor<1x16xf32>
      %f = spark.geglu %gate, %up : tensor<1x16xf32>
      %d = spark.linear %f, @layers.1.down_proj
        : tensor<1x16xf32> -> tensor<1x8xf32>
      %s = spark.add %r, %d : tensor<1x8xf32>
      spark.yield %s : tensor<1x8xf32>
    } : tensor<1x8xf32>
    %n = spark.rms_norm %x2, @norm eps 1.0e-06 : tensor<1x8xf32>
    %logits = spark.linear %n, @embedding : tensor<1x8xf32> -> tensor<1x24xf32>
    return %logits : tensor<1x24xf32>
  }
}
