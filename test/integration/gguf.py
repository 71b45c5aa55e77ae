"""GGUF files and their quantized blocks, in numpy: a second opinion on what
dialect/import/Gguf.h and codegen/weights/BlockFormat.h read. Written from the
format's description, block by block of bits.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import pathlib
import struct

import numpy as np

# name -> (number, weights of a block, bytes of a block)
TYPES = {"F32": (0, 1, 4), "F16": (1, 1, 2), "BF16": (30, 1, 2), "Q4_0": (2, 32, 18),
         "Q4_1": (3, 32, 20), "Q5_0": (6, 32, 22), "Q5_1": (7, 32, 24), "Q8_0": (8, 32, 34),
         "Q4_K": (12, 256, 144), "Q5_K": (13, 256, 176), "Q6_K": (14, 256, 210)}
NAMES = {number: name for name, (number, _, _) in TYPES.items()}
QUANTIZED = [name for name, (_, block, _) in TYPES.items() if block > 1]

U32, F32, BOOL, STRING, ARRAY, U64 = 4, 6, 7, 8, 9, 10
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q",
           12: "d"}


#--- Blocks -------------------------------------------------------------------
def half(blocks, at):
    """float16 at a byte of each block, as float32 [blocks, 1]."""
    return np.ascontiguousarray(blocks[:, at:at + 2]).view(np.float16).astype(np.float32)


def nibbles(data):
    """[n, k] bytes -> their low and their high nibbles."""
    return (data & 15).astype(np.int32), (data >> 4).astype(np.int32)


def bits(data):
    """[n, k] bytes -> [n, 8 k] bits, the lowest of each byte first."""
    return np.unpackbits(data, axis=1, bitorder="little").astype(np.int32)


def six_bits(data):
    """12 bytes -> 8 scales and 8 minima of 6 bits."""
    data = data.astype(np.int32)
    low, high, rest = data[:, :4], data[:, 4:8], data[:, 8:]
    scales = np.concatenate([low & 63, (rest & 15) + 16 * (low >> 6)], 1)
    minima = np.concatenate([high & 63, (rest >> 4) + 16 * (high >> 6)], 1)
    return scales, minima


def dequantize(name, blocks):
    """[n, bytes of a block] uint8 -> [n, weights of a block] float32, with one
    rounding for each weight."""
    blocks = np.ascontiguousarray(blocks)
    if name == "Q8_0":
        return half(blocks, 0) * blocks[:, 2:].view(np.int8).astype(np.float32)
    if name in ("Q4_0", "Q4_1", "Q5_0", "Q5_1"):
        minimum, fifth = name.endswith("1"), name.startswith("Q5")
        at = 4 if minimum else 2
        high = bits(blocks[:, at:at + 4]) if fifth else 0
        at += 4 if fifth else 0
        codes = np.concatenate(nibbles(blocks[:, at:at + 16]), 1) + 16 * high
        if minimum:
            return half(blocks, 0) * codes.astype(np.float32) + half(blocks, 2)
        return half(blocks, 0) * (codes - (16 if fifth else 8)).astype(np.float32)
    n = len(blocks)
    if name in ("Q4_K", "Q5_K"):
        scales, minima = six_bits(blocks[:, 4:16])
        at = 48 if name == "Q5_K" else 16
        low, high = nibbles(blocks[:, at:at + 128].reshape(n, 4, 32))
        codes = np.stack([low, high], 2).reshape(n, 8, 32)
        if name == "Q5_K":
            fifth = bits(blocks[:, 16:48].reshape(-1, 1)).reshape(n, 32, 8)
            codes = codes + 16 * fifth.transpose(0, 2, 1)
        scale = half(blocks, 0) * scales.astype(np.float32)
        minimum = half(blocks, 2) * minima.astype(np.float32)
        return (scale[:, :, None] * codes.astype(np.float32) - minimum[:, :, None]).reshape(n, 256)
    assert name == "Q6_K"
    low, high = nibbles(blocks[:, :128].reshape(n, 2, 64))
    codes = np.concatenate([low, high], 2)
    pairs = blocks[:, 128:192].reshape(n, 2, 1, 32) >> np.array([0, 2, 4, 6])[None, None, :, None]
    codes = codes + 16 * (pairs & 3).reshape(n, 2, 128).astype(np.int32)
    scale = half(blocks, 208) * blocks[:, 192:208].view(np.int8).astype(np.float32)
    codes = (codes.reshape(n, 16, 16) - 32).astype(np.float32)
    return (scale[:, :, None] * codes).reshape(n, 256)


def values(name, raw, shape):
    """The bytes of a tensor as float32."""
    if name == "F32":
        return raw.view(np.float32).reshape(shape)
    if name == "F16":
        return raw.view(np.float16).astype(np.float32).reshape(shape)
    if name == "BF16":
        return (raw.view(np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(shape)
    _, _, size = TYPES[name]
    return dequantize(name, raw.reshape(-1, size)).reshape(shape)


# Where the float16 of a block stand: bytes of the scale, of the minimum.
HALVES = {"Q4_0": (0,), "Q4_1": (0, 2), "Q5_0": (0,), "Q5_1": (0, 2), "Q8_0": (0,),
          "Q4_K": (0, 2), "Q5_K": (0, 2), "Q6_K": (208,)}


def random_blocks(rng, name, rows, cols, extreme=False, size=None):
    """Random codes and sub-scales in every bit; scales such that weights are of
    the order of `size` (default 1/sqrt(cols)), or, if extreme, any float16 that
    is a number."""
    _, block, nbytes = TYPES[name]
    n = rows * cols // block
    blocks = rng.integers(0, 256, (n, nbytes), dtype=np.uint8)
    size = size or 1 / np.sqrt(cols)
    span = {"Q4_0": 5, "Q4_1": 5, "Q5_0": 9, "Q5_1": 9, "Q8_0": 74, "Q4_K": 290, "Q5_K": 590,
            "Q6_K": 1300}[name]
    for i, at in enumerate(HALVES[name]):
        if extreme:
            scales = rng.integers(0, 1 << 16, n).astype(np.uint16)
            scales[scales & 0x7c00 == 0x7c00] &= 0x83ff  # denormals of either sign
        else:
            scales = rng.uniform(0.5, 1.5, n) * size / span
            if i and name in ("Q4_1", "Q5_1"):
                scales *= -1.6 * span
            elif i:
                scales *= 7.5 if name == "Q4_K" else 15.5
            scales = scales.astype(np.float16).view(np.uint16)
        blocks[:, at] = scales & 255
        blocks[:, at + 1] = scales >> 8
    return blocks.reshape(-1)


#--- Files --------------------------------------------------------------------
def read(path):
    """(keys, name -> (type, shape, bytes))."""
    data = pathlib.Path(path).read_bytes()
    at = 24
    magic, version, tensor_count, key_count = struct.unpack_from("<4sIQQ", data)
    assert magic == b"GGUF" and version in (2, 3)

    def take(form):
        nonlocal at
        (value,) = struct.unpack_from("<" + form, data, at)
        at += struct.calcsize("<" + form)
        return value

    def string():
        nonlocal at
        n = take("Q")
        at += n
        return data[at - n:at].decode()

    def value(kind):
        if kind == STRING:
            return string()
        if kind == ARRAY:
            of, n = take("I"), take("Q")
            return [value(of) for _ in range(n)]
        return take(SCALARS[kind])

    keys = {}
    for _ in range(key_count):
        name = string()
        keys[name] = value(take("I"))
    infos = []
    for _ in range(tensor_count):
        name = string()
        shape = [take("Q") for _ in range(take("I"))][::-1]
        infos.append((name, shape, NAMES[take("I")], take("Q")))
    align = keys.get("general.alignment", 32)
    start = -(-at // align) * align
    tensors = {}
    for name, shape, kind, offset in infos:
        _, block, size = TYPES[kind]
        raw = np.frombuffer(data, np.uint8, int(np.prod(shape)) // block * size, start + offset)
        tensors[name] = (kind, shape, raw)
    return keys, tensors


def packed_string(text):
    text = text if isinstance(text, bytes) else text.encode()
    return struct.pack("<Q", len(text)) + text


def packed_value(value):
    """A value with its type in front. Python's types say which, or a pair
    (type number, value); a list has the type of its first element."""
    if isinstance(value, tuple):
        kind, value = value
        return struct.pack("<I" + SCALARS[kind], kind, value)
    if isinstance(value, bool):
        return struct.pack("<I?", BOOL, value)
    if isinstance(value, int):
        return struct.pack("<II", U32, value)
    if isinstance(value, float):
        return struct.pack("<If", F32, value)
    if isinstance(value, list):
        parts = [packed_value(v) for v in value]
        kind = parts[0][:4] if parts else struct.pack("<I", U32)
        return (struct.pack("<I", ARRAY) + kind + struct.pack("<Q", len(parts))
                + b"".join(p[4:] for p in parts))
    return struct.pack("<I", STRING) + packed_string(value)


def write(path, keys, tensors, version=3, align=32, data=True):
    """tensors: name -> (type, shape, bytes)."""
    if align != 32:
        keys = {**keys, "general.alignment": align}
    out = struct.pack("<4sIQQ", b"GGUF", version, len(tensors), len(keys))
    out += b"".join(packed_string(k) + packed_value(v) for k, v in keys.items())
    offset = 0
    for name, (kind, shape, raw) in tensors.items():
        out += packed_string(name) + struct.pack("<I", len(shape))
        out += struct.pack(f"<{len(shape)}Q", *shape[::-1])
        out += struct.pack("<IQ", TYPES[kind][0], offset)
        offset += -(-len(raw) // align) * align
    out += b"\0" * (-len(out) % align)
    with open(path, "wb") as file:
        file.write(out)
        for _, _, raw in tensors.values():
            raw = bytes(raw)
            file.write(raw + b"\0" * (-len(raw) % align))


#--- Models -------------------------------------------------------------------
PARTS = {"input_layernorm": "attn_norm", "q_k_v_proj": "attn_qkv", "g_proj": "attn_gate",
         "out_proj": "attn_output", "post_attention_layernorm": "ffn_norm",
         "gate_proj": "ffn_gate", "up_proj": "ffn_up", "down_proj": "ffn_down"}


def tensor_name(logical):
    """The name in GGUF of "layers.3.q_k_v_proj", "embedding", ..."""
    special = {"embedding": "token_embd", "norm": "output_norm", "lm_head": "output"}
    if logical in special:
        return special[logical] + ".weight"
    _, layer, part = logical.split(".")
    return f"blk.{layer}.{PARTS[part]}.weight"


def logical_names(layers, tied):
    names = ["embedding"]
    for layer in range(layers):
        names += [f"layers.{layer}.{part}" for part in PARTS]
    return names + ["norm"] + ([] if tied else ["lm_head"])


def shapes(hidden, inter, heads, kv, head_dim, vocab, layers, tied=True, **_):
    """Logical name -> shape."""
    of = {"input_layernorm": [hidden], "q_k_v_proj": [(heads + 2 * kv) * head_dim, hidden],
          "g_proj": [heads, hidden], "out_proj": [hidden, heads * head_dim],
          "post_attention_layernorm": [hidden], "gate_proj": [inter, hidden],
          "up_proj": [inter, hidden], "down_proj": [hidden, inter], "embedding": [vocab, hidden],
          "lm_head": [vocab, hidden], "norm": [hidden]}
    return {name: of[name.split(".")[-1]] for name in logical_names(len(layers), tied)}


def keys_of(hidden, inter, heads, kv, head_dim, vocab, layers, window, rotary, context, **_):
    """Keys of a model; `layers` holds "sliding_attention" or "full_attention"."""
    p = "spark2_5."
    return {"general.architecture": "spark2_5", p + "block_count": len(layers),
            p + "context_length": context, p + "embedding_length": hidden,
            p + "feed_forward_length": inter, p + "attention.head_count": heads,
            p + "attention.head_count_kv": kv, p + "rope.freq_base": 5e6,
            p + "rope.freq_base_swa": 1e4, p + "attention.layer_norm_rms_epsilon": 1e-6,
            p + "attention.key_length": head_dim, p + "attention.value_length": head_dim,
            p + "vocab_size": vocab, p + "attention.sliding_window": window,
            p + "attention.sliding_window_pattern": [l == "sliding_attention" for l in layers],
            p + "rope.dimension_count": int(head_dim * rotary[1]),
            p + "rope.dimension_count_swa": int(head_dim * rotary[0])}


def make(path, shape, type_of, seed=1, extreme=False, keys=None, **options):
    """Writes a random model; type_of(logical name) -> type of a matrix.
    -> name -> (type, shape, bytes)."""
    rng = np.random.default_rng(seed)
    tensors = {}
    for name, dims in shapes(**shape).items():
        if len(dims) == 1:
            kind, raw = "F32", rng.uniform(0.5, 1.5, dims).astype(np.float32).view(np.uint8)
        else:
            kind = type_of(name)
            # Logits of the order of 1 to 10.
            size = 3 / np.sqrt(dims[1]) if name == "embedding" else None
            if kind in QUANTIZED:
                raw = random_blocks(rng, kind, *dims, extreme=extreme, size=size)
            else:
                weights = rng.standard_normal(dims) * (size or 1 / np.sqrt(dims[1]))
                raw = to_bytes(kind, weights.astype(np.float32))
        tensors[tensor_name(name)] = (kind, dims, raw)
    write(path, {**keys_of(**shape), **(keys or {})}, tensors, **options)
    return tensors


def to_bytes(kind, array):
    array = np.ascontiguousarray(array, np.float32)
    if kind == "F16":
        return array.astype(np.float16).reshape(-1).view(np.uint8)
    if kind == "BF16":
        return (array.view(np.uint32) >> 16).astype(np.uint16).reshape(-1).view(np.uint8)
    return array.reshape(-1).view(np.uint8)
