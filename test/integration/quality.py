"""What sparkc-eval says of spark-tiny.

usage: quality.py eval | unquantized | positions | quantized

eval         the figures against numpy, from the logits of sparkc-run; the same
             for any number of threads; errors
unquantized  the perplexity that llama-perplexity gives
positions    the whole text scored in numpy, by the definition of --all-positions
             and by that of the float32 reference; tokens from libsparkc.so
quantized    what 8 and 4 bits may cost (docs/quality.md has all of it)

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import concurrent.futures
import ctypes
import json
import sys

import numpy as np

from harness import (BIN, GOLDEN, SPARK_TINY, compile_model, expect_error, run_logits,
                     run_parts, tool)

TEXT = SPARK_TINY / "valid_dev.txt"
VOCAB = 4096


def evaluate(so, *options):
    result = tool("sparkc-eval", so, "-t", 1, "-o", "json", *options)
    return json.loads(result.stdout)


def evaluate_all(runs):
    """Results of evaluate(*run), two at a time."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda run: evaluate(*run), runs))


#--- The tool itself ----------------------------------------------------------
def log_softmax(logits):
    x = logits.astype(np.float64)
    x -= x.max(axis=1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=1, keepdims=True))


def expected(so, reference, tokens, window, first):
    """perplexity, the reference's, mean and 99 % KL, top-1 in numpy."""
    loss, reference_loss, kl, same = [], [], [], []
    for begin in range(0, len(tokens) - window + 1, window):
        piece = tokens[begin:begin + window]
        p = log_softmax(run_logits(so, piece, VOCAB, "-t", 1))[first:-1]
        q = log_softmax(run_logits(reference, piece, VOCAB, "-t", 1))[first:-1]
        targets = piece[first + 1:]
        rows = np.arange(len(targets))
        loss.append(-p[rows, targets])
        reference_loss.append(-q[rows, targets])
        kl.append((np.exp(q) * (q - p)).sum(axis=1))
        same.append(p.argmax(axis=1) == q.argmax(axis=1))
    loss, reference_loss, kl, same = map(np.concatenate, (loss, reference_loss, kl, same))
    n = len(loss)
    return {"tokens": n,
            "perplexity": np.exp(loss.mean()),
            "perplexity_stderr": np.exp(loss.mean()) * loss.std(ddof=1) / n ** 0.5,
            "reference_perplexity": np.exp(reference_loss.mean()),
            "kl_mean": kl.mean(), "kl_stderr": kl.std(ddof=1) / n ** 0.5,
            "kl_p99": np.quantile(kl, 0.99), "top1_agreement": same.mean()}


def greedy(so, prompt, count):
    tokens = list(prompt)
    for _ in range(count):
        tokens.append(int(run_logits(so, tokens, VOCAB, "-t", 1)[-1].argmax()))
    return tokens[len(prompt):]


def check_eval(failures, folder):
    bf16 = compile_model(SPARK_TINY, folder / "bf16.so", "--weights", "bf16")
    q4 = compile_model(SPARK_TINY, folder / "q4.so", "--weights", "q4:g128:sym")
    rng = np.random.default_rng(1)
    tokens = rng.integers(10, VOCAB, 3 * 48 + 5)
    ids = folder / "ids"
    ids.write_text("\n".join(map(str, tokens)))
    for first, options in ((24, []), (0, ["--all-positions"])):
        options += ["--tokens", ids, "--window", 48, "--greedy", 4]
        got = evaluate(q4, "--reference", bf16, *options)
        want = expected(q4, bf16, tokens, 48, first)
        for key, value in want.items():
            failures.check(abs(got[key] - value) <= 1e-6 * abs(value),
                           f"first position {first}: {key} {got[key]}, numpy {value}")
        texts = [[greedy(so, tokens[48 * w:48 * w + 24], 4) for w in range(3)]
                 for so in (q4, bf16)]
        shares = [([x == y for x, y in zip(a, b)] + [False]).index(False) / 4
                  for a, b in zip(*texts)]
        failures.check(got["greedy_agreement"] == np.mean(shares),
                       f"first position {first}: greedy {got['greedy_agreement']}, "
                       f"continuations {texts}")
    alone = evaluate(q4, *options)
    failures.check(alone["perplexity"] == got["perplexity"],
                   "a reference does not change the perplexity")
    failures.check(all(alone[key] is None for key in
                       ("reference_perplexity", "kl_mean", "kl_stderr", "kl_p99",
                        "top1_agreement", "greedy_agreement")),
                   "without a reference its figures are null")
    own = evaluate(q4, "--reference", q4, *options)
    failures.check(own["kl_mean"] == 0 and own["kl_p99"] == 0 and own["increase"] == 0
                   and own["top1_agreement"] == 1 and own["greedy_agreement"] == 1,
                   "a model does not differ from itself")
    text = ["--text", TEXT, "--windows", 2, "--reference", bf16, "-o", "json"]
    one = tool("sparkc-eval", q4, "-t", 1, *text).stdout
    failures.check(tool("sparkc-eval", q4, "-t", 3, *text).stdout == one,
                   "3 threads give the figures of one")
    check_errors(failures, folder, q4)


def check_errors(failures, folder, so):
    def refused(what, *arguments, names=()):
        expect_error(failures, what, "sparkc-eval", *arguments, names=names)

    short = folder / "short"
    short.write_text("Once upon a time")
    words = folder / "words"
    words.write_text("1 2 three")
    large = folder / "large"
    large.write_text(f"1 2 3 {VOCAB}")
    other = compile_model(GOLDEN / "base", folder / "base.so")
    refused("no text", so, names=["--text"])
    refused("a text that is not there", so, "--text", folder / "none",
            names=[folder / "none"])
    refused("a text without a window", so, "--text", short, names=[short, "512"])
    refused("an odd token", so, "--tokens", words, names=[words, "three"])
    refused("a token out of range", so, "--tokens", large, "--window", 4,
            names=[large, VOCAB])
    refused("a window whose second half has no position", so, "--text", TEXT, "--window", 2,
            names=["window of 2 tokens", "--all-positions"])
    refused("a window beyond the context", so, "--text", TEXT, "--window", 2048,
            names=[so, "2048", "1024"])
    refused("a reference of another model", so, "--text", TEXT, "--reference", other,
            names=[other, "vocabulary"])
    refused("a model that is none", TEXT, "--text", TEXT, names=[TEXT])
    refused("no tokenizer", other, "--text", TEXT, names=[TEXT, "tokenizer"])
    refused("an unknown format", so, "--text", TEXT, "-o", "xml", names=["xml"])


#--- The models ---------------------------------------------------------------
def check_unquantized(failures, folder):
    f32 = compile_model(SPARK_TINY, folder / "f32.so", "--weights", "f32", "--kv", "f32")
    bf16 = compile_model(SPARK_TINY, folder / "bf16.so", "--weights", "bf16", "--kv", "f16")
    some = ["--text", TEXT, "--windows", 12]
    half, pair = evaluate_all([(bf16, "--text", TEXT), (bf16, "--reference", f32, *some)])
    failures.check(half["tokens"] == 241 * 255, f"{half['tokens']} tokens are scored")
    failures.check(abs(half["perplexity"] - 32.80) <= 0.01,
                   f"bf16, kv f16: perplexity {half['perplexity']:.4f}, expected 32.80")
    failures.check(pair["kl_mean"] <= 1e-6 and pair["top1_agreement"] >= 0.998
                   and abs(pair["increase"]) <= 1e-4,
                   f"bf16, kv f16 against f32, kv f32: {pair}")


def text_tokens(so):
    """Token ids of the text, from libsparkc.so beside the tools."""
    library = ctypes.CDLL(str(BIN.parent / "lib" / "libsparkc.so"))
    text, model, count = TEXT.read_bytes(), ctypes.c_void_p(), ctypes.c_size_t()
    ids = np.zeros(len(text), np.int32)
    error = ctypes.create_string_buffer(4096)
    if (library.sparkc_open(str(so).encode(), None, None, ctypes.byref(model), error)
            or library.sparkc_tokenize(model, text, ctypes.c_size_t(len(text)), 0,
                                       ids.ctypes.data_as(ctypes.c_void_p),
                                       ctypes.c_size_t(len(ids)), ctypes.byref(count), error)):
        sys.exit(f"FAILED {error.raw[4:].split(bytes(1))[0].decode()}")
    library.sparkc_close(model)
    return ids[:count.value]


def check_positions(failures, folder):
    so = compile_model(SPARK_TINY, folder / "bf16.so", "--weights", "bf16", "--kv", "f16")
    tokens = text_tokens(so)

    def losses(begin):
        """Of each token behind one of the window; the last stands in the next."""
        piece, targets = tokens[begin:begin + 512], tokens[begin + 1:begin + 513]
        p = log_softmax(run_logits(so, piece, VOCAB, "-t", 1)[:len(targets)])
        return -p[np.arange(len(targets)), targets]

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        windows = list(pool.map(losses, range(0, len(tokens), 512)))
    full = np.stack([w for w in windows if len(w) == 512])[:, :511]
    every = np.exp(np.concatenate(windows).mean())
    failures.check(abs(every - 33.69) <= 0.005,
                   f"each token but the first: perplexity {every:.4f}, reference 33.69")
    failures.check(abs(np.exp(full[:, 256:].mean()) - 32.80) <= 0.005,
                   f"second halves: perplexity {np.exp(full[:, 256:].mean()):.4f}, "
                   "reference 32.80")
    got = evaluate(so, "--text", TEXT, "--all-positions")
    want = np.exp(full.mean())
    failures.check(got["tokens"] == full.size
                   and abs(got["perplexity"] - want) <= 1e-6 * want,
                   f"--all-positions: {got['perplexity']:.6f} over {got['tokens']} tokens, "
                   f"numpy {want:.6f} over {full.size}")


# The trial of these grids in docs/quality.md, rounded to nearest, 120 windows.
Q4_INCREASE, Q4_KL = 0.021, 0.0202


def check_quantized(failures, folder):
    builds = {"bf16": ["--weights", "bf16"], "q8": ["--weights", "q8"],
              "q4": ["--weights", "q4"],
              "q4, head q6": [], # the default
              "q4, head q8": ["--weights", "q4", "--weights-for", "lm_head=q8"]}
    so = {name: compile_model(SPARK_TINY, folder / f"{i}.so", *options)
          for i, (name, options) in enumerate(builds.items())}
    names = [name for name in builds if name != "bf16"]
    results = evaluate_all([(so[name], "--reference", so["bf16"], "--text", TEXT,
                             "--windows", 120, "--greedy", 0) for name in names])
    results = dict(zip(names, results))

    def bound(name, increase, kl):
        r = results[name]
        failures.check(r["increase"] <= increase and r["kl_mean"] <= kl,
                       f"{name}: {100 * r['increase']:+.3f} % (at most {100 * increase:+.2f}), "
                       f"KL {r['kl_mean']:.5f} (at most {kl})")

    bound("q8", 0.001, 0.0005)
    bound("q4", Q4_INCREASE, Q4_KL)
    for name in ("q4, head q6", "q4, head q8"):
        bound(name, results["q4"]["increase"], 0.8 * results["q4"]["kl_mean"])


CHECKS = {"eval": check_eval, "unquantized": check_unquantized,
          "positions": check_positions, "quantized": check_quantized}


if __name__ == "__main__":
    sys.exit(run_parts(CHECKS, __doc__))
