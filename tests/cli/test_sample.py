"""Sampling: every rule against numpy by brute force, the draw against its own distribution, and what must not be."""
import itertools

import numpy as np
import pytest

from samplelib import Sampler
from weirlib import ARGUMENT, Refused

OUT = -np.inf


def by_hand(logits, ids, temperature=0.0, top_k=0, top_p=1.0, min_p=0.0, repetition_penalty=1.0):
    """The scores behind every rule: float32 where weir/sample.h says so, sorted lists and float64 sums elsewhere."""
    x = np.array(logits, "f4")
    f = lambda v: np.float32(v)
    for i in set(ids):
        x[i] = x[i] * f(repetition_penalty) if x[i] < 0 else x[i] / f(repetition_penalty)
    if temperature == 0:
        return x
    x = x / f(temperature)
    if 0 < top_k < len(x):
        x[x < np.sort(x)[-top_k]] = OUT
    p = lambda: np.exp(x.astype("f8") - x.max()) / np.exp(x.astype("f8") - x.max()).sum()
    if top_p < 1:
        order = sorted(range(len(x)), key=lambda i: (-x[i], i))
        before = np.concatenate([[0], np.cumsum(p()[order])[:-1]])
        x[[i for i, b in zip(order, before) if b >= f(top_p)]] = OUT
    if min_p > 0:
        q = p()
        x[q / q.max() < f(min_p)] = OUT
    return x


OPTIONS = [dict(zip(("temperature", "top_k", "top_p", "min_p", "repetition_penalty"), v)) for v in itertools.product(
    (0.0, 0.7, 1.0, 3.0), (0, 1, 5, 1000), (1.0, 0.9, 0.05), (0.0, 0.1, 1.0), (1.0, 1.3, 0.8))]


def same(got, want):
    return got.tobytes() == want.astype("f4").tobytes()


def test_every_combination_of_rules():
    rng = np.random.default_rng(1)
    for n, o in enumerate(OPTIONS):
        v = (1, 2, 37, 300)[n % 4]
        logits = rng.normal(0, (0.1, 2, 9)[n % 3], v).astype("f4")
        ids = rng.integers(0, v, 6)
        assert same(Sampler(v, **o).scores(logits, ids), by_hand(logits, ids, **o)), o


def test_the_comparison_can_fail():
    logits = np.linspace(-3, 3, 50).astype("f4")
    for name, value, other in (("temperature", 1, 1.01), ("top_k", 5, 6), ("top_p", 0.8, 0.85), ("min_p", 0.3, 0.4),
                               ("repetition_penalty", 1.1, 1.2)):
        got = Sampler(50, **{"temperature": 1, name: value}).scores(logits, [3, 40])
        assert same(got, by_hand(logits, [3, 40], **{"temperature": 1, name: value}))
        assert not same(got, by_hand(logits, [3, 40], **{"temperature": 1, name: other})), name


def test_ties():
    x = [1.0, 3.0, 3.0, 2.0, 3.0, 0.0]
    assert Sampler(6).next(x) == 1
    assert list(np.isfinite(Sampler(6, temperature=1, top_k=2).scores(x))) == [False, True, True, False, True, False]
    kept = Sampler(6, temperature=1, top_p=0.5).scores(x)  # a third each: two of the three, the lowest ids
    assert list(np.isfinite(kept)) == [False, True, True, False, False, False]


def test_greedy_is_the_highest_and_draws_nothing():
    rng = np.random.default_rng(2)
    for v in (1, 3, 1000):
        x = rng.normal(size=v)
        assert {Sampler(v, seed=s, top_k=2, top_p=0.1).next(x, step=s) for s in range(5)} == {int(np.argmax(x.astype("f4")))}


def test_draws_follow_the_distribution():
    rng = np.random.default_rng(3)
    x = rng.normal(0, 1.5, 20).astype("f4")
    o = dict(temperature=0.9, top_k=12, top_p=0.95, min_p=0.02)
    s = Sampler(20, seed=11, **o)
    n = 4000
    count = np.bincount([s.next(x, step=i) for i in range(n)], minlength=20)
    scores = by_hand(x, [], **o).astype("f8")
    p = np.exp(scores) / np.exp(scores).sum()
    assert (count[p == 0] == 0).all()
    kept = p > 0
    chi = ((count - n * p)[kept] ** 2 / (n * p)[kept]).sum()
    assert chi < kept.sum() + 5 * np.sqrt(2 * kept.sum()), chi
    assert ((count - n / 20) ** 2 / (n / 20)).sum() > 1000  # the check can fail


def test_a_draw_is_its_seed_stream_and_step():
    x = np.zeros(1000, "f4")
    a, b = Sampler(1000, temperature=1, seed=5), Sampler(1000, temperature=1, seed=6)
    draws = [a.next(x, stream=s, step=t) for s in range(3) for t in range(50)]
    assert draws == [a.next(x, stream=s, step=t) for s in range(3) for t in range(50)]
    assert draws != [b.next(x, stream=s, step=t) for s in range(3) for t in range(50)]
    assert len(set(draws)) > 100
    assert draws[:50] != draws[50:100]
    for other in (0, 2**64 - 1):
        Sampler(1000, temperature=1, seed=other).next(x, stream=2**64 - 1, step=2**64 - 1)


def test_extremes():
    big = np.array([3e38, -3e38, 3e38, 0], "f4")
    assert Sampler(4, temperature=1e-6).next(big) in (0, 2)
    assert Sampler(4, temperature=1e-6, repetition_penalty=1e-6).next(big, [0, 1, 2]) in (0, 2)
    x = np.full(5, OUT, "f4")
    x[3] = -1e30
    assert Sampler(5).next(x) == 3 and Sampler(5, temperature=2, top_k=4, top_p=0.5, min_p=0.5).next(x) == 3
    assert Sampler(3, repetition_penalty=2).scores([1, 2, 3], [-1, 3, 99]).tolist() == [1, 2, 3]


@pytest.mark.parametrize("o, words", [
    (dict(temperature=-0.1), "temperature is -0.1"), (dict(temperature=np.nan), "temperature"), (dict(temperature=np.inf), "temperature"),
    (dict(temperature=1e-9), "too small"), (dict(top_k=-1), "top_k is -1"), (dict(top_p=0.0), "top_p is 0"),
    (dict(top_p=1.1), "top_p"), (dict(top_p=np.nan), "top_p"), (dict(min_p=-0.1), "min_p"), (dict(min_p=1.5), "min_p"),
    (dict(repetition_penalty=0.0), "repetition_penalty"), (dict(repetition_penalty=np.inf), "repetition_penalty"),
])
def test_options_out_of_range(o, words):
    with pytest.raises(Refused) as e:
        Sampler(4, **o)
    assert e.value.code == ARGUMENT and words in str(e.value)


@pytest.mark.parametrize("bad, words", [(np.nan, "token 2 is not a number"), (np.inf, "token 2 is infinite")])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_broken_logits(bad, words, temperature):
    s = Sampler(4, temperature=temperature)
    with pytest.raises(Refused) as e:
        s.next([0, 1, bad, 3])
    assert e.value.code == ARGUMENT and words in str(e.value)
    with pytest.raises(Refused, match="every logit is -infinity"):
        s.next([OUT] * 4)
    assert s.next([0, 1, 2, OUT]) in (0, 1, 2)


def test_sizes():
    for v in (0, -1, 2**31):
        with pytest.raises(Refused, match="a sampler for"):
            Sampler(v)
