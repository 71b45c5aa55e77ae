"""sparkc-bench on compiled models: the report's keys, the timeline, errors.

usage: bench.py

Figures are checked for what must hold on any machine, however busy: shares add
up, barriers are those of the schedule, bytes those of the report.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import json
import pathlib
import re
import shutil
import sys
import tempfile

from harness import GOLDEN, SPARK_TINY, Failures, compile_model, expect_error, tool

KEYS = {"test", "threads", "isa", "isa_reason", "tokens_per_second", "stddev",
        "bytes_per_token", "read_ceiling_gbps", "ceiling_share",
        "read_sustained_gbps", "sustained_share", "barriers", "share_linear",
        "share_attention", "share_other", "profile_slowdown"}
QUICK = ("-r", 1, "--ceiling-memory", 16)
PROMPT_KEYS = {"peak_tops", "peak_share", "peak_share_linear"}


def bench(so, *options):
    return json.loads(tool("sparkc-bench", so, *QUICK, "-o", "json", *options).stdout)


def check_row(failures, row, name, threads):
    failures.check(row["test"] == name and KEYS <= row.keys(), f"{name}: keys")
    failures.check(row["threads"] == threads and row["tokens_per_second"] > 0
                   and row["read_ceiling_gbps"] > 0 and row["logits_finite"], f"{name}: figures")
    shares = [row["share_linear"], row["share_attention"], row["share_other"]]
    if None in shares + [row["profile_slowdown"]]:
        failures.check(shares == [None] * 3 and row["profile_slowdown"] is None
                       and "no profile entries in this model" in row["notes"],
                       f"{name}: no profile entries, and it says so")
    else:
        failures.check(abs(sum(shares) - 1) < 1e-6 and min(shares) >= 0
                       and row["share_linear"] > 0, f"{name}: shares {shares}")


def check_timeline(failures, path, row):
    events = json.loads(path.read_text())["traceEvents"]
    steps = {e["pid"] for e in events if e["name"] == "process_name"
             and e["args"]["name"] == "tg6 step"}
    for pid in steps:
        threads = {e["tid"] for e in events if e["pid"] == pid and e["ph"] == "X"}
        for tid in threads:
            mine = [e for e in events if e["pid"] == pid and e.get("tid") == tid
                    and e["ph"] == "X"]
            waits = [e for e in mine if e["name"] == "barrier"]
            phases = [e for e in mine if e["name"] != "barrier"]
            failures.check(len(waits) == row["barriers"] == len(phases),
                           f"timeline: {len(phases)} phases, {len(waits)} barriers of "
                           f"{row['barriers']} on thread {tid}")
            layers = {e["args"]["layer"] for e in phases if "layer" in e["args"]}
            failures.check(layers == set(range(8)), f"timeline: layers {sorted(layers)}")
        read = sum(e.get("args", {}).get("bytes", 0) for e in events if e["pid"] == pid
                   and e.get("tid") == 0 and e["ph"] == "X")
        failures.check(0 < read <= row["bytes_per_token"], f"timeline: {read} bytes in a step")
    failures.check(len(steps) == 3, f"timeline: {len(steps)} steps")


def main():
    failures = Failures()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        tiny = compile_model(SPARK_TINY, folder / "tiny.so", "--weights", "q4:g64")
        rows = bench(tiny, "-t", 2, "-p", 9, "-n", 6, "--depth", 5)
        failures.check(len(rows) == 2, "two tests")
        check_row(failures, rows[0], "tg6", 2)
        check_row(failures, rows[1], "pp9", 2)
        failures.check(rows[0]["barriers"] == rows[0]["barriers_per_step"],
                       f"{rows[0]['barriers']} barriers counted")
        # Keys and values, f16, of positions 5 to 10: 8 layers of 256 bytes each.
        config = json.loads((SPARK_TINY / "config.json").read_text())
        position = 2 * 2 * config["num_key_value_heads"] * config["head_dim"]
        kv = position * config["num_hidden_layers"] * (6 + 11) / 2
        weights = rows[0]["bytes_per_token"] - kv
        failures.check(0 < weights < tiny.with_suffix(".weights").stat().st_size
                       and abs(weights - round(weights)) < 1e-3, f"{weights} bytes of weights a step")
        failures.check(rows[1]["bytes_per_token"] is None and PROMPT_KEYS <= rows[1].keys()
                       and not PROMPT_KEYS & rows[0].keys(), "figures of a prompt")
        failures.check(rows[1]["peak_tops"] is None or 0 < rows[1]["peak_share"] < 1.1,
                       f"peak {rows[1]['peak_tops']} TOPS, share {rows[1]['peak_share']}")

        one = bench(tiny, "-t", 1, "-p", 0, "-n", 3)
        failures.check([r["test"] for r in one] == ["tg3"], "-p 0 leaves the prompt out")
        one = bench(tiny, "-t", 1, "-p", 3, "-n", 0)
        failures.check([r["test"] for r in one] == ["pp3"], "-n 0 leaves the generation out")

        alone = folder / "alone.so"
        shutil.copy(tiny, alone)
        expect_error(failures, "no weights file", "sparkc-bench", alone, names=["alone.weights"])
        for scheme in ("q4:g64", "q8:g32", "bf16", "f32"):
            if scheme != "q4:g64":
                compile_model(GOLDEN / "base", alone, "--weights", scheme)
                alone.with_suffix(".weights").unlink()
            row = bench(alone, "-t", 1, "-p", 0, "-n", 8, "--synthetic-weights")[0]
            failures.check(row["logits_finite"] and row["synthetic_weights"],
                           f"synthetic weights of {row['scheme']}: finite logits")

        table = tool("sparkc-bench", tiny, *QUICK, "-t", 1, "-p", 2, "-n", 2).stdout.decode()
        failures.check(all(re.search(cell, table) for cell in
                           (r"\| +tg2 \|", r"\| +pp2 \|", r"\| +read ceiling \|")), "a table")
        passes = tool("sparkc-bench", tiny, "-t", 2, "--read-passes", 3,
                      "--ceiling-memory", 16).stdout.decode()
        rates = re.findall(r"^\|.* \| +3 \| +([0-9.]+) \| +([0-9.]+) \| +([0-9.]+) \|",
                           passes, re.M)
        failures.check(len(rates) == 15 and all(float(best) >= float(tenth) >= float(middle) > 0
                                                for best, tenth, middle in rates)
                       and "a step" in passes, f"14 patterns and a step, three passes each: {rates}")
        expect_error(failures, "passes as JSON", "sparkc-bench", tiny, "--read-passes", 3,
                     "-o", "json", names=["--read-passes"])
        trace = folder / "trace.json"
        if rows[0]["profile_slowdown"] is None:
            expect_error(failures, "a timeline without profile entries", "sparkc-bench", tiny,
                         "--profile", trace, names=["no profile entries in this model"])
        else:
            row = bench(tiny, "-t", 2, "-p", 0, "-n", 6, "--profile", trace)[0]
            check_timeline(failures, trace, row)
            expect_error(failures, "a timeline into no folder", "sparkc-bench", tiny, *QUICK,
                         "-p", 0, "-n", 1, "--profile", folder / "no" / "t.json",
                         names=["t.json", "cannot write"])

        help = tool("sparkc-bench", "--help").stdout.decode()
        for word in ("--synthetic-weights", "--depth", "--profile", "--read-passes", "ceiling_share",
                     "sustained_share",
                     "profile_slowdown", "peak_share_linear"):
            failures.check(word in help, f"--help tells of {word}")
        expect_error(failures, "no model", "sparkc-bench", names=["no model"])
        expect_error(failures, "nothing to do", "sparkc-bench", tiny, "-p", 0, "-n", 0,
                     names=["nothing to do"])
        expect_error(failures, "no such model", "sparkc-bench", folder / "none.so",
                     names=["none.so"])
        expect_error(failures, "not a model", "sparkc-bench", SPARK_TINY / "config.json",
                     names=["config.json"])
        expect_error(failures, "an odd number", "sparkc-bench", tiny, "-n", "many",
                     names=["many"])
        for name in ("sparkc-bench", "sparkc-run", "sparkc-eval"):
            text = ["--text", SPARK_TINY / "valid_dev.txt"] if name == "sparkc-eval" else []
            for threads in (0, -1, "", 4097, "1x", 1 << 64):
                expect_error(failures, f"{name} with '{threads}' threads", name, tiny, *text, "-t",
                             threads, names=["--threads", f"'{threads}'", "1 to 4096"])
        expect_error(failures, "an unknown format", "sparkc-bench", tiny, "-o", "xml",
                     names=["xml"])
        expect_error(failures, "an unknown option", "sparkc-bench", tiny, "--frobnicate")
        expect_error(failures, "two kinds of weights", "sparkc-bench", tiny,
                     "--synthetic-weights", "--weights", tiny.with_suffix(".weights"))
        expect_error(failures, "too deep", "sparkc-bench", tiny, "--depth", 1 << 29,
                     names=["tiny.so"])
    return failures.finish()


if __name__ == "__main__":
    sys.exit(main())
