"""sparkc --report: grids, bytes and errors of every tensor.

usage: report.py

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import json
import pathlib
import sys
import tempfile

from harness import GOLDEN, Failures, expect_error, tool


def report_of(folder, case, *options):
    so, path = folder / "model.so", folder / "report.json"
    result = tool("sparkc", GOLDEN / case, "-o", so, "--report", path, *options)
    version = tool("sparkc-run", so, "--version").stdout.decode()
    return json.loads(path.read_text()), result.stdout.decode(), version


def check_model(failures, folder, case, options, grids):
    """grids: the end of a name -> its grid."""
    report, table, version = report_of(folder, case, *options)
    what = f"{case} {' '.join(options)}"
    config = json.loads((GOLDEN / case / "config.json").read_text())
    tensors = {t["name"]: t for t in report["tensors"]}
    failures.check(len(tensors) == len(report["tensors"]), f"{what}: each tensor once")
    failures.check(len(tensors) >= 8 * config["num_hidden_layers"] + 2,
                   f"{what}: {len(tensors)} tensors")
    for name, t in tensors.items():
        end = name.rsplit(".", 1)[-1]
        want = "f32" if end.endswith("norm") else grids.get(end, grids["*"])
        failures.check(t["grid"] == want, f"{what}: {name} is {t['grid']}, expected {want}")
        integer = want.startswith("q")
        bits = int(want[1]) if integer else {"f32": 32, "bf16": 16}[want]
        failures.check(t["bits_per_weight"] == 8 * t["bytes"] / (t["rows"] * t["cols"])
                       >= bits, f"{what}: {name} takes {t['bits_per_weight']:.2f} bits")
        # About 6 dB a bit.
        sound = 5 * bits < t["sqnr_db"] < 8 * bits if integer else t["sqnr_db"] is None
        failures.check(sound, f"{what}: SQNR of {name} is {t['sqnr_db']}")
    linears = [t for t in report["tensors"] if not t["name"].endswith("norm")
               and (t["name"] != "embedding" or "lm_head" not in tensors)]
    failures.check(report["linear_weights"] == sum(t["rows"] * t["cols"] for t in linears),
                   f"{what}: {report['linear_weights']} weights of linears")
    streamed = sum(t["bytes"] for t in linears)
    failures.check(streamed <= report["bytes_per_token"] <= streamed * 1.05,
                   f"{what}: {report['bytes_per_token']} bytes a token, {streamed} in linears")
    total = sum(t["bytes"] for t in report["tensors"])
    failures.check(total <= report["payload_bytes"] < total + 64 * len(tensors),
                   f"{what}: {report['payload_bytes']} bytes in all, {total} of tensors")
    bits = 8 * report["bytes_per_token"] / report["linear_weights"]
    failures.check(abs(report["bits_per_weight"] - bits) < 1e-9
                   and f"{bits:.2f} bits a weight" in version,
                   f"{what}: {bits:.2f} bits a weight, as sparkc-run says")
    failures.check(f"{bits:.3f} bits a weight" in table and report["scheme"] in table
                   and "*.down_proj" in table, f"{what}: the table says so too")


def main():
    failures = Failures()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        check_model(failures, folder, "base", [],
                    {"*": "q4:g64", "lm_head": "q6:g64", "embedding": "bf16"})
        check_model(failures, folder, "untied",
                    ["--weights", "q5:g32:sym", "--weights-for", "*.down_proj=q8:g128"],
                    {"*": "q5:g32:sym", "down_proj": "q8:g128", "embedding": "bf16"})
        check_model(failures, folder, "f32", ["--weights", "f32"], {"*": "f32"})
        so, path = folder / "quiet.so", folder / "no" / "report.json"
        quiet = tool("sparkc", GOLDEN / "base", "-o", so, "--quiet")
        failures.check(quiet.stdout == b"" and quiet.stderr == b"", "--quiet is silent")
        so = folder / "none.so"
        expect_error(failures, "a report that cannot be written", "sparkc", GOLDEN / "base",
                     "-o", so, "--report", path, names=[path])
        failures.check(not list(folder.glob("none*")), "nothing is left of that compile")
        expect_error(failures, "a report of a text", "sparkc", GOLDEN / "base",
                     "--emit", "step", "--report", folder / "r", names=["--report"])
    return failures.finish()


if __name__ == "__main__":
    sys.exit(main())
