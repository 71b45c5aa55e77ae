#!/usr/bin/env python3
"""Writes NewerCharacters.inc: what Unicode 15.1 added to 14.0.

usage: newer_characters.py OLD-PYTHON NEW-PYTHON > NewerCharacters.inc

Both are asked for the categories of their unicodedata: Python 3.11 has Unicode
14.0, as PCRE2 10.42; Python 3.13 has 15.1, as Oniguruma 6.9.9 and llama.cpp.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import subprocess
import sys

ASK = ("import unicodedata as u; print(u.unidata_version);"
       "print(*(u.category(chr(c)) for c in range(0x110000)))")


def categories(python, version):
    answer = subprocess.check_output([python, "-c", ASK], text=True).split()
    if answer[0] != version:
        sys.exit(f"{python} has Unicode {answer[0]}, not {version}")
    return answer[1:]


def main():
    old = categories(sys.argv[1], "14.0.0")
    new = categories(sys.argv[2], "15.1.0")
    ranges = []
    for c in range(0x110000):
        kind = new[c][0]
        if old[c] != "Cn" or kind not in "LMNPS":
            continue
        if ranges and ranges[-1][1] == c - 1 and ranges[-1][2] == kind:
            ranges[-1][1] = c
        else:
            ranges.append([c, c, kind])
    print("// Made by newer_characters.py: what Unicode 15.1 added to 14.0.")
    for first, last, kind in ranges:
        print(f"{{0x{first:x}, 0x{last:x}, '{kind}'}},")


if __name__ == "__main__":
    main()
