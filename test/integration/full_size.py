"""The whole 1.7B model: what compiling it takes.

usage: full_size.py

The checkpoint is a sparse file: real shapes, all weights zero. Holds: its IR
prints in under a second of processor time and has no weight bytes in it; a bf16
compile, and one of rotated weights in 4 bits, keep their peak resident set,
mapped pages included, under 1.5 GB; a step has at most 145 barriers.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import re
import shutil
import struct
import sys
import tempfile

from harness import BIN, ROOT, Failures, tool

PEAK_BYTES = 1.5e9
PARAMETERS = 1_707_657_216


def load_synthetic():
    loader = importlib.machinery.SourceFileLoader("synthetic", str(ROOT / "scripts" / "synthetic"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("synthetic", loader))
    loader.exec_module(module)
    return module


def make_sparse(folder, layers=None):
    synthetic = load_synthetic()
    config = synthetic.make_config("1.7b", layers, 131072)
    header, offset = {}, 0
    for name, shape in synthetic.make_tensors(config):
        end = offset + 2 * synthetic.count(shape)
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [offset, end]}
        offset = end
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    with open(folder / "model.safetensors", "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + offset)
    return offset // 2


def run_measured(*arguments):
    """-> (exit status, processor seconds, peak resident bytes) of sparkc."""
    child = os.posix_spawn(BIN / "sparkc", ["sparkc", *map(str, arguments)], os.environ)
    _, status, usage = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def main():
    failures = Failures()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        model = folder / "model"
        failures.check(make_sparse(model) == PARAMETERS, f"{PARAMETERS} parameters")
        for stage in ("spark", "fused", "step"):
            text = folder / f"{stage}.mlir"
            tries = [run_measured(f"--emit={stage}", model, "-o", text) for _ in range(3)]
            seconds = min(s for _, s, _ in tries)
            failures.check(all(t[0] == 0 for t in tries) and seconds < 1,
                           f"{stage} stage prints in {seconds:.2f} s of processor time")
            size = text.stat().st_size
            failures.check(size < 500_000, f"{stage} stage is {size} bytes of text")

        need = 4 << 30
        if shutil.disk_usage(folder).free < need:
            print(f"skipped: the compile: {folder} has less than 4 GiB free")
            return failures.finish()
        so = folder / "model.so"
        status, seconds, peak = run_measured(model, "-o", so, "--weights", "bf16", "--quiet")
        failures.check(status == 0, f"compiles: status {status}, {seconds:.0f} s of processor time")
        failures.check(peak < PEAK_BYTES, f"peak resident set {peak / 1e9:.2f} GB")
        said = tool("sparkc-run", so, "--version").stdout.decode()
        barriers = int(re.search(r"(\d+) barriers", said).group(1))
        failures.check(barriers <= 145, f"{barriers} barriers a step")
        so.with_suffix(".weights").unlink()
        status, seconds, peak = run_measured(model, "-o", so, "--rotate", "--quiet")
        failures.check(status == 0, f"rotates: status {status}, {seconds:.0f} s of processor time")
        failures.check(peak < PEAK_BYTES, f"peak resident set {peak / 1e9:.2f} GB")
    return failures.finish()


if __name__ == "__main__":
    sys.exit(main())
