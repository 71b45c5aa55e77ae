"""Odd shapes: random models made here, against the float64 reference.

usage: random_models.py [NAME ...]    (of MODELS below; default all)

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import json
import pathlib
import sys
import tempfile

import numpy as np

import reference
from harness import (Failures, compile_model, run_logits, to_dtype, write_safetensors)

S, F = "sliding_attention", "full_attention"

# rotary: factor of sliding and of full layers; T: tokens run.
MODELS = {
    # One layer, window 1: a token sees only itself. GQA group of 3.
    "window-1": dict(hidden=40, inter=50, heads=3, kv=1, head_dim=24, vocab=17,
                     layers=[S], window=1, rotary=(1.0, 1.0), context=64, T=20),
    # A window that never fills; rotary widths 4 and 2.
    "window-beyond-context": dict(hidden=72, inter=50, heads=5, kv=5, head_dim=40, vocab=33,
                                  layers=[S, F], window=5000, rotary=(0.1, 0.05), context=64, T=64),
    # One full layer; widths that are multiples of nothing.
    "odd-widths": dict(hidden=17, inter=33, heads=7, kv=1, head_dim=16, vocab=31,
                       layers=[F], window=8, rotary=(1.0, 0.5), context=100, T=40),
    # Rotary half-widths of 3 and 1, untied F16 head, embed_tokens.
    "rotary-6": dict(hidden=100, inter=70, heads=6, kv=3, head_dim=8, vocab=50,
                     layers=[S, S, F], window=3, rotary=(0.75, 0.25), context=128, T=50,
                     dtype="F16", tied=False, embedding="embed_tokens"),
    # One head, head_dim no multiple of 4, F32.
    "one-head": dict(hidden=6, inter=10, heads=1, kv=1, head_dim=6, vocab=5,
                     layers=[S, F, S], window=2, rotary=(1.0, 1.0), context=32, T=32, dtype="F32"),
    # As the 4B: heads * head_dim is not hidden; the ring turns over many times.
    "4b-like": dict(hidden=80, inter=320, heads=16, kv=4, head_dim=8, vocab=260,
                    layers=[S, S, S, F], window=8, rotary=(1.0, 0.25), context=512, T=300),
    # Few hidden columns under wide heads; the last gate rows share no whole tile.
    "wide-heads": dict(hidden=16, inter=16, heads=2, kv=1, head_dim=112, vocab=19,
                       layers=[F, S], window=16, rotary=(0.5, 0.125), context=96, T=70),
    # A tied checkpoint that carries an lm_head: it is not looked at.
    "tied-with-head": dict(hidden=32, inter=48, heads=4, kv=2, head_dim=8, vocab=40,
                           layers=[S, F], window=4, rotary=(1.0, 0.5), context=64, T=30, spare_head=True),
}


def make(folder, hidden, inter, heads, kv, head_dim, vocab, layers, window, rotary,
         context, T, dtype="BF16", tied=True, embedding="embedding", spare_head=False):
    """Writes a checkpoint; -> (config, tensors, tokens)."""
    rng = np.random.default_rng([ord(c) for c in folder.name])
    config = {
        "architectures": ["Spark2_5ForCausalLM"], "model_type": "spark2_5",
        "vocab_size": vocab, "hidden_size": hidden, "intermediate_size": inter,
        "num_hidden_layers": len(layers), "num_attention_heads": heads,
        "num_key_value_heads": kv, "head_dim": head_dim, "hidden_act": "gelu",
        "max_position_embeddings": context, "sliding_window": window,
        "rope_parameters": {
            S: {"rope_theta": 10000.0, "partial_rotary_factor": rotary[0]},
            F: {"rope_theta": 5000000.0, "partial_rotary_factor": rotary[1]}},
        "headwise_attn_output_gate": True, "gate_attn_act_mode": "sigmoid",
        "layer_types": layers, "tie_word_embeddings": tied, "attention_bias": False,
        "mlp_bias": False, "rms_norm_eps": 1e-6, "torch_dtype": "bfloat16",
        "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
    tensors = {}

    def matrix(name, rows, columns, gain=1.0):
        values = rng.standard_normal((rows, columns)) * gain / np.sqrt(columns)
        tensors[name + ".weight"] = (dtype, to_dtype(values, dtype))

    def norm(name):
        values = 1 + 0.2 * rng.standard_normal(hidden)
        tensors[name + ".weight"] = (dtype, to_dtype(values, dtype))

    # Rows of length near 1, so that logits are of the order of 1 to 10.
    matrix(f"model.{embedding}", vocab, hidden, gain=2.0)
    for i in range(len(layers)):
        prefix = f"model.layers.{i}."
        norm(prefix + "input_layernorm")
        # A large gain, so that attention is far from uniform.
        matrix(prefix + "self_attn.q_k_v_proj", (heads + 2 * kv) * head_dim, hidden, gain=1.5)
        matrix(prefix + "self_attn.g_proj", heads, hidden, gain=2.0)
        matrix(prefix + "self_attn.out_proj", hidden, heads * head_dim)
        norm(prefix + "post_attention_layernorm")
        matrix(prefix + "mlp.gate_proj", inter, hidden)
        matrix(prefix + "mlp.up_proj", inter, hidden)
        matrix(prefix + "mlp.down_proj", hidden, inter)
    norm("model.norm")
    if not tied or spare_head:
        matrix("lm_head", vocab, hidden, gain=2.0)
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config, indent=1))
    write_safetensors(folder / "model.safetensors", tensors)
    return config, tensors, rng.integers(0, vocab, T)


def main():
    failures = Failures()
    for name in sys.argv[1:] or MODELS:
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            config, tensors, tokens = make(folder / name, **MODELS[name])
            want = reference.forward(config, tensors, tokens)
            vocab = config["vocab_size"]
            cache = reference.Int8Cache()
            want_q8 = reference.forward(config, tensors, tokens, cache=cache)
            builds = [("f32", "f32", 3e-4), ("f32", "f16", 5e-2), ("f32", "q8", 1e-5)]
            if all(dtype == "BF16" for dtype, _ in tensors.values()):
                builds.insert(1, ("bf16", "f32", 3e-4))
            for weights, kv, bound in builds:
                what = f"{name}, weights {weights}, kv {kv}"
                so = compile_model(folder / name, folder / f"{weights}-{kv}.so",
                                   "--weights", weights, "--kv", kv)
                got = run_logits(so, tokens, vocab, "-t", 1)
                if kv == "q8":
                    failures.close_until_tie(got, want_q8, cache.nearest(), bound, what)
                else:
                    failures.close(got, want, bound, what)
                failures.same_bits(run_logits(so, tokens, vocab, "-t", 3), got,
                                   f"{what}: three threads give the bits of one")
                failures.same_bits(run_logits(so, tokens, vocab, "-t", 2, "--decode"), got,
                                   f"{what}: decode gives the bits of prefill")
                failures.same_bits(
                    run_logits(so, tokens, vocab, "-t", 2, "--prefill-chunk", 5), got,
                    f"{what}: prefill in chunks of 5 gives the bits of one")
    return failures.finish()


if __name__ == "__main__":
    sys.exit(main())
