"""sparkc --dequantize: the values of the packed weights as a checkpoint.

usage: dequantize.py export | faithful

export    every value is the one in model.weights, read by packed.py; the errors
          are those of the report; other grids, ties, shards' input, bad output
faithful  an unquantized build of spark-tiny's 4-bit export has the perplexity of
          the 4-bit build: what the runtime adds to the grid's error is small

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import json
import shutil
import sys

import numpy as np

from harness import (GOLDEN, SPARK_TINY, compile_model, expect_error, read_model, run_parts,
                     to_float64, tool, write_safetensors)
from packed import read_weights

ATTENTION = ("q_k_v_proj", "g_proj", "out_proj")


def stored_name(name):
    if name == "lm_head":
        return "lm_head.weight"
    if not name.startswith("layers."):
        return f"model.{name}.weight"
    _, layer, part = name.split(".")
    group = ("" if part.endswith("norm") else "self_attn." if part in ATTENTION else "mlp.")
    return f"model.layers.{layer}.{group}{part}.weight"


def original(tensors, name):
    """A weight as it was before it was quantized."""
    names = [stored_name(name)]
    if name in ("embedding", "lm_head"):
        names += ["model.embedding.weight", "model.embed_tokens.weight"]
    return to_float64(*next(tensors[n] for n in names if n in tensors))


def check_export(failures, folder, case, *options):
    what = f"{case} {' '.join(options)}"
    out, so, report = folder / "export", folder / "model.so", folder / "report.json"
    shutil.rmtree(out, ignore_errors=True)
    tool("sparkc", GOLDEN / case, "-o", so, "--dequantize", out, "--report", report, *options)
    config, tensors = read_model(out)
    old_config, old = read_model(GOLDEN / case)
    failures.check(config["tie_word_embeddings"] is False, f"{what}: the head is untied")
    changed = {k for k in config.keys() | old_config.keys()
               if config.get(k) != old_config.get(k)}
    failures.check(changed <= {"tie_word_embeddings", "torch_dtype", "dtype"},
                   f"{what}: changed in the config: {sorted(changed)}")
    failures.check(all(dtype == "F32" for dtype, _ in tensors.values()), f"{what}: all F32")

    packed = read_weights(so.with_suffix(".weights"))
    packed.setdefault("lm_head", packed["embedding"])
    wrong = [name for name, values in packed.items()
             if not np.array_equal(tensors[stored_name(name)][1].reshape(values.shape)
                                   .view(np.uint32), values.view(np.uint32))]
    failures.check(not wrong, f"{what}: values of model.weights, except {wrong}")
    failures.check(len(tensors) == len(packed),
                   f"{what}: {len(tensors)} tensors, {len(packed)} packed")
    for t in json.loads(report.read_text())["tensors"]:
        before = original(old, t["name"]).ravel()
        error = packed[t["name"]].astype(np.float64).ravel() - before
        if t["sqnr_db"] is not None:
            sqnr = 10 * np.log10((before ** 2).sum() / (error ** 2).sum())
            failures.check(abs(sqnr - t["sqnr_db"]) < 1e-3,
                           f"{what}: SQNR of {t['name']} {sqnr:.3f}, report {t['sqnr_db']:.3f}")
        elif t["grid"] == "f32" or all(dtype == "BF16" for dtype, _ in old.values()):
            failures.check(not error.any(), f"{what}: {t['name']} is as it was")

    alone = folder / "alone"
    shutil.rmtree(alone, ignore_errors=True)
    tool("sparkc", GOLDEN / case, "--dequantize", alone, *options)
    same = all((alone / p.name).read_bytes() == p.read_bytes() for p in out.iterdir())
    failures.check(same, f"{what}: without -o the same files")
    tool("sparkc", out, "-o", folder / "again.so", "--weights", "f32")
    again = read_weights(folder / "again.weights")
    failures.check(all(np.array_equal(again[name], values) for name, values in packed.items()),
                   f"{what}: the export compiles, to the same values")


def check_errors(failures, folder):
    taken = folder / "taken"
    taken.mkdir()
    (taken / "config.json").write_text("{}")
    expect_error(failures, "a directory with files", "sparkc", GOLDEN / "base",
                 "--dequantize", taken, names=[taken, "not empty"])
    expect_error(failures, "the checkpoint itself", "sparkc", GOLDEN / "base",
                 "--dequantize", GOLDEN / "base", names=["not empty"])
    expect_error(failures, "no parent", "sparkc", GOLDEN / "base",
                 "--dequantize", folder / "no" / "where", names=[folder / "no" / "where"])
    expect_error(failures, "with --emit=step", "sparkc", GOLDEN / "base", "--emit", "step",
                 "--dequantize", folder / "new", names=["--dequantize"])
    text = folder / "step.mlir"
    tool("sparkc", GOLDEN / "base", "--emit", "step", "-o", text)
    expect_error(failures, "the text of a stage", "sparkc", text, "-o", folder / "x.so",
                 "--dequantize", folder / "new", names=[text, "--dequantize"])
    bad = folder / "bad"
    shutil.copytree(GOLDEN / "base", bad)
    _, tensors = read_model(bad)
    name = "model.layers.1.mlp.down_proj.weight"
    array = tensors[name][1].copy()
    array[3, 5] = 0x7FC0
    tensors[name] = ("BF16", array)
    write_safetensors(bad / "model.safetensors", tensors)
    expect_error(failures, "a NaN weight", "sparkc", bad, "--dequantize", folder / "new",
                 names=["layers.1.down_proj", "NaN", "row 3, column 5"])
    failures.check(not (folder / "new").exists(), "nothing is left of an export that failed")


def export(failures, folder):
    check_export(failures, folder, "base")
    check_export(failures, folder, "base", "--weights", "q4:g32:sym")
    check_export(failures, folder, "base-sharded", "--weights", "q6:g128",
                 "--weights-for", "*.down_proj=q5", "--weights-for", "layers.0.*=bf16")
    check_export(failures, folder, "untied", "--weights", "q8")
    check_export(failures, folder, "odd-vocab", "--weights", "q5:g32")
    check_export(failures, folder, "f16", "--weights", "f32")
    check_export(failures, folder, "base", "--weights", "bf16")
    check_errors(failures, folder)


def faithful(failures, folder):
    from quality import TEXT, evaluate_all
    q4 = folder / "q4.so"
    tool("sparkc", SPARK_TINY, "-o", q4, "--weights", "q4", "--dequantize", folder / "export")
    f32 = compile_model(folder / "export", folder / "f32.so", "--weights", "f32")
    options = ["--text", TEXT, "--windows", 120, "--greedy", 0]
    result, = evaluate_all([(q4, "--reference", f32, *options)])
    failures.check(abs(result["increase"]) <= 0.002,
                   f"perplexity {result['perplexity']:.3f} of the 4-bit build, "
                   f"{result['reference_perplexity']:.3f} of its export")
    failures.check(result["kl_mean"] <= 0.0005, f"mean KL {result['kl_mean']:.6f} between them")


CHECKS = {"export": export, "faithful": faithful}


if __name__ == "__main__":
    sys.exit(run_parts(CHECKS, __doc__))
