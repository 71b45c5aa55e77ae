"""One layer of the real 1.7B and 4B shapes against the float64 reference.

usage: real_shapes.py [1.7b|4b ...]

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import reference
from harness import ROOT, Failures, compile_model, read_model, run_logits


def main():
    failures = Failures()
    tokens = np.random.default_rng(1).integers(0, 1000, 12)
    for shapes in sys.argv[1:] or ("1.7b", "4b"):
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary)
            model = folder / "model"
            subprocess.run([ROOT / "scripts" / "synthetic", shapes, model, "--layers", "1",
                            "--vocab", "1000"], check=True)
            want = reference.forward(*read_model(model), tokens)
            so = compile_model(model, folder / "model.so", "--weights", "bf16", "--kv", "f32")
            got = run_logits(so, tokens, 1000, "-t", 1)
            failures.close(got, want, 3e-4, shapes)
            failures.same_bits(run_logits(so, tokens, 1000, "-t", 3), got,
                               f"{shapes}: three threads give the bits of one")
            failures.same_bits(run_logits(so, tokens, 1000, "-t", 2, "--decode"), got,
                               f"{shapes}: decode gives the bits of prefill")
    return failures.finish()


if __name__ == "__main__":
    sys.exit(main())
