"""Greedy texts of spark-tiny against those of the float64 reference.

usage: greedy.py

The first prompt meets two tokens 0.0008 apart and may branch there; of the
others, every text must match to its end (EOS or 64 tokens).

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import json
import pathlib
import sys
import tempfile

from harness import GOLDEN, SPARK_TINY, Failures, compile_model, tool

# Two logits closer than this may change places between float32 and float64.
MARGIN = 2e-3


def main():
    failures = Failures()
    cases = json.loads((GOLDEN / "spark-tiny" / "greedy.json").read_text())
    with tempfile.TemporaryDirectory() as folder:
        for weights in ("f32", "bf16"):
            so = compile_model(SPARK_TINY, pathlib.Path(folder, f"{weights}.so"),
                               "--weights", weights, "--kv", "f32")
            for case in cases:
                result = tool("sparkc-run", so, "-p", case["prompt"], "-n", 64, "--temp", 0)
                text = result.stdout.decode().rstrip("\n")
                matches = text == (case["prompt"] + case["text"]).rstrip("\n")
                what = f"weights {weights}: {case['prompt']!r}"
                if not matches and case["min_top2_margin"] < MARGIN:
                    print(f"branch {what} (margin {case['min_top2_margin']:.4f}): {text!r}")
                    continue
                failures.check(matches, what if matches else
                               f"{what}: wrote {text!r}, expected to go on {case['text']!r}")
    return failures.finish()


if __name__ == "__main__":
    sys.exit(main())
