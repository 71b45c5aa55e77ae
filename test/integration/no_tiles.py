"""Runs a program on a system that permits no AMX tiles.

usage: no_tiles.py PROGRAM [ARGUMENT ...]

A seccomp filter answers arch_prctl(ARCH_REQ_XCOMP_PERM) with EPERM, as a sandbox
may; everything else goes to Linux. The program takes the place of this one.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import ctypes
import errno
import os
import struct
import sys

# <linux/prctl.h>, <linux/seccomp.h>, <asm/prctl.h>, <linux/bpf_common.h>
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
SYS_ARCH_PRCTL, ARCH_REQ_XCOMP_PERM = 158, 0x1023
LOAD_WORD, JUMP_EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, ERRNO = 0x7fff0000, 0x00050000
# In struct seccomp_data.
NUMBER, FIRST_ARGUMENT = 0, 16


class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_char_p)]


def refuse_tiles():
    """Of this process and what it becomes."""
    code = [(LOAD_WORD, 0, 0, NUMBER), (JUMP_EQUAL, 0, 3, SYS_ARCH_PRCTL),
            (LOAD_WORD, 0, 0, FIRST_ARGUMENT), (JUMP_EQUAL, 0, 1, ARCH_REQ_XCOMP_PERM),
            (RETURN, 0, 0, ERRNO | errno.EPERM), (RETURN, 0, 0, ALLOW)]
    program = Program(len(code), b"".join(struct.pack("=HBBI", *line) for line in code))
    libc = ctypes.CDLL(None, use_errno=True)
    for call in ((PR_SET_NO_NEW_PRIVS, 1, 0), (PR_SET_SECCOMP, SECCOMP_MODE_FILTER,
                                               ctypes.byref(program))):
        if libc.prctl(*call, 0, 0) != 0:
            sys.exit(f"no_tiles.py: error: prctl: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    refuse_tiles()
    os.execvp(sys.argv[1], sys.argv[1:])
