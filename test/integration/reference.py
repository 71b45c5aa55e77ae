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


def forward(config, tensors, tokens, activation=lambda name, x: x):
    """config.json and stored tensors (harness.read_model) -> logits [T, V].

    activation(name, x) is what the linear of that name (layers.3.out_proj,
    lm_head) multiplies with in place of x [T, K]."""
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
                      rotate(k, rope["rope_theta"], width), v, window)
        o *= sigmoid(linear("self_attn.g_proj", n))[:, :, None]
        x = x + linear("self_attn.out_proj", o.reshape(len(x), Q * D))

        n = rms_norm(x, weight("post_attention_layernorm"), eps)
        hidden = gelu(linear("mlp.gate_proj", n)) * linear("mlp.up_proj", n)
        x = x + linear("mlp.down_proj", hidden)
    head = embedding if config["tie_word_embeddings"] else weights["lm_head.weight"]
    return activation("lm_head", rms_norm(x, weights["model.norm.weight"], eps)) @ head.T
