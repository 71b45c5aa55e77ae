"""GGUF in and out: sparkc FILE.gguf, --weights q4k and the like, --export-gguf.

usage: gguf_models.py [PART ...]    (exact, bits, mixed, isas, text, quantize,
                                     export, errors, real; default all)

exact     the compiled weights have the values that gguf.py, written from the
          format's description, finds in the file, bit for bit: every type,
          scales of every size
bits      logits of random models are the reference's on those values; the same
          bits for any threads, in decode and in prefill by chunks
mixed     types that differ within a fused linear, and within a pair of tiles
isas      all instruction sets give the same bits
text      the tokenizer of the file's keys gives the ids of tokenizer.json
quantize  --weights q4k|q5k|q6k|q4_1|q5_1 from a checkpoint
export    --export-gguf writes the codes that were read or made
errors    what is wrong with a file is said in one line
real      perplexity of a file that llama.cpp wrote is llama.cpp's

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import json
import sys

import numpy as np

import gguf
import quantized
import random_models
import tokenizer
from dequantize import stored_name
from harness import (HERE, SPARK_TINY, WEIGHTS_ALONE, compile_model, expect_error, has_flag,
                     read_model, run_logits, run_parts, tool)
from packed import read_weights

S, F = random_models.S, random_models.F
REAL = HERE / "gguf" / "spark-tiny-Q4_K_M.gguf"
# What llama.cpp says of REAL on valid_dev.txt (docs/quality.md).
REAL_PERPLEXITY = 32.962

# 5 gate rows: padding; down_proj of two and a half batches of 256.
SHAPE = dict(hidden=256, inter=768, heads=5, kv=1, head_dim=256, vocab=70, layers=[S, F],
             window=9, rotary=(1.0, 0.25), context=64)
# Blocks of 32 need no multiple of 256.
NARROW = dict(SHAPE, hidden=96, inter=160, heads=4, kv=2, head_dim=32)
LEGACY = ("Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q8_0")
TOKENS = np.random.default_rng(5).integers(0, 70, 23)


def same_values(failures, what, got, want):
    """Float32 arrays, by bits but for the sign of zero."""
    failures.check(set(got) >= set(want), f"{what}: all weights are there")
    for name in want:
        a, b = got[name], np.atleast_2d(want[name])
        equal = a.shape == b.shape and bool((a == b).all())
        if not equal:
            failures.check(False, f"{what}: {name} differs")
    failures.check(True, f"{what}: {len(want)} weights compared")


def values_of(tensors, shape):
    """Logical name -> float32 of a file."""
    found = {}
    for name in gguf.shapes(**shape):
        kind, dims, raw = tensors[gguf.tensor_name(name)]
        found[name] = gguf.values(kind, raw, dims)
    return found


def exact(failures, folder):
    for kind in gguf.QUANTIZED + ["F32", "F16", "BF16"]:
        for extreme in (False, True):
            if extreme and kind not in gguf.QUANTIZED:
                continue
            shape = NARROW if kind in LEGACY else SHAPE
            tensors = gguf.make(folder / "m.gguf", shape, lambda name: kind, extreme=extreme,
                                version=2 if extreme else 3, align=64 if extreme else 32)
            what = f"{kind}{' extreme' if extreme else ''}"
            so = compile_model(folder / "m.gguf", folder / "m.so", *WEIGHTS_ALONE)
            same_values(failures, what, read_weights(so.with_suffix(".weights")),
                        values_of(tensors, shape))
    out = folder / "export"
    tensors = gguf.make(folder / "m.gguf", SHAPE, lambda name: "Q5_K")
    tool("sparkc", folder / "m.gguf", "--dequantize", out, "--quiet")
    config, stored = read_model(out)
    want = {stored_name(n): v for n, v in values_of(tensors, SHAPE).items()}
    got = {n: np.atleast_2d(a) for n, (_, a) in stored.items()}
    same_values(failures, "--dequantize", got, want)
    failures.check(config["rms_norm_eps"] == 1e-6 and config["head_dim"] == SHAPE["head_dim"]
                   and config["layer_types"] == SHAPE["layers"], "--dequantize: the config")


def check_build(failures, what, folder, path, *options, chunk=5):
    """Logits are the reference's on the compiled values; the same bits however
    the model is run."""
    so = compile_model(path, folder / "m.so", "--quiet", "--kv", "f32", *options)
    out = folder / "values"
    if out.exists():
        for file in out.iterdir():
            file.unlink()
        out.rmdir()
    tool("sparkc", path, "--dequantize", out, "--quiet", *options)
    vocab = json.loads((out / "config.json").read_text())["vocab_size"]
    tokens = TOKENS % vocab
    got = run_logits(so, tokens, vocab, "-t", 1)
    want, nearest = quantized.expected(out, so.with_suffix(".weights"), tokens)
    failures.close_until_tie(got, want, nearest, 2e-5, what)
    for options in (("-t", 3), ("-t", 2, "--decode"), ("-t", 2, "--prefill-chunk", chunk)):
        failures.same_bits(run_logits(so, tokens, vocab, *options), got,
                           f"{what}: {' '.join(map(str, options))}")
    return so


def bits(failures, folder):
    for kind in gguf.QUANTIZED:
        shape = NARROW if kind in LEGACY else SHAPE
        gguf.make(folder / "m.gguf", shape, lambda name: kind, seed=7)
        check_build(failures, kind, folder, folder / "m.gguf")


def mixed(failures, folder):
    """As Q4_K_M mixes, and more."""
    rules = {
        "q6_k beside q4_k": {"q_k_v_proj": "Q6_K", "down_proj": "Q6_K", "embedding": "Q6_K"},
        "legacy beside k": {"g_proj": "Q4_0", "q_k_v_proj": "Q4_K", "embedding": "Q8_0",
                            "down_proj": "Q5_1"},
        "floats beside k": {"g_proj": "F32", "q_k_v_proj": "Q5_K", "embedding": "BF16"},
        "gate beside another up": {"gate_proj": "Q4_K", "up_proj": "Q6_K"},
    }
    for what, parts in rules.items():
        tensors = gguf.make(folder / "m.gguf", SHAPE,
                            lambda name: parts.get(name.split(".")[-1], "Q4_K"), seed=8)
        so = check_build(failures, what, folder, folder / "m.gguf")
        same_values(failures, what, read_weights(so.with_suffix(".weights")),
                    values_of(tensors, SHAPE))
    # An untied head, whose embedding is codes of its own.
    shape = dict(SHAPE, tied=False)
    gguf.make(folder / "m.gguf", shape, lambda name: "Q6_K" if name == "lm_head" else "Q4_K")
    check_build(failures, "untied", folder, folder / "m.gguf")
    # Other grids than the file's; the rows of the embedding stay.
    gguf.make(folder / "m.gguf", SHAPE, lambda name: "Q6_K", seed=9)
    check_build(failures, "q6_k as q4", folder, folder / "m.gguf", "--weights", "q4",
                "--weights-for", "lm_head=q8")
    check_build(failures, "q6_k as f32", folder, folder / "m.gguf", "--weights", "f32")


def isas(failures, folder):
    kinds = dict(zip(("q_k_v_proj", "g_proj", "out_proj", "gate_proj", "up_proj", "down_proj"),
                     ("Q6_K", "Q4_K", "Q5_K", "Q4_1", "Q4_1", "Q5_1")))
    gguf.make(folder / "m.gguf", SHAPE, lambda name: kinds.get(name.split(".")[-1], "Q6_K"))
    want = None
    for cpu, flag in (("x86-64-v3", None), ("x86-64-v4", "avx512vl"), ("alderlake", "avx_vnni"),
                      ("cascadelake", "avx512_vnni"), ("native", None)):
        if flag and not has_flag(flag, cpu):
            continue
        so = compile_model(folder / "m.gguf", folder / "m.so", "--quiet", "--mcpu", cpu)
        for options in (("-t", 2), ("-t", 1, "--decode")):
            got = run_logits(so, TOKENS, SHAPE["vocab"], *options)
            want = got if want is None else want
            failures.same_bits(got, want, f"{cpu} {' '.join(map(str, options))}: the same bits")


#--- Text ---------------------------------------------------------------------
def text(failures, folder):
    from_gguf = tokenizer.Text(compile_model(REAL, folder / "g.so", *WEIGHTS_ALONE))
    from_json = tokenizer.Text(compile_model(SPARK_TINY, folder / "j.so", *WEIGHTS_ALONE))
    rows = [line for kind in tokenizer.lines().values() for line in kind]
    different = [l for l in rows for flags in (0, 1, 2, 3)
                 if from_gguf.ids(l, flags) != from_json.ids(l, flags)]
    failures.check(not different, f"ids of {len(rows)} lines{': not ' + repr(different[:2]) if different else ''}")
    a, b = from_gguf.info(), from_json.info()
    failures.check(a == b and a["chat_template"] and a["eos"] == [1], f"what is known of the text: {a}")
    # The keys alone decide whether a text gets a BOS.
    keys, tensors = gguf.read(REAL)
    keys["tokenizer.ggml.add_bos_token"] = True
    gguf.write(folder / "bos.gguf", retyped(keys), tensors)
    bos = tokenizer.Text(compile_model(folder / "bos.gguf", folder / "b.so", *WEIGHTS_ALONE))
    failures.check(bos.ids(b"a", 1) == [0] + from_json.ids(b"a", 0), "add_bos_token")


def retyped(keys):
    """Keys of gguf.read with the types that gguf.write would not guess."""
    return {k: [(5, t) for t in v] if k == "tokenizer.ggml.token_type" else v
            for k, v in keys.items()}


#--- Out ----------------------------------------------------------------------
def quantize(failures, folder):
    """Fitted to GGUF's grids: as near as the bits allow, and computed as such."""
    shape = dict(hidden=256, inter=512, heads=4, kv=2, head_dim=32, vocab=50, layers=[S, F],
                 window=9, rotary=(1.0, 0.5), context=64, T=10, dtype="F32")
    model = folder / "quantize"
    _, tensors, _ = random_models.make(model, **shape)
    # Relative error, root mean square, of normal weights.
    for scheme, bound in (("q4k", 0.085), ("q5k", 0.045), ("q6k", 0.025), ("q4_1", 0.085),
                          ("q5_1", 0.045)):
        so = check_build(failures, scheme, folder, model, "--weights", scheme)
        packed = read_weights(so.with_suffix(".weights"))
        for name in ("layers.0.gate_proj", "layers.1.down_proj", "lm_head"):
            stored = stored_name(name) if name != "lm_head" else "model.embedding.weight"
            want = tensors[stored][1].astype(np.float64)
            error = np.sqrt(((packed[name] - want)**2).mean() / (want**2).mean())
            failures.check(error < bound, f"{scheme}: {name} has an error of {error:.4f}")
    # Rows that are no multiple of a block, which a GGUF file could not have.
    odd = folder / "odd"
    random_models.make(odd, **dict(shape, hidden=80, inter=300))
    check_build(failures, "q4k of odd rows", folder, odd, "--weights", "q4k",
                "--weights-for", "*.down_proj=q6k")


def export(failures, folder):
    # What was read goes out again as it was.
    keys, tensors = gguf.read(REAL)
    tool("sparkc", REAL, "--export-gguf", folder / "again.gguf", "--quiet")
    new_keys, again = gguf.read(folder / "again.gguf")
    failures.check(new_keys == keys, "every key of a GGUF file")
    failures.check(again.keys() == tensors.keys()
                   and all(again[n][:2] == tensors[n][:2]
                           and bytes(again[n][2]) == bytes(tensors[n][2]) for n in tensors),
                   "every byte of its tensors")
    # What was fitted is the same model when it is read back.
    for scheme, rule in (("q4k", "lm_head=q6k"), ("q8_0", "*.g_proj=bf16"), ("q4_1", "lm_head=f32")):
        path = folder / "out.gguf"
        first = compile_model(SPARK_TINY, folder / "a.so", "--quiet", "--weights", scheme,
                              "--weights-for", rule, "--export-gguf", path)
        second = compile_model(path, folder / "b.so", "--quiet")
        a, b = (run_logits(so, TOKENS, 4096) for so in (first, second))
        failures.same_bits(a, b, f"{scheme}, {rule}: the export computes the same")
        keys, _ = gguf.read(path)
        config = json.loads((SPARK_TINY / "config.json").read_text())
        failures.check(keys["spark2_5.embedding_length"] == config["hidden_size"]
                       and len(keys["tokenizer.ggml.tokens"]) == config["vocab_size"]
                       and keys["tokenizer.ggml.token_type"][:10] == [3] * 9 + [1]
                       and keys["tokenizer.ggml.pre"] == "spark2_5", f"{scheme}: its keys")
    expect_error(failures, "a grid that GGUF lacks", "sparkc", SPARK_TINY, "--export-gguf",
                 folder / "no.gguf", "--weights", "q4", names=["q4:g64", "q4_0"])
    expect_error(failures, "rows of no whole blocks", "sparkc", HERE / "golden" / "base",
                 "--export-gguf", folder / "no.gguf", "--weights", "q4k", names=["Q4_K", "128"])
    failures.check(not list(folder.glob("no.gguf*")), "nothing is left of an export that failed")


def errors(failures, folder):
    path = folder / "bad.gguf"
    small = dict(NARROW, layers=[S])

    def refused(what, names, keys=None, change=None, drop=(), file=True):
        tensors = gguf.make(path, small, lambda name: "Q8_0")
        all_keys = {**gguf.keys_of(**small), **(keys or {})}
        for key in drop:
            del all_keys[key]
        if change:
            change(tensors)
        gguf.write(path, all_keys, tensors)
        expect_error(failures, what, "sparkc", path, "-o", folder / "bad.so",
                     names=[path, *names] if file else names)

    p = "spark2_5."
    refused("another architecture", ["'llama'"], {"general.architecture": "llama"})
    refused("no head length", [p + "attention.key_length"], drop=[p + "attention.key_length"])
    refused("a head length as text", ["of type string"], {p + "attention.key_length": "32"})
    refused("values of another length", ["different lengths"], {p + "attention.value_length": 16})
    refused("heads that differ", ["differs from layer to layer"],
            {p + "attention.head_count": [4, 2]})
    refused("a short pattern", ["layer_types has 2"],
            {p + "attention.sliding_window_pattern": [True, False]})
    refused("a pattern of numbers", ["array of bool"],
            {p + "attention.sliding_window_pattern": [1]})
    refused("an odd rotary width", ["rotary"], {p + "rope.dimension_count_swa": 7})
    refused("a rotary width beyond the head", ["rotary"], {p + "rope.dimension_count_swa": 64})
    refused("a key that changes the maths", ["spark2_5.attn_logit_softcapping"],
            {p + "attn_logit_softcapping": 30.0})
    refused("rope scaling", ["rope.scaling.type"], {p + "rope.scaling.type": "yarn"})
    refused("another tokenizer", ["tokenizer.ggml.model"], {"tokenizer.ggml.model": "llama"})
    refused("another pre-tokenizer", ["tokenizer.ggml.pre", "'qwen2'"],
            {"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "qwen2"})
    refused("a missing tensor", ["blk.0.ffn_up.weight", "missing"],
            change=lambda t: t.pop("blk.0.ffn_up.weight"))
    refused("another shape", ["blk.0.attn_gate.weight", "[4, 96]"],
            change=lambda t: t.update({"blk.0.attn_gate.weight": t["blk.0.attn_output.weight"]}))
    refused("a tensor of another layer", ["blk.1.ffn_up.weight"],
            change=lambda t: t.update({"blk.1.ffn_up.weight": t["blk.0.ffn_up.weight"]}))

    def infinite(tensors):
        kind, dims, raw = tensors["blk.0.ffn_down.weight"]
        raw = raw.copy()
        raw[34 * 7 + 1] = 0x7C
        tensors["blk.0.ffn_down.weight"] = (kind, dims, raw)
    refused("a scale that is no number", ["layers.0.down_proj", "row 1", "column 64"],
            change=infinite, file=False)
    gguf.make(path, small, lambda name: "Q8_0")
    data = path.read_bytes()
    for size in (0, 3, 24, 200, 1500, len(data) // 2, len(data) - 64):
        path.write_bytes(data[:size])
        expect_error(failures, f"cut to {size} bytes", "sparkc", path, "-o", folder / "bad.so",
                     names=[path])
    left = sorted(f.name for f in folder.iterdir() if f.name.startswith("bad.so"))
    failures.check(not left, f"leaves {left or 'nothing'}")


def real(failures, folder):
    keys, tensors = gguf.read(REAL)
    so = compile_model(REAL, folder / "m.so", "--quiet")
    packed = read_weights(so.with_suffix(".weights"))
    names = gguf.logical_names(keys["spark2_5.block_count"], tied=True)
    want = {n: gguf.values(tensors[gguf.tensor_name(n)][0], tensors[gguf.tensor_name(n)][2],
                           tensors[gguf.tensor_name(n)][1]) for n in names}
    same_values(failures, "llama.cpp's Q4_K_M", packed, want)
    result = tool("sparkc-eval", so, "--text", SPARK_TINY / "valid_dev.txt", "-o", "json",
                  "--quiet")
    perplexity = json.loads(result.stdout)["perplexity"]
    failures.check(abs(perplexity / REAL_PERPLEXITY - 1) < 0.003,
                   f"perplexity {perplexity:.3f}, llama.cpp's {REAL_PERPLEXITY}")


PARTS = {"exact": exact, "bits": bits, "mixed": mixed, "isas": isas, "text": text,
         "quantize": quantize, "export": export, "errors": errors, "real": real}


if __name__ == "__main__":
    sys.exit(run_parts(PARTS, __doc__))
