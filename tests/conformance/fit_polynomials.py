#!/usr/bin/env python3
"""Where the numbers in lib/kernels/math_impl.h and lib/lens/measure_lanes.h come from: minimax fits (Remez exchange, 60 digits), rounded to fp32.

    build/venv/bin/python tests/conformance/fit_polynomials.py

Needs mpmath. Each line printed is one polynomial: coefficients from the constant term up, and the largest error of the
fit with the rounded coefficients, relative to the weight that matters for the function (see each call).
"""
import struct

import mpmath as mp

mp.mp.dps = 60


def fp32(x):
    return mp.mpf(struct.unpack("f", struct.pack("f", float(x)))[0])


def remez(f, weight, lo, hi, degree, rounds=12):
    """Coefficients c of the polynomial that minimises max |weight(x) (p(x) - f(x))| on [lo, hi]."""
    n = degree + 2
    x = [(lo + hi) / 2 + (hi - lo) / 2 * mp.cos(mp.pi * (n - 1 - i) / (n - 1)) for i in range(n)]
    grid = [lo + (hi - lo) * mp.mpf(i) / 4000 for i in range(4001)]
    values = [(g, f(g), weight(g)) for g in grid]
    for _ in range(rounds):
        a = mp.matrix(n, n)
        b = mp.matrix(n, 1)
        for i, p in enumerate(x):
            for j in range(degree + 1):
                a[i, j] = p**j
            a[i, degree + 1] = (-1) ** i / weight(p)
            b[i] = f(p)
        c = mp.lu_solve(a, b)
        c = [c[j] for j in range(degree + 1)]
        err = [w * (mp.polyval(c[::-1], g) - v) for g, v, w in values]
        peaks, i = [], 0
        while i <= 4000:  # the extremum of each run of one sign
            j = i
            while j <= 4000 and (err[j] >= 0) == (err[i] >= 0):
                j += 1
            peaks.append(max(range(i, j), key=lambda k: abs(err[k])))
            i = j
        while len(peaks) > n:
            peaks.pop(0 if abs(err[peaks[0]]) < abs(err[peaks[-1]]) else -1)
        if len(peaks) < n:
            break
        x = [grid[p] for p in peaks]
    return c, values


def show(name, f, weight, lo, hi, degree):
    c, values = remez(f, weight, mp.mpf(lo), mp.mpf(hi), degree)
    c = [fp32(v) for v in c]
    worst = max(abs(w * (mp.polyval(c[::-1], g) - v)) for g, v, w in values)
    print(name, ", ".join(float(v).hex() + "f" for v in c), " error", mp.nstr(worst, 3))


def main():
    tiny = mp.mpf(10) ** -12

    def safe(x):
        return x if abs(x) > tiny else tiny

    half = mp.log(2) / 2 * mp.mpf("1.001")
    # exp(f) = 1 + f + f^2 q(f); error relative to exp(f)
    show("exp  ", lambda f: (mp.expm1(safe(f)) - safe(f)) / safe(f) ** 2, lambda f: f * f / mp.exp(f) + tiny, -half, half, 4)
    # tanh(x) = x + x s p(s), s = x^2
    show("tanh ", lambda s: (mp.tanh(mp.sqrt(safe(s))) / mp.sqrt(safe(s)) - 1) / safe(s), lambda s: s + tiny, 0, 0.391, 4)
    # erf(x) = x p(s), s = x^2
    show("erf  ", lambda s: mp.erf(mp.sqrt(safe(s))) / mp.sqrt(safe(s)) - 1, lambda s: mp.mpf(1), 0, 0.85, 6)
    # -log(erfc(t)) = g(t - 1), t in [0.92, 4]; error times erfc, which is that of erf
    show("erfc ", lambda u: -mp.log(mp.erfc(u + 1)), lambda u: mp.erfc(u + 1) + mp.mpf("1e-5"), -0.08, 3, 8)
    # Jensen and Shannon's divergence: g(r) = s p(s), s = r^2, r < 0.625; above, the logarithm that most of it is
    near = mp.mpf("0.625")

    def g(r):
        r = min(r, 1 - tiny)
        return ((1 - r) * mp.log(1 - r) + (1 + r) * mp.log(1 + r)) / 2

    show("near ", lambda s: g(mp.sqrt(safe(s))) / safe(s), lambda s: safe(s) / g(mp.sqrt(safe(s))), 0, near * near, 5)
    # ln(1 + r) = p(r - 0.625); error relative to g
    show("log  ", lambda u: mp.log(1 + near + u), lambda u: 1 / g(near + u), 0, 1 - near, 5)


if __name__ == "__main__":
    main()
