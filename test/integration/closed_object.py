"""A compiled model is closed: it uses nothing but what its caller hands to it.

usage: closed_object.py [MODEL.so | CASE[:CPU|:auto] ...]   compile and check, or check
       closed_object.py --self-test        check that each kind of fault is found

Read with LLVM's nm, readelf and objdump: no undefined symbol, no library, no
relocation by name, one export; no writable data, constructors or thread-local
storage; no system call; every call goes to the start of a function in the
object, but for the indirect ones, whose target was loaded from ctx->wait or
ctx->wake. Every phase of the schedule has a sized function in the symbol table, for
perf and gdb.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from harness import AUTO, GOLDEN, ISA, SPARK_TINY, Failures, compile_model, tool

EXPORT = "sparkc_model_descriptor"
# Of sparkc_ctx; checked against the header by the self-test.
OFFSETS = {"wait": 72, "wake": 80, "gemm": 104}
# What any object may call of it; `gemm` besides only those of --prefill-gemm.
CALLED = ("wait", "wake")
PREFIXES = ("lock", "rep", "repne", "notrack", "xacquire", "xrelease", "bnd", "data16")
FORBIDDEN = {"syscall", "sysenter", "int", "int1", "into", "cpuid", "hlt", "in", "out",
             "inb", "outb", "inl", "outl", "inw", "outw", "rdrand", "rdseed", "xbegin"}


def llvm(name):
    for folder in (os.environ.get("SPARKC_LLVM_BIN"), "/usr/lib/llvm-22/bin"):
        if folder and pathlib.Path(folder, name).exists():
            return str(pathlib.Path(folder, name))
    return shutil.which(f"{name}-22") or sys.exit(f"FAILED {name} of LLVM 22 was not found")


def run(name, *arguments):
    return subprocess.run([llvm(name), *map(str, arguments)], capture_output=True,
                          text=True, check=True).stdout


#--- Symbols, sections, relocations -------------------------------------------
def check_tables(so):
    """-> (faults, names of the functions)"""
    faults = []
    for table in ([], ["-D"]):
        for line in run("llvm-nm", "--undefined-only", *table, so).splitlines():
            faults.append(f"undefined symbol {line.split()[-1]}")
    exports = [line.split()[-1] for line in run("llvm-nm", "-D", "--defined-only", so).splitlines()]
    if exports != [EXPORT]:
        faults.append(f"exports {exports}")
    for line in run("llvm-readelf", "--dynamic-table", so).splitlines():
        tag = re.search(r"\((NEEDED|INIT\w*|FINI\w*|PREINIT\w*|TEXTREL|RPATH|RUNPATH)\)", line)
        if tag:
            faults.append(f"dynamic entry {' '.join(line.split()[1:])}")
    for line in run("llvm-readelf", "--relocs", so).splitlines():
        kind = re.search(r"R_X86_64_\w+", line)
        if kind and kind.group() != "R_X86_64_RELATIVE":
            faults.append(f"relocation {kind.group()}")
    for line in run("llvm-readelf", "--section-headers", "--wide", so).splitlines():
        section = re.match(r"\s*\[\s*\d+\]\s+(\S+)\s+\S+\s+\S+\s+\S+\s+(\S+)\s+\S+\s+(\S+)", line)
        if not section:
            continue
        name, size, flags = section.groups()
        # Made read-only by the loader.
        relro = name.startswith((".data.rel.ro", ".dynamic", ".got", ".relro_padding"))
        if "W" in flags and not relro and int(size, 16):
            faults.append(f"writable section {name} of {int(size, 16)} bytes")
        if "T" in flags:
            faults.append(f"thread-local section {name}")
    for line in run("llvm-readelf", "--program-headers", "--wide", so).splitlines():
        if re.match(r"\s*(LOAD|GNU_STACK)\b.*\bRWE\b", line):
            faults.append(f"writable and executable: {' '.join(line.split())}")
    functions = set()
    for line in run("llvm-readelf", "--symbols", "--wide", so).splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[3] == "FUNC" and int(fields[2], 0):
            functions.add(fields[7])
    return faults, functions


#--- Code ---------------------------------------------------------------------
def disassemble(so):
    """name -> [(mnemonic, operands)]"""
    code, current = {}, None
    for line in run("llvm-objdump", "--disassemble", "--no-show-raw-insn", so).splitlines():
        label = re.match(r"[0-9a-f]+ <(.+)>:$", line)
        if label:
            current = code.setdefault(label.group(1), [])
            continue
        instruction = re.match(r"\s*[0-9a-f]+:\s+(\S.*)$", line)
        if instruction and current is not None:
            words = re.split(r"\s+", instruction.group(1), maxsplit=1) + [""]
            # A prefix stands before its instruction, or on a line of its own.
            while words[0] in PREFIXES:
                words = re.split(r"\s+", words[1], maxsplit=1) + [""]
            if words[0]:
                current.append((words[0], words[1]))
    return code


def register(name):
    """Of any of the names of a 64-bit register's parts, its own."""
    name = name.lstrip("%")
    legacy = re.fullmatch(r"[re]?([abcd]x|[sd]i|[sb]p)|([abcd])[lh]|([sd]i|[sb]p)l", name)
    if legacy:
        return "r" + (legacy.group(1) or legacy.group(3) or legacy.group(2) + "x")
    return re.sub(r"^(r\d+)[dwb]$", r"\1", name)


def split_operands(operands):
    return re.findall(r"(?:[^,(]|\([^)]*\))+", operands.split("#")[0].replace("<", ",<"))


def displacement(operand):
    """(offset, base) of a plain memory operand, or None."""
    match = re.fullmatch(r"(-?0x[0-9a-f]+|-?\d+)?\(%(\w+)\)", operand.strip())
    return (int(match.group(1) or "0", 0), match.group(2)) if match else None


def comes_from_ctx(code, at, operand, fields, depth=0):
    """Whether the operand of an indirect call at code[at] was loaded from one of
    these fields of sparkc_ctx: by the nearest definition before it, through
    copies and spills."""
    if depth > 8:
        return False
    memory = displacement(operand)
    if memory:
        offset, base = memory
        if base not in ("rsp", "rbp"):
            return offset in [OFFSETS[field] for field in fields]
        stores = [i for i, (mnemonic, operands) in enumerate(code)
                  if mnemonic.startswith("mov") and split_operands(operands)[-1].strip() == operand.strip()]
        return bool(stores) and all(
            comes_from_ctx(code, i, split_operands(code[i][1])[0], fields, depth + 1)
            for i in stores)
    if not re.fullmatch(r"%\w+", operand.strip()):
        return False
    wanted = register(operand.strip())
    for i in range(at - 1, -1, -1):
        mnemonic, operands = code[i]
        parts = [p.strip() for p in split_operands(operands)]
        if not parts or mnemonic.startswith(("cmp", "test", "push", "j", "call", "prefetch")):
            continue
        if re.fullmatch(r"%\w+", parts[-1]) and register(parts[-1]) == wanted:
            return (mnemonic in ("mov", "movq") and len(parts) == 2
                    and comes_from_ctx(code, i, parts[0], fields, depth + 1))
    return False


def check_code(so, functions, called):
    """-> (faults, number of indirect calls)"""
    faults, indirect = [], 0
    code = disassemble(so)
    if not code:
        return ["no code at all"], 0
    for name, instructions in code.items():
        def fault(what, index):
            faults.append(f"{name}: {what}: {' '.join(instructions[index])}")
        if name not in functions:
            faults.append(f"code outside functions: {name}")
        for i, (mnemonic, operands) in enumerate(instructions):
            operands = operands.strip()
            if mnemonic.rstrip("lqw") in FORBIDDEN or mnemonic in FORBIDDEN:
                fault("forbidden instruction", i)
            if mnemonic == "int3" and i and not instructions[i - 1][0].startswith(
                    ("ret", "jmp", "int3", "nop", "ud2")):
                fault("breakpoint", i)
            if re.search(r"%[fg]s:", operands):
                fault("thread-local storage", i)
            if not mnemonic.startswith(("call", "jmp")):
                continue
            if operands.startswith("*"):
                indirect += 1
                if not comes_from_ctx(instructions, i, operands[1:], called):
                    fault(f"indirect, not by ctx->{' or ctx->'.join(called)}", i)
                continue
            target = re.search(r"<(.+?)(\+0x[0-9a-f]+)?>$", operands)
            inside = mnemonic.startswith("jmp") and target and target.group(1) == name
            if not inside and (not target or target.group(2) or target.group(1) not in functions):
                fault("call of what is no function here", i)
    return faults, indirect


#--- Phases -------------------------------------------------------------------
def scheduled_phases(model, *options):
    """What the step stage's phases are called in the object: @function.phase."""
    text = tool("sparkc", "--emit=step", model, *options).stdout.decode()
    names, function = [], None
    for line in text.splitlines():
        opened = re.match(r"  step\.func (?:entry )?@([\w.]+)", line)
        phase = re.match(r'    step\.phase "([^"]+)"', line)
        if opened:
            function = opened.group(1)
        elif phase:
            names.append(f"{function}.{phase.group(1)}")
    return names


class Affine(ctypes.Structure):
    _fields_ = [("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


class Phase(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("kind", ctypes.c_uint32),
                ("reserved", ctypes.c_uint32), ("bytes", ctypes.c_uint64)]


class Descriptor(ctypes.Structure):
    """sparkc_descriptor, as far as it is needed."""
    _fields_ = ([(n, ctypes.c_uint32) for n in ("magic", "abi_version", "bytes", "entry_bytes")]
                + [(n, ctypes.c_char_p) for n in ("compiler", "target", "scheme")]
                + [("digest", ctypes.c_uint8 * 16), ("payload_bytes", ctypes.c_uint64),
                   ("layouts", ctypes.c_void_p)]
                + [(n, ctypes.c_uint32) for n in (
                    "n_layouts", "kv_type", "vocab", "hidden", "intermediate", "layers",
                    "full_layers", "heads", "kv_heads", "head_dim", "window", "ring_positions")]
                + [("max_context", ctypes.c_uint64), ("default_context", ctypes.c_uint64),
                   ("prefill_block", ctypes.c_uint32), ("capacity_multiple", ctypes.c_uint32),
                   ("kv_bytes", Affine), ("arena_bytes", Affine),
                   ("bytes_per_step", ctypes.c_uint64), ("linear_weights", ctypes.c_uint64),
                   ("barriers_per_step", ctypes.c_uint32), ("fold_layers", ctypes.c_uint32),
                   ("fold_threshold", ctypes.c_uint64), ("phases", ctypes.POINTER(Phase)),
                   ("n_phases", ctypes.c_uint32), ("n_entries", ctypes.c_uint32),
                   ("entries", ctypes.c_void_p)])


def check_phases(so, functions, scheduled=()):
    faults = [f"no function for phase {name}" for name in scheduled if name not in functions]
    library = ctypes.CDLL(str(so))
    descriptor = Descriptor.in_dll(library, EXPORT)
    if descriptor.bytes != ctypes.sizeof(Descriptor):
        return [f"descriptor of {descriptor.bytes} bytes, expected {ctypes.sizeof(Descriptor)}"]
    names = [descriptor.phases[i].name.decode() for i in range(descriptor.n_phases)]
    return faults + [f"no function for phase {name}" for name in names
                     if not any(f == name or f.endswith("." + name) for f in functions)]


def check_object(so, called=CALLED):
    """-> (faults, functions, number of indirect calls); called: the functions of
    ctx that it may call"""
    faults, functions = check_tables(so)
    more, indirect = check_code(so, functions, called)
    return faults + more, functions, indirect


#--- Self-test ----------------------------------------------------------------
GOOD = """
#include "sparkc_abi.h"
static __attribute__((noinline)) void phase_a(sparkc_ctx *ctx) {
  if (ctx->wait) ctx->wait(&ctx->barrier->generation, 1);
  asm volatile("" ::: "memory");
  if (ctx->wake) ctx->wake(&ctx->barrier->generation);
  ctx->logits[0] += 1;
}
static void step(sparkc_ctx *ctx, uint32_t tid, uint32_t n) {
  phase_a(ctx); FAULT; phase_a(ctx);
}
static const sparkc_entry entries[] = {{.isa = 1, .step = step}};
static const sparkc_phase phases[] = {{.name = "phase_a"}};
__attribute__((visibility("default")))
const sparkc_descriptor sparkc_model_descriptor = {
  .bytes = sizeof(sparkc_descriptor), .n_entries = 1, .entries = entries,
  .n_phases = 1, .phases = phases};
_Static_assert(offsetof(sparkc_ctx, wait) == %(wait)d, "");
_Static_assert(offsetof(sparkc_ctx, wake) == %(wake)d, "");
_Static_assert(offsetof(sparkc_ctx, gemm) == %(gemm)d, "");
""" % OFFSETS
# (fault's text or None, what stands for FAULT, what stands before, options)
FAULTS = [
    (None, "", "", []),
    ("undefined symbol elsewhere", "elsewhere()", "void elsewhere(void);", []),
    ("exports", "", "__attribute__((visibility(\"default\"))) void more(void) {}", []),
    ("dynamic entry", "", "", ["-Wl,--no-as-needed", "-L/usr/lib/x86_64-linux-gnu", "-lm"]),
    ("writable section", "++count", "static volatile int count;", []),
    ("dynamic entry (INIT_ARRAY)", "", "__attribute__((constructor)) static void c(void) { asm volatile(\"nop\"); }", []),
    ("thread-local", "++count", "static _Thread_local volatile int count;", []),
    ("forbidden instruction: syscall", "asm volatile(\"syscall\")", "", []),
    ("forbidden instruction: int ", "asm volatile(\"int $0x80\")", "", []),
    ("forbidden instruction: cpuid", "asm volatile(\"cpuid\" ::: \"ebx\")", "", []),
    ("breakpoint", "asm volatile(\"int3\")", "", []),
    ("indirect, not by ctx", "((void (*)(void))ctx->gemm)()", "", []),
    ("indirect, not by ctx", "((void (**)(void))ctx->kv)[n]()", "", []),
    ("no function for phase", "", "#define phase_a other", []),
]


def self_test():
    failures = Failures()
    include = pathlib.Path(__file__).resolve().parents[2] / "runtime" / "include"
    with tempfile.TemporaryDirectory() as folder:
        for number, (text, statement, before, options) in enumerate(FAULTS):
            source = pathlib.Path(folder, f"fault{number}.c")
            so = source.with_suffix(".so")
            source.write_text(before + "\n" + GOOD.replace("FAULT", statement))
            subprocess.run([llvm("clang"), "-std=gnu11", "-O1", "-fPIC", "-shared", "-nostdlib",
                            "-fvisibility=hidden", "-fno-stack-protector", f"-I{include}", source,
                            f"-fuse-ld={llvm('ld.lld')}", *options, "-o", so],
                           check=True)
            faults, functions, _ = check_object(so)
            if not faults:
                faults = check_phases(so, functions)
            if text is None:
                failures.check(not faults, f"a closed object has no fault: {faults}")
            else:
                failures.check(any(text in fault for fault in faults), f"finds '{text}': {faults}")
    return failures.finish()


def main():
    if sys.argv[1:] == ["--self-test"]:
        return self_test()
    failures = Failures()
    with tempfile.TemporaryDirectory() as folder:
        for argument in sys.argv[1:] or ("base:x86-64-v3", "base:x86-64-v4", "base:native",
                                         "spark-tiny", "spark-tiny:auto"):
            scheduled = []
            if argument.endswith(".so"):
                so = pathlib.Path(argument).resolve()
            else:
                case, _, cpu = argument.partition(":")
                so = pathlib.Path(folder, f"{argument.replace(':', '-')}.so")
                model = SPARK_TINY if case == "spark-tiny" else GOLDEN / case
                compile_model(model, so, *(["--isa", cpu] if cpu == "auto" else
                                           ["--mcpu", cpu] if cpu else []))
                scheduled = scheduled_phases(model)
                isas = AUTO if cpu == "auto" else ()
                if not cpu and ISA:  # the harness compiled for that
                    isas = (ISA,)
                if isas:
                    scheduled = [f"{isa}.{name}" for name in scheduled for isa in isas]
                failures.check(len(scheduled) >= 7, f"{argument}: {len(scheduled)} phases")
            faults, functions, indirect = check_object(so)
            if not faults:
                faults = check_phases(so, functions, scheduled)
            for fault in faults[:20]:
                failures.check(False, f"{argument}: {fault}")
            failures.check(not faults, f"{argument}: {len(functions)} functions, {indirect} indirect "
                                       f"calls, {len(faults)} faults")
            failures.check(indirect > 0, f"{argument}: calls ctx->wait and ctx->wake")
    return failures.finish()


if __name__ == "__main__":
    sys.exit(main())
