"""Prints the 1.7B model: the layer of layer-1.7b.mlir, 28 times, every fourth
with full attention. Weights keep their shapes; where they lie is no matter.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import pathlib
import re

LAYERS = 28


def as_layer(text, layer):
    text = text.replace("layers.0.", f"layers.{layer}.").replace("@kv.0", f"@kv.{layer}")
    if layer % 4 == 3:
        text = text.replace("ring 512", "ring 0").replace("window 512", "window 0")
        text = text.replace("<theta = 1.0e+04, width = 256>", "<theta = 5.0e+06, width = 64>")
    return text


def repeat(text, pattern, edit=lambda text, layer: text):
    """`text` with the one match of `pattern` repeated for every layer."""
    match = re.search(pattern, text, re.DOTALL)
    copies = (edit(as_layer(match[0], layer), layer) for layer in range(LAYERS))
    return text[:match.start()] + "".join(copies) + text[match.end():]


def number(text, layer):
    return text.replace("%x1 = spark.layer 0 (%x0)", f"%x{layer + 1} = spark.layer {layer} (%x{layer})")


text = (pathlib.Path(__file__).parent / "layer-1.7b.mlir").read_text()
text = text.replace("layers = 1 : i64", f"layers = {LAYERS} : i64")
text = text.replace("spark.rms_norm %x1, @norm", f"spark.rms_norm %x{LAYERS}, @norm")
text = repeat(text, r"  spark\.weight @layers\.0\.input.*(?=  spark\.weight @norm)")
text = repeat(text, r"  spark\.kv_cache @kv\.0[^\n]*\n")
text = repeat(text, r"    %x1 = spark\.layer 0 .*?\n    } : tensor<1x2048xf32>\n", number)
print(text)
