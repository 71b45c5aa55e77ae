"""ThreadSanitizer over the generated step.

usage: races.py [CASE ...]    (SPARKC_SPMD_HOST_TSAN: spmd_host built with
                               ThreadSanitizer)

A model compiled with --sanitize=thread runs without a report, its waiters
asleep or spinning, token by token and in blocks; with any one barrier taken out
of the text of its step stage it does not, whichever phase the barrier stands
behind.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import os
import pathlib
import re
import sys

from harness import BIN, GOLDEN, compile_model, read_safetensors, run_parts, tool
from spmd import run_host

HOST = pathlib.Path(os.environ.get("SPARKC_SPMD_HOST_TSAN", BIN / "spmd_host_tsan"))
REPORT = "WARNING: ThreadSanitizer: data race"
# A layer's phases, then those outside layers: there is a barrier behind each.
LAYER = ("q_k_v_proj", "attention", "out_proj", "gate_proj", "down_proj")

# (case, tokens, options): both kinds of layers and all of caches, tiles whose
# lanes lie apart and tiles that are not full; past the end of the window. The
# int8 cache is written while it is read: into the second chunk, where the window
# reaches back to the first. Barriers are taken out behind all phases, or behind
# those that the case has otherwise than "base".
CASES = {
    "base": (72, ("--kv", "q8"), None),
    "partial-rotary": (20, ("--kv", "f16"), ("q_k_v_proj", "attention")),
    "odd-vocab": (24, ("--weights", "f32", "--kv", "f32"), ("embed", "head", "down_proj")),
}


def barriers(text):
    """[(function, phase before it, begin, end)] of the barriers in the text."""
    found, function, phase = [], None, None
    for line in re.finditer(r".*\n", text):
        name = re.match(r' *step\.(?:func (?:entry )?@([\w.]+)|phase "([^"]+)")', line.group())
        if name:
            function, phase = name.group(1) or function, name.group(2)
        elif re.match(r" *step\.barrier\b", line.group()):
            found.append((function, phase, line.start(), line.end()))
    return found


def check_case(failures, case, folder):
    count, options, _ = CASES[case]
    data = read_safetensors(GOLDEN / case / "golden.safetensors")
    tokens, vocab = data["tokens"][1][:count], data["logits"][1].shape[1]
    text = folder / "step.mlir"
    tool("sparkc", "--emit=step", GOLDEN / case, "-o", text, "--prefill-block", 1, *options)
    whole = text.read_text()
    so = compile_model(text, folder / "whole.so", "--sanitize=thread")
    for threads, *how in ((2,), (3,), (7,), (2, "spin")):
        result, logits = run_host(HOST, so, tokens, threads, *how, vocab=vocab)
        failures.check(result.returncode == 0 and logits is not None
                       and "ThreadSanitizer" not in result.stderr,
                       f"{case}, {threads} threads {''.join(how)}: no report (status "
                       f"{result.returncode}) {result.stderr[:2000]}")
    found = barriers(whole)
    behind = sorted({(function, phase) for function, phase, _, _ in found})
    kinds = {function for function, _ in behind} - {"step"}
    want = sorted([(kind, phase) for kind in kinds for phase in LAYER]
                  + [("step", "embed"), ("step", "head")])
    failures.check(behind == want and len(found) == len(want),
                   f"{case}: a barrier behind each phase of {sorted(kinds)} and the step")
    without_barriers(failures, case, case, folder, whole, found, tokens, vocab)


def without_barriers(failures, case, what, folder, whole, found, tokens, vocab, *how):
    text, phases = folder / "step.mlir", CASES[case][2]
    for function, phase, begin, end in found:
        if phases and phase.partition(".")[0] not in phases:
            continue
        text.write_text(whole[:begin] + whole[end:])
        so = compile_model(text, folder / "without.so", "--sanitize=thread")
        # What is seen of a race depends on how the threads meet: a few tries.
        tries = next((n for n in range(1, 6) if REPORT in run_host(
            HOST, so, tokens, 3, *how, vocab=vocab)[0].stderr), 0)
        failures.check(tries, f"{what}, no barrier behind {function}.{phase}: reported in "
                              f"run {tries or 'none'}")


def check_prefill(failures, case, folder):
    """Several blocks, the last not full: without the last barrier of a call the
    next one meets it."""
    count, options, _ = CASES[case]
    block = count // 4 - 1
    data = read_safetensors(GOLDEN / case / "golden.safetensors")
    tokens, vocab = data["tokens"][1][:count], data["logits"][1].shape[1]
    text = folder / "step.mlir"
    tool("sparkc", "--emit=step", GOLDEN / case, "-o", text, "--prefill-block", block, *options)
    whole = text.read_text()
    so = compile_model(text, folder / "whole.so", "--sanitize=thread")
    want = run_host(HOST, so, tokens, 1, vocab=vocab)[1]
    for threads in (2, 3, 7):
        result, logits = run_host(HOST, so, tokens, threads, "prefill", vocab=vocab)
        what = f"{case}, prefill, {threads} threads"
        failures.check(result.returncode == 0 and logits is not None
                       and "ThreadSanitizer" not in result.stderr,
                       f"{what}: no report (status {result.returncode}) {result.stderr[:2000]}")
        if logits is not None:
            failures.same_bits(logits, want, f"{what}: the bits of the step")
    found = [barrier for barrier in barriers(whole) if "prefill" in barrier[0]]
    failures.check(len(found) >= 10, f"{case}: {len(found)} barriers in the text of the prefill")
    without_barriers(failures, case, f"{case}, prefill", folder, whole, found, tokens, vocab, "prefill")


def races_of(case):
    def run(failures, folder):
        check_case(failures, case, folder)
        if case != "odd-vocab":
            check_prefill(failures, case, folder)
    return run


if __name__ == "__main__":
    if not HOST.exists():
        print(f"no {HOST}: clang-22 with ThreadSanitizer's runtime is not installed")
        sys.exit(77)
    sys.exit(run_parts({case: races_of(case) for case in CASES}, __doc__))
