#!/usr/bin/env python3
# Part of sparkc, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fits the polynomials of Math.cpp and prints them as C++ initialisers.

    python3 fit_polynomials.py        (needs numpy)

Each is a minimax fit, found by Lawson's reweighted least squares on Chebyshev
points. Coefficients of float polynomials are rounded from the highest to the
lowest, and those below are fitted again after each rounding, so that a later
one makes up for the error of an earlier.
"""
import math
from fractions import Fraction

import numpy as np

LN2_HALF = math.log(2) / 2


def chebyshev(lo, hi, n=2000):
    k = np.arange(n)
    return (lo + hi) / 2 + (hi - lo) / 2 * np.cos((k + 0.5) * np.pi / n)


def minimax(basis, target, weight, rounds=400):
    """c with max |weight * (basis @ c - target)| least, and that maximum."""
    lawson = np.full(len(target), 1.0 / len(target))
    best = None
    for _ in range(rounds):
        w = np.sqrt(lawson) * weight
        c = np.linalg.lstsq(basis * w[:, None], target * w, rcond=None)[0]
        error = np.abs(weight * (basis @ c - target))
        if best is None or error.max() < best[1]:
            best = (c, error.max())
        lawson *= error
        lawson /= lawson.sum()
    return best


def fit(xs, target, weight, degree, dtype):
    """Coefficients of x^0..x^degree, rounded to dtype, and the error left."""
    basis = np.vander(xs, degree + 1, increasing=True)
    rounded = {}
    for power in range(degree, -1, -1):
        rest = target - sum((basis[:, p] * c for p, c in rounded.items()), 0.0)
        c, _ = minimax(basis[:, :power + 1], rest, weight)
        rounded[power] = float(dtype(c[power]))
    c = np.array([rounded[p] for p in range(degree + 1)])
    return c, np.abs(weight * (basis @ c - target)).max()


def show(name, c, error, dtype):
    kind = "float" if dtype is np.float32 else "double"
    digits = 9 if dtype is np.float32 else 17
    print(f"// {name}: {kind}, from x^0 up; relative error {error:.2g}")
    print(",\n".join(f"  {v:.{digits - 1}e}" for v in c))


def exp_tail():
    """(e^r - 1 - r) / r^2 for |r| <= ln2/2; the weight makes the error that of
    e^r, relative."""
    # A hair more than ln2/2: n is rounded from a product that was rounded.
    r = chebyshev(-LN2_HALF * 1.001, LN2_HALF * 1.001)
    # The series: the closed form cancels near 0.
    target = sum(r ** k / float(math.factorial(k + 2)) for k in range(20))
    return fit(r, target, r * r / np.exp(r), 4, np.float32)


def mills(degree):
    """M(q) = (t + 2) Phi(-t) e^(t^2/2) with q = (t - 2) / (t + 2),
    0 <= t <= 14."""
    t = 2 * (1 + chebyshev(-1, 0.76)) / (1 - chebyshev(-1, 0.76))
    q = (t - 2) / (t + 2)
    phi = np.array([0.5 * math.erfc(v / math.sqrt(2)) for v in t])
    target = (t + 2) * phi * np.exp(t * t / 2)
    return fit(q, target, 1 / target, degree, np.float32)


def sin_tail(terms):
    """(sin r - r) / r^3 in r^2, |r| <= pi/4."""
    r = chebyshev(1e-3, math.pi / 4 * 1.0001)
    target = sum((-1) ** (k + 1) * r ** (2 * k) / float(math.factorial(2 * k + 3))
                 for k in range(12))
    return fit(r * r, target, r ** 3 / np.sin(r), terms - 1, np.float64)


def cos_tail(terms):
    """(cos r - 1) / r^2 in r^2, |r| <= pi/4."""
    r = chebyshev(1e-3, math.pi / 4 * 1.0001)
    target = sum((-1) ** (k + 1) * r ** (2 * k) / float(math.factorial(2 * k + 2))
                 for k in range(12))
    return fit(r * r, target, r ** 2 / np.cos(r), terms - 1, np.float64)


def main():
    show("exp: (e^r - 1 - r) / r^2", *exp_tail(), np.float32)
    show("mills", *mills(10), np.float32)
    show("sin: (sin r - r) / r^3, in r^2", *sin_tail(4), np.float64)
    show("cos: (cos r - 1) / r^2, in r^2", *cos_tail(5), np.float64)
    # Constants of the range reductions.
    print("// ln2 in two floats")
    hi = np.float32(math.log(2))
    print(f"  {float(hi):.9e}, {math.log(2) - float(hi):.9e}")
    # pi/2 beyond double: pi = 3.14159265358979323846264338327950288...
    half_pi_hi = math.pi / 2
    half_pi = Fraction(314159265358979323846264338327950288419716939937510,
                       2 * 10 ** 50)
    print("// pi/2 in two doubles")
    print(f"  {half_pi_hi:.17e}, {float(half_pi - Fraction(half_pi_hi)):.17e}")


if __name__ == "__main__":
    main()
