"""What the tools write to: nothing of worth is lost there, nothing half-written stays.

usage: outputs.py names | kept | signals

names     outputs of one name, outputs that are inputs, devices, folders that are
          not there: one line, and every file stays as it was
kept      a model stays whole when what would have replaced it fails late
signals   a run that is ended by a signal leaves no file

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import os
import shutil
import signal
import subprocess
import sys
import time

from harness import BIN, GOLDEN, expect_error, run_parts, tool

CASE = GOLDEN / "base"


def contents(folder):
    """Of all files below, and the kind of what is none."""
    return {path.relative_to(folder): path.read_bytes() if path.is_file() else path.lstat().st_mode
            for path in folder.rglob("*")}


def names(failures, folder):
    model = folder / "model"
    shutil.copytree(CASE, model)
    gguf, stage, fifo = folder / "m.gguf", folder / "s.mlir", folder / "fifo"
    tool("sparkc", model, "--weights", "q8_0", "--export-gguf", gguf)
    tool("sparkc", model, "--emit=step", "-o", stage)
    os.mkfifo(fifo)
    (folder / "alias").symlink_to(model)
    out, tensors = folder / "x.so", model / "model.safetensors"
    shard = model / "unused.safetensors"
    shutil.copy(tensors, shard)
    before = contents(folder)

    def refused(what, *arguments, names=()):
        expect_error(failures, what, "sparkc", *arguments, names=names)
        failures.check(contents(folder) == before, f"{what}: every file is as it was")

    for what, *arguments in (
            ("the config", model, "-o", out, "--report", model / "config.json"),
            ("the weights", model, "-o", tensors),
            ("a shard without a weight of the model", model, "-o", shard),
            ("the weights by another name", model, "-o", folder / "alias/model.safetensors"),
            ("the weights, of a stage's text", stage, "-o", tensors),
            ("the text of a stage", stage, "--emit=obj", "-o", stage),
            ("a GGUF file", gguf, "-o", gguf),
            ("a GGUF file, exported", gguf, "--weights", "q4_0", "--export-gguf", gguf),
            ("the text to calibrate on", model, "-o", out, "--calibrate", stage,
             "--report", stage)):
        refused(f"the output is {what}", *arguments, names=[arguments[-1], "is read from"])
    for what, *arguments in (
            ("object and report", "-o", out, "--report", out),
            ("weights and report", "-o", out, "--report", folder / "x.weights"),
            ("object and export", "-o", out, "--weights", "q8_0", "--export-gguf", out),
            ("report and codes", "-o", out, "--calibrate", stage, "--report",
             folder / "x.so.codes"),
            ("export and report", "--weights", "q8_0", "--export-gguf", folder / "y",
             "--report", folder / "model/../y")):
        refused(f"one name for {what}", model, *arguments, names=["is written to by"])
    for option in ("--report", "--export-gguf"):
        refused(f"{option} to a pipe", model, "-o", out, "--weights", "q8_0", option, fifo,
                names=[fifo, "not a regular file"])
        refused(f"{option} to a folder that is not there", model, "-o", out, "--weights", "q8_0",
                option, folder / "none/y", names=[folder / "none/y", "cannot write"])
    ids = folder / "ids"
    ids.write_text("1 2 3")
    tool("sparkc", model, "-o", out)
    before = contents(folder)
    for what, path in (("tokens", ids), ("model", out), ("weights", out.with_suffix(".weights"))):
        expect_error(failures, f"logits in place of the {what}", "sparkc-run", out, "--tokens", ids,
                     "--logits", path, names=[path, "is read from"])
    failures.check(contents(folder) == before, "which stay")
    for seed in ("-1", "18446744073709551616", "1e3", ""):
        failures.check(subprocess.run([BIN / "sparkc-run", out, "-p", "x", "--seed", seed],
                                      capture_output=True).stderr.count(b"--seed") == 1,
                       f"the seed {seed!r} is refused")
    for size in ("", 0, -3, 1 << 64, "1.5"):
        for option, command in (
            ("--context", ["sparkc-run", out, "-p", "x"]),
            ("--prefill-chunk", ["sparkc-run", out, "--tokens", out, "--logits", folder / "l"]),
            ("--context", ["sparkc", model, "-o", folder / "none.so"])):
            expect_error(failures, f"{command[0]} {option} {size!r}", *command, option, size,
                         names=[option, f"'{size}'", "from 1 on"])
    for number in ("-2", " -2", "-x", "", "2.5", "9223372036854775808"):
        expect_error(failures, f"{number!r} tokens", "sparkc-run", out, "-p", "x", "-n", number,
                     names=["--n-predict"])
    (folder / "dangling").symlink_to(folder / "nowhere")
    before = contents(folder)
    refused("--dequantize to a link to nowhere", model, "--dequantize", folder / "dangling",
            names=[folder / "dangling"])
    failures.check((folder / "dangling").is_symlink(), "the link stays")
    for arguments in (["--help"], ["--version"], [model, "--emit=step"], [model, "--emit=asm"]):
        with open("/dev/full", "wb") as full:
            result = subprocess.run([BIN / "sparkc", *arguments], stdout=full, stderr=-1)
        lines = result.stderr.decode().splitlines()
        failures.check(result.returncode == 1 and len(lines) == 1 and "<stdout>" in lines[0],
                       f"sparkc {arguments[-1]} > /dev/full: {result.returncode} {lines[:2]}")
    percent = folder / "50%off"
    percent.mkdir()
    tool("sparkc", model, "-o", percent / "%m.so", "--weights", "q8_0", "--export-gguf",
         percent / "%%.gguf", "--report", percent / "r%d.json")
    written = sorted(path.name for path in percent.iterdir())
    failures.check(written == ["%%.gguf", "%m.so", "%m.weights", "r%d.json"],
                   f"percent signs in names: {written}")


def kept(failures, folder):
    so = folder / "m.so"
    tool("sparkc", CASE, "-o", so, "--weights", "q8")
    before = contents(folder)
    # The report's file system is full, which only the end of the work shows.
    script = ('mount -t tmpfs -o size=4k tmpfs "$1" && head -c 4096 /dev/zero > "$1/all";'
              'shift; exec "$@"')
    small = folder / "small"
    small.mkdir()
    run = ["unshare", "-m", "sh", "-c", script, "sh", small]
    if subprocess.run([*run, "true"], capture_output=True).returncode:
        print("skipped: a full file system: may not mount one here")
    else:
        for output in (so, folder / "new.so"):
            result = subprocess.run([*run, BIN / "sparkc", CASE, "-o", output, "--weights", "q4",
                                     "--report", small / "r.json"], capture_output=True)
            lines = result.stderr.decode().splitlines()
            failures.check(result.returncode == 1 and len(lines) == 1
                           and f"{small}/r.json: cannot write" in lines[0],
                           f"report on a full disk: {result.returncode} {lines[:2]}")
        # An object that cannot be replaced: the weights are not either.
        bound = ('mount --bind "$1" "$1" && shift && exec "$@"')
        result = subprocess.run(["unshare", "-m", "sh", "-c", bound, "sh", so, BIN / "sparkc",
                                 CASE, "-o", so, "--weights", "q4"], capture_output=True)
        lines = result.stderr.decode().splitlines()
        failures.check(result.returncode == 1 and len(lines) == 1 and f"{so}: " in lines[0],
                       f"an object that cannot be replaced: {result.returncode} {lines[:2]}")
    small.rmdir()
    failures.check(contents(folder) == before, "the model that was there stays, and nothing else")


RENAME = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <string.h>
int rename(const char *from, const char *to) {
  int (*next)(const char *, const char *) = dlsym(RTLD_NEXT, "rename");
  int result = next(from, to);
  const char *end = strrchr(to, '.');
  if (end && !strcmp(end, ".weights"))
    raise(SIGINT);
  return result;
}
"""


def between_renames(failures, folder, so):
    """An interrupt when the weights have their name and the object has not."""
    source, hook = folder / "rename.c", folder / "rename.so"
    source.write_text(RENAME)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", hook, source, "-ldl"], check=True)
    sanitizer = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
    result = subprocess.run([BIN / "sparkc", CASE, "-o", so, "--weights", "q8"],
                            env={**os.environ, "LD_PRELOAD": str(hook), "ASAN_OPTIONS": sanitizer},
                            stdout=subprocess.DEVNULL)
    said = tool("sparkc-run", so, "--version").stdout.decode()
    failures.check(result.returncode == 0 and "q8" in said,
                   f"interrupted between the two renames: status {result.returncode}, {said!r}")
    source.unlink(), hook.unlink()


def signals(failures, folder):
    so, tokens = folder / "m.so", folder / "tokens"
    tool("sparkc", CASE, "-o", so)
    tokens.write_text(" ".join("1" for _ in range(2000)))
    inputs = set(folder.iterdir())
    commands = (
        ("--dequantize", "*", [BIN / "sparkc", CASE, "--dequantize", folder / "d"]),
        ("--logits", "*.part", [BIN / "sparkc-run", so, "--tokens", tokens, "--logits",
                                folder / "lg", "--decode", "--context", "2048"]))
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        for what, pattern, command in commands:
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            # As soon as there is something to leave.
            while process.poll() is None and not any(
                    path.is_file() and path not in inputs for path in folder.rglob(pattern)):
                time.sleep(0.0005)
            process.send_signal(number)
            process.wait()
            left = [path for path in folder.rglob("*") if path.is_file() and path not in inputs]
            failures.check(process.returncode == -number and not left,
                           f"{what}: status {process.returncode} by {number.name}, leaves "
                           f"{[p.name for p in left] or 'nothing'}")
            for path in left:
                path.unlink()
            shutil.rmtree(folder / "d", ignore_errors=True)
    between_renames(failures, folder, so)
    # Under nohup a hangup ends nothing.
    process = subprocess.Popen(["nohup", *commands[1][2]], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not (folder / "lg.part").exists():
        time.sleep(0.0005)
    process.send_signal(signal.SIGHUP)
    failures.check(process.wait() == 0 and (folder / "lg").exists(),
                   f"--logits under nohup: status {process.returncode}")


if __name__ == "__main__":
    sys.exit(run_parts({"names": names, "kept": kept, "signals": signals}, __doc__))
