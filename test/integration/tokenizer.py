"""Token ids of 2,000 varied lines equal those of llama.cpp.

usage: tokenizer.py [--lines FILE]

Lines of eight kinds are made from a fixed seed, and of each kind's ids the digest
is compared with that of llama.cpp v0.5.0 (llama_tokenize on the small model's
GGUF, with and without special tokens parsed). --lines writes the lines, each
behind its length as a little-endian uint32, for a peer to read.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import ctypes
import hashlib
import pathlib
import random
import struct
import sys
import tempfile

from harness import BIN, SPARK_TINY, Failures, compile_model

CJK = [(0x4E00, 0x9FFF), (0x3040, 0x30FF), (0xAC00, 0xD7A3), (0x3400, 0x4DBF),
       (0xFF00, 0xFFEF), (0x3000, 0x303F)]
EMOJI = [(0x1F300, 0x1F6FF), (0x1F900, 0x1F9FF), (0x2600, 0x27BF), (0x1F1E6, 0x1F1FF),
         (0x200D, 0x200D), (0xFE0F, 0xFE0F)]
ANY = [(0, 0xFF), (0x100, 0x2FFF), (0xA000, 0xABFF), (0xF900, 0xFFFF), (0x10000, 0x1FFFF)]
SPACES = " \t\r\n\x0b\x0c\u00a0\u2003\u3000\u2028\u200b\x1f\x85"
DIGITS = " .,-+eE%\u0663\u096a\u00b2\u00bd\u2167\u5341"
CODE = ("for if return int x i 0 1 == != <= -> :: ( ) { } [ ] ; , . \" ' \\n // /* */ # @ _ $ & | ~ "
        "std vector<float> snake_case camelCase XMLHttpRequest 0x7fff 3.14f 1e-6 </think> <think> <|User|> <|Us").split()

# The first 16 digits of SHA-256 over the lines' ids, without and with special tokens.
PEER = {
    "english": ["39a931e574089d6f", "39a931e574089d6f"],
    "code": ["a680869a1b54a813", "4cba6b356e61321a"],
    "CJK": ["1bf7fbc4665f7bc0", "1bf7fbc4665f7bc0"],
    "emoji": ["29a7030ff6663f06", "29a7030ff6663f06"],
    "digits": ["13f78dde81f589ab", "13f78dde81f589ab"],
    "white space": ["284e57b181084408", "284e57b181084408"],
    "any character": ["b76c79330a995330", "b76c79330a995330"],
    "not UTF-8": ["82796b6dfdab3cb6", "82796b6dfdab3cb6"],
}


def mixed(r, share, ranges, other, most):
    """Characters of `ranges`, and now and then one of `other`."""
    return "".join(chr(r.randint(*r.choice(ranges))) if r.random() < share else r.choice(other)
                   for _ in range(r.randint(1, most))).encode()


def lines():
    """Kind -> lines of bytes."""
    r = random.Random(25)
    text = (SPARK_TINY / "valid_dev.txt").read_text(encoding="utf-8").split("\n")
    return {
        "english": [line.encode() for line in text if line.strip()][:450],
        "code": [(" " * r.randint(0, 12) + "".join(r.choice(CODE) + r.choice(["", "", " ", "\t", "  "])
                  for _ in range(r.randint(1, 25)))).encode() for _ in range(350)],
        "CJK": [mixed(r, .8, CJK, "a1 ,\u3002\u3001!\n", 40) for _ in range(250)],
        "emoji": [mixed(r, .7, EMOJI, "ab 12.\u20e3", 20) for _ in range(200)],
        "digits": [mixed(r, .7, [(48, 57)], DIGITS, 30) for _ in range(200)],
        "white space": ["".join(r.choice(SPACES if r.random() < .6 else "aZ0.'\u00e9\u4e2d")
                                for _ in range(r.randint(1, 30))).encode() for _ in range(250)],
        "any character": [mixed(r, 1, ANY, "a", 25) for _ in range(150)],
        "not UTF-8": [bytes(r.randint(0, 255) if r.random() < .4
                            else r.choice(b"abc 12\xe4\xb8\xad\xf0\x9f")
                            for _ in range(r.randint(1, 30))) for _ in range(150)],
    }


class Text:
    """The tokenizer of a compiled model, by ctypes."""

    def __init__(self, so):
        self.lib = ctypes.CDLL(str(BIN.parent / "lib" / "libsparkc.so"))
        self.model = ctypes.c_void_p()
        if self.lib.sparkc_open(str(so).encode(), None, None, ctypes.byref(self.model), None):
            sys.exit(f"FAILED cannot open {so}")

    def ids(self, data, flags):
        out = (ctypes.c_int32 * (len(data) * 3 + 16))()
        n = ctypes.c_size_t()
        if self.lib.sparkc_tokenize(self.model, data, ctypes.c_size_t(len(data)),
                                    ctypes.c_uint32(flags), out, ctypes.c_size_t(len(out)),
                                    ctypes.byref(n), None):
            sys.exit(f"FAILED cannot tokenize {data!r}")
        return list(out[:n.value])

    def info(self):
        class Info(ctypes.Structure):
            _fields_ = [("struct_size", ctypes.c_size_t), ("n_tokens", ctypes.c_uint32),
                        ("bos", ctypes.c_int32), ("eos", ctypes.c_int32 * 8),
                        ("n_eos", ctypes.c_uint32), ("adds_bos", ctypes.c_uint32),
                        ("temperature", ctypes.c_double), ("top_p", ctypes.c_double),
                        ("top_k", ctypes.c_uint32), ("reserved", ctypes.c_uint32),
                        ("chat_template", ctypes.c_char_p)]
        info = Info(struct_size=ctypes.sizeof(Info))
        if self.lib.sparkc_text_info_get(self.model, ctypes.byref(info), None):
            sys.exit("FAILED no text info")
        return {"tokens": info.n_tokens, "bos": info.bos, "eos": list(info.eos[:info.n_eos]),
                "adds_bos": info.adds_bos, "chat_template": info.chat_template}


def digest(rows):
    return hashlib.sha256("".join(" ".join(map(str, row)) + "\n" for row in rows).encode()).hexdigest()[:16]


def main():
    kinds = lines()
    if sys.argv[1:2] == ["--lines"]:
        pathlib.Path(sys.argv[2]).write_bytes(b"".join(
            struct.pack("<I", len(line)) + line for kind in kinds.values() for line in kind))
        return 0
    failures = Failures()
    failures.check(sum(map(len, kinds.values())) == 2000, "2,000 lines")
    with tempfile.TemporaryDirectory() as folder:
        model = Text(compile_model(SPARK_TINY, pathlib.Path(folder, "model.so"), "--quiet"))
        for kind, rows in kinds.items():
            got = [digest([model.ids(line, flags) for line in rows]) for flags in (0, 2)]
            failures.check(got == PEER.get(kind), f"{kind}: ids of {len(rows)} lines, {got}")
    return failures.finish()


if __name__ == "__main__":
    sys.exit(main())
