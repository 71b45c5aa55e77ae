"""The text of a stage is the program: fed back it gives the same files.

usage: stages.py [CASE ...]

For each case: two compiles write the same bytes, and so does a compile that
goes on from the text of the spark, fused, step or llvm stage. A stage fed back
as text is also printed the same again.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import filecmp
import pathlib
import sys
import tempfile

from harness import GOLDEN, SPARK_TINY, Failures, compile_model, tool

STAGES = ("spark", "fused", "step", "llvm")
FLOATS, INT8_CACHE = ("--weights", "f32", "--kv", "f32"), ("--kv", "q8")
# Each case differs from "base" in what is read, not in what is made of it.
OPTIONS = {"base": [(), FLOATS, INT8_CACHE], "base-sharded": [()], "untied": [FLOATS],
           "odd-vocab": [INT8_CACHE]}


def same_model(failures, a, b, what):
    for suffix in (".so", ".weights"):
        x, y = a.with_suffix(suffix), b.with_suffix(suffix)
        failures.check(y.exists() and filecmp.cmp(x, y, shallow=False), f"{what}: same {suffix}")


def check_case(failures, case, options, folder):
    model = SPARK_TINY if case == "spark-tiny" else GOLDEN / case
    what = f"{case} {' '.join(options)}".strip()
    direct = compile_model(model, folder / "direct.so", *options)
    # Another folder and another name: neither may enter the bytes.
    other = folder / "elsewhere"
    other.mkdir()
    same_model(failures, direct, compile_model(model, other / "again.so", *options),
               f"{what}, compiled twice")
    for stage in STAGES:
        text = folder / f"{stage}.mlir"
        tool("sparkc", f"--emit={stage}", model, "-o", text, *options)
        same_model(failures, direct, compile_model(text, other / f"{stage}.so"),
                   f"{what}, from the {stage} stage")
        printed = tool("sparkc", f"--emit={stage}", text).stdout
        failures.check(printed == text.read_bytes(), f"{what}: {stage} text prints the same again")


def main():
    failures = Failures()
    for case in sys.argv[1:] or OPTIONS:
        for options in OPTIONS.get(case, [()]):
            with tempfile.TemporaryDirectory() as folder:
                check_case(failures, case, options, pathlib.Path(folder))
    return failures.finish()


if __name__ == "__main__":
    sys.exit(main())
