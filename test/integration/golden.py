"""Logits of a compiled model against the golden ones.

usage: golden.py [CASE ...]    (a folder of golden/, or spark-tiny; default all)

For each case: the fp32 build, and the bf16 build where the checkpoint is BF16,
with an fp32 KV cache; the stored weights with an f16 one and, against float64
on the same quantized keys and values, with an int8 one. Of each build, any
number of threads, decoding token by token and prefill in chunks must give the
bits of the first run.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import pathlib
import sys
import tempfile

import reference
from harness import (GOLDEN, SPARK_TINY, Failures, compile_model, read_model,
                     read_safetensors, run_logits)

# Largest absolute difference of a logit from the float64 reference.
BOUND = {"f32": 3e-4, "f16": 5e-2, "q8": 2e-5}
SPARK_TINY_BOUND = {"f32": 1e-3, "f16": 5e-2, "q8": 2e-5}


def variants(is_bf16):
    """(weights, kv) of the builds of a case."""
    yield "f32", "f32"
    if is_bf16:
        yield "bf16", "f32"
    yield "bf16" if is_bf16 else "f32", "f16"
    yield "bf16" if is_bf16 else "f32", "q8"


def check_case(failures, name, folder):
    model = SPARK_TINY if name == "spark-tiny" else GOLDEN / name
    bounds = SPARK_TINY_BOUND if name == "spark-tiny" else BOUND
    config, tensors = read_model(model)
    is_bf16 = all(dtype == "BF16" for dtype, _ in tensors.values())
    vocab = config["vocab_size"]
    golden = sorted((GOLDEN / name).glob("golden*.safetensors"))
    if not golden:
        failures.check(False, f"{name}: no golden logits")
    for number, (weights, kv) in enumerate(variants(is_bf16)):
        so = compile_model(model, folder / f"{name}-{weights}-{kv}.so",
                           "--weights", weights, "--kv", kv)
        for file in golden:
            data = read_safetensors(file)
            tokens, want = data["tokens"][1], data["logits"][1]
            what = f"{name}, weights {weights}, kv {kv}, T={len(tokens)}"
            got = run_logits(so, tokens, vocab, "-t", 1)
            if kv == "q8":
                cache = reference.Int8Cache()
                want = reference.forward(config, tensors, tokens, cache=cache)
                failures.close_until_tie(got, want, cache.nearest(), bounds["q8"], what)
            else:
                failures.close(got, want, bounds[kv], what)
            # All of it on the first build; the others share its schedule.
            for threads in (2, 3, 4, 7) if number == 0 else (3, 7):
                failures.same_bits(run_logits(so, tokens, vocab, "-t", threads), got,
                                   f"{what}: {threads} threads give the bits of one")
            failures.same_bits(run_logits(so, tokens, vocab, "-t", 2, "--decode"), got,
                               f"{what}: decode gives the bits of prefill")
            for chunk in (1, 7, 16) if number == 0 else (7,):
                failures.same_bits(
                    run_logits(so, tokens, vocab, "-t", 2, "--prefill-chunk", chunk), got,
                    f"{what}: prefill in chunks of {chunk} gives the bits of one")


def main():
    cases = sys.argv[1:] or sorted(p.name for p in GOLDEN.iterdir() if p.is_dir())
    failures = Failures()
    with tempfile.TemporaryDirectory() as folder:
        for case in cases:
            check_case(failures, case, pathlib.Path(folder))
    return failures.finish()


if __name__ == "__main__":
    sys.exit(main())
