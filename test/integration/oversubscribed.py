"""More threads than processors: slower, but not by much.

usage: oversubscribed.py

Four layers of the 1.7B shapes; seven threads take at most three times as long
as the best of one and two.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

from harness import ROOT, Failures, compile_model, run_logits


def main():
    failures = Failures()
    tokens = np.random.default_rng(2).integers(0, 2000, 48)
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        subprocess.run([ROOT / "scripts" / "synthetic", "1.7b", folder / "model", "--layers", "4",
                        "--vocab", "2000"], check=True)
        so = compile_model(folder / "model", folder / "model.so", "--weights", "bf16")
        seconds, first = {}, None
        for repetition in range(3):
            for threads in (1, 2, 7):
                begin = time.monotonic()
                logits = run_logits(so, tokens, 2000, "-t", threads, "--decode")
                took = time.monotonic() - begin
                seconds[threads] = min(took, seconds.get(threads, took))
                first = logits if first is None else first
                failures.same_bits(logits, first, f"{threads} threads, {took:.2f} s")
    best = min(seconds[1], seconds[2])
    failures.check(seconds[7] <= 3 * best,
                   f"7 threads take {seconds[7]:.2f} s, the best of 1 and 2 {best:.2f} s")
    return failures.finish()


if __name__ == "__main__":
    sys.exit(main())
