"""--rotate: rotated weights compute what the checkpoint's do.

usage: rotate.py golden [CASE ...] | odd | stages | exports | calibrate | errors

golden     of every golden case (or those named) the f32 builds with rotations and
           without differ by rounding alone, in decode and prefill, for any number
           of threads; norms are ones, and the weights are others
odd        the same for hidden sizes and heads that are no powers of two
stages     the text of a stage gives the same files; one processor gives the same
exports    --dequantize and --export-gguf give models that compute the same
calibrate  a text, a budget and a certificate go with it
errors     one line each, nothing left behind

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import json
import pathlib
import sys
import tempfile

import numpy as np

import gguf
import random_models
import stages
import stored_codes
from calibrate import CALIBRATION, TEXT, evaluate, names, small_model, write_tokens
from harness import (GOLDEN, SPARK_TINY, Failures, compile_model, expect_error, read_model,
                     read_safetensors, run_logits, run_parts, tool)
from packed import read_weights

S, F = random_models.S, random_models.F
EXACT = ["--weights", "f32", "--kv", "f32"]
# Largest difference of a logit, of the largest of its token.
BOUND = 1e-4

# Beside those of random_models.py: odd factors 45, 5 and 3 of the hidden size,
# with heads of 6, 12 and 256.
SHAPES = {
    "hidden-2880": dict(hidden=2880, inter=64, heads=3, kv=1, head_dim=6, vocab=40, layers=[S, F],
                        window=4, rotary=(1.0, 1.0), context=64, T=20),
    "hidden-40": dict(hidden=40, inter=72, heads=6, kv=2, head_dim=12, vocab=33, layers=[F, S],
                      window=6, rotary=(0.5, 0.5), context=64, T=40, dtype="F16", tied=False),
    "hidden-24": dict(hidden=24, inter=40, heads=2, kv=1, head_dim=256, vocab=50, layers=[S, S, F],
                      window=5, rotary=(1.0, 0.25), context=64, T=40, dtype="F32"),
}


def as_before(failures, got, want, what):
    """Every logit but for BOUND, and not bit for bit: something was rotated."""
    error = np.abs(got.astype(np.float64) - want).max(axis=1) / np.abs(want).max(axis=1)
    failures.check(bool(0 < error.max() <= BOUND), f"{what}: relative error {error.max():.1e}")


def check_model(failures, model, vocab, prompts, folder, what):
    """prompts: of token ids."""
    plain = compile_model(model, folder / "plain.so", *EXACT)
    rotated = compile_model(model, folder / "rotated.so", "--rotate", *EXACT)
    # Another seed is other weights for the same code: some models will do.
    seeds = what in ("base", "spark-tiny", *SHAPES)
    other = compile_model(model, folder / "other.so", "--rotate=77", *EXACT) if seeds else None
    for tokens in prompts:
        case = f"{what}, T={len(tokens)}"
        want, got = (run_logits(so, tokens, vocab, "-t", 1) for so in (plain, rotated))
        as_before(failures, got, want, case)
        if seeds:
            as_before(failures, run_logits(other, tokens, vocab), want, f"{case}, another seed")
        for options in (["-t", 3], ["-t", 2, "--decode"], ["-t", 2, "--prefill-chunk", 7]):
            failures.same_bits(run_logits(rotated, tokens, vocab, *options), got,
                               f"{case}: the same bits with {' '.join(map(str, options))}")
    before, after = (read_weights(so.with_suffix(".weights")) for so in (plain, rotated))
    seeded = read_weights(other.with_suffix(".weights")) if seeds else None
    before.setdefault("lm_head", before["embedding"])
    failures.check(after.keys() == before.keys(), f"{what}: a weight for each, and a head")
    norms = [n for n in after if n.endswith("norm")]
    failures.check(norms and all((after[n] == 1).all() for n in norms), f"{what}: norms are ones")
    # Every matrix is another one, as large as before: but for the norms of rows
    # that were folded, a rotation keeps lengths.
    for name in after.keys() - set(norms):
        same = [np.mean(after[name] == w[name]) for w in (before, seeded) if w]
        if before[name].size > 64 and not max(same) < 0.1:
            failures.check(False, f"{what}: {name} is rotated, by the seed ({same})")
    rows = [np.linalg.norm(w["embedding"].astype(np.float64), axis=1) for w in (before, after)]
    failures.check(bool(np.abs(rows[1] / rows[0] - 1).max() < 1e-6),
                   f"{what}: rows of the embedding keep their lengths")


def golden(failures, folder, cases=()):
    for name in cases or sorted(p.name for p in GOLDEN.iterdir() if p.is_dir()):
        model = SPARK_TINY if name == "spark-tiny" else GOLDEN / name
        config, _ = read_model(model)
        prompts = [read_safetensors(file)["tokens"][1]
                   for file in sorted((GOLDEN / name).glob("golden*.safetensors"))]
        failures.check(len(prompts) > 0, f"{name}: {len(prompts)} prompts")
        check_model(failures, model, config["vocab_size"], prompts, folder, name)


def odd(failures, folder):
    for name, shape in {**random_models.MODELS, **SHAPES}.items():
        config, _, tokens = random_models.make(folder / name, **shape)
        check_model(failures, folder / name, config["vocab_size"], [tokens], folder, name)


def check_stages(failures, folder):
    for case, options in (("base-sharded", ("--rotate",)), ("untied", ("--rotate=9", *EXACT)),
                          ("f16", ("--rotate", "--weights", "bf16"))):
        with tempfile.TemporaryDirectory() as inner:
            stages.check_case(failures, case, options, pathlib.Path(inner))
    two = compile_model(SPARK_TINY, folder / "two.so", "--rotate")
    one = folder / "one.so"
    tool("sparkc", SPARK_TINY, "-o", one, "--rotate", under=["taskset", "-c", "0"])
    stages.same_model(failures, two, one, "on one processor")
    said = tool("sparkc-run", two, "--version").stdout.decode()
    failures.check("rotated" in said, "sparkc-run --version says that it is rotated")


def exports(failures, folder):
    rng = np.random.default_rng(1)
    tokens = rng.integers(0, 4096, 40)
    plain = compile_model(SPARK_TINY, folder / "plain.so", *EXACT)
    want = run_logits(plain, tokens, 4096)
    for path, options in (("f32", ["--weights", "f32"]), ("q8", ["--weights", "q8_0"])):
        out, file = folder / f"{path}-export", folder / f"{path}.gguf"
        so = compile_model(SPARK_TINY, folder / f"{path}.so", "--rotate", *options, "--kv", "f32",
                           "--dequantize", out, "--export-gguf", file)
        config, tensors = read_model(out)
        failures.check(config["tie_word_embeddings"] is False and "lm_head.weight" in tensors
                       and all((array == 1).all() for name, (_, array) in tensors.items()
                               if "norm" in name), f"{path}: a checkpoint with norms of ones")
        got = run_logits(so, tokens, 4096)
        again = compile_model(file, folder / "gguf.so", "--kv", "f32")
        failures.same_bits(run_logits(again, tokens, 4096), got, f"{path}: the GGUF file")
        again = compile_model(out, folder / "again.so", *EXACT)
        logits = run_logits(again, tokens, 4096)
        if path == "f32":
            failures.same_bits(logits, got, f"{path}: the checkpoint")
            as_before(failures, logits, want, f"{path}: as the model that was rotated")
        else:  # without the activations' rounding
            failures.close(logits, got, 0.2, f"{path}: the checkpoint")


def calibrate(failures, folder):
    model, vocab = small_model(folder / "model")
    tokens = write_tokens(folder / "tokens", vocab, 5000)
    options = ["--weights", "q4:g32", "--rotate", "--calibrate", tokens, "--calibrate-windows", 6]
    so = compile_model(model, folder / "a.so", *options)
    text = folder / "step.mlir"
    tool("sparkc", model, "--emit=step", "-o", text, "--quiet", *options)
    weights = [line for line in text.read_text().splitlines() if "spark.weight" in line]
    codes = [line for line in weights if "C4_32" in line]
    failures.check(len(codes) > 12 and not any("through" in line for line in codes)
                   and any("through" in line for line in weights if "@embedding" in line),
                   f"{len(codes)} matrices are codes of rotated weights")
    stages.same_model(failures, so, compile_model(text, folder / "b.so"), "from the step stage")
    # Better than rounding to nearest, measured against the model that was not rotated.
    bf16 = compile_model(SPARK_TINY, folder / "bf16.so", "--weights", "bf16")
    kl = {}
    for name, more in (("plain", []), ("calibrated", ["--calibrate", CALIBRATION,
                                                      "--calibrate-windows", 8])):
        so = compile_model(SPARK_TINY, folder / f"{name}.so", "--rotate", *more)
        kl[name] = evaluate(so, bf16, 8)["kl_mean"]
    failures.check(kl["calibrated"] < 0.8 * kl["plain"] < 0.02, f"KL {kl}")
    out = folder / "out"
    out.mkdir()
    report = out / "report.json"
    tool("sparkc", SPARK_TINY, "-o", out / "m.so", "--rotate", "--calibrate", CALIBRATION,
         "--calibrate-windows", 4, "--bits", 4.7, "--certify", TEXT, "--certify-windows", 8,
         "--report", report)
    got = json.loads(report.read_text())
    failures.check(got["bits_per_weight"] <= 4.7 and got["certificate"]["kl_mean"] < 0.01
                   and "rotated" in got["scheme"],
                   f"{got['scheme']}: {got['bits_per_weight']:.3f} bits,"
                   f" {got['certificate']['summary']}")
    failures.check(names(out) == ["m.so", "m.weights", "report.json"], f"{names(out)}")


def errors(failures, folder):
    so = folder / "out" / "m.so"
    so.parent.mkdir()

    def refused(what, source, *options, names=()):
        expect_error(failures, what, "sparkc", source, "-o", so, *options, names=names)
        failures.check(not list(so.parent.iterdir()), f"{what}: nothing is left")

    for kind in ("awq", "gptq"):
        stored_codes.make(folder / kind, kind, 64)
        refused(f"codes of {kind}", folder / kind, "--rotate",
                names=[folder / kind, "layers.0.q_k_v_proj", f"codes ({kind.upper()}4)", "rotated"])
    shape = dict(stored_codes.SHAPE, tied=True)
    shape.pop("dtype")
    mixed = folder / "mixed.gguf"
    gguf.make(mixed, shape, lambda name: "Q4_0" if name.endswith("down_proj") else "BF16")
    refused("one matrix of codes", mixed, "--rotate", "--weights", "q4",
            names=[mixed, "layers.0.down_proj", "codes (Q4_0)"])
    # Of weights that are no numbers the place is said, not where a rotation took them.
    for name, row in (("self_attn.out_proj", 3), ("mlp.up_proj", 3),
                      ("post_attention_layernorm", 0)):
        def poison(tensors):
            array = tensors[f"model.layers.0.{name}.weight"][1]
            array.reshape(-1, array.shape[-1])[row, 5] = np.nan
        bad, _ = small_model(folder / name, poison)
        for scheme in ("q4:g32", "f32"):
            refused(f"a NaN in {name}", bad, "--rotate", "--weights", scheme,
                    names=["layers.0." + name.split(".")[-1], f"row {row}, column 5 is NaN"])
    refused("seed 0", SPARK_TINY, "--rotate=0", names=["--rotate"])
    refused("no seed", SPARK_TINY, "--rotate=much", names=["--rotate"])
    text = folder / "spark.mlir"
    tool("sparkc", GOLDEN / "base", "--emit=spark", "-o", text)
    refused("the text of a stage", text, "--rotate", names=[text, "--rotate"])
    # Text that was changed: what is done to weights is checked.
    tool("sparkc", GOLDEN / "base", "--emit=step", "--rotate", "-o", text)
    good = text.read_text()
    for what, old, new, name in (
            ("another size", "rotate_in<size = 128,", "rotate_in<size = 120,", "120"),
            ("a norm that is not there", "fold<@norm>", "fold<@nothing>", "nothing"),
            ("a norm that counts twice", "through [#spark.folded]", "", "twice")):
        failures.check(old in good, f"{what}: {old}")
        text.write_text(good.replace(old, new, 1))
        refused(what, text, names=[name])


PARTS = {"golden": golden, "odd": odd, "stages": check_stages, "exports": exports,
         "calibrate": calibrate, "errors": errors}

if __name__ == "__main__":
    if sys.argv[1:2] == ["golden"] and sys.argv[2:]:
        found = Failures()
        with tempfile.TemporaryDirectory() as temporary:
            golden(found, pathlib.Path(temporary), sys.argv[2:])
        sys.exit(found.finish())
    sys.exit(run_parts(PARTS, __doc__))
