"""scripts/compare-llama with two programs that only pretend to measure.

usage: compare_llama.py

Ratios are those of the pairs, their order alternates, and what would make the
comparison void is refused.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from harness import ROOT, Failures

# Writes its name and arguments to LOG; the n-th call prints the n-th answer.
FAKE = """#!/usr/bin/python3
import json, os, sys
with open(os.environ["LOG"], "a+") as log:
    log.write(json.dumps([{name!r}] + sys.argv[1:]) + "\\n")
    log.seek(0)
    calls = [json.loads(line) for line in log if json.loads(line)[0] == {name!r}]
answers = {answers!r}
print(json.dumps(answers[(len(calls) - 1) % len(answers)]))
"""


def sparkc_row(test, speed):
    return {"test": test, "tokens_per_second": speed, "isa": "avx2", "read_ceiling_gbps": 50.0,
            "ceiling_share": 0.9 if test.startswith("tg") else None,
            **({"peak_tops": 2.0, "peak_share": 0.5} if test.startswith("pp") else {})}


def main():
    failures = Failures()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)

        def fake(program, answers):
            path = folder / program
            path.write_text(FAKE.format(name=program, answers=answers))
            path.chmod(0o755)
            return str(path)

        speeds = [(60, 400), (50, 420), (66, 380), (44, 390), (55, 410)]
        environment = dict(
            os.environ, LOG=str(folder / "log"),
            SPARKC_BENCH=fake("sparkc-bench", [
                [row] for t, p in speeds for row in (sparkc_row("tg128", t), sparkc_row("pp512", p))]),
            LLAMA_BENCH=fake("llama-bench", [
                [row] for i in range(5) for row in ({"n_prompt": 0, "avg_ts": 30.0 if i else 40.0},
                                                    {"n_prompt": 512, "avg_ts": 100.0})]))
        model, gguf = folder / "m.so", folder / "m.gguf"
        model.touch()
        gguf.touch()

        def compare(*arguments, **changes):
            changed = {k: v for k, v in {**environment, **changes}.items() if v is not None}
            return subprocess.run([str(ROOT / "scripts" / "compare-llama"), str(model), str(gguf),
                                   "-t", "2", *arguments], env=changed, capture_output=True, text=True)

        result = compare("-o", "json", "--sparkc-option=--synthetic-weights")
        if failures.check(result.returncode == 0, f"runs: {result.stderr.strip()}"):
            got = json.loads(result.stdout)
            ratios = sorted(t / (30 if i else 40) for i, (t, _) in enumerate(speeds))
            want = {"median": ratios[2], "min": ratios[0], "max": ratios[4]}
            failures.check(all(abs(got["ratio_tg"][k] - want[k]) < 1e-9 for k in want),
                           f"ratio_tg {got['ratio_tg']}, expected {want}")
            failures.check(got["ratio_pp"] == {"median": 4.0, "min": 3.8, "max": 4.2},
                           f"ratio_pp {got['ratio_pp']}")
            failures.check(got["threads"] == 2 and got["pairs"] == 5, "threads and pairs")
            failures.check(got["ceiling_share_tg"] == 0.9 and got["peak_share_pp"] == 0.5
                           and "ceiling_share_pp" not in got, "shares of the machine")
            calls = [json.loads(line) for line in (folder / "log").read_text().splitlines()]
            order = [call[0] for call in calls]
            first, second = ["sparkc-bench", "llama-bench"], ["llama-bench", "sparkc-bench"]
            failures.check(order == 2 * first + 2 * second + 2 * first + 2 * second + 2 * first,
                           f"order {order}")
            for i, call in enumerate(calls):
                test = ["0", "128"] if i // 2 % 2 == 0 else ["512", "0"]
                if [call[call.index(o) + 1] for o in ("-p", "-n")] != test:
                    failures.check(False, f"call {i} is not of its own test: {call}")
                if "-t" not in call or call[call.index("-t") + 1] != "2":
                    failures.check(False, f"other threads: {call}")
            failures.check(all("--synthetic-weights" in call for call in calls
                               if call[0] == "sparkc-bench"), "the option is passed on")

        os.remove(folder / "log")
        result = compare()
        failures.check("| tg128 | 55.0 | 30.0 |" in result.stdout, f"the table: {result.stdout!r}")
        for what, bad in (("fewer than 5 pairs", compare("-r", "4")),
                          ("LLAMA_BENCH is not set", compare(LLAMA_BENCH=None)),
                          ("/no/such", compare(LLAMA_BENCH="/no/such")),
                          ("not JSON", compare(LLAMA_BENCH="/bin/echo")),
                          ("status 1", compare(LLAMA_BENCH="/bin/false")),
                          ("nothing to do", compare("-p", "0", "-n", "0"))):
            lines = bad.stderr.splitlines()
            failures.check(bad.returncode == 1 and len(lines) == 1 and what in lines[0],
                           f"refused: {what}: {lines}")
    return failures.finish()


if __name__ == "__main__":
    sys.exit(main())
