"""The loops that stream weights, as AVX-512-VNNI builds have them.

usage: inner_loop.py

Disassembles builds with LLVM's objdump (they need not run here). In each kernel
that the linear phases call, the innermost loop takes a block of lines of each
tile: a 4-bit line is one load, one and, one shift and and, and two vpdpbusd whose
activation is a broadcast from memory, with one prefetch; and nothing is spilled.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import random_models
from harness import SPARK_TINY, Failures, compile_model, tool

OBJDUMP = next((path for path in ("/usr/lib/llvm-22/bin/llvm-objdump",
                                  shutil.which("llvm-objdump")) if path and os.path.exists(path)),
               None)
PHASES = [f"layer.{kind}.{phase}" for kind in ("sliding", "full")
          for phase in ("q_k_v_proj", "out_proj", "gate_proj", "down_proj")] + ["step.head"]
BATCH = 4  # groups
LONG = dict(hidden=512, inter=1024, heads=2, kv=1, head_dim=256, vocab=32,
            layers=["sliding_attention", "full_attention"], window=64, rotary=(1.0, 0.25),
            context=128, T=1)
MEMORY = re.compile(r"(?:-?0x[0-9a-f]+)?\([^)]*\)")
STACK = re.compile(r"\(%r[sb]p")


class Instruction:
    def __init__(self, address, text):
        self.address, self.text = address, text
        self.name, _, rest = text.partition("\t")
        # Operands in AT&T order, the destination last; commas in parentheses
        # belong to an address.
        self.operands = re.findall(r"(?:[^,(]|\([^)]*\))+", rest.split("#")[0].strip())
        self.operands = [operand.strip() for operand in self.operands]

    @property
    def memory(self):
        """The operand in memory, if there is one."""
        return next((o for o in self.operands if MEMORY.search(o)), None)

    @property
    def is_whole_load(self):
        """Reads 64 bytes."""
        return (self.memory is not None and "{1to" not in self.memory
                and self.operands[-1].startswith("%zmm")
                and not re.match(r"vp?(movzx|movsx|broadcast)|vcvtph2ps|vcvt.*ph", self.name))

    @property
    def is_store(self):
        """Writes a vector."""
        return (self.memory is not None and self.name.startswith("v")
                and self.memory == self.operands[-1])

    @property
    def is_spill(self):
        """Keeps or fetches a vector on the stack; broadcasts read activations."""
        if not (self.memory and STACK.search(self.memory) and self.name.startswith("v")):
            return False
        return self.is_store or "{1to" not in self.memory and "broadcast" not in self.name


def functions(so):
    """name -> instructions."""
    text = subprocess.run([OBJDUMP, "--disassemble", "--no-show-raw-insn", so], check=True,
                          capture_output=True, text=True).stdout
    found = collections.defaultdict(list)
    name = None
    for line in text.splitlines():
        if match := re.match(r"[0-9a-f]+ <(.*)>:$", line):
            name = match[1]
        elif match := re.match(r"\s*([0-9a-f]+):\s+(.*)$", line):
            found[name].append(Instruction(int(match[1], 16), match[2]))
    return found


def inner_loops(code):
    """The innermost loops: runs from a jump's target back to the jump."""
    loops = []
    for i, instruction in enumerate(code):
        if instruction.name.startswith("j"):
            target = int(instruction.operands[0].split()[0], 16)
            if target <= instruction.address:
                begin = next(j for j, other in enumerate(code) if other.address >= target)
                loops.append((begin, i))
    return [code[begin:end + 1] for begin, end in loops
            if not any((b, e) != (begin, end) and begin <= b and e <= end for b, e in loops)]


def jumps_to(code):
    """The function that this one is a jump to, or None."""
    match = code[0].name == "jmp" and re.search(r"<([^>+]*)>", code[0].text)
    return match[1] if match else None


def shapes_expected(step, layout):
    """Phase -> the (cols, group) of the tiles that it reads one token's way."""
    expected = collections.defaultdict(set)
    function = phase = None
    for line in step.splitlines():
        if match := re.match(r'\s*step.func (?:entry )?@([\w.]+)', line):
            function = match[1]
        elif match := re.match(r'\s*step.phase "(\w+)"', line):
            phase = f"{function}.{match[1]}"
        elif match := re.match(
                rf'\s*step.tiles .* layout "tile16_{layout}" cols (\d+) group (\d+) units', line):
            expected[phase].add((int(match[1]), int(match[2])))
    return expected


def shape_of(kernel):
    """dot_NAME.COLS.GROUP...COUNT -> cols, group, how many tiles side by side."""
    parts = kernel.split(".")
    return int(parts[1]), int(parts[2]), int(parts[-1])


def check_kernel(failures, what, code, bits, cols, group, count):
    """A loop over blocks for the whole batches of groups, and one for the groups
    behind them, where there are such."""
    groups = -(-cols // group)
    loops = [loop for loop in inner_loops(code) if any(i.name == "vpdpbusd" for i in loop)]
    failures.check(len(loops) == (groups >= BATCH) + (groups % BATCH > 0),
                   f"{what}: {len(loops)} loops over blocks of {groups} groups")
    dots = [i for i in code if i.name == "vpdpbusd"]
    failures.check(len(dots) == sum(i.name == "vpdpbusd" for loop in loops for i in loop),
                   f"{what}: {len(dots)} vpdpbusd, some outside of the loops")
    spills = [i.text for i in code if i.is_spill]
    failures.check(not spills, f"{what}: spills {spills or 'nothing'}")
    for loop in loops:
        names = collections.Counter(
            "vpand" if i.name in ("vpandd", "vpandq", "vpand")
            else "vpsrl" if i.name in ("vpsrld", "vpsrlw", "vpsrlq")
            else "prefetch" if i.name.startswith("prefetch")
            else "load" if i.is_whole_load else i.name for i in loop)
        # Of Q5 and Q6 one line is a plane, which no product reads.
        lines = count * {4: 1, 5: 5, 6: 3, 8: 2}[bits]
        products = count * {4: 2, 5: 8, 6: 4, 8: 2}[bits]
        expected = {"vpdpbusd": products, "prefetch": lines}
        if bits == 4:
            expected |= {"load": lines, "vpand": 2 * lines, "vpsrl": lines}
        for kind, number in expected.items():
            failures.check(names[kind] == number, f"{what}: {names[kind]} {kind}, not {number}")
        broadcast = [i for i in loop if i.name == "vpdpbusd" and "{1to16}" in i.operands[0]
                     and MEMORY.search(i.operands[0])]
        failures.check(len(broadcast) == products,
                       f"{what}: {len(broadcast)} of {products} with a broadcast memory operand")
        if bits == 4:
            # A counter, and the jump.
            others = len(loop) - sum(expected.values())
            failures.check(others <= 4, f"{what}: {others} other instructions in the loop")
    return len(loops)


def check(failures, name, so, step, layout, streams):
    """What streams weights has one tile, or up to `streams` side by side."""
    code = functions(so)
    expected = shapes_expected(step, layout)
    kernels = set()
    for phase in PHASES:
        if phase not in code:
            continue
        what = f"{name} {layout}, {phase}"
        # Kinds of layers may share a phase's code.
        if shared := jumps_to(code[phase]):
            failures.check(shared in PHASES and expected[shared] == expected[phase],
                           f"{what}: the code of {shared}")
            continue
        called = {match[1] for i in code[phase] if i.name.startswith("call")
                  and (match := re.search(r"<(dot_[^>+]*)>", i.text))}
        failures.check({shape_of(kernel)[:2] for kernel in called} == expected[phase]
                       and expected[phase], f"{what}: calls {sorted(called)}")
        failures.check(all(kernel.startswith(f"dot_{layout}_avx512vnni.") for kernel in called),
                       f"{what}: kernels of {layout}")
        kernels |= called
    counts = {shape_of(kernel)[2] for kernel in kernels}
    failures.check(counts == set(range(1, streams + 1)),
                   f"{name} {layout}: kernels for {sorted(counts)} tiles side by side")
    bits = int(layout[1])
    return sum(check_kernel(failures, f"{name}, {kernel}", code[kernel], bits, *shape_of(kernel))
               for kernel in sorted(kernels))


def main():
    if not OBJDUMP:
        sys.exit("FAILED llvm-objdump is not installed")
    failures = Failures()
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        random_models.make(folder / "long", **LONG)
        for name, model in (("spark-tiny", SPARK_TINY), ("long", folder / "long")):
            for layout in ("q4", "q5", "q6", "q8", "q4s", "q5s", "q6s", "q8s"):
                weights = layout.replace("s", ":g64:sym")
                # Two tiles side by side and one, for two sizes of K; one alone.
                for cpu, streams in (("cascadelake", 2), ("znver5", 1)):
                    options = ("--weights", weights, "--mcpu", cpu)
                    so = compile_model(model, folder / f"{name}-{layout}.so", "--quiet", *options)
                    step = tool("sparkc", model, "--emit=step", *options).stdout.decode()
                    loops = check(failures, f"{name} on {cpu}", so, step, layout, streams)
                    failures.check(loops >= 2 * streams,
                                   f"{name} {layout} on {cpu}: {loops} loops over blocks")
    return failures.finish()


if __name__ == "__main__":
    sys.exit(main())
