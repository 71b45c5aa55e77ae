"""A model and weights that do not belong together are refused at open.

usage: pairs.py

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import pathlib
import shutil
import struct
import sys
import tempfile

from harness import GOLDEN, Failures, compile_model, expect_error, run_logits


def main():
    failures = Failures()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        options = ("--weights", "f32", "--kv", "f32")
        for case in ("base", "f16", "untied"):
            compile_model(GOLDEN / case, folder / f"{case}.so", *options)
        compile_model(GOLDEN / "base", folder / "base-bf16.so", "--weights", "bf16", "--kv", "f32")
        tokens = folder / "tokens"
        tokens.write_text("1 2 3\n")

        def refused(what, so, weights=None, change=None, reason=""):
            """so beside a copy of weights (None: no file), changed by change."""
            pair = folder / "pair"
            shutil.rmtree(pair, ignore_errors=True)
            pair.mkdir()
            shutil.copy(folder / f"{so}.so", pair / "model.so")
            if weights:
                data = bytearray((folder / f"{weights}.weights").read_bytes())
                (pair / "model.weights").write_bytes(change(data) if change else data)
            arguments = (pair / "model.so", "--tokens", tokens, "--logits", pair / "logits")
            expect_error(failures, what, "sparkc-run", *arguments, names=("model.weights", reason))
            failures.check(not (pair / "logits").exists(), f"{what}: no output")

        def flipped(at):
            def change(data):
                data[at] ^= 1
                return data
            return change

        def newer(data):
            data[8:12] = struct.pack("<I", 99)
            return data

        refused("no weights", "base")
        refused("weights of the same shapes, other values", "base", "f16")
        refused("weights of another shape", "base", "untied")
        refused("the same weights in another type", "base", "base-bf16")
        refused("empty weights", "base", "base", lambda data: b"")
        refused("weights cut short", "base", "base", lambda data: data[:-1])
        refused("half of the header", "base", "base", lambda data: data[:100])
        refused("another magic", "base", "base", flipped(0))
        refused("a newer version", "base", "base", newer, reason="version")
        # And the right pair still opens under another name.
        for suffix in (".so", ".weights"):
            shutil.copy(folder / f"base{suffix}", folder / f"renamed{suffix}")
        want = run_logits(folder / "base.so", [1, 2, 3], 512)
        failures.same_bits(run_logits(folder / "renamed.so", [1, 2, 3], 512), want,
                           "a pair under another name")
    return failures.finish()


if __name__ == "__main__":
    sys.exit(main())
