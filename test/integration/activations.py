"""--activations: quantized weights times bf16, or int8 in groups of its own.

usage: activations.py [PART ...]    (exact, forms, groups, isas, fat, spark_tiny,
                                     said, errors; default all)

The reference of quantized.py, but that what each linear reads is rounded to bf16,
or in the groups that are asked for.
What remains are the roundings of float32 - until one moves an activation that
lies next to a tie to the other neighbour.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import json
import shutil
import sys

import numpy as np

import quantized
from closed_object import disassemble
from harness import (AUTO, GOLDEN, SPARK_TINY, compile_model, cpu_flags, expect_error, has_flag,
                     read_safetensors, run_logits, run_parts, runs, to_dtype, to_float64,
                     tool)
from isas import environment, mnemonics

BF16 = ("--activations", "bf16")
# Of spark-tiny's logits, whose largest is about 20: float32 against float64.
SPARK_TINY_EXACT = 2e-4


def bf16(x, _group, name=""):
    """[T, K] rounded to bf16; and for each token how near an activation came to
    a tie, in units of its last place where it is the largest. (What float32 is
    off is about the same for all of a token, and so more of smaller ones.)"""
    single = np.ascontiguousarray(x, np.float32)
    low = single.view(np.uint32) & 0xFFFF
    tie = np.abs(low.astype(np.float64) - 0x8000) / 0x10000
    largest = np.abs(single).max(axis=1, keepdims=True)
    tie *= np.abs(single) / np.where(largest == 0, 1, largest)
    return to_float64("BF16", to_dtype(single, "BF16")), tie.min(axis=1)


def check(failures, model, *options):
    return quantized.check_build(failures, model, *BF16, *options, rounded=bf16)


def exact(failures, folder):
    for name, schemes in (("wide-rows", ("q4", "q6:g32")), ("deep-rows", ("q4:g128", "q8:g32")),
                          ("narrow", ("q4:sym",)), ("small", ("q4", "q5:g32", "q6:g128", "q8"))):
        model = quantized.Model(folder, name)
        for scheme in schemes:
            check(failures, model, "--weights", scheme)
    # Two grids in a linear share an activation; rows of floats take it as it was.
    for rule in ("*.g_proj=q8:g32", "*.g_proj=f32"):
        check(failures, model, "--weights", "q4", "--weights-for", rule)
    # Nothing is rounded where nothing is quantized.
    for scheme in ("f32", "bf16"):
        bits = [model.build("--weights", scheme, *more).read_bytes() for more in ((), BF16)]
        failures.check(bits[0] == bits[1], f"{scheme}: the same object with and without")


def forms(failures, folder):
    """GGUF's. (Of many activations some of the first token lie next to a tie.)"""
    model = quantized.Model(folder, "small")
    for scheme in ("q4k", "q5k", "q6k", "q4_0", "q4_1", "q5_0", "q5_1", "q8_0"):
        check(failures, model, "--weights", scheme)


def groups(failures, folder):
    """int8 of no more elements a scale than asked for, whatever weights have; of
    half as many for the head."""
    models = {name: quantized.Model(folder, name)
              for name in ("deep-rows", "wide-rows", "small", "narrow")}
    for most, name, options in ((32, "deep-rows", ("q4:g128",)), (64, "wide-rows", ("q6:g128",)),
                                (64, "small", ("q4:g32",)), (32, "narrow", ("q8",)),
                                (32, "small", ("q4", "--weights-for", "*.g_proj=q8:g128")),
                                (32, "small", ("q5:g128", "--weights-for", "lm_head=q6k"))):
        quantized.check_build(failures, models[name], "--activations", f"int8:g{most}",
                              "--weights", *options,
                              rounded=lambda x, group, name: quantized.int8(
                                  x, min(group, most // 2 if name == "lm_head" else most)))


def isas(failures, folder):
    """Every instruction set keeps to the bound of the reference, each with code of
    its own: AVX512-BF16 may be absent from one that has the rest."""
    model = quantized.Model(folder, "deep-rows")
    for cpu, flag in (("x86-64-v3", "avx2"), ("x86-64-v4", "avx512vl"),
                      ("alderlake", "avx_vnni"), ("cascadelake", "avx512_vnni"),
                      ("cooperlake", "avx512_bf16"), ("native", "avx2")):
        if not has_flag(flag, cpu):
            continue
        so, _ = check(failures, model, "--mcpu", cpu, "--weights", "q4")
        ops = mnemonics(disassemble(so), "")
        pairs = cpu == "cooperlake" or (cpu == "native" and "avx512_bf16" in cpu_flags())
        failures.check(("vdpbf16ps" in ops) == pairs, f"{cpu}: its products")
    so = model.build("--weights", "q4")
    failures.check("vdpbf16ps" not in mnemonics(disassemble(so), ""),
                   "int8 activations: no instruction of AVX512-BF16")


def fat(failures, folder):
    """Of one object every instruction set: within the bound with bf16, with groups
    of int8 the same bits."""
    deep = quantized.Model(folder, "deep-rows")
    so = deep.build("--isa=auto", "--weights", "q4:g128", "--activations", "int8:g32")
    found = {isa: run_logits(so, deep.tokens, deep.vocab, **environment(isa))
             for isa in AUTO if runs(isa)}
    for isa, logits in found.items():
        failures.same_bits(logits, found["avx2"], f"int8:g32, {isa}: the bits of avx2")
    model = quantized.Model(folder, "small")
    so = model.build("--weights", "q4", *BF16, "--isa=auto", "--kv", "f32")
    want, nearest = quantized.expected(model.path, so.with_suffix(".weights"), model.tokens, bf16)
    for isa in AUTO:
        if isa == "amx" and "avx512_bf16" not in cpu_flags() or not runs(isa):
            continue
        how = environment(isa)
        got = run_logits(so, model.tokens, model.vocab, "-t", 2, **how)
        failures.close_until_tie(got, want, nearest, quantized.EXACT, f"{isa}, of one object")
        decoded = run_logits(so, model.tokens, model.vocab, "-t", 3, "--decode", **how)
        failures.same_bits(decoded, got, f"{isa}: decode gives the bits of prefill")
    said = tool("sparkc-run", so, "--version").stdout.decode()
    failures.check("amx with bf16, avx512vnni with bf16, avx512vnni, avxvnni, avx2" in said,
                   "--version tells the two of AVX-512-VNNI apart")
    functions = disassemble(so)
    for prefix, pairs in (("amx.", True), ("avx512bf16.", True), ("avx512vnni.", False),
                          ("avx2.", False)):
        failures.check(("vdpbf16ps" in mnemonics(functions, prefix)) == pairs,
                       f"{prefix}: its products")


def spark_tiny(failures, folder):
    so = compile_model(SPARK_TINY, folder / "model.so", "--quiet", "--kv", "f32", *BF16)
    tokens = read_safetensors(GOLDEN / "spark-tiny" / "golden.safetensors")["tokens"][1][:64]
    want, nearest = quantized.expected(SPARK_TINY, so.with_suffix(".weights"), tokens, bf16)
    got = run_logits(so, tokens, 4096, "-t", 2)
    failures.close_until_tie(got, want, nearest, SPARK_TINY_EXACT, "spark-tiny")
    for threads in (1, 3, 5, 7):
        failures.same_bits(run_logits(so, tokens, 4096, "-t", threads, "--decode"), got,
                           f"decode on {threads} threads gives the bits of prefill")


def said(failures, folder):
    """Where the build says what it is; the text of each stage gives it again."""
    model = quantized.Model(folder, "small")
    report = folder / "report.json"
    so = model.build("--weights", "q4", *BF16, "--report", report)
    version = tool("sparkc-run", so, "--version").stdout.decode()
    scheme = json.loads(report.read_text())["scheme"]
    failures.check(scheme.endswith(", bf16 activations") and scheme in version, scheme)
    for stage in ("spark", "fused", "step", "llvm"):
        text, again = folder / f"{stage}.mlir", folder / f"{stage}.so"
        tool("sparkc", model.path, f"--emit={stage}", "-o", text, "--weights", "q4", *BF16)
        tool("sparkc", text, "-o", again, "--quiet")
        failures.check(again.read_bytes() == so.read_bytes(), f"from the {stage} stage: the same")
    so = model.build("--weights", "q4", "--activations", "int8")
    plain = model.build("--weights", "q4").read_bytes()
    failures.check("activations" not in tool("sparkc-run", so, "--version").stdout.decode()
                   and so.read_bytes() == plain, "int8 is what it is without a word")
    so = model.build("--weights", "q4:g32", "--activations", "int8:g64")
    version = tool("sparkc-run", so, "--version").stdout.decode()
    failures.check("q4:g32, int8:g64 activations" in version, version)


def errors(failures, folder):
    model = quantized.Model(folder, "small")
    shutil.rmtree(folder / "out", ignore_errors=True)
    (folder / "out").mkdir()
    out = folder / "out" / "model.so"

    def refused(what, names, *options, source=model.path):
        expect_error(failures, what, "sparkc", source, "-o", out, *options, names=names)
        failures.check(not list(out.parent.iterdir()), f"{what}: leaves nothing")

    for form in ("fp8", "int8:g128", "int8:"):
        refused("another form", ["--activations", form], "--activations", form)
    refused("oneDNN and codes", ["--prefill-gemm=onednn"], *BF16, "--prefill-gemm", "onednn")
    text = folder / "step.mlir"
    tool("sparkc", model.path, "--emit=step", "-o", text)
    refused("text of a stage", ["--activations", "step.mlir"], *BF16, source=text)


PARTS = {"exact": exact, "forms": forms, "groups": groups, "isas": isas, "fat": fat,
         "spark_tiny": spark_tiny, "said": said, "errors": errors}

if __name__ == "__main__":
    sys.exit(run_parts(PARTS, __doc__))
