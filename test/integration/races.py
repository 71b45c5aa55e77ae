"""ThreadSanitizer over the generated step.

usage: races.py    (SPARKC_SPMD_HOST_TSAN: spmd_host built with ThreadSanitizer)

A model compiled with --sanitize=thread runs without a report; with any one
barrier taken out of a layer it does not.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import os
import pathlib
import re
import sys
import tempfile

from harness import BIN, GOLDEN, Failures, compile_model, read_safetensors, tool
from spmd import run_host

HOST = pathlib.Path(os.environ.get("SPARKC_SPMD_HOST_TSAN", BIN / "spmd_host_tsan"))
BARRIER = re.compile(r"^ *step\.barrier\b.*\n", re.MULTILINE)
REPORT = "WARNING: ThreadSanitizer: data race"


def main():
    if not HOST.exists():
        print(f"no {HOST}: clang-22 with ThreadSanitizer's runtime is not installed")
        return 77
    failures = Failures()
    data = read_safetensors(GOLDEN / "base" / "golden.safetensors")
    tokens, vocab = data["tokens"][1][:24], data["logits"][1].shape[1]
    options = ("--sanitize=thread", "--kv", "f32")
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        text = folder / "step.mlir"
        tool("sparkc", "--emit=step", GOLDEN / "base", "-o", text, *options)
        whole = text.read_text()
        so = compile_model(text, folder / "whole.so", "--sanitize=thread")
        for threads in (2, 3):
            result, _ = run_host(HOST, so, tokens, threads, vocab=vocab)
            failures.check(result.returncode == 0 and REPORT not in result.stderr,
                           f"{threads} threads: no report (status {result.returncode})"
                           + result.stderr[:2000])
        barriers = list(BARRIER.finditer(whole))
        failures.check(len(barriers) >= 5, f"{len(barriers)} barriers in the text")
        for number, barrier in enumerate(barriers):
            text.write_text(whole[:barrier.start()] + whole[barrier.end():])
            so = compile_model(text, folder / f"without-{number}.so", "--sanitize=thread")
            # A race shows when threads really are apart: a few tries.
            found = any(REPORT in run_host(HOST, so, tokens, 3, vocab=vocab)[0].stderr
                        for _ in range(5))
            failures.check(found, f"without barrier {number}: a data race is reported")
    return failures.finish()


if __name__ == "__main__":
    sys.exit(main())
