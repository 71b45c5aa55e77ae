"""Tiles belong to whoever uses them: a host with tiles of its own, and oneDNN.

usage: tiles.py

Runs tile_host, which alternates its own AMX code, prefills of a compiled model
and products by oneDNN on several threads, and checks each. Under the emulator
where the processor has no AMX (oneDNN then uses AVX-512).

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import pathlib
import sys
import tempfile

from harness import GOLDEN, Failures, compile_model, runs, tool
from isas import environment


def main():
    if not runs("amx"):
        return 77
    failures = Failures()
    with tempfile.TemporaryDirectory() as folder:
        so = compile_model(GOLDEN / "base", pathlib.Path(folder, "base.so"), "--isa=amx,avx2")
        result = tool("tile_host", so, ok=False, **environment("amx"))
        output = result.stdout.decode() + result.stderr.decode(errors="replace")
        failures.check(result.returncode == 0 and " hold" in output, output.strip()[-2000:])
    return failures.finish()


if __name__ == "__main__":
    sys.exit(main())
