"""The step on a host's own threads, through nothing but the ABI header.

usage: spmd.py [CASE ...]    (SPARKC_SPMD_HOST: the built spmd_host)

The logits have the bits of sparkc-run for any number of threads, sleeping or
spinning; a step runs as many barriers as its descriptor says, and at most five
a layer and five more.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np

from harness import BIN, GOLDEN, ISA, SPARK_TINY, Failures, compile_model, read_model, read_safetensors, run_logits

HOST = pathlib.Path(os.environ.get("SPARKC_SPMD_HOST", BIN / "spmd_host"))


def run_host(host, so, tokens, threads, *options, vocab):
    """-> (completed process, logits or None)"""
    with tempfile.TemporaryDirectory() as folder:
        ids, out = pathlib.Path(folder, "tokens"), pathlib.Path(folder, "logits")
        ids.write_text(" ".join(map(str, tokens)))
        result = subprocess.run(
            [host, so, so.with_suffix(".weights"), str(threads), ids, out, *options],
            capture_output=True, text=True, errors="replace", timeout=600)
        if not out.exists():
            return result, None
        return result, np.fromfile(out, "<f4").reshape(-1, vocab)


def check_case(failures, case, folder):
    model = SPARK_TINY if case == "spark-tiny" else GOLDEN / case
    config, _ = read_model(model)
    vocab, layers = config["vocab_size"], config["num_hidden_layers"]
    tokens = read_safetensors(GOLDEN / case / "golden.safetensors")["tokens"][1][:48]
    # The host takes the first entry: for one instruction set there is one.
    so = compile_model(model, folder / f"{case}.so", *([f"--isa={ISA}"] if ISA else []))
    want = run_logits(so, tokens, vocab, "-t", 1)
    for threads, *options in ((1,), (2,), (3,), (4,), (7,), (2, "spin")):
        what = f"{case}, {threads} threads {''.join(options)}".strip()
        result, got = run_host(HOST, so, tokens, threads, *options, vocab=vocab)
        if not failures.check(result.returncode == 0 and got is not None,
                              f"{what}: status {result.returncode} {result.stderr.strip()}"):
            continue
        failures.same_bits(got, want, f"{what}: the bits of sparkc-run")
        total, each = map(int, re.match(r"barriers (\d+) per step (\d+)", result.stdout).groups())
        failures.check(total == each * len(tokens),
                       f"{what}: {total} barriers in {len(tokens)} steps of {each}")
        if threads == 1:
            counts = set(result.stdout.split("each")[1].split())
            failures.check(counts == {str(each)}, f"{what}: each step runs {counts} barriers")
            failures.check(each <= 5 * layers + 5, f"{what}: {each} barriers for {layers} layers")


def main():
    failures = Failures()
    with tempfile.TemporaryDirectory() as folder:
        for case in sys.argv[1:] or ("base", "head-dim-256", "spark-tiny"):
            check_case(failures, case, pathlib.Path(folder))
    return failures.finish()


if __name__ == "__main__":
    sys.exit(main())
