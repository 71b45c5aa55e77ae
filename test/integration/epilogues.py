"""Epilogues do the work: without one of its ops the logits change.

usage: epilogues.py

Takes each kind of op out of the text of the fused stage, compiles what is left
and requires other logits than those of the whole program. An op that nothing
depends on would be decoration.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import pathlib
import re
import sys
import tempfile

import numpy as np

from harness import GOLDEN, Failures, compile_model, read_safetensors, run_logits, tool

CASE = "base"

# Ops of the fused stage, each in the prologue or epilogue region of a fused
# linear. The op's result is replaced by its operand of the given number; None:
# it has no result.
DELETED = [
    ("spark.rms_norm", 0),
    ("spark.rope", 0),
    ("spark.head_gate", 0),
    ("spark.geglu", 1),
    ("spark.add", 1),
    ("spark.kv_write", None),
]

# Of an SSA value: %0, %rope_q, %layers.0.rope_q.
NAME = r"[\w$.-]+"


def delete_op(text, op, operand):
    """text without the first `op`; its uses take the operand's value instead."""
    if operand is None:
        shorter = re.sub(rf"^ *{re.escape(op)}\b.*\n", "", text, count=1, flags=re.MULTILINE)
        return shorter if shorter != text else None
    match = re.search(rf"^ *(%{NAME}) = {re.escape(op)}\b(.*)\n", text, re.MULTILINE)
    if not match:
        return None
    operands = re.findall(rf"%{NAME}(?:#\d+)?", match.group(2))
    rest = text[match.end():]
    # The result's name may be used again in a later region: stop at the first
    # line that defines it anew.
    again = re.search(rf"^ *{re.escape(match.group(1))}(:\d+)? = ", rest, re.MULTILINE)
    end = again.start() if again else len(rest)
    used = re.sub(rf"{re.escape(match.group(1))}(?![\w$.#-])", operands[operand], rest[:end])
    return text[:match.start()] + used + rest[end:]


def main():
    failures = Failures()
    data = read_safetensors(GOLDEN / CASE / "golden.safetensors")
    tokens, vocab = data["tokens"][1], data["logits"][1].shape[1]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        options = ("--weights", "f32", "--kv", "f32")
        whole = tool("sparkc", "--emit=fused", GOLDEN / CASE, *options).stdout.decode()
        (folder / "whole.mlir").write_text(whole)
        want = run_logits(compile_model(folder / "whole.mlir", folder / "whole.so"), tokens, vocab)
        for op, operand in DELETED:
            text = delete_op(whole, op, operand)
            if not failures.check(text is not None, f"the fused stage has a {op}"):
                continue
            source = folder / f"without-{op}.mlir"
            source.write_text(text)
            got = run_logits(compile_model(source, folder / f"without-{op}.so"), tokens, vocab)
            error = float(np.max(np.abs(got - want)))
            failures.check(error > 1e-2, f"without a {op} logits change by {error:.2e}")
    return failures.finish()


if __name__ == "__main__":
    sys.exit(main())
