"""AWQ and GPTQ checkpoints: their codes are compiled as they are.

usage: stored_codes.py [PART ...]    (exact, bits, mixed, errors; default all)

The checkpoints are made here, packed by code written from the formats'
description (docs/checkpoints.md).

exact   --dequantize and model.weights have the values scale * (code - zero), bit
        for bit: every format and group, codes, zero points and scales of all sizes
bits    logits are the reference's on those values; the same bits for any threads,
        in decode and in prefill by chunks
mixed   matrices that stay floats, other schemes, shards, stages
errors  what is not read is said in one line

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import json
import shutil
import sys

import numpy as np

import random_models
from dequantize import stored_name
from gguf_models import check_build, same_values
from harness import (WEIGHTS_ALONE, compile_model, expect_error, read_model, run_parts,
                     to_float64, tool, write_safetensors)
from packed import read_weights

S, F = random_models.S, random_models.F
SHAPE = dict(hidden=128, inter=256, heads=8, kv=2, head_dim=16, vocab=70, layers=[S, F], window=9,
             rotary=(1.0, 0.5), context=64, T=23, dtype="F32")
PARTS_OF_LAYER = ("q_k_v_proj", "g_proj", "out_proj", "gate_proj", "up_proj", "down_proj")
FORMATS = {
    "awq": dict(quant_method="awq", version="gemm", zero_point=True),
    "gptq": dict(quant_method="gptq", desc_act=False, sym=False, checkpoint_format="gptq"),
    "gptq_v2": dict(quant_method="gptq", desc_act=False, sym=False, checkpoint_format="gptq_v2"),
}


#--- The formats ----------------------------------------------------------------
def words(nibbles):
    """[..., 8] to 32-bit words, the first in the low bits."""
    shifts = np.arange(0, 32, 4, dtype=np.uint32)
    return np.bitwise_or.reduce(nibbles.astype(np.uint32) << shifts, axis=-1).view(np.int32)


def along_rows(matrix, awq):
    """[k, N] to [k, N/8]: eight neighbours of the last axis in a word."""
    eights = matrix.reshape(matrix.shape[0], -1, 8)
    return words(eights[:, :, [0, 2, 4, 6, 1, 3, 5, 7]] if awq else eights)


def pack(kind, codes, zeros, scales):
    """codes [N, K], zeros and scales [N, K/g] to the tensors of a checkpoint."""
    awq = kind == "awq"
    stored_zeros = (zeros.T - 1) % 16 if kind == "gptq" else zeros.T
    if awq:
        qweight = along_rows(codes.T, True)
    else:
        rows, cols = codes.shape
        qweight = words(codes.reshape(rows, cols // 8, 8)).T
    tensors = {"qweight": ("I32", np.ascontiguousarray(qweight)),
               "qzeros": ("I32", along_rows(stored_zeros, awq)),
               "scales": ("F16", np.ascontiguousarray(scales.T))}
    if not awq:
        group = codes.shape[1] // zeros.shape[1]
        tensors["g_idx"] = ("I32", (np.arange(codes.shape[1]) // group).astype(np.int32))
    return tensors


def values(codes, zeros, scales):
    group = codes.shape[1] // zeros.shape[1]
    wide = lambda a: np.repeat(a, group, axis=1)
    return wide(scales.astype(np.float32)) * (codes.astype(np.int32) - wide(zeros)).astype(np.float32)


def rounded(weights, group):
    """Codes, zero points and scales near to the weights."""
    groups = weights.astype(np.float32).reshape(weights.shape[0], -1, group)
    low, high = np.minimum(groups.min(axis=2), 0), np.maximum(groups.max(axis=2), 0)
    scales = np.maximum((high - low) / 15, 1e-4).astype(np.float16)
    wide = scales.astype(np.float32)
    zeros = np.clip(np.rint(-low / wide), 0, 15).astype(np.int32)
    codes = np.clip(np.rint(groups / wide[..., None]) + zeros[..., None], 0, 15)
    return codes.reshape(weights.shape).astype(np.int32), zeros, scales


def symmetric(weights, group):
    """The same with zero points 8."""
    groups = weights.astype(np.float32).reshape(weights.shape[0], -1, group)
    scales = np.maximum(np.abs(groups).max(axis=2) / 7, 1e-4).astype(np.float16)
    codes = np.clip(np.rint(groups / scales.astype(np.float32)[..., None]) + 8, 0, 15)
    return codes.reshape(weights.shape).astype(np.int32), np.full(scales.shape, 8, np.int32), scales


def anything(rng, shape, group):
    """Codes of all sizes; scales from the least to the largest, of any sign."""
    rows, cols = shape
    codes = rng.integers(0, 16, shape).astype(np.int32)
    zeros = rng.integers(0, 16, (rows, cols // group)).astype(np.int32)
    bits = rng.integers(0, 2**16, zeros.shape).astype(np.uint16)
    bits[(bits & 0x7C00) == 0x7C00] ^= 0x4000  # neither infinity nor NaN
    scales = bits.view(np.float16)
    for i, (code, zero, scale) in enumerate(((0, 15, 65504), (15, 0, -65504), (0, 0, 0), (15, 15, 6e-8),
                                             (0, 1, 1), (15, 8, 1))):
        codes[i, :group], zeros[i, 0], scales[i, 0] = code, zero, scale
    return codes, zeros, scales


def make(folder, kind, group, parts=PARTS_OF_LAYER, extreme=False, shape=SHAPE, shards=False,
         config_changes=None, quantize=rounded):
    """Writes a checkpoint; -> (logical name -> float32 of its codes, tokens)."""
    if folder.exists():
        shutil.rmtree(folder)
    config, tensors, tokens = random_models.make(folder, **shape)
    config["quantization_config"] = {"bits": 4, "group_size": group, **FORMATS[kind],
                                     **(config_changes or {})}
    rng = np.random.default_rng([group, len(kind)])
    want = {}
    for name in [n for n in tensors if n.split(".")[-2] in parts]:
        weights = to_float64(*tensors.pop(name))
        if extreme:
            found = anything(rng, weights.shape, group)
        else:
            found = quantize(weights, group)
        stem = name.removesuffix(".weight")
        pieces = stem.split(".")
        logical = stem if stem == "lm_head" else f"layers.{pieces[2]}.{pieces[-1]}"
        want[logical] = values(*found)
        for suffix, tensor in pack(kind, *found).items():
            tensors[f"{stem}.{suffix}"] = tensor
    (folder / "config.json").write_text(json.dumps(config))
    if not shards:
        write_safetensors(folder / "model.safetensors", tensors)
        return want, tokens
    (folder / "model.safetensors").unlink()
    files = {"a.safetensors": {}, "b.safetensors": {}}
    for name, tensor in tensors.items():  # the parts of a matrix in two files
        files["b.safetensors" if name.endswith(("qzeros", "norm.weight")) else "a.safetensors"][name] = tensor
    for file, part in files.items():
        write_safetensors(folder / file, part)
    (folder / "model.safetensors.index.json").write_text(json.dumps(
        {"metadata": {}, "weight_map": {n: file for file, part in files.items() for n in part}}))
    return want, tokens


#--- Parts ----------------------------------------------------------------------
def check_values(failures, what, folder, model, want, *options):
    """The values of the compiled weights."""
    so = compile_model(model, folder / "m.so", *WEIGHTS_ALONE, *options)
    same_values(failures, what, read_weights(so.with_suffix(".weights")), want)
    return so


def exact(failures, folder):
    for kind in FORMATS:
        for group in (32, 64, 128):
            want, _ = make(folder / "model", kind, group, extreme=True, shape=dict(SHAPE, layers=[S]))
            out, what = folder / f"{kind}-{group}", f"{kind} g{group}"
            tool("sparkc", folder / "model", "--dequantize", out, "--quiet")
            config, stored = read_model(out)
            failures.check(len(want) == 6 and "quantization_config" not in config,
                           f"{what}: six matrices, a plain export")
            same_values(failures, f"{what} --dequantize",
                        {n: np.atleast_2d(a) for n, (_, a) in stored.items()},
                        {stored_name(n): v for n, v in want.items()})
        check_values(failures, f"{what} compiled", folder, folder / "model", want)


def bits(failures, folder):
    for kind, group in (("awq", 128), ("gptq", 64), ("gptq_v2", 32)):
        make(folder / "model", kind, group)
        check_build(failures, f"{kind} g{group}", folder, folder / "model")


def mixed(failures, folder):
    model = folder / "model"
    # Some matrices are floats, which have schemes; the others keep their codes.
    some = ("q_k_v_proj", "out_proj", "up_proj")
    changes = {"modules_to_not_convert": ["g_proj", "gate_proj", "down_proj"]}
    want, _ = make(model, "awq", 128, parts=some, config_changes=changes)
    report = folder / "report.json"
    for options, grids in ((("--report", report), ("q4:g64", "q6:g64")),
                           (("--report", report, "--weights", "stored"), ("f32", "f32")),
                           (("--report", report, "--weights-for", "*.g_proj=q8:g32"), ("q8:g32", "q6:g64"))):
        what = f"codes beside floats {' '.join(map(str, options[2:]))}"
        check_values(failures, what, folder, model, want, *options)
        found = {t["name"]: t["grid"] for t in json.loads(report.read_text())["tensors"]}
        got = (found["layers.0.g_proj"], found.get("lm_head", found["embedding"]))
        failures.check(got == grids, f"{what}: gate and head are {got}")
        # Rows that meet in pairs of tiles: f32 holds both exactly.
        failures.check(found["layers.1.up_proj"] == found["layers.1.gate_proj"] == "f32",
                       f"{what}: gate_proj beside up_proj's codes")
    check_build(failures, "codes beside floats", folder, model)
    # A rule or a scheme for all fits the values anew, as it does for GGUF.
    make(model, "gptq", 64)
    check_build(failures, "as q8", folder, model, "--weights", "q8", "--weights-for", "*.out_proj=f32")
    # The same grid by name is the codes as they are.
    want, _ = make(model, "gptq", 128, extreme=True)
    check_values(failures, "q4:g128 by name", folder, model, want, "--weights", "q4:g128")
    # A symmetric grid keeps the codes whose zero points are its own, and no others.
    want, _ = make(model, "gptq", 64, config_changes={"sym": True}, quantize=symmetric)
    check_values(failures, "q4:g64:sym, of zero points 8", folder, model, want,
                 "--weights", "q4:g64:sym")
    def half(weights, group):
        return [np.concatenate((a[:16], b[16:])) for a, b in
                zip(symmetric(weights, group), rounded(weights, group))]

    want, _ = make(model, "gptq", 64, quantize=half)
    so = compile_model(model, folder / "m.so", *WEIGHTS_ALONE, "--weights", "q4:g64:sym")
    got = read_weights(so.with_suffix(".weights"))
    for name, wanted in want.items():
        error = np.square(got[name] - wanted).sum() / np.square(wanted).sum()
        kept = name.endswith("g_proj")  # 8 rows
        failures.check(error == 0 if kept else 0 < error < 0.02, f"q4:g64:sym, of other zero points: {name} off by {error:.5f}")
        if name.endswith(("out_proj", "down_proj")):  # whose tiles are 16 rows as they come
            failures.check(np.array_equal(got[name][:16], wanted[:16])
                           and not np.array_equal(got[name], wanted),
                           f"{name}: the tile whose zero points are 8 is as it was")
    # A head of its own among them; parts of a matrix in two files; from the text of a stage.
    head = dict(SHAPE, tied=False, vocab=72)
    want, _ = make(model, "gptq", 64, parts=(*PARTS_OF_LAYER, "lm_head"), shape=head, shards=True,
                   extreme=True, config_changes={"lm_head": True})
    check_values(failures, "a head, in shards", folder, model, want)
    so = compile_model(model, folder / "m.so", "--quiet")
    failures.check("lm_head" in want, "a head, in shards: has codes")
    for stage in ("spark", "step"):
        text = folder / f"{stage}.mlir"
        tool("sparkc", model, f"--emit={stage}", "-o", text)
        tool("sparkc", text, "-o", folder / "again.so", "--quiet")
        failures.check((folder / "again.so").read_bytes() == so.read_bytes()
                       and (folder / "again.weights").read_bytes()
                       == so.with_suffix(".weights").read_bytes(), f"from the text of {stage}")
    # Settings that say nothing about the codes.
    want, _ = make(model, "gptq", 32, config_changes={
        "damp_percent": 0.01, "static_groups": False, "true_sequential": True, "sym": True,
        "meta": {"quantizer": ["x"]}, "pack_dtype": "int32", "dynamic": None})
    check_values(failures, "bookkeeping", folder, model, want)


def errors(failures, folder):
    model, small = folder / "model", dict(SHAPE, layers=[S])
    qkv = "model.layers.0.self_attn.q_k_v_proj"

    def refused(what, kind, names, changes=None, change=None):
        make(model, kind, 64, shape=small, config_changes=changes)
        if change:
            config, tensors = read_model(model)
            change(tensors)
            write_safetensors(model / "model.safetensors", tensors)
        expect_error(failures, what, "sparkc", model, "-o", folder / "m.so", names=names)
        failures.check(not list(folder.glob("m.*")), f"{what}: nothing is left")

    q = "quantization_config."
    refused("8 bits", "gptq", [q + "bits", "8"], {"bits": 8})
    refused("no bits", "awq", [q + "bits", "missing"], {"bits": None})
    refused("a group a row", "gptq", [q + "group_size", "-1"], {"group_size": -1})
    refused("groups of 16", "awq", [q + "group_size", "16"], {"group_size": 16})
    refused("another method", "awq", [q + "quant_method", "bitsandbytes"], {"quant_method": "bitsandbytes"})
    refused("no method", "awq", [q + "quant_method", "missing"], {"quant_method": None})
    refused("another version", "awq", [q + "version", "gemv"], {"version": "GEMV"})
    refused("another format", "gptq", [q + "checkpoint_format", "marlin"], {"checkpoint_format": "marlin"})
    refused("desc_act", "gptq", [q + "desc_act", "order"], {"desc_act": True})
    refused("rotated weights", "gptq", [q + "rotation", "hadamard"], {"rotation": "hadamard"})
    refused("exceptions by module", "gptq", [q + "dynamic"], {"dynamic": {"x": {"bits": 8}}})
    refused("wider words", "gptq", [q + "pack_dtype", "int64"], {"pack_dtype": "int64"})
    refused("another group than the tensors", "awq", [qkv + ".qzeros", "[4, 24]", "[2, 24]"],
            {"group_size": 32})

    def reorder(t):
        groups = t[qkv + ".g_idx"][1].copy()
        groups[[3, 70]] = groups[[70, 3]]
        t[qkv + ".g_idx"] = ("I32", groups)

    refused("columns in another order", "gptq", [qkv + ".g_idx", "column 3 is of group 1"], change=reorder)
    for suffix in ("qzeros", "scales"):
        refused(f"no {suffix}", "awq", [f"{qkv}.{suffix}", "missing"],
                change=lambda t: t.pop(f"{qkv}.{suffix}"))
    refused("words of the other format", "awq", [qkv + ".qweight", "[128, 24]", "[16, 192]"],
            change=lambda t: t.update({qkv + ".qweight": ("I32", t[qkv + ".qweight"][1].reshape(16, 192))}))
    refused("scales of another type", "awq", [qkv + ".scales", "F16", "BF16"],
            change=lambda t: t.update({qkv + ".scales": ("BF16", t[qkv + ".scales"][1].view(np.uint16))}))
    refused("floats beside codes", "awq", [qkv + ".weight"],
            change=lambda t: t.update({qkv + ".weight": ("F32", np.zeros((192, 128), np.float32))}))
    refused("a bias", "gptq", [qkv + ".bias", "bias"],
            change=lambda t: t.update({qkv + ".bias": ("F16", np.zeros(192, np.float16))}))

    def infinite(t):
        scales = t[qkv + ".scales"][1].copy()
        scales[1, 5] = np.inf
        t[qkv + ".scales"] = ("F16", scales)

    refused("a scale that is no number", "gptq", ["layers.0.q_k_v_proj", "row 5", "column 64", "infinity"],
            change=infinite)

    def odd_rows(t):
        t["model.layers.0.self_attn.g_proj.qweight"] = ("I32", np.zeros((128, 1), np.int32))

    few = dict(small, heads=4)
    make(model, "awq", 64, parts=tuple(p for p in PARTS_OF_LAYER if p != "g_proj"), shape=few)
    config, tensors = read_model(model)
    odd_rows(tensors)
    write_safetensors(model / "model.safetensors", tensors)
    expect_error(failures, "four rows of codes", "sparkc", model, "-o", folder / "m.so",
                 names=["g_proj.qweight", "4 rows"])
    # Codes without the word that they are some.
    make(model, "awq", 64, shape=small)
    config = json.loads((model / "config.json").read_text())
    del config["quantization_config"]
    (model / "config.json").write_text(json.dumps(config))
    expect_error(failures, "codes without a config", "sparkc", model, "-o", folder / "m.so",
                 names=[qkv + ".weight", "missing"])


PARTS = {"exact": exact, "bits": bits, "mixed": mixed, "errors": errors}


if __name__ == "__main__":
    sys.exit(run_parts(PARTS, __doc__))
