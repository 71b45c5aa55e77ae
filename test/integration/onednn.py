"""`--prefill-gemm=onednn`: blocks of tokens multiplied by oneDNN.

usage: onednn.py [PART ...]    (products, models, errors; default all)

products: the function of libsparkc-onednn.so by itself, against float64: each
sum within BOUND = cols * 2^-23 of the sum of its products' sizes, whatever
their order. models: golden logits within the bounds of golden.py, and a prefill
within DRIFT of the same object's decode, relative to the largest logit; what
does not ask for it has no trace of it. errors: grids, a missing library.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import ctypes
import shutil
import sys
import threading

import numpy as np

import closed_object
import golden
from harness import (BIN, GOLDEN, SPARK_TINY, compile_model, expect_error, read_model,
                     read_safetensors, run_logits, run_parts, runs, to_dtype, to_float64,
                     tool)

PLUGIN = BIN.parent / "lib" / "libsparkc-onednn.so"
HOOK = ("--prefill-gemm", "onednn")
DRIFT = 1e-5


#--- The function by itself -----------------------------------------------------
def pack_tiles(weights, dtype):
    """[16 n, cols] to tiles, as codegen/weights/PackedLayout.h has them."""
    rows, cols = weights.shape
    stored = to_dtype(weights, dtype)
    if dtype == "BF16" and cols % 2:
        stored = np.pad(stored, ((0, 0), (0, 1)))
    per_line = 2 if dtype == "BF16" else 1
    lines = stored.reshape(rows // 16, 16, -1, per_line).transpose(0, 2, 1, 3)
    return np.ascontiguousarray(lines)


def pack_quads(x):
    """[tokens, cols] to quads of four tokens."""
    tokens, cols = x.shape
    padded = np.full((tokens, -(-cols // 128) * 128), np.nan, np.float32)
    padded[:, :cols] = x
    return np.ascontiguousarray(padded.reshape(tokens // 4, 4, -1).transpose(0, 2, 1))


def aligned(array):
    """A copy that begins on a line of 64 bytes."""
    room = np.empty(array.nbytes + 64, np.uint8)
    at = -room.ctypes.data % 64
    copy = room[at:at + array.nbytes]
    copy[:] = array.reshape(-1).view(np.uint8)
    return copy


def products(failures, folder):
    function = ctypes.CDLL(str(PLUGIN)).sparkc_onednn_gemm_1
    function.restype = None
    rng = np.random.default_rng(4)

    def check(dtype, layout, tiles, cols, tokens, spread=1.0):
        weights = rng.standard_normal((16 * tiles, cols)).astype(np.float32)
        x = rng.standard_normal((tokens, cols)).astype(np.float32)
        x[:, 0] *= spread
        packed, quads = aligned(pack_tiles(weights, dtype)), aligned(pack_quads(x))
        row = 96 + 5  # floats; more than is written
        out = np.full((tokens, row), 7, np.float32)
        function(packed.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint32(layout),
                 ctypes.c_uint64(tiles), ctypes.c_uint64(cols),
                 quads.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(tokens),
                 out.ctypes.data_as(ctypes.c_void_p), ctypes.c_uint64(4 * row))
        w = to_float64(dtype, to_dtype(weights, dtype))
        want = x.astype(np.float64) @ w.T
        bound = cols * 2.0**-23 * (np.abs(x.astype(np.float64)) @ np.abs(w).T)
        error = np.abs(out[:, :16 * tiles] - want)
        share = float((error / bound).max())
        return share <= 1 and (out[:, 16 * tiles:] == 7).all(), share

    for dtype, layout in (("F32", 16), ("BF16", 17)):
        worst, good = 0.0, True
        for tiles, cols, tokens, spread in (
                [(n, 64, 8, 1) for n in range(1, 7)] +
                [(6, cols, 4, 1) for cols in (1, 2, 3, 17, 127, 128, 129, 513)] +
                [(5, 33, tokens, 1e6) for tokens in (4, 12, 60, 128)] + [(6, 2048, 128, 1)]):
            one, share = check(dtype, layout, tiles, cols, tokens, spread)
            good, worst = good and one, max(worst, share)
        failures.check(good, f"{dtype}: sums within the bound, at most {worst:.2f} of it; "
                             "nothing else is written")
    # Threads of a host at once, each for itself.
    results = []
    threads = [threading.Thread(target=lambda: results.append(check("BF16", 17, 6, 256, 128)[0]))
               for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    failures.check(len(results) == 5 and all(results), "five threads at once")


#--- Models ---------------------------------------------------------------------
def models(failures, folder):
    for name in ("base", "untied", "head-dim-256", "window-edge"):
        config, tensors = read_model(GOLDEN / name)
        vocab = config["vocab_size"]
        for weights in ("f32", "bf16"):
            so = compile_model(GOLDEN / name, folder / "model.so", "--weights", weights,
                               "--kv", "f32", *HOOK)
            for file in sorted((GOLDEN / name).glob("golden*.safetensors")):
                data = read_safetensors(file)
                tokens, want = data["tokens"][1], data["logits"][1]
                what = f"{name}, {weights}, T={len(tokens)}"
                decoded = run_logits(so, tokens, vocab, "--decode", "-t", 2)
                bound = DRIFT * np.abs(decoded).max()
                for options in (("-t", 1), ("-t", 3), ("-t", 2, "--prefill-chunk", 7)):
                    got = run_logits(so, tokens, vocab, *options)
                    failures.close(got, want, golden.BOUND["f32"], f"{what} {' '.join(map(str, options))}")
                    failures.close(got, decoded, bound, "  and decode")
    # A text of the trained model, longer than a block, on all instruction sets.
    vocab = read_model(SPARK_TINY)[0]["vocab_size"]
    tokens = np.random.default_rng(1).integers(3, vocab, 300)
    so = compile_model(SPARK_TINY, folder / "tiny.so", "--weights", "stored", "--isa", "avx2,avx512",
                       *HOOK)
    for isa in filter(runs, ("avx512", "avx2")):
        decoded = run_logits(so, tokens, vocab, "--decode", "-t", 2, SPARKC_ISA=isa)
        got = run_logits(so, tokens, vocab, "-t", 2, SPARKC_ISA=isa)
        failures.check((got.view(np.uint32) != decoded.view(np.uint32)).any(),
                       f"spark-tiny, {isa}: oneDNN did it")
        # An f16 cache may round a key the other way.
        failures.close(got, decoded, 1e-3 * np.abs(decoded).max(), f"spark-tiny, {isa}")
    said = tool("sparkc-run", so, "--version").stdout.decode()
    failures.check("oneDNN" in said, "--version says so")
    # The text of each stage goes on to the same object.
    tool("sparkc", GOLDEN / "base", "--weights", "f32", *HOOK, "-o", folder / "direct.so", "--quiet")
    for stage in ("step", "llvm"):
        text = folder / f"{stage}.mlir"
        tool("sparkc", GOLDEN / "base", "--weights", "f32", *HOOK, "--emit", stage, "-o", text)
        tool("sparkc", text, "-o", folder / "again.so", "--quiet")
        failures.check((folder / "again.so").read_bytes() == (folder / "direct.so").read_bytes(),
                       f"from the text of {stage}: the same bytes")
    # Closed but for the one call; and that only where it was asked for.
    for options in ((), HOOK):
        so = compile_model(GOLDEN / "base", folder / "model.so", "--weights", "f32", *options)
        what = " ".join(options) or "default"
        faults, _, _ = closed_object.check_object(so)
        failures.check(bool(faults) == bool(options), f"{what}: {len(faults)} calls of ctx->gemm")
        faults, _, _ = closed_object.check_object(so, (*closed_object.CALLED, "gemm"))
        failures.check(not faults, f"{what}: closed otherwise: {faults[:3]}")


#--- Errors ---------------------------------------------------------------------
def errors(failures, folder):
    base, so = GOLDEN / "base", folder / "model.so"
    for options in ((), ("--weights", "q8"), ("--weights", "f32", "--weights-for", "*.down_proj=q4")):
        expect_error(failures, f"grids: {' '.join(options) or 'default'}", "sparkc", base, "-o", so,
                     *options, *HOOK, names=("--prefill-gemm=onednn", "f32 and bf16"))
        failures.check(not list(folder.iterdir()), "nothing is left")
    result = tool("sparkc", base, "-o", so, "--prefill-gemm", "mkl", ok=False)
    failures.check(result.returncode == 1 and b"--prefill-gemm" in result.stderr, "another library")
    expect_error(failures, "no blocks", "sparkc", base, "-o", so, "--weights", "f32", *HOOK,
                 "--prefill-block", "1", names=("--prefill-gemm", "--prefill-block 1"))
    text = folder / "step.mlir"
    tool("sparkc", base, "--weights", "f32", "--emit=step", "-o", text)
    expect_error(failures, "text of a stage", "sparkc", text, "-o", so, *HOOK,
                 names=("--prefill-gemm", "text of a stage"))
    # A runtime that was installed without the plugin.
    compile_model(base, so, "--weights", "f32", *HOOK)
    alone = folder / "alone"
    alone.mkdir()
    library = next(p for p in PLUGIN.parent.glob("libsparkc.so.*") if p.name.count(".") == 2)
    shutil.copy(library, alone)
    ids = folder / "tokens"
    ids.write_text("3 4 5\n")
    expect_error(failures, "no plugin", "sparkc-run", so, "--tokens", ids, "--logits", folder / "out",
                 names=(so, "--prefill-gemm=onednn", "libsparkc-onednn.so"),
                 LD_LIBRARY_PATH=str(alone))
    (alone / PLUGIN.name).write_bytes((BIN.parent / "lib" / library.name).read_bytes())
    expect_error(failures, "another plugin", "sparkc-run", so, "--tokens", ids, "--logits",
                 folder / "out", names=(so, "another version"), LD_LIBRARY_PATH=str(alone))


PARTS = {"products": products, "models": models, "errors": errors}


if __name__ == "__main__":
    sys.exit(run_parts(PARTS, __doc__))
