"""Quantized builds of random models against float64 on the same grid.

usage: quantized.py [PART ...]    (schemes.q4|q5|q6|q8, policies, sizes, isas,
                                  errors; default all)

The reference has the weights that model.weights stands for (read by packed.py),
and quantizes what each linear reads to int8 as the step does. What remains are
the roundings of float32 - until one moves an activation that lies next to a tie
to another code, which changes the logits of that token and of later ones.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import json
import pathlib
import shutil
import sys

import numpy as np

import packed
import random_models
import reference
from dequantize import stored_name
from harness import (compile_model, expect_error, has_flag, read_model, run_logits, run_parts,
                     write_safetensors)
from packed import DIRECTORY, PAYLOAD, read_weights, sections

# Logits are of the order of 1 to 10.
EXACT = 1e-5    # where no activation got another code

S, F = random_models.S, random_models.F

# Gate rows 8, vocab 24, K of 96, 48 and 50: whole groups nowhere but at 32.
SMALL = dict(hidden=96, inter=50, heads=8, kv=2, head_dim=6, vocab=24, layers=[S, F], window=5,
             rotary=(1.0, 0.67), context=64, T=20)
# F32 where logits are compared: activations made of a few bits tie exactly.
MODELS = {
    "small": dict(SMALL, dtype="F32"),
    "small-bf16": SMALL,
    # K = 2880 for q_k_v, gate and up. The name is the seed: of so many activations
    # one of the first token may lie next to a tie by chance.
    "wide-rows": dict(hidden=2880, inter=24, heads=2, kv=1, head_dim=16, vocab=24, layers=[F],
                 window=8, rotary=(1.0, 0.5), context=32, T=8, dtype="F32"),
    # K = 2880 for down_proj, 136 for out_proj; an untied head; F16.
    "deep-rows": dict(hidden=40, inter=2880, heads=17, kv=1, head_dim=8, vocab=50, layers=[S],
                      window=3, rotary=(0.5, 0.5), context=32, T=10, dtype="F16", tied=False),
    # Fewer columns than any group, fewer rows than a tile.
    "narrow": dict(hidden=6, inter=10, heads=1, kv=1, head_dim=6, vocab=5, layers=[S, F, S],
                   window=2, rotary=(1.0, 1.0), context=32, T=32, dtype="F32"),
}


#--- Reference ----------------------------------------------------------------
def grids(weights):
    """weight -> (layout, group) and, where it has a grid, its zero points."""
    found = sections(pathlib.Path(weights).read_bytes())
    payload = np.frombuffer(found[PAYLOAD], np.uint8)
    result = {}
    for t in json.loads(found[DIRECTORY])["tensors"]:
        runs = t.get("rowmap") or [{"a": [0, 0]}]
        for run in runs:
            for end in "ab":
                if run.get(end):
                    result[t["sources"][run[end][0]]] = (t["layout_name"], t["group"], t, payload)
    return result


def zero_points(entry):
    """All zero points of the tensor's pack, padding rows included."""
    _, group, t, payload = entry
    count = -(-t["cols"] // group)
    bits = int(t["layout_name"][-1])
    lines = bits * group // 32
    per_batch, head, zeros = packed.batch_shape("", bits, t["cols"], group)
    tile_bytes = head * -(-count // per_batch) + 64 * lines * count
    tiles = payload[t["offset"]:t["offset"] + t["bytes"]].reshape(-1, tile_bytes)
    return np.concatenate(
        [tiles[:, g // per_batch * (head + per_batch * 64 * lines) + zeros
               + 16 * (g % per_batch):][:, :16]
         for g in range(count)])


def int8(x, group, name=""):
    """[T, K] in groups of int8, as step.quantize does it; and for each token how
    near an activation came to a tie between two codes."""
    tokens, cols = x.shape
    padded = np.zeros((tokens, -(-cols // group) * group), np.float32)
    padded[:, :cols] = x
    groups = padded.reshape(tokens, -1, group)
    largest = np.abs(groups).max(axis=2, keepdims=True)
    with np.errstate(divide="ignore", over="ignore"):
        inverse = np.where(largest < 2.0**-120, np.float32(0), np.float32(127) / largest)
    scaled = groups * inverse
    tie = np.abs(np.abs(scaled - np.floor(scaled)) - 0.5).reshape(tokens, -1).min(axis=1)
    values = np.rint(scaled).astype(np.float64) * (largest / np.float32(127))
    return values.reshape(tokens, -1)[:, :cols], tie


def expected(model, weights, tokens, rounded=int8):
    """Logits of the reference on the values and grids of a weights file, with
    activations as `rounded(x, group, name of the linear)` gives them; and how near each token came to another
    code."""
    config, stored = read_model(model)
    values = read_weights(weights)
    tensors = {}
    for name, array in values.items():
        stored_as = stored_name(name)
        if name == "embedding":
            stored_as = next(n for n in ("model.embedding.weight", "model.embed_tokens.weight")
                             if n in stored)
        vector = array.shape[0] == 1 and name.endswith("norm")
        tensors[stored_as] = ("F32", array[0] if vector else array)
    config["tie_word_embeddings"] = "lm_head" not in values
    found = grids(weights)
    found.setdefault("lm_head", found["embedding"])
    nearest = np.ones(len(tokens))
    fused = (("q_k_v_proj", "g_proj"), ("gate_proj", "up_proj"))

    def activation(name, x):
        """Of the smallest group in its fused linear; where the weights are
        floats, as it is."""
        prefix, _, last = name.rpartition(".")
        pair = next((pair for pair in fused if last in pair), None)
        names = [f"{prefix}.{part}" for part in pair] if pair else [name]
        if not found[name][1]:
            return x
        x, tie = rounded(x, min(found[n][1] for n in names if found[n][1]), name)
        np.minimum(nearest, tie, out=nearest)
        return x

    return reference.forward(config, tensors, tokens, activation), nearest


#--- Checks -------------------------------------------------------------------
class Model:
    """A random checkpoint in a folder of its own."""

    def __init__(self, folder, name):
        self.name, self.path = name, folder / name
        self.config, self.tensors, self.tokens = random_models.make(self.path, **MODELS[name])
        self.vocab = self.config["vocab_size"]

    def build(self, *options):
        return compile_model(self.path, self.path.parent / "model.so", "--quiet", *options)

    def logits(self, so, *options):
        return run_logits(so, self.tokens, self.vocab, *options)


def check_build(failures, model, *options, rounded=int8):
    """One build: the reference's logits, the same bits however it is run."""
    what = f"{model.name}, {' '.join(map(str, options))}"
    so = model.build("--kv", "f32", *options)
    got = model.logits(so, "-t", 1)
    want, nearest = expected(model.path, so.with_suffix(".weights"), model.tokens, rounded)
    failures.close_until_tie(got, want, nearest, EXACT, what)
    for threads in (2, 3, 4, 7):
        failures.same_bits(model.logits(so, "-t", threads), got,
                           f"{what}: {threads} threads give the bits of one")
    failures.same_bits(model.logits(so, "-t", 2, "--decode"), got,
                       f"{what}: decode gives the bits of prefill")
    failures.same_bits(model.logits(so, "-t", 2, "--prefill-chunk", 5), got,
                       f"{what}: prefill in chunks of 5 gives the bits of one")
    return so, got


def check_schemes(failures, folder, bits):
    model = Model(folder, "small")
    for group in (32, 64, 128):
        for suffix in ("", ":sym") if group == 64 else ("",):
            so, _ = check_build(failures, model, "--weights", f"{bits}:g{group}{suffix}")
            found = grids(so.with_suffix(".weights"))
            for name, entry in found.items():
                if name == "embedding" or name.endswith("norm"):
                    continue
                layout, in_groups = entry[:2]
                if layout != f"tile16_{bits}{suffix[1:2]}" or in_groups != group:
                    failures.check(False, f"{bits} g{group}: {name} is {layout} g{in_groups}")
            if suffix:
                continue
            zeros = np.unique(zero_points(found["layers.1.out_proj"]))
            failures.check(len(zeros) > 1, f"{bits} g{group}: zero points {zeros.min()}..{zeros.max()}")


def check_policies(failures, folder):
    model = Model(folder, "small")

    def rules(*texts):
        return [part for text in texts for part in ("--weights-for", text)]

    def is_stored(so, **layouts):
        found = grids(so.with_suffix(".weights"))
        for name, (layout, group) in layouts.items():
            name = name if name == "lm_head" else "layers.1." + name
            failures.check(found[name][:2] == (layout, group),
                           f"{name} is stored as {found[name][0]} in groups of {found[name][1]}")
        return found

    # Plain sparkc.
    so, _ = check_build(failures, Model(folder, "small-bf16"))
    is_stored(so, lm_head=("tile16_q6", 64), q_k_v_proj=("tile16_q4", 64))
    # Two grids in one fused linear, of one group and of two.
    so, _ = check_build(failures, model, "--weights", "q4", *rules("lm_head=q6", "*.g_proj=q8"))
    is_stored(so, lm_head=("tile16_q6", 64), q_k_v_proj=("tile16_q4", 64),
              g_proj=("tile16_q8", 64), down_proj=("tile16_q4", 64))
    so, _ = check_build(failures, model, "--weights", "q4:g128",
                        *rules("*.g_proj=q8:g32", "layers.0.q_k_v_proj=q5:g64"))
    is_stored(so, q_k_v_proj=("tile16_q4", 128), g_proj=("tile16_q8", 32))
    # Rows that meet in a pair of tiles get the finer of two grids.
    so, _ = check_build(failures, model, "--weights", "q4", *rules("*.up_proj=q6"))
    is_stored(so, gate_proj=("tile16_q6", 64), up_proj=("tile16_q6", 64))
    so, _ = check_build(failures, model, "--weights", "q8", *rules("*.up_proj=q6"))
    is_stored(so, gate_proj=("tile16_q8", 64), up_proj=("tile16_q8", 64))
    # A grid beside floats, which take the activation as it is.
    so, _ = check_build(failures, model, "--weights", "q4", *rules("*.g_proj=f32", "lm_head=bf16"))
    is_stored(so, g_proj=("tile16_f32", 0), q_k_v_proj=("tile16_q4", 64))
    so, _ = check_build(failures, model, "--weights", "bf16", *rules("*.down_proj=q5:g32:sym"))
    is_stored(so, down_proj=("tile16_q5s", 32), gate_proj=("tile16_bf16", 0))
    # Two grids that differ in the zero points alone.
    so, _ = check_build(failures, model, "--weights", "q4", *rules("*.g_proj=q4:sym"))
    is_stored(so, g_proj=("tile16_q4s", 64), q_k_v_proj=("tile16_q4", 64))


def check_sizes(failures, folder):
    for name in ("wide-rows", "deep-rows", "narrow"):
        model = Model(folder, name)
        for options in (("--weights", "q4"), ("--weights", "q6:g128"),
                        ("--weights", "q5:g32:sym", "--weights-for", "lm_head=q8:g128")):
            check_build(failures, model, *options)


def check_isas(failures, folder):
    """All instruction sets give the same bits."""
    cpus = [("x86-64-v4", "avx512vl"), ("alderlake", "avx_vnni"),
            ("cascadelake", "avx512_vnni"), ("native", None)]
    for name, options in (("small", ("--weights", "q4")), ("small", ("--weights", "q8:g32")),
                          ("wide-rows", ("--weights", "q5", "--weights-for", "lm_head=q6:g128")),
                          ("deep-rows", ("--weights", "q6:g32:sym")),
                          ("small-bf16", ("--weights", "bf16")),
                          ("small-bf16", ("--weights", "bf16", "--kv", "q8"))):
        shutil.rmtree(folder / name, ignore_errors=True)
        model = Model(folder, name)
        what = f"{name}, {' '.join(options)}"
        so = model.build("--mcpu", "x86-64-v3", *options)
        want, payload = model.logits(so, "-t", 2), so.with_suffix(".weights").read_bytes()
        for cpu, flag in cpus:
            if flag and not has_flag(flag, cpu):
                continue
            so = model.build("--mcpu", cpu, *options)
            failures.same_bits(model.logits(so, "-t", 3), want,
                               f"{what}: {cpu} gives the bits of x86-64-v3")
            failures.check(so.with_suffix(".weights").read_bytes() == payload,
                           f"{what}: {cpu} reads the same file")


def check_errors(failures, folder):
    model = Model(folder, "small-bf16")
    out = folder / "bad"
    out.mkdir()

    def refused(what, names, *options, source=model.path):
        expect_error(failures, what, "sparkc", source, "-o", out / "model.so", *options,
                     names=names)
        left = sorted(p.name for p in out.iterdir())
        failures.check(not left, f"{what}: leaves {left or 'nothing'}")
        for name in left:
            (out / name).unlink()

    for scheme in ("q3", "q7k", "int4", "Q4", ""):
        refused(f"scheme '{scheme}'", ["--weights", f"'{scheme}'"], "--weights", scheme)
    for group in ("16", "0", "256", "64x", ""):
        refused(f"group '{group}'", [f"'{group}'", "32, 64 or 128"], "--weights", f"q4:g{group}")
    refused("two groups", [":g32"], "--weights", "q4:g64:g32")
    refused("an unknown part", [":asym"], "--weights", "q4:asym")
    refused("a group of floats", ["bf16:g64"], "--weights", "bf16:g64")
    refused("a glob that matches nothing", ["layers.7.*"], "--weights-for", "layers.7.*=q8")
    refused("a rule for a norm", ["*layernorm"], "--weights-for", "*layernorm=q8")
    refused("a rule for stored names", ["lm_head.weight"], "--weights-for", "lm_head.weight=q8")
    refused("a rule without a scheme", ["--weights-for", "lm_head"], "--weights-for", "lm_head")
    refused("two rules in one", ["--weights-for", "','"], "--weights-for", "lm_head=q8,*=q6")
    refused("a rule with an unknown scheme", ["--weights-for", "q7"], "--weights-for",
            "lm_head=q7")
    refused("an open bracket", ["[ab"], "--weights-for", "[ab=q8")

    def changed(name, place, value):
        """The checkpoint with one element of a tensor replaced."""
        source = folder / "changed"
        shutil.rmtree(source, ignore_errors=True)
        shutil.copytree(model.path, source)
        dtype, array = model.tensors[name]
        array = array.copy()
        array[place] = value
        write_safetensors(source / "model.safetensors", {**model.tensors, name: (dtype, array)})
        return source

    nan, infinity, minus = 0x7FC0, 0x7F80, 0xFF80  # bfloat16
    layer = "model.layers.1."
    for value, word in ((nan, "NaN"), (infinity, "inf"), (minus, "inf")):
        refused(f"{word} in a linear", ["layers.1.up_proj", word, "row 49", "column 95"],
                source=changed(layer + "mlp.up_proj.weight", (49, 95), value))
    refused("a NaN gate row", ["layers.1.g_proj", "NaN"],
            source=changed(layer + "self_attn.g_proj.weight", (7, 0), nan))
    refused("NaN in a norm", ["layers.1.post_attention_layernorm", "NaN"],
            source=changed(layer + "post_attention_layernorm.weight", 95, nan))
    refused("NaN in a tied embedding", ["embedding", "NaN"],
            source=changed("model.embedding.weight", (23, 95), nan))
    refused("infinity in an unquantized linear", ["layers.1.down_proj", "inf"], "--weights", "bf16",
            source=changed(layer + "mlp.down_proj.weight", (0, 49), infinity))
    refused("NaN in an unquantized linear", ["layers.1.down_proj", "NaN"], "--weights", "f32",
            source=changed(layer + "mlp.down_proj.weight", (95, 0), nan))
    refused("a weight beyond float16 scales", ["layers.1.out_proj"],
            source=changed(layer + "self_attn.out_proj.weight", (3, 3), 0x7F7F))

    # A matrix of zeros, and a model of nothing else, is a model.
    for what, zeros in (("a linear of zeros", [layer + "mlp.up_proj.weight"]),
                        ("all zeros", list(model.tensors))):
        source = folder / "zeros"
        shutil.rmtree(source, ignore_errors=True)
        shutil.copytree(model.path, source)
        tensors = dict(model.tensors)
        for name in zeros:
            tensors[name] = (tensors[name][0], np.zeros_like(tensors[name][1]))
        write_safetensors(source / "model.safetensors", tensors)
        for scheme in ("q4", "q8:sym"):
            so = compile_model(source, folder / "zeros.so", "--weights", scheme, "--kv", "f32")
            got = model.logits(so, "-t", 2)
            want, nearest = expected(source, so.with_suffix(".weights"), model.tokens)
            failures.close_until_tie(got, want, nearest, EXACT, f"{what} in {scheme}")


PARTS = {f"schemes.{bits}": lambda failures, folder, bits=bits: check_schemes(failures, folder, bits)
         for bits in ("q4", "q5", "q6", "q8")}
PARTS.update(policies=check_policies, sizes=check_sizes, isas=check_isas, errors=check_errors)


if __name__ == "__main__":
    sys.exit(run_parts(PARTS, __doc__))
