"""What the integration tests share: tools, safetensors files, comparisons.

Python 3 and numpy only. Each test is a program of its own: run it by hand with
the tools of build/bin, or of another build with SPARKC_BIN=FOLDER.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
GOLDEN = HERE / "golden"
SPARK_TINY = ROOT / "examples" / "spark-tiny"
BIN = pathlib.Path(os.environ.get("SPARKC_BIN", ROOT / "build" / "bin"))

# What close_until_tie allows where logits are of the order of 1 to 10.
MOVED = 2e-1
NEAR_TIE = 2e-4

# SPARKC_ISA=avx2 in the environment runs a test on that instruction set: models
# are compiled for it where the test does not say for what. (The variable is taken
# out of the environment, since objects for one CPU may not have it.)
ISA = os.environ.pop("SPARKC_ISA", None)

# What --isa=auto compiles for, best first.
AUTO = ("amx", "avx512vnni", "avxvnni", "avx2")

# Options of builds whose weights alone are looked at: no code for blocks.
WEIGHTS_ALONE = ("--quiet", "--prefill-block", 1)

DTYPES = {"F32": np.float32, "F16": np.float16, "BF16": np.uint16, "I32": np.int32}


class Failures:
    """Collects what does not hold, so that one run shows all of it."""

    def __init__(self):
        self.failed = 0
        self.checked = 0

    def check(self, ok, what):
        self.checked += 1
        if not ok:
            self.failed += 1
        print(f"{'ok    ' if ok else 'FAILED'} {what}", flush=True)
        return ok

    def close(self, got, want, bound, what):
        """Largest absolute difference at most bound; NaN is a failure."""
        if got.shape != want.shape:
            return self.check(False, f"{what}: shape {got.shape}, expected {want.shape}")
        error = float(np.max(np.abs(got.astype(np.float64) - want)))
        return self.check(error <= bound, f"{what}: error {error:.2e}, bound {bound:.0e}")

    def close_until_tie(self, got, want, nearest, bound, what):
        """For references that round as the model does: within the bound up to a
        token for which the reference itself came so close to a tie (nearest[T],
        in codes) that the model may have rounded to the other side; then within
        MOVED. A token that moves without such a tie is a failure."""
        error = np.abs(got - want).max(axis=1)
        moved = np.flatnonzero(~(error <= bound))
        exact = moved[0] if moved.size else len(error)
        note = f"{what}: {exact} of {len(error)} tokens within {error[:exact].max(initial=0):.1e}"
        if moved.size:
            note += (f"; then a number {nearest[exact]:.0e} from a tie moves logits by"
                     f" {error.max():.1e}")
        return self.check(bool(exact and error.max() <= MOVED
                               and (not moved.size or nearest[exact] <= NEAR_TIE)), note)

    def same_bits(self, got, want, what):
        if got.shape != want.shape:
            return self.check(False, f"{what}: shape {got.shape}, expected {want.shape}")
        different = np.flatnonzero((got.view(np.uint32) != want.view(np.uint32)).any(axis=1))
        note = "" if different.size == 0 else f": {different.size} rows differ, first {different[0]}"
        return self.check(different.size == 0, what + note)

    def finish(self):
        """Exit status for sys.exit."""
        if self.checked == 0:
            print("FAILED nothing was checked")
            return 1
        print(f"{self.checked - self.failed} of {self.checked} hold")
        return 1 if self.failed else 0


def run_parts(parts, usage):
    """Runs the parts that the command line names, or all of them: each is called
    with the Failures and a folder of its own. Exit status for sys.exit."""
    names = sys.argv[1:] or list(parts)
    unknown = [name for name in names if name not in parts]
    if unknown:
        sys.exit(f"{pathlib.Path(sys.argv[0]).name}: error: unknown part '{unknown[0]}'\n{usage}")
    failures = Failures()
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            parts[name](failures, pathlib.Path(folder))
    return failures.finish()


#--- Tools --------------------------------------------------------------------
def tool(name, *arguments, ok=True, under=(), **variables):
    """Runs a tool, under another program (qemu) if that is given, with variables
    added to its environment. With ok, anything but exit status 0 ends the test."""
    if ISA and name == "sparkc" and not any(
            str(a).startswith(("--isa", "--mcpu")) for a in arguments):
        arguments += (f"--isa={ISA}",)
    command = [*map(str, under), str(BIN / name), *map(str, arguments)]
    try:
        result = subprocess.run(command, capture_output=True, timeout=600,
                                env={**os.environ, **variables})
    except FileNotFoundError:
        sys.exit(f"FAILED {command[0]} does not exist: build it, or set SPARKC_BIN")
    if ok and result.returncode != 0:
        sys.exit(f"FAILED exit status {result.returncode}: {' '.join(command)}\n"
                 + result.stderr.decode(errors="replace")[-4000:])
    return result


def compile_model(source, output, *options):
    tool("sparkc", source, "-o", output, *options)
    return output


def run_logits(so, tokens, vocab, *options, **how):
    """Logits [T, vocab] of sparkc-run over the token ids; `how`: see tool."""
    with tempfile.TemporaryDirectory() as folder:
        ids, out = pathlib.Path(folder, "tokens"), pathlib.Path(folder, "logits")
        ids.write_text(" ".join(str(int(t)) for t in tokens) + "\n")
        tool("sparkc-run", so, "--tokens", ids, "--logits", out, *options, **how)
        data = np.fromfile(out, "<f4")
    if data.size != len(tokens) * vocab:
        sys.exit(f"FAILED {so}: {data.size} logits, expected {len(tokens)} x {vocab}")
    return data.reshape(len(tokens), vocab)


def expect_error(failures, what, name, *arguments, names=(), **how):
    """The tool ends with status 1 and one line that contains all of names; `how`:
    see tool."""
    result = tool(name, *arguments, ok=False, **how)
    lines = result.stderr.decode(errors="replace").splitlines()
    good = (result.returncode == 1 and len(lines) == 1
            and lines[0].startswith(f"{name}: error: ")
            and all(str(n) in lines[0] for n in names))
    said = lines[0] if len(lines) == 1 else f"{len(lines)} lines: {lines[:3]}"
    failures.check(good, f"{what}: status {result.returncode}, {said}")


#--- This machine -------------------------------------------------------------
def cpu_flags():
    return next(line for line in open("/proc/cpuinfo") if line.startswith("flags")).split()


def has_flag(flag, what):
    """Is it one of this machine's? If not, says that what is not run."""
    if flag in cpu_flags():
        return True
    print(f"not run on {what}: this machine lacks {flag}")
    return False


def runs(isa):
    """Does this machine run it, AMX emulated if need be?"""
    needs = {"amx": "avx512_vnni", "avx512vnni": "avx512_vnni", "avx512": "avx512vl",
             "avxvnni": "avx_vnni", "avx2": "avx2"}
    return has_flag(needs[isa], isa)


#--- Files --------------------------------------------------------------------
def read_safetensors(path):
    """name -> (dtype, array); BF16 stays as uint16 bit patterns."""
    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    tensors = {}
    for name, t in json.loads(data[8:8 + length]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + length + o for o in t["data_offsets"])
        array = np.frombuffer(data[begin:end], DTYPES[t["dtype"]]).reshape(t["shape"])
        tensors[name] = (t["dtype"], array)
    return tensors


def write_safetensors(path, tensors):
    """tensors: name -> (dtype, array), as read_safetensors gives them."""
    header, offset = {}, 0
    for name, (dtype, array) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(array.shape),
                        "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, array in tensors.values():
            file.write(np.ascontiguousarray(array).tobytes())


def read_model(folder):
    """(config, name -> (dtype, array)) of a checkpoint in one or more shards."""
    folder = pathlib.Path(folder)
    index = folder / "model.safetensors.index.json"
    shards = ["model.safetensors"]
    if index.exists():
        shards = sorted(set(json.loads(index.read_text())["weight_map"].values()))
    tensors = {}
    for shard in shards:
        tensors.update(read_safetensors(folder / shard))
    return json.loads((folder / "config.json").read_text()), tensors


def to_dtype(values, dtype):
    """float array -> stored array of the dtype, rounded to nearest even."""
    values = np.ascontiguousarray(values, np.float32)
    if dtype != "BF16":
        return values.astype(DTYPES[dtype])
    bits = values.view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def to_float64(dtype, array):
    if dtype == "BF16":
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float64)
