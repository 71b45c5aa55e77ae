"""The prefill entry gives the bits of the step, for all of a prompt's logits and
for what is decoded after it.

usage: prefill.py [PART ...]    (schemes, odd, isas, calls, errors; default all)

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import ctypes
import pathlib
import sys

import numpy as np

import quantized
import random_models
from harness import BIN, GOLDEN, compile_model, expect_error, run_logits, run_parts

F, S = random_models.F, random_models.S

# Blocks of 40: whole quads of tokens, and prompts of several blocks.
BLOCK = ("--prefill-block", 40)
CHUNKS = (1, 2, 3, 5, 7, 39, 41, 64)
SCHEMES = ("f32", "bf16", "q4:g32", "q4:g64", "q4:g128", "q5:g64", "q6:g32", "q8:g128")

# Ring, window edge and chunks of keys: 3 windows in a prompt.
LONG = dict(hidden=96, inter=136, heads=6, kv=2, head_dim=24, vocab=40, layers=[S, F, S],
            window=70, rotary=(1.0, 0.5), context=512, T=211)
MANY_HEADS = dict(hidden=64, inter=40, heads=18, kv=2, head_dim=16, vocab=33, layers=[F, S],
                  window=9, rotary=(0.5, 1.0), context=256, T=150)
TWO_HEADS = dict(hidden=33, inter=50, heads=2, kv=1, head_dim=10, vocab=21, layers=[S, F],
                 window=33, rotary=(0.2, 1.0), context=256, T=100)


def make(folder, name, shape):
    folder = pathlib.Path(folder, name)
    config, _, tokens = random_models.make(folder, **shape)
    return folder, config["vocab_size"], tokens


def compare(failures, what, so, vocab, tokens, chunks=CHUNKS, threads=(1, 2, 3, 7)):
    """All logits, by decode and by prefill in all chunks and on all threads."""
    want = run_logits(so, tokens, vocab, "--decode", "-t", 2)
    failures.check(np.isfinite(want).all(), f"{what}: finite logits")
    for n in threads:
        failures.same_bits(run_logits(so, tokens, vocab, "-t", n), want,
                           f"{what}: one call, {n} threads")
    for chunk in chunks:
        got = run_logits(so, tokens, vocab, "--prefill-chunk", chunk, "-t", 2)
        failures.same_bits(got, want, f"{what}: chunks of {chunk}")
    return want


def schemes(failures, folder):
    model, vocab, tokens = make(folder, "long", LONG)
    for scheme in SCHEMES:
        so = compile_model(model, model / "model.so", "--weights", scheme, *BLOCK)
        compare(failures, scheme, so, vocab, tokens, chunks=(7, 64), threads=(1, 3))
    # One linear of two grids; float and integer rows in one linear.
    for rule in ("*.g_proj=q8:g32", "*.g_proj=bf16", "*.q_k_v_proj=f32"):
        so = compile_model(model, model / "model.so", "--weights", "q4", "--weights-for", rule,
                           *BLOCK)
        compare(failures, rule, so, vocab, tokens, chunks=(7, 64), threads=(1, 3))


def odd(failures, folder):
    shapes = {"many-heads": MANY_HEADS, "two-heads": TWO_HEADS,
              "wide-rows": quantized.MODELS["wide-rows"], "narrow": quantized.MODELS["narrow"],
              "deep-rows": quantized.MODELS["deep-rows"]}
    for name, shape in shapes.items():
        model, vocab, tokens = make(folder, name, shape)
        for options in (["--weights", "q4:g32"], ["--weights", "f32", "--kv", "f32"]):
            so = compile_model(model, model / "model.so", *options, *BLOCK)
            compare(failures, f"{name} {options[1]}", so, vocab, tokens)
    # A block of one token: no prefill entry. One larger than the context.
    model, vocab, tokens = make(folder, "blocks", LONG)
    want = None
    for block in (1, 2, 3, 33, 4096):
        so = compile_model(model, model / "model.so", "--prefill-block", block)
        logits = run_logits(so, tokens, vocab)
        want = logits if want is None else want
        failures.same_bits(logits, want, f"blocks of {block}")


def isas(failures, folder):
    """Instruction sets agree in bits where the weights are integers."""
    model, vocab, tokens = make(folder, "isas", LONG)
    for scheme in ("q4", "q8:g128"):
        wants = []
        for cpu in ("x86-64-v3", "native"):
            so = compile_model(model, model / "model.so", "--weights", scheme, "--mcpu", cpu,
                               *BLOCK)
            wants.append(compare(failures, f"{scheme} on {cpu}", so, vocab, tokens,
                                 chunks=(7,), threads=(1, 3)))
        failures.same_bits(wants[1], wants[0], f"{scheme}: native gives the bits of x86-64-v3")


class Session:
    """A session of libsparkc, by ctypes."""

    def __init__(self, so, vocab):
        self.lib = ctypes.CDLL(str(BIN.parent / "lib" / "libsparkc.so"))
        self.vocab, self.model, self.handle = vocab, ctypes.c_void_p(), ctypes.c_void_p()
        self.call("sparkc_open", str(so).encode(), None, None, ctypes.byref(self.model), None)
        self.call("sparkc_session_create", self.model, None, ctypes.byref(self.handle), None)

    def call(self, name, *arguments):
        status = getattr(self.lib, name)(*arguments)
        if status != 0:
            sys.exit(f"FAILED {name}: status {status}")

    def logits(self, name, *arguments):
        out = np.empty(self.vocab, np.float32)
        self.call(name, self.handle, *arguments, out.ctypes.data_as(ctypes.c_void_p))
        return out

    def prefill(self, tokens):
        array = (ctypes.c_int32 * len(tokens))(*map(int, tokens))
        return self.logits("sparkc_prefill", array, ctypes.c_size_t(len(tokens)), ctypes.c_uint32(0))

    def decode(self, token):
        return self.logits("sparkc_decode", ctypes.c_int32(int(token)))

    def rewind(self, kept):
        self.call("sparkc_rewind", self.handle, ctypes.c_size_t(kept))

    def close(self):
        self.lib.sparkc_session_destroy(self.handle)
        self.lib.sparkc_close(self.model)


def calls(failures, folder):
    """Prefill again and again, decode in between, and go back."""
    model, vocab, tokens = make(folder, "calls", LONG)
    so = compile_model(model, model / "model.so", *BLOCK)
    want = run_logits(so, tokens, vocab, "--decode")
    session = Session(so, vocab)

    def check(what, logits, position):
        failures.same_bits(logits[None], want[position - 1][None], f"{what}, {position} tokens")

    window, T = LONG["window"], len(tokens)
    for length in (window - 1, window, window + 1, T - 1):
        session.rewind(0)
        check("one call", session.prefill(tokens[:length]), length)
        check("and a step", session.decode(tokens[length]), length + 1)
    session.rewind(0)
    at = 0
    for i, length in enumerate((3, 1, 47, 1, 1, 2, 90, 1, 20)):
        logits = (session.decode(tokens[at]) if length == 1
                  else session.prefill(tokens[at:at + length]))
        at += length
        check(f"call {i}", logits, at)
    for kept in (at - 5, window, 2):
        session.rewind(kept)
        check(f"back to {kept}", session.prefill(tokens[kept:kept + 30]), kept + 30)
        check("and a step", session.decode(tokens[kept + 30]), kept + 31)
    session.close()
    # The golden case that runs far past its ring.
    case = GOLDEN / "base"
    so = compile_model(case, pathlib.Path(folder, "base.so"))
    compare(failures, "base", so, random_models.json.loads(
        (case / "config.json").read_text())["vocab_size"], np.arange(3, 240) % 250)


def errors(failures, folder):
    """sparkc-run on tokens: places in messages are those of the file, not of a call."""
    so, ids, out = folder / "base.so", folder / "tokens", folder / "logits"
    compile_model(GOLDEN / "base", so)

    def refused(what, text, *options, names):
        ids.write_bytes(text)
        expect_error(failures, what, "sparkc-run", so, "--tokens", ids, "--logits", out, *options,
                     names=names)
        failures.check(not out.exists(), f"{what}: no logits")

    bad = b"1 2 3 4 5 6 7 511 512 1"
    for options in ((), ("--decode",), ("--prefill-chunk", 3)):
        refused(f"id out of range {options}", bad, *options, names=(ids, "id 512 at index 8", "512"))
    refused("negative id", b"7 -1", names=(ids, "id -1 at index 1"))
    refused("no ids", b" \n", names=(ids, "no token ids"))
    refused("a word with a NUL", b"1 2\x003", names=(ids, "'2\\x003'"))
    for options in ((), ("--decode",)):
        refused(f"too many {options}", b"1 " * 9, "--context", 8, *options, names=(ids, "9 tokens", "room for 8"))
    for options in (("--prefill-chunk", 0), ("--prefill-chunk", -3), ("--context", -1), ("--context", 0)):
        refused(" ".join(map(str, options)), b"1", *options, names=options[:1])
    refused("chunks while decoding", b"1", "--decode", "--prefill-chunk", 2,
            names=("--decode", "--prefill-chunk"))


PARTS = {"schemes": schemes, "odd": odd, "isas": isas, "calls": calls, "errors": errors}


if __name__ == "__main__":
    sys.exit(run_parts(PARTS, __doc__))
