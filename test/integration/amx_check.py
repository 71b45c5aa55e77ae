"""The archive of scripts/amx-check: self-contained, small, and its checks hold.

usage: amx_check.py

Makes it (with one layer of the 1.7B shapes), unpacks it elsewhere and runs its
checks with the emulator. Where the processor has AMX, they run on that instead.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

from harness import BIN, ROOT, Failures, cpu_flags, runs

LARGEST = 50_000_000


def main():
    if not runs("amx"):
        return 77
    failures = Failures()
    with tempfile.TemporaryDirectory() as folder:
        archive = pathlib.Path(folder, "amx.tar.gz")
        made = subprocess.run([ROOT / "scripts" / "amx-check", "--bundle", archive, "1"],
                              capture_output=True, text=True,
                              env={**os.environ, "SPARKC_BUILD": str(BIN.parent)})
        if made.returncode != 0:
            sys.exit(f"FAILED amx-check --bundle: {made.stderr[-2000:]}")
        failures.check(archive.stat().st_size < LARGEST,
                       f"{archive.stat().st_size} bytes, fewer than {LARGEST}")
        there = pathlib.Path(folder, "there")
        there.mkdir()
        subprocess.run(["tar", "xzf", archive, "-C", there], check=True)
        # An environment without anything of this one.
        run = ["env", "-i", "PATH=/usr/bin:/bin", there / "amx-check" / "run"]
        real = "amx_int8" in cpu_flags()
        if not real:
            refused = subprocess.run(run, capture_output=True, text=True)
            failures.check(refused.returncode == 1 and not refused.stdout
                           and refused.stderr.startswith("amx-check: error: this machine has no AMX"),
                           f"without AMX: {refused.stderr.strip()}")
        run += ["--rounds", "0", *([] if real else ["--emulate"])]
        stopped = subprocess.Popen(run, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        stopped.stderr.readline()  # the first check is through
        stopped.send_signal(signal.SIGTERM)
        output, _ = stopped.communicate()
        failures.check(stopped.returncode == 1 and json.loads(output)["complete"] is False
                       and len(json.loads(output)["checks"]) >= 1,
                       f"stopped: status {stopped.returncode}, {output}")
        result = subprocess.run(run, capture_output=True, text=True)
        try:
            report = json.loads(result.stdout)
        except json.JSONDecodeError as error:
            sys.exit(f"FAILED not JSON: {error}\n{result.stdout}\n{result.stderr}")
        checks = report["checks"]
        failures.check(result.returncode == 0 and report["failed"] == 0 and report["complete"]
                       and report["emulated"] != real, f"its report: {report['failed']} failed")
        failures.check(len(checks) >= 20 and all(checks.values()),
                       f"{len(checks)} checks: {[n for n, ok in checks.items() if not ok]} do not hold")
    return failures.finish()


if __name__ == "__main__":
    sys.exit(main())
