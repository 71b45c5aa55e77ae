"""Code for several instruction sets: one object with all, and each of them.

usage: isas.py [PART ...] [--full]    (fat, cross, errors, amx, fallback, old;
                                       default all)

Of one object every instruction set gives the same bits. AMX runs with the
emulator preloaded where the processor has none, AVX2 and the refusal of less
under qemu-x86_64. --full: `amx` takes all golden cases and blocks of 1 to 65
tokens, `old` all golden cases (minutes).

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import ctypes
import json
import pathlib
import re
import shutil
import sys
import tempfile
import time

import numpy as np

import quantized
import random_models
from closed_object import disassemble, run as run_llvm
from harness import (AUTO, BIN, GOLDEN, HERE, SPARK_TINY, Failures, compile_model,
                     cpu_flags, expect_error, read_safetensors, run_logits, runs, tool)

EMULATOR = BIN.parent / "lib" / "amx-emulator.so"
FULL = "--full" in sys.argv
CODE_BYTES = 4_000_000
OPEN_SECONDS = 5e-3

F, S = random_models.F, random_models.S


def environment(isa, mode=None):
    """What runs an object on that instruction set."""
    variables = {"SPARKC_ISA": isa}
    if isa == "amx":
        variables["LD_PRELOAD"] = str(EMULATOR)
        if mode:
            variables["AMX_EMULATOR"] = mode
    return variables


def emulated(so, *options):
    """What the emulator counted in a run of sparkc-run; empty on real AMX."""
    error = tool("sparkc-run", so, *options, **environment("amx", "count")).stderr.decode()
    found = re.search(r"amx-emulator: (.*)", error)
    words = found.group(1).split() if found else []
    return dict(zip(words[::2], map(int, words[1::2])))


def spark_tiny(folder):
    """spark-tiny in q4 for all instruction sets; compiled once for all parts."""
    so = folder / "spark-tiny.so"
    if not so.exists():
        compile_model(SPARK_TINY, so, "--weights", "q4", "--isa=auto")
    return so


def spark_tiny_tokens():
    return read_safetensors(GOLDEN / "spark-tiny" / "golden.safetensors")["tokens"][1]


#--- One object with all ------------------------------------------------------
def registers(functions, prefix):
    """Which kinds of registers the code of one instruction set uses."""
    return {register for name, code in functions.items() if name.startswith(prefix)
            for _, operands in code for register in re.findall(r"%([xyzt]mm)", operands)}


def mnemonics(functions, prefix):
    # AVX-VNNI reads "{vex} vpdpbusd ...".
    return {operands.split()[0] if mnemonic == "{vex}" else mnemonic
            for name, code in functions.items() if name.startswith(prefix)
            for mnemonic, operands in code}


def section_bytes(so, *names):
    total = 0
    for line in run_llvm("llvm-readelf", "-SW", so).splitlines():
        row = re.match(r"\s*\[\s*\d+\]\s+(\S+)\s+\S+\s+\S+\s+\S+\s+([0-9a-f]+)", line)
        if row and row.group(1) in names:
            total += int(row.group(2), 16)
    return total


def open_seconds(so):
    """Median of some calls of sparkc_open."""
    lib = ctypes.CDLL(str(BIN.parent / "lib" / "libsparkc.so"))
    times = []
    for _ in range(15):
        model = ctypes.c_void_p()
        begin = time.perf_counter()
        status = lib.sparkc_open(str(so).encode(), None, None, ctypes.byref(model), None)
        times.append(time.perf_counter() - begin)
        if status != 0:
            sys.exit(f"FAILED sparkc_open: status {status}")
        lib.sparkc_close(model)
    return sorted(times)[len(times) // 2]


def fat(failures, folder):
    so = spark_tiny(folder)
    vocab, tokens = 4096, spark_tiny_tokens()[:150]

    # Every instruction set its own code, and no other's.
    functions = disassemble(so)
    for isa in AUTO:
        used, ops = registers(functions, isa + "."), mnemonics(functions, isa + ".")
        wide = isa in ("amx", "avx512vnni")
        failures.check(("zmm" in used) == wide and ("tmm" in used) == (isa == "amx"),
                       f"{isa}: registers {sorted(used)}")
        failures.check(("vpdpbusd" in ops) == (isa != "avx2")
                       and bool({"tdpbssd", "tdpbsud"} & ops) == (isa == "amx"),
                       f"{isa}: its products, and no better ones")
    strangers = [name for name in functions if not name.startswith(tuple(a + "." for a in AUTO))]
    failures.check(not strangers, f"functions of no instruction set: {strangers[:3]}")

    # Decoding of the AMX variant is that of AVX-512-VNNI.
    decode = {name.split(".", 1)[1]: code for name, code in functions.items()
              if name.startswith("amx.") and "gemm" not in name}
    failures.check(not any("tmm" in operands for code in decode.values() for _, operands in code),
                   "amx: tiles in block kernels alone")

    code = section_bytes(so, ".text", ".rodata")
    failures.check(0 < code < CODE_BYTES, f"{code} bytes of code, at most {CODE_BYTES}")
    seconds = open_seconds(so)
    failures.check(seconds < OPEN_SECONDS, f"opened in {1e3 * seconds:.2f} ms")

    # The weights are those of an object for one.
    one = compile_model(SPARK_TINY, folder / "one.so", "--weights", "q4", "--mcpu", "x86-64-v3")
    failures.check(so.with_suffix(".weights").read_bytes()
                   == one.with_suffix(".weights").read_bytes(), "the same file of weights")
    want = run_logits(one, tokens, vocab, "-t", 2)
    for isa in filter(runs, AUTO):
        how = environment(isa)
        for options in (("-t", 2), ("-t", 3, "--decode")):
            failures.same_bits(run_logits(so, tokens, vocab, *options, **how), want,
                               f"{isa} {' '.join(map(str, options))}: the bits of x86-64-v3")
        said = tool("sparkc-run", so, "--version", **how).stdout.decode()
        failures.check(f"isa        {isa}: forced by SPARKC_ISA" in said,
                       f"{isa}: sparkc-run --version says so")
        rows = json.loads(tool("sparkc-bench", so, "-r", 1, "-n", 2, "-p", 0, "--ceiling-memory",
                               16, "-o", "json", **how).stdout)
        failures.check(rows[0]["isa"] == isa, f"{isa}: sparkc-bench says so")
    # Unforced, the best; and why.
    best = next(isa for isa in AUTO if isa != "amx" and runs(isa))
    said = tool("sparkc-run", so, "--version").stdout.decode()
    failures.check("amx_int8" in cpu_flags() or f"isa        {best}: best of those compiled in "
                   f"({', '.join(AUTO)})" in said, f"unforced: {best}")
    failures.check("compiled by" in said and "for " + ", ".join(AUTO) in said,
                   "--version names what it is compiled for")
    # Some, in any order: the best comes first.
    two = compile_model(GOLDEN / "base", folder / "two.so", "--isa=avx2,avx512vnni")
    said = tool("sparkc-run", two, "--version", SPARKC_ISA="avx2").stdout.decode()
    failures.check("for avx512vnni, avx2" in said and "isa        avx2" in said, "avx2,avx512vnni")
    expect_error(failures, "an instruction set that is not in the object", "sparkc-run", two,
                 "--version", names=("no code for SPARKC_ISA=avxvnni", "avx512vnni, avx2"),
                 SPARKC_ISA="avxvnni")


#--- Compiling for other machines; mistakes -----------------------------------
def cross(failures, folder):
    # Text goes on to the same bytes, for all instruction sets.
    model = GOLDEN / "base"
    vocab = json.loads((model / "config.json").read_text())["vocab_size"]
    so = compile_model(model, folder / "whole.so", "--isa=auto")
    for stage in ("step", "llvm"):
        text = folder / f"{stage}.mlir"
        tool("sparkc", model, f"--emit={stage}", "-o", text, "--isa=auto")
        again = compile_model(text, folder / f"{stage}.so", "--isa=auto")
        failures.check(again.read_bytes() == so.read_bytes(), f"from the {stage} stage: the same")
    # Any host compiles for any other.
    for cpu, has in (("sapphirerapids", "amx"), ("znver4", "avx512vnni"),
                     ("cascadelake", "avx512vnni"), ("skylake-avx512", None),
                     ("alderlake", "avxvnni"), ("haswell", "avx2")):
        so = compile_model(model, folder / f"{cpu}.so", "--mcpu", cpu)
        if cpu == "sapphirerapids" and "amx_int8" not in cpu_flags():
            expect_error(failures, "AMX without AMX", "sparkc-run", so, "--version",
                         names=(so, "amx: not on this machine"))
        if has and runs(has) and cpu != "sapphirerapids":
            logits = run_logits(so, range(40), vocab)
            failures.check(np.isfinite(logits).all(), f"{cpu}: runs here")


def errors(failures, folder):
    out = folder / "x.so"
    for text, names in (("avx3", ("--isa", "'avx3'")), ("amx,", ("--isa", "''")),
                        ("avx2,amx,avx2", ("--isa", "'avx2'", "twice")),
                        ("auto,avx2", ("--isa", "'auto'")), ("AMX", ("--isa", "'AMX'")),
                        ("", ("--isa",))):
        expect_error(failures, f"--isa={text}", "sparkc", GOLDEN / "base", "-o", out,
                     f"--isa={text}", names=names)
    expect_error(failures, "--isa with --mcpu", "sparkc", GOLDEN / "base", "-o", out, "--isa=avx2",
                 "--mcpu=haswell", names=("--isa", "--mcpu"))
    text = folder / "llvm.mlir"
    tool("sparkc", GOLDEN / "base", "--emit=llvm", "-o", text, "--isa=avx2,avxvnni")
    expect_error(failures, "text for others", "sparkc", text, "-o", out, "--isa=avx2,amx",
                 names=("amx.sparkc_step",))
    failures.check(not out.exists(), "no output")
    so = compile_model(GOLDEN / "base", folder / "base.so", "--isa=avx2")
    expect_error(failures, "an unknown SPARKC_ISA", "sparkc-run", so, "--version",
                 names=("SPARKC_ISA=avx3",), SPARKC_ISA="avx3")


#--- AMX ----------------------------------------------------------------------
def same_as_vnni(failures, what, so, vocab, tokens, runs_of=((), ("-t", 3))):
    want = run_logits(so, tokens, vocab, "-t", 2, **environment("avx512vnni"))
    for options in runs_of:
        failures.same_bits(run_logits(so, tokens, vocab, *options, **environment("amx")), want,
                           f"{what} {' '.join(map(str, options))}: amx gives the bits of avx512vnni")


def amx(failures, folder):
    if not runs("amx"):
        return
    both = "--isa=amx,avx512vnni"
    so, tokens = spark_tiny(folder), spark_tiny_tokens()
    same_as_vnni(failures, "spark-tiny q4", so, 4096, tokens[:100], (("-t", 1), ("-t", 2)))
    ids = folder / "tokens"
    ids.write_text(" ".join(map(str, tokens[:40])))
    counted = emulated(so, "--tokens", ids, "--logits", folder / "logits", "-t", 2)
    if "amx_int8" in cpu_flags():
        failures.check(not counted, "the emulator is off")
    else:
        failures.check(counted.get("tdpbssd", 0) > 100 and counted["ldtilecfg"] > 0
                       and counted["tilerelease"] == counted["ldtilecfg"],
                       f"tiles are used, and released as often as configured: {counted}")
        decode = emulated(so, "--tokens", ids, "--logits", folder / "logits", "--decode")
        failures.check(not any(decode.values()), "decoding uses no tiles")

    # Blocks of every size: full rounds of tokens, and what is left of one.
    narrow = dict(quantized.SMALL, dtype="F32", heads=24, context=256, T=70)
    model = folder / "blocks"
    config, _, short = random_models.make(model, **narrow)  # gate rows 24, K 96
    so = compile_model(model, folder / "blocks.so", both, "--weights", "q4:g32",
                       "--weights-for", "*.down_proj=q8", "--weights-for", "*.out_proj=q5:g128",
                       "--weights-for", "lm_head=q6:g64", "--prefill-block", 65)
    want = run_logits(so, short, config["vocab_size"], **environment("avx512vnni"))
    sizes = range(1, 66) if FULL else (2, 3, 5, 16, 17, 31, 33, 48, 64, 65)
    for size in sizes:
        got = run_logits(so, short, config["vocab_size"], "--prefill-chunk", size, "-t", 2,
                         **environment("amx"))
        failures.same_bits(got, want, f"blocks of {size}")

    # Odd widths: K of 2880, gate rows 8, padded groups.
    grids = {"small": ("q6:g128",), "wide-rows": ("q4",),
             "deep-rows": ("q8:g32", "--weights-for", "lm_head=q4:g128"), "narrow": ("q5:g32",)}
    for name in grids:
        model = folder / name
        config, _, short = random_models.make(model, **quantized.MODELS[name])
        for options in grids.values() if FULL else (grids[name],):
            so = compile_model(model, folder / "odd.so", both, "--weights", *options)
            same_as_vnni(failures, f"{name} {options[0]}", so, config["vocab_size"], short,
                         (("-t", 2),))

    cases = sorted(p.name for p in GOLDEN.iterdir() if p.is_dir() and p.name != "spark-tiny")
    for case in cases if FULL else ("head-dim-256", "window-edge"):
        model = GOLDEN / case
        vocab = json.loads((model / "config.json").read_text())["vocab_size"]
        for weights in ("q4", "q8") if FULL else ("q4",):
            so = compile_model(model, folder / "case.so", both, "--weights", weights)
            for file in sorted(model.glob("golden*.safetensors")):
                tokens = read_safetensors(file)["tokens"][1]
                same_as_vnni(failures, f"{case} {weights}, T={len(tokens)}", so, vocab,
                             tokens if FULL else tokens[:64], (("-t", 3),))


def fallback(failures, folder):
    """Without permission for tiles the next best runs, and says why."""
    if not runs("amx"):
        return
    so = compile_model(GOLDEN / "base", folder / "base.so", "--isa=auto")
    real = "amx_int8" in cpu_flags()
    how = {"LD_PRELOAD": str(EMULATOR), "AMX_EMULATOR": "refuse"}
    if real:
        how = {"under": (sys.executable, HERE / "no_tiles.py")}
    said = tool("sparkc-run", so, "--version", **how).stdout.decode()
    failures.check("isa        avx512vnni" in said and "does not permit tile state" in said,
                   "refused: avx512vnni, and the reason")
    expect_error(failures, "refused and forced", "sparkc-run", so, "--version",
                 names=(so, "does not permit tile state"), **how, SPARKC_ISA="amx")
    said = tool("sparkc-run", so, "--version", LD_PRELOAD=str(EMULATOR)).stdout.decode()
    failures.check("isa        amx: best of those compiled in" in said, "permitted: amx")
    if real:
        # What is compiled for this machine runs on it as it is, and is measured.
        tool("sparkc", GOLDEN / "base", "-o", folder / "here.so", "--quiet",
             "--mcpu=native", **how)
        said = tool("sparkc-run", folder / "here.so", "--version", **how).stdout.decode()
        failures.check("isa        avx512vnni: the only one compiled in" in said,
                       "compiled where it is refused")
        certified(failures, folder, "certified where tiles are refused",
                  "--isa=amx,avx512vnni", **how)
    certified(failures, folder, "certified on avx2", "--isa=amx,avx2", SPARKC_ISA="avx2")


def certified(failures, folder, what, *options, **how):
    """The certificate's reference runs where the build does."""
    text = folder / "certify"
    text.write_text(" ".join(str(7 * i % 97) for i in range(1024)))
    report = folder / "certified.json"
    tool("sparkc", GOLDEN / "base", "-o", folder / "certified.so", "--quiet", *options,
         "--prefill-block", 1, "--certify", text, "--report", report, **how)
    failures.check(json.loads(report.read_text())["certificate"]["kl_mean"] > 0, what)


#--- Old machines -------------------------------------------------------------
def old(failures, folder):
    """The AVX2 variant, and the refusal where there is not even that."""
    qemu = shutil.which("qemu-x86_64")
    if not qemu:
        print("not run: qemu-x86_64 is not installed (Debian's qemu-user)")
        return
    # Without warnings of features that only a system would use.
    haswell, nehalem = ((qemu, "-cpu", f"{cpu},check=off") for cpu in ("Haswell", "Nehalem"))
    so, tokens = spark_tiny(folder), spark_tiny_tokens()[:24]
    want = run_logits(so, tokens, 4096, SPARKC_ISA="avx2")
    failures.same_bits(run_logits(so, tokens, 4096, "-t", 2, under=haswell), want,
                       "spark-tiny on Haswell: the bits of this machine")
    said = tool("sparkc-run", so, "--version", under=haswell).stdout.decode()
    failures.check("isa        avx2: best of those compiled in" in said, "Haswell: avx2")
    text = tool("sparkc-run", so, "-p", "It was", "-n", 4, "--temp", 0, under=haswell).stdout
    failures.check(text == tool("sparkc-run", so, "-p", "It was", "-n", 4, "--temp", 0,
                                SPARKC_ISA="avx2").stdout, f"Haswell writes {text!r}")
    cases = [("base", "q4")] + ([(p.name, w) for p in sorted(GOLDEN.iterdir()) if p.is_dir()
                                 for w in ("q4", "f32") if p.name != "spark-tiny"] if FULL else [])
    for case, weights in cases:
        model = GOLDEN / case
        vocab = json.loads((model / "config.json").read_text())["vocab_size"]
        file = sorted(model.glob("golden*.safetensors"))[0]
        short = read_safetensors(file)["tokens"][1][:24 if not FULL else None]
        case_so = compile_model(model, folder / "case.so", "--weights", weights,
                                "--mcpu=x86-64-v3")
        failures.same_bits(run_logits(case_so, short, vocab, under=haswell),
                           run_logits(case_so, short, vocab), f"{case} {weights} on Haswell")
    expect_error(failures, "AVX-512 on Haswell", "sparkc-run", so, "--version", under=haswell,
                 names=("avx512vnni: not on this machine",), SPARKC_ISA="avx512vnni")
    # Baseline code, up to the line that says what is missing.
    for name, options in (("sparkc-run", ("--version",)), ("sparkc-run", ("-p", "a", "-n", 1)),
                          ("sparkc-bench", ("-r", 1)), ("sparkc-eval", ("--text", __file__))):
        for model in (so, case_so):
            expect_error(failures, f"{name} on Nehalem", name, model, *options, under=nehalem,
                         names=(model, "cannot run any of its code", "avx2: not on this machine"))


PARTS = {"fat": fat, "cross": cross, "errors": errors, "amx": amx, "fallback": fallback,
         "old": old}


def main():
    parts = [a for a in sys.argv[1:] if a != "--full"] or list(PARTS)
    unknown = [p for p in parts if p not in PARTS]
    if unknown:
        sys.exit(f"isas.py: error: unknown part '{unknown[0]}'\n{__doc__}")
    failures = Failures()
    with tempfile.TemporaryDirectory() as folder:
        for part in parts:
            PARTS[part](failures, pathlib.Path(folder))
    return failures.finish()


if __name__ == "__main__":
    sys.exit(main())
