"""Spark-X2.5 in float64: what the compiled model is compared with.

Written for clarity; see docs for what the model is. Shapes: T tokens, H hidden,
Q query heads, K key/value heads, D dims a head, V vocabulary.

SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""
import math

import numpy as np

from harness import to_float64

erf = np.vectorize(math.erf, otypes=[np.float64])


def rms_norm(x, weight, eps):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + eps) * weight


def gelu(x):
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def rotate(x, theta, width):
    """x [T, heads, D]: dims i and i + width/2 turn by position * theta^(-2i/width)."""
    half = width // 2
    frequency = theta ** (-2 * np.arange(half) / width)
    angle = np.arange(x.shape[0])[:, None, None] * frequency
    first, second = x[..., :half], x[..., half:width]
    turned = x.copy()
    turned[..., :half] = first * np.cos(angle) - second * np.sin(angle)
    turned[..., half:width] = second * np.cos(angle) + first * np.sin(angle)
    return turned


def attention(q, k, v, window):
    """q [T, Q, D], k and v [T, K, D] -> [T, Q, D]; a query sees the last `window`
    keys, itself included (None: all before it)."""
    T, Q, D = q.shape
    group = Q // k.shape[1]
    distance = np.arange(T)[:, None] - np.arange(T)[None, :]
    seen = distance >= 0
    if window is not None:
        seen &= distance < window
    out = np.empty_like(q)
    for head in range(Q):
        score = q[:, head] @ k[:, head // group].T / math.sqrt(D)
        score = np.where(seen, score, -np.inf)
        weight = np.exp(score - score.max(axis=1, keepdims=True))
        out[:, head] = weight / weight.sum(axis=1, keepdims=True) @ v[:, head // group]
    return out


class Int8Cache:
    """What attention sees of keys or values x [T, K, D] in an int8 cache, where
    16 dims share a float16 scale."""

    def __init__(self):
        self.ties = np.float64(1)

    def nearest(self):
        """[T]: how near what a token sees came to another code or scale, in codes.
        One in a key may show only in the logits of a later token."""
        return np.minimum.accumulate(self.ties)

    def __call__(self, x):
        T, K, D = x.shape
        padded = np.zeros((T, K, -(-D // 16) * 16), np.float32)
        padded[..., :D] = x
        groups = padded.reshape(T, K, -1, 16)
        wanted = np.abs(groups).max(axis=3, keepdims=True) / np.float32(127)
        scale = np.minimum(wanted, 65504).astype(np.float16).astype(np.float32)
        exact = groups / np.where(scale == 0, np.float32(1), scale)
        # A scale rounds to another where it lies half a unit away: in codes,
        # what lacks to that of 127 times the scale.
        half = np.spacing(scale.astype(np.float16)).astype(np.float32) / 2
        lacks = 127 * np.abs(np.abs(wanted - scale) - half) / np.where(scale == 0, 1, scale)
        ties = np.minimum(np.abs(exact - np.floor(exact) - 0.5).min(axis=3),
                          np.where(wanted == 0, 1, lacks)[..., 0])
        self.ties = np.minimum(self.ties, ties.reshape(T, -1).min(axis=1))
        codes = np.rint(exact).clip(-127, 127)
        return (codes.astype(np.float64) * scale).reshape(T, K, -1)[..., :D]


def forward(config, tensors, tokens, activation=lambda name, x: x, cache=lambda x: x):
    """config.json and stored tensors (harness.read_model) -> logits [T, V].

    activation(name, x) is what the linear of that name (layers.3.out_proj,
    lm_head) multiplies with in place of x [T, K]; cache(x) what attention sees
    of the keys or values x [T, K, D] of a layer."""
    weights = {name: to_float64(*t) for name, t in tensors.items()}
    Q, K, D = (config[k] for k in ("num_attention_heads", "num_key_value_heads", "head_dim"))
    eps = config["rms_norm_eps"]
    embedding = weights.get("model.embedding.weight", weights.get("model.embed_tokens.weight"))
    x = embedding[np.asarray(tokens)]
    for number, kind in enumerate(config["layer_types"]):
        def weight(name):
            return weights[f"model.layers.{number}.{name}.weight"]

        def linear(name, x):
            x = activation(f"layers.{number}.{name.rpartition('.')[2]}", x)
            return x @ weight(name).T

        rope = config["rope_parameters"][kind]
        width = int(D * rope["partial_rotary_factor"])
        window = config["sliding_window"] if kind == "sliding_attention" else None

        n = rms_norm(x, weight("input_layernorm"), eps)
        qkv = linear("self_attn.q_k_v_proj", n).reshape(len(x), Q + 2 * K, D)
        q, k, v = np.split(qkv, [Q, Q + K], axis=1)
        o = attention(rotate(q, rope["rope_theta"], width),
                      cache(rotate(k, rope["rope_theta"], width)), cache(v), window)
        o *= sigmoid(linear("self_attn.g_proj", n))[:, :, None]
        x = x + linear("self_attn.out_proj", o.reshape(len(x), Q * D))

        n = rms_norm(x, weight("post_attention_layernorm"), eps)
        hidden = gelu(linear("mlp.gate_proj", n)) * linear("mlp.up_proj", n)
        x = x + linear("mlp.down_proj", hidden)
    head = embedding if config["tie_word_embeddings"] else weights["lm_head.weight"]
    return activation("lm_head", rms_norm(x, weights["model.norm.weight"], eps)) @ head.T
