"""Bad input to sparkc: one line that names file and fault, no output, no crash.

usage: bad_input.py

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import json
import pathlib
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile

import numpy as np

from harness import BIN, GOLDEN, Failures, expect_error, read_safetensors, write_safetensors

CASE = GOLDEN / "base"
NORM = "model.layers.1.input_layernorm.weight"
QKV = "model.layers.2.self_attn.q_k_v_proj.weight"

# (what, change of config.json, words that the line must contain)
CONFIGS = [
    ("unknown model_type", lambda c: c.update(model_type="llama"), ["model_type", "llama"]),
    ("gate mode other than sigmoid", lambda c: c.update(gate_attn_act_mode="silu"),
     ["gate_attn_act_mode"]),
    ("no head gate", lambda c: c.update(headwise_attn_output_gate=False),
     ["headwise_attn_output_gate"]),
    ("attention bias", lambda c: c.update(attention_bias=True), ["attention_bias"]),
    ("mlp bias", lambda c: c.update(mlp_bias=True), ["mlp_bias"]),
    ("tanh gelu", lambda c: c.update(hidden_act="gelu_new"), ["hidden_act"]),
    ("no head_dim", lambda c: c.pop("head_dim"), ["head_dim"]),
    ("head_dim 0", lambda c: c.update(head_dim=0), ["head_dim"]),
    ("hidden_size as text", lambda c: c.update(hidden_size="128"), ["hidden_size"]),
    ("negative layers", lambda c: c.update(num_hidden_layers=-1), ["num_hidden_layers"]),
    ("kv heads that do not divide heads", lambda c: c.update(num_key_value_heads=3),
     ["num_key_value_heads"]),
    ("layer_types too short", lambda c: c["layer_types"].pop(), ["layer_types"]),
    ("unknown layer type", lambda c: c["layer_types"].__setitem__(2, "linear_attention"),
     ["linear_attention"]),
    ("odd rotary width",
     lambda c: c["rope_parameters"]["full_attention"].update(partial_rotary_factor=0.1),
     ["partial_rotary_factor"]),
    ("rotary width 0",
     lambda c: c["rope_parameters"]["full_attention"].update(partial_rotary_factor=0),
     ["partial_rotary_factor"]),
    ("no rope parameters of a kind", lambda c: c["rope_parameters"].pop("sliding_attention"),
     ["sliding_attention"]),
    ("window 0", lambda c: c.update(sliding_window=0), ["sliding_window"]),
    ("layer_types too long", lambda c: c["layer_types"].append("full_attention"),
     ["layer_types"]),
    ("rotary width beyond head_dim",
     lambda c: c["rope_parameters"]["sliding_attention"].update(partial_rotary_factor=1.25),
     ["partial_rotary_factor"]),
    ("no eps", lambda c: c.pop("rms_norm_eps"), ["rms_norm_eps"]),
    ("sizes that overflow", lambda c: c.update(hidden_size=2**63 - 1), ["hidden_size"]),
    ("quantized", lambda c: c.update(quantization_config={"bits": 4}), ["quantization_config"]),
    ("logit softcapping", lambda c: c.update(final_logit_softcapping=30.0),
     ["final_logit_softcapping"]),
    ("a key nobody knows", lambda c: c.update(residual_multiplier=0.5), ["residual_multiplier"]),
    ("rope scaling", lambda c: c["rope_parameters"]["full_attention"].update(
        rope_type="yarn", factor=4.0), ["rope_type"]),
]


def bf16(*shape):
    return ("BF16", np.full(shape, 0x3F80, np.uint16))


# (what, change of name -> (dtype, array), words)
TENSORS = [
    ("missing tensor", lambda t: t.pop(QKV), [QKV]),
    ("missing embedding", lambda t: t.pop("model.embedding.weight"), ["model.embedding.weight"]),
    ("wrong shape", lambda t: t.update({NORM: bf16(127)}), [NORM]),
    ("one dimension more", lambda t: t.update({NORM: bf16(128, 1)}), [NORM]),
    ("gate sized like Q", lambda t: t.update(
        {"model.layers.0.self_attn.g_proj.weight": bf16(128, 128)}), ["g_proj"]),
    ("a bias", lambda t: t.update({NORM.replace("weight", "bias"): bf16(128)}), ["bias"]),
    ("a layer too many", lambda t: t.update({NORM.replace(".1.", ".4."): bf16(128)}),
     [NORM.replace(".1.", ".4.")]),
    ("both names of the embedding", lambda t: t.update(
        {"model.embed_tokens.weight": t["model.embedding.weight"]}), ["embed_tokens"]),
    ("wrong dtype", lambda t: t.update({NORM: ("I32", np.ones(128, np.int32))}), [NORM]),
]


def raw_header(change):
    """Edits the header of a safetensors file as JSON."""
    def apply(data):
        (length,) = struct.unpack_from("<Q", data)
        header = json.loads(data[8:8 + length])
        change(header)
        text = json.dumps(header).encode()
        return struct.pack("<Q", len(text)) + text + data[8 + length:]
    return apply


def length(value):
    return lambda data: struct.pack("<Q", value) + data[8:]


def overlap(header):
    header[NORM]["data_offsets"] = [0, 256]


def reverse(header):
    header[NORM]["data_offsets"].reverse()


def beyond(header):
    header[NORM]["data_offsets"] = [2**62, 2**62 + 256]


def overflow(header):
    header[NORM].update(shape=[2**33, 2**33])


def hole(header):
    header.pop(NORM)


def twice(data):
    """The name of one tensor given to another of the same shape."""
    return data.replace(NORM.replace(".1.", ".2.").encode(), NORM.encode())


# (what, change of the bytes of model.safetensors)
BYTES = [
    ("empty file", lambda data: b""),
    ("header length 0", length(0)),
    ("header length beyond the file", length(2**40)),
    ("header length 2^63", length(2**63)),
    ("header length 2^64 - 1", length(2**64 - 1)),
    ("header that is not JSON", lambda data: data[:8] + b"x" + data[9:]),
    ("overlapping offsets", raw_header(overlap)),
    ("reversed offsets", raw_header(reverse)),
    ("offsets beyond the file", raw_header(beyond)),
    ("a shape whose size overflows", raw_header(overflow)),
    ("bytes that belong to no tensor", raw_header(hole)),
    ("a name that stands twice", twice),
    ("a byte too many", lambda data: data + b"x"),
] + [(f"cut at byte {cut}", lambda data, cut=cut: data[:cut])
     for cut in (1, 7, 8, 9, 100, 1000, 5000, 100000, -2, -1)]


def main():
    failures = Failures()
    config = json.loads((CASE / "config.json").read_text())
    tensors = read_safetensors(CASE / "model.safetensors")
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        model, output = folder / "model", folder / "out" / "model.so"
        output.parent.mkdir()

        def fresh():
            shutil.rmtree(model, ignore_errors=True)
            shutil.copytree(CASE, model)

        def refused(what, *names, arguments=()):
            expect_error(failures, what, "sparkc", model, "-o", output, *arguments, names=names)
            left = [p.name for p in output.parent.iterdir()]
            failures.check(not left, f"{what}: no output{f' but {left}' if left else ''}")

        for what, change, names in CONFIGS:
            fresh()
            edited = json.loads(json.dumps(config))
            change(edited)
            (model / "config.json").write_text(json.dumps(edited))
            refused(what, "config.json", *names)
        for what, text in (("config.json cut short", '{"model_type": "spark2_5",'),
                           ("config.json is a list", "[]"), ("empty config.json", ""),
                           ("config.json nested too deep", "[" * 200000)):
            fresh()
            (model / "config.json").write_text(text)
            refused(what, "config.json")
        fresh()
        (model / "config.json").unlink()
        refused("no config.json", "config.json")
        fresh()
        (model / "model.safetensors").unlink()
        refused("no weights", "model.safetensors")

        for what, change, names in TENSORS:
            fresh()
            edited = dict(tensors)
            change(edited)
            write_safetensors(model / "model.safetensors", edited)
            refused(what, *names)
        for what, change in BYTES:
            fresh()
            data = (CASE / "model.safetensors").read_bytes()
            (model / "model.safetensors").write_bytes(change(data))
            refused(what, "model.safetensors")

        shutil.rmtree(model)
        shutil.copytree(GOLDEN / "base-sharded", model)
        (model / "model-00002-of-00002.safetensors").unlink()
        refused("a shard that is not there", "model-00002-of-00002.safetensors")

        index = "model.safetensors.index.json"
        for what, change, name in (
                ("index without weight_map", lambda i: i.pop("weight_map"), index),
                ("a shard outside the folder",
                 lambda i: i["weight_map"].update({NORM: "../model.safetensors"}), index),
                ("a tensor in another shard than the index says",
                 lambda i: i["weight_map"].update({NORM: "model-00002-of-00002.safetensors"}),
                 "model-00001-of-00002.safetensors"),
                ("a tensor that the index does not name",
                 lambda i: i["weight_map"].pop(NORM), "model-00001-of-00002.safetensors")):
            shutil.rmtree(model)
            shutil.copytree(GOLDEN / "base-sharded", model)
            edited = json.loads((model / index).read_text())
            change(edited)
            (model / index).write_text(json.dumps(edited))
            refused(what, name)

        fresh()
        refused("unknown weights scheme", "q3", arguments=("--weights", "q3"))
        refused("unknown kv type", "q9", arguments=("--kv", "q9"))
        refused("context 0", "context", arguments=("--context", "0"))
        refused("unknown cpu", "i999", arguments=("--mcpu", "i999"))
        expect_error(failures, "no such model", "sparkc", folder / "none", "-o", output,
                     names=(folder / "none",))
        expect_error(failures, "output folder that is not there", "sparkc", CASE, "-o",
                     folder / "none" / "x.so", names=(folder / "none",))

        plain = folder / "plain"
        plain.write_text("")
        # A model is two files; the line may name either.
        for what, out, names in (("output below a plain file", plain / "x.so", f"{plain}/x."),
                                 ("output that is a folder", folder / "out", folder / "out")):
            expect_error(failures, what, "sparkc", CASE, "-o", out, names=(names,))
        expect_error(failures, "output with the name of the weights", "sparkc", CASE, "-o",
                     output.parent / "x.weights", names=("-o", "x.weights"))
        failures.check(not list(output.parent.iterdir()), "output that is a folder: left alone")

        # A write that fails half way, as on a full disk: files of at most 100 kB.
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

        result = subprocess.run([BIN / "sparkc", CASE, "-o", output], preexec_fn=limit,
                                restore_signals=False, capture_output=True)
        lines = result.stderr.decode(errors="replace").splitlines()
        failures.check(result.returncode == 1 and len(lines) == 1
                       and lines[0].startswith("sparkc: error: "),
                       f"disk full: status {result.returncode}, {lines[:2]}")
        failures.check(not list(output.parent.iterdir()), "disk full: no output")

        # And on a file system that is full, where one may be mounted. It lives
        # in a mount namespace of its own and ends with it.
        mount = 'mount -t tmpfs -o size=256k none "$0" || exit 99; '
        script = mount + '"$1" "$2" -o "$0/model.so"; status=$?; ls -A "$0"; exit $status'
        if not shutil.which("unshare") or subprocess.run(
                ["unshare", "-m", "sh", "-c", mount, output.parent],
                capture_output=True).returncode != 0:
            print("skipped: a full file system: may not mount one here")
        else:
            result = subprocess.run(["unshare", "-m", "sh", "-c", script, output.parent,
                                     BIN / "sparkc", CASE], capture_output=True)
            lines = result.stderr.decode(errors="replace").splitlines()
            failures.check(result.returncode == 1 and len(lines) == 1
                           and lines[0].startswith("sparkc: error: "),
                           f"file system full: status {result.returncode}, {lines[:2]}")
            failures.check(not result.stdout.strip(),
                           f"file system full: no output {result.stdout!r}")
    return failures.finish()


if __name__ == "__main__":
    sys.exit(main())
