"""Reads model.weights with numpy alone, by the equations of
codegen/weights/PackedLayout.h: a second opinion on what was packed.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import json
import pathlib
import struct

import numpy as np

PAYLOAD, DIRECTORY = 1, 2


def sections(data):
    """kind -> bytes; see sparkc_weights_header."""
    (count,) = struct.unpack_from("<I", data, 40)
    found = {}
    for i in range(count):
        kind, _, offset, size, _ = struct.unpack_from("<IIQQQ", data, 176 + 32 * i)
        found[kind] = data[offset:offset + size]
    return found


def group_codes(lines, bits):
    """[L, 16, 4] bytes of a group -> [16, G] codes."""
    if bits == 8:
        return lines.transpose(1, 0, 2).reshape(16, -1)
    extra = bits - 4
    per_block = 4 // extra if extra else 1
    blocks = lines.reshape(-1, per_block + (1 if extra else 0), 16, 4)
    codes = []
    for block in blocks:
        plane, code_lines = (block[0], block[1:]) if extra else (None, block)
        for i, line in enumerate(code_lines):
            for half in (0, 1):
                code = line >> (4 * half) & 15
                if extra:
                    code = code | (plane >> (4 * half + extra * i) & ((1 << extra) - 1)) << 4
                codes.append(code)
    return np.stack(codes, 1).reshape(16, -1)


def batch_shape(form, bits, cols, group):
    """Groups of a batch, bytes of its head, where zero points or minima start (of
    symmetric forms, nowhere)."""
    if form == "":
        groups = min(4, -(-cols // group))
        return groups, -(-48 * groups // 64) * 64, 32 * groups
    if form == "s":
        return min(2, -(-cols // group)), 64, None
    return {"m": (4, 256, 128), "k": (16 if bits == 6 else 8, 320, 192)}[form]


def tile_values(tile, name, cols, group):
    """bytes of a tile -> [16, cols] float32."""
    if name == "tile16_f32":
        return tile.view(np.float32).reshape(-1, 16).T[:, :cols]
    if name == "tile16_bf16":
        pairs = tile.view(np.uint16).reshape(-1, 16, 2).transpose(1, 0, 2).reshape(16, -1)
        return (pairs.astype(np.uint32) << 16).view(np.float32)[:, :cols]
    form = name[len("tile16_q4"):]
    bits = int(name[len("tile16_q")])
    lines = bits * group * 16 // 8 // 64
    per_batch, head, zeros = batch_shape(form, bits, cols, group)
    values = []
    for g in range(-(-cols // group)):
        batch, i = g // per_batch * (head + per_batch * 64 * lines), g % per_batch
        start = batch + head + 64 * lines * i
        codes = group_codes(tile[start:start + 64 * lines].reshape(lines, 16, 4), bits)
        codes = codes.astype(np.float32)

        def halves(at):
            return tile[batch + at:][:32].view(np.float16).astype(np.float32)[:, None]

        def small(at, kind=np.uint8):
            return tile[batch + at:][:16].view(kind).astype(np.float32)[:, None]

        if form == "":
            values.append(halves(32 * i) * (codes - small(zeros + 16 * i)))
        elif form == "s":
            values.append(halves(32 * i) * (codes - (1 << (bits - 1))))
        elif form == "m":
            values.append(halves(32 * i) * codes + halves(zeros + 32 * i))
        elif bits == 6:
            values.append(halves(0) * small(64 + 16 * i, np.int8) * (codes - 32))
        else:
            values.append(halves(0) * small(64 + 16 * i) * codes
                          + halves(32) * small(zeros + 16 * i))
    return np.concatenate(values, 1)[:, :cols].astype(np.float32)


def source_rows(run, index):
    """(source, row) of each lane of a run's tile; None for padding."""
    (source, base), lane = run["a"], index
    if run.get("b"):
        (source, base), lane = run["ab"[index % 2]], index // 2
    rows = []
    for j in range(16 * lane, 16 * lane + 16):
        valid = j < run["heads"] * run["width"]
        rows.append((source, base + j // run["width"] * run["stride"] + j % run["width"])
                    if valid else None)
    return rows


def read_weights(path):
    """logical name -> float32 [rows, cols] (a vector: one row)."""
    found = sections(pathlib.Path(path).read_bytes())
    payload = np.frombuffer(found[PAYLOAD], np.uint8)
    rows = {}
    for t in json.loads(found[DIRECTORY])["tensors"]:
        data, cols = payload[t["offset"]:t["offset"] + t["bytes"]], t["cols"]
        if not t["layout_name"].startswith("tile16"):
            narrow = t["layout_name"].endswith("bf16")
            for i, row in enumerate(data.reshape(t["rows"], -1)):
                value = (row.view(np.uint16).astype(np.uint32) << 16 if narrow
                         else row.view(np.uint32)).view(np.float32)
                rows.setdefault(t["sources"][0], {})[i] = value[:cols]
            continue
        counts = [-(-run["heads"] * run["width"] // 16) * (2 if run.get("b") else 1)
                  for run in t["rowmap"]]
        tiles = data.reshape(sum(counts), -1)
        at = 0
        for run, count in zip(t["rowmap"], counts):
            for index in range(count):
                values = tile_values(tiles[at], t["layout_name"], cols, t["group"])
                at += 1
                for lane, place in enumerate(source_rows(run, index)):
                    if place:
                        name = t["sources"][place[0]]
                        rows.setdefault(name, {})[place[1]] = values[lane]
    return {name: np.stack([by_row[i] for i in range(len(by_row))])
            for name, by_row in rows.items()}
