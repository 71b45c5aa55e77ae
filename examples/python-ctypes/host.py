#!/usr/bin/env python3
"""A host in Python: ctypes and the standard library, nothing else.

usage: host.py [--library libsparkc.so] model.so [PROMPT [N]]

Goes on from a text by N tokens, the likeliest each time, and prints what is
new. A model without a tokenizer takes and prints token ids instead.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import argparse
import ctypes as c
import sys

OK = 0
TOKENIZE_ADD_SPECIAL = 1


class Error(c.Structure):
    _fields_ = [("status", c.c_int), ("message", c.c_char * 504)]


class ModelInfo(c.Structure):
    """sparkc_model_info, field by field as in sparkc.h."""

    _fields_ = (
        [("struct_size", c.c_size_t)]
        + [(name, c.c_char_p) for name in (
            "compiler", "target", "scheme", "isa", "isa_reason", "object_path",
            "weights_path")]
        + [("digest", c.c_char * 40)]
        + [(name, c.c_uint32) for name in (
            "vocab", "hidden", "intermediate", "layers", "full_layers", "heads",
            "kv_heads", "head_dim", "window", "ring_positions", "kv_type",
            "prefill_block", "barriers_per_step", "fold_layers")]
        + [(name, c.c_uint64) for name in (
            "fold_threshold", "max_context", "default_context", "payload_bytes",
            "bytes_per_step", "linear_weights")]
        + [("bits_per_weight", c.c_double)]
        + [(name, c.c_uint64) for name in ("default_kv_bytes", "default_arena_bytes")]
        + [(name, c.c_uint32) for name in ("has_tokenizer", "has_prefill")]
    )


def load(path):
    lib = c.CDLL(path)
    pointer, tokens = c.c_void_p, c.POINTER(c.c_int32)
    signatures = {
        "sparkc_open": [c.c_char_p, c.c_char_p, pointer, c.POINTER(pointer), c.POINTER(Error)],
        "sparkc_info": [pointer, c.POINTER(ModelInfo)],
        "sparkc_session_create": [pointer, pointer, c.POINTER(pointer), c.POINTER(Error)],
        "sparkc_prefill": [pointer, tokens, c.c_size_t, c.c_uint32, c.POINTER(c.c_float)],
        "sparkc_decode": [pointer, c.c_int32, c.POINTER(c.c_float)],
        "sparkc_tokenize": [pointer, c.c_char_p, c.c_size_t, c.c_uint32, tokens, c.c_size_t,
                            c.POINTER(c.c_size_t), c.POINTER(Error)],
        "sparkc_token_is_eos": [pointer, c.c_int32],
        "sparkc_decoder_create": [pointer, c.c_uint32, c.POINTER(pointer), c.POINTER(Error)],
        "sparkc_decoder_add": [pointer, c.c_int32, c.POINTER(pointer), c.POINTER(c.c_size_t)],
        "sparkc_decoder_finish": [pointer, c.POINTER(pointer), c.POINTER(c.c_size_t)],
        "sparkc_decoder_destroy": [pointer],
        "sparkc_session_destroy": [pointer],
        "sparkc_close": [pointer],
    }
    for name, arguments in signatures.items():
        function = getattr(lib, name)
        function.argtypes = arguments
        function.restype = None if name.endswith(("destroy", "close")) else c.c_int
    lib.sparkc_session_message.argtypes = [pointer]
    lib.sparkc_session_message.restype = c.c_char_p
    return lib


def check(status, why):
    if status != OK:
        message = why.message if isinstance(why, Error) else why
        sys.exit("host.py: error: " + message.decode())


class Model:
    def __init__(self, lib, path):
        self.lib, why = lib, Error()
        self.handle = c.c_void_p()
        check(lib.sparkc_open(path.encode(), None, None, c.byref(self.handle), why), why)
        self.info = ModelInfo(struct_size=c.sizeof(ModelInfo))
        lib.sparkc_info(self.handle, self.info)

    def tokenize(self, text):
        if not self.info.has_tokenizer:
            return [int(word) for word in text.split()]
        data, n, why = text.encode(), c.c_size_t(), Error()
        tokens = (c.c_int32 * (len(data) + 8))()
        check(self.lib.sparkc_tokenize(self.handle, data, len(data), TOKENIZE_ADD_SPECIAL, tokens,
                                       len(tokens), n, why), why)
        return list(tokens[:n.value])


class Session:
    def __init__(self, model):
        self.lib, self.model, why = model.lib, model, Error()
        self.handle = c.c_void_p()
        self.logits = (c.c_float * model.info.vocab)()
        check(self.lib.sparkc_session_create(model.handle, None, c.byref(self.handle), why), why)

    def reason(self):
        return self.lib.sparkc_session_message(self.handle)

    def prefill(self, tokens):
        array = (c.c_int32 * len(tokens))(*tokens)
        check(self.lib.sparkc_prefill(self.handle, array, len(tokens), 0, self.logits),
              self.reason())

    def greedy(self, n):
        """Yields up to n tokens, the likeliest each time."""
        vocab = range(self.model.info.vocab)
        for _ in range(n):
            token = max(vocab, key=self.logits.__getitem__)
            if self.model.info.has_tokenizer and self.lib.sparkc_token_is_eos(
                    self.model.handle, token):
                return
            yield token
            check(self.lib.sparkc_decode(self.handle, token, self.logits), self.reason())


class Decoder:
    """Text of tokens as they come, whole characters only."""

    def __init__(self, model):
        self.lib, why = model.lib, Error()
        self.handle = c.c_void_p()
        check(self.lib.sparkc_decoder_create(model.handle, 0, c.byref(self.handle), why), why)

    def _text(self, call, *arguments):
        text, size = c.c_void_p(), c.c_size_t()
        check(call(self.handle, *arguments, text, size), b"cannot decode")
        return c.string_at(text.value, size.value).decode() if size.value else ""

    def add(self, token):
        return self._text(self.lib.sparkc_decoder_add, token)

    def finish(self):
        return self._text(self.lib.sparkc_decoder_finish)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", default="libsparkc.so", help="path of libsparkc.so")
    parser.add_argument("model", help="compiled model, model.so")
    parser.add_argument("prompt", nargs="?", default="Once upon a time")
    parser.add_argument("n", nargs="?", type=int, default=32, help="tokens to add")
    options = parser.parse_args()

    lib = load(options.library)
    model = Model(lib, options.model)
    session = Session(model)
    session.prefill(model.tokenize(options.prompt))
    if model.info.has_tokenizer:
        decoder = Decoder(model)
        for token in session.greedy(options.n):
            print(decoder.add(token), end="", flush=True)
        print(decoder.finish())
        lib.sparkc_decoder_destroy(decoder.handle)
    else:
        for token in session.greedy(options.n):
            print(token, end=" ", flush=True)
        print()
    lib.sparkc_session_destroy(session.handle)
    lib.sparkc_close(model.handle)


if __name__ == "__main__":
    main()
