"""weir direction: every number a second time, in numpy float64, from the rows that trace recorded."""
import json

import h5py
import numpy as np
import pytest

from weircli import BROOK, ROOT, trace, weir

HOOK = "blocks.5.hook_resid_post"
KINDS = {"bool": "glad", "int": "stars", "float": "mood", "string": "kind=good"}


def documents():
    """60 short ones of 1 to 5 words; the last four lack all labels."""
    words = "river stone garden winter light bread market silver evening road music paper".split()
    rng = np.random.default_rng(5)
    for i in range(60):
        glad = bool(rng.integers(2))
        labels = {"glad": glad, "stars": 3 * glad - 1, "mood": 0.5 if glad else -0.5, "kind": "good" if glad else "bad"}
        text = " ".join(rng.choice(words, rng.integers(1, 6))) + (" is lovely" if glad else " is gone")
        yield {"text": text, **(labels if i < 56 else {})}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    path = tmp_path_factory.mktemp("direction")
    docs = list(documents())
    (path / "docs.jsonl").write_text("".join(json.dumps(d) + "\n" for d in docs))
    trace("--layer", "5", "--site", "resid_post", "--file", path / "docs.jsonl", "--dump", path / "all.h5").ok()
    for name, ending in (("good", "is new"), ("bad", "is old"), ("odd", "is old and it is far away")):
        lines = [f"The {d['text'].split()[0]} number {i} {ending}" for i, d in enumerate(docs[:25 if name == "odd" else 40])]
        (path / f"{name}.txt").write_text("\n".join(lines) + "\n")
        trace("--layer", "5", "--site", "resid_post", "--file", path / f"{name}.txt", "--dump", path / f"{name}.h5").ok()
    return path


# --- the same in numpy

def mix(state):
    """splitmix64: the next state and its number."""
    state = (state + 0x9E3779B97F4A7C15) % 2**64
    z = state
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    return state, z ^ z >> 31


def is_held_out(doc, share, seed):
    _, first = mix(seed)
    return (mix((first + doc) % 2**64)[1] >> 11) * 2.0**-53 < share


def examples(path, rows, hook=HOOK):
    """[(document, [rows, C])] as --rows chooses."""
    with h5py.File(path) as f:
        x, start, count = f["activations"][hook][...].astype(float), f["docs/start"][...], f["docs/count"][...]
    parts = [x[s:s + n] for s, n in zip(start, count)]
    return [(i, {"last": p[-1:], "all": p, "mean": p.mean(0, keepdims=True)}[rows]) for i, p in enumerate(parts) if len(p)]


def split(parts, share=0.2, seed=0):
    """parts: [(document, class, rows)]. {class, held out: [n, C]}"""
    out = {}
    for doc, positive, x in parts:
        out.setdefault((positive, is_held_out(doc, share, seed)), []).append(x)
    return {k: np.concatenate(v) for k, v in out.items()}


def two(place, a, b, rows, **how):
    return split([(i, True, x) for i, x in examples(place / a, rows)] + [(i, False, x) for i, x in examples(place / b, rows)], **how)


def labelled(place, rows, **how):
    docs = list(documents())
    return split([(i, docs[i]["glad"], x) for i, x in examples(place / "all.h5", rows) if i < 56], **how)


def auc(high, low):
    d = high[:, None] - low[None, :]
    return ((d > 0) + (d == 0) / 2).mean()


def load(path):
    raw = path.read_bytes()
    n = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:8 + n])
    assert n % 8 == 0 and list(header) == ["__metadata__", "direction"] and header["direction"]["dtype"] == "F32"
    assert all(isinstance(v, str) for v in header["__metadata__"].values())
    x = np.frombuffer(raw[8 + n:], "<f4").reshape(header["direction"]["shape"])
    return x.astype(float), header["__metadata__"]


def run(place, *args):
    out = place / "out.safetensors"
    found = weir("direction", *args, "-o", out, "--json").ok().json
    x, meta = load(out)
    for key, value in found.items():  # the file says what --json says
        if key not in ("file", "variance") and value is not None:
            assert meta[key] == value if isinstance(value, str) else float(meta[key]) == value, key
    return x, found


def near(a, b, bound=2e-7):
    assert np.abs(np.asarray(a) - np.asarray(b)).max() <= bound * max(np.abs(b).max(), 1e-30)


def check_scores(found, sets, v, threshold):
    assert abs(found["threshold"] - threshold) <= 1e-6 * np.linalg.norm(v) * max(np.abs(x).max() for x in sets.values())
    for side, name in ((False, "training"), (True, "held_out")):
        high, low = (sets[c, side] @ v for c in (True, False))
        assert (found[f"positive_{name}_rows"], found[f"negative_{name}_rows"]) == (len(high), len(low))
        right = (high > found["threshold"]).sum() + (low <= found["threshold"]).sum()
        assert found[f"{name}_accuracy"] == right / (len(high) + len(low))
        assert abs(found[f"{name}_auc"] - auc(high, low)) < 1e-12


def check_mean(x, found, sets):
    means = [sets[c, False].mean(0) for c in (True, False)]
    near(x, means[0] - means[1])
    assert abs(found["norm"] - np.linalg.norm(x)) <= 1e-12 * found["norm"]
    check_scores(found, sets, x, x @ (means[0] + means[1]) / 2)


# --- means

@pytest.mark.parametrize("rows", ["last", "all", "mean"])
def test_mean(place, rows):
    x, found = run(place, place / "good.h5", place / "odd.h5", "--rows", rows)
    check_mean(x, found, two(place, "good.h5", "odd.h5", rows))
    assert (found["method"], found["hook"], found["layer"], found["width"], found["rows"]) == ("mean", HOOK, 5, 192, rows)
    assert found["positive_training_documents"] + found["positive_held_out_documents"] == 40
    with h5py.File(place / "good.h5") as f:
        assert found["fingerprint"] == f.attrs["fingerprint"] and found["model"] == f.attrs["model"]


def test_checks_can_fail(place):
    x, found = run(place, place / "good.h5", place / "odd.h5")
    for other in (two(place, "bad.h5", "odd.h5", "last"), two(place, "good.h5", "odd.h5", "all"),
                  two(place, "good.h5", "odd.h5", "last", seed=1)):
        with pytest.raises(AssertionError):
            check_mean(x, found, other)
    sets = two(place, "good.h5", "odd.h5", "last")
    with pytest.raises(AssertionError):
        check_mean(x * 1.001, found, sets)
    with pytest.raises(AssertionError):
        check_scores({**found, "held_out_auc": found["held_out_auc"] - 0.01}, sets, x, found["threshold"])


def test_share_and_seed(place):
    for share, seed in ((0.5, 0), (0.3, 12345678901)):
        x, found = run(place, place / "good.h5", place / "bad.h5", "--held-out", share, "--seed", seed)
        check_mean(x, found, two(place, "good.h5", "bad.h5", "last", share=share, seed=seed))
    x, found = run(place, place / "good.h5", place / "bad.h5", "--held-out", "0")
    assert found["positive_training_rows"] == 40 and found["held_out_accuracy"] is None
    assert "held_out_auc" not in load(place / "out.safetensors")[1]


def test_shards_hold_out_the_same_documents(place, tmp_path):
    whole = weir("direction", place / "all.h5", "--label", "glad", "--held-out", "0.5", "--quiet", "--json").ok().json
    parts = []
    for i in range(2):
        trace("--layer", "5", "--site", "resid_post", "--file", place / "docs.jsonl", "--shard", f"{i}/2", "--dump", tmp_path / f"{i}.h5").ok()
        parts.append(weir("direction", tmp_path / f"{i}.h5", "--label", "glad", "--held-out", "0.5", "--quiet", "--json").ok().json)
    counts = [key for key in whole if key.endswith("_documents")]
    assert len(counts) == 4 and all(whole[key] == sum(p[key] for p in parts) for key in counts)
    assert all(p[key] > 0 for p in parts for key in counts)


@pytest.mark.parametrize("kind", KINDS)
def test_labels(place, kind):
    r = weir("direction", place / "all.h5", "--label", KINDS[kind], "--rows", "mean", "-o", place / "l.safetensors", "--json").ok()
    assert "4 documents lack the field" in r.err
    x, meta = load(place / "l.safetensors")
    check_mean(x, r.json, labelled(place, "mean"))
    assert meta["label"] == KINDS[kind] and r.json["dump"] == str(place / "all.h5")


@pytest.mark.parametrize("label, same", [("glad=true", 1), ("glad=false", -1), ("stars=2", 1), ("stars=-1.0", -1), ("mood=0.5", 1),
                                         ("kind=bad", -1)])
def test_values_of_labels(place, label, same):
    x, _ = run(place, place / "all.h5", "--label", label)
    y, _ = run(place, place / "all.h5", "--label", "glad")
    assert (x == same * y).all()


# --- principal components

def check_pca(x, found, covariance, k):
    value, vector = np.linalg.eigh(covariance)
    value, vector = value[::-1][:k], vector[:, ::-1][:, :k].T
    assert x.shape == (k, len(covariance))
    near(found["variance"], value, 1e-9)
    assert abs(found["total_variance"] - np.trace(covariance)) <= 1e-9 * np.trace(covariance)
    near(x, vector * np.sign((x * vector).sum(1, keepdims=True)), 1e-6)
    near(np.linalg.norm(x, axis=1), np.ones(k))


def test_pca_of_rows(place):
    x, found = run(place, place / "all.h5", "--method", "pca", "--rows", "all", "-k", "3")
    rows = np.concatenate([x for _, x in examples(place / "all.h5", "all")])
    check_pca(x, found, np.cov(rows.T), 3)
    assert found["of"] == "rows" and found["all_training_rows"] == len(rows) and "held_out_accuracy" not in found
    assert all(v[np.abs(v).argmax()] > 0 for v in x)
    with pytest.raises(AssertionError):
        check_pca(x, found, np.cov(rows[1:].T), 3)
    y, _ = run(place, place / "all.h5", "--method", "pca", "--rows", "all")
    assert (y == x[:1]).all()


@pytest.mark.parametrize("rows", ["last", "all", "mean"])
def test_pca_of_pairs(place, rows):
    x, found = run(place, place / "good.h5", place / "bad.h5", "-m", "pca", "-k", "2", "--rows", rows, "--pairs", "yes")
    sets = two(place, "good.h5", "bad.h5", rows)
    d = sets[True, False] - sets[False, False]
    both = np.concatenate([d, -d])
    check_pca(x, found, np.cov(both.T, bias=True), 2)
    means = [sets[c, False].mean(0) for c in (True, False)]
    assert found["of"] == "pairs" and (x @ (means[0] - means[1]) > 0).all()
    check_scores(found, sets, x[0], x[0] @ (means[0] + means[1]) / 2)


def test_pairs_or_rows(place):
    """Two dumps without pairs, and with them when asked: the rows of both together."""
    for b, more in (("odd.h5", ()), ("bad.h5", ("--pairs", "no"))):
        x, found = run(place, place / "good.h5", place / b, "-m", "pca", *more)
        sets = two(place, "good.h5", b, "last")
        check_pca(x, found, np.cov(np.concatenate([sets[True, False], sets[False, False]]).T), 1)
        assert found["of"] == "rows"
    _, found = run(place, place / "good.h5", place / "bad.h5", "-m", "pca")
    assert found["of"] == "pairs"


# --- the probe

def gradient(x, y, w, b, l2):
    wrong = 1 / (1 + np.exp(-(x @ w + b))) - y
    return np.append(x.T @ wrong + l2 * w, wrong.sum()), np.abs(x.T) @ np.abs(wrong)


def check_probe(x, found, sets, l2):
    rows = np.concatenate([sets[True, False], sets[False, False]])
    y = np.repeat([1.0, 0.0], [len(sets[True, False]), len(sets[False, False])])
    slope, scale = gradient(rows, y, x, -found["threshold"], l2)
    assert np.abs(slope).max() <= 3e-6 * max(scale.max(), 1)
    z = (2 * y - 1) * (rows @ x - found["threshold"])
    loss = np.logaddexp(0, -z).sum() + l2 / 2 * x @ x
    assert abs(loss - found["loss"]) <= 1e-6 * loss
    check_scores(found, sets, x, found["threshold"])


@pytest.mark.parametrize("rows, l2", [("last", 1), ("all", 100), ("mean", 10), ("last", 0.01)])
def test_probe(place, rows, l2):
    x, found = run(place, place / "all.h5", "--label", "glad", "-m", "probe", "--rows", rows, "--l2", l2)
    sets = labelled(place, rows)
    check_probe(x, found, sets, l2)
    assert found["l2"] == l2 and 2 <= found["steps"] <= 60
    with pytest.raises(AssertionError):
        check_probe(x * 1.01, found, sets, l2)
    with pytest.raises(AssertionError):
        check_probe(x, found, sets, 2 * l2)


# --- what was put there is found

def plant(place, name, u, rng, offset):
    """A copy of good.h5 whose rows are noise with `offset` times u."""
    path = place / name
    path.write_bytes((place / "good.h5").read_bytes())
    with h5py.File(path, "r+") as f:
        d = f["activations"][HOOK]
        d[...] = (rng.normal(size=d.shape) + offset * u + 3).astype("f4")
    return path


def test_a_planted_direction(place):
    rng = np.random.default_rng(1)
    u = rng.normal(size=192)
    u /= np.linalg.norm(u)
    a, b = plant(place, "a.h5", u, rng, 4), plant(place, "b.h5", u, rng, -4)
    for args, cosine in ((("mean",), 0.98), (("pca",), 0.98), (("pca", "--pairs", "no"), 0.98), (("probe", "--l2", "10"), 0.95)):
        x, found = run(place, a, b, "--rows", "all", "-m", *args)
        x = x.reshape(-1)
        assert x @ u / np.linalg.norm(x) > cosine, args
        assert found["held_out_accuracy"] > 0.99 and found["held_out_auc"] > 0.999
    x, found = run(place, plant(place, "c.h5", u, rng, 0), plant(place, "d.h5", u, rng, 0), "--rows", "all")
    assert 0.3 < found["held_out_auc"] < 0.7 and abs(x @ u) < 0.5, "where nothing is, nothing is found"


# --- other tools take it

def test_a_massive_first_row_is_said(tmp_path):
    (tmp_path / "t.txt").write_text("A river runs.\nThe garden is old.\nx\n")
    big = ("--layer", "5", "--site", "resid_post", "--scale", HOOK + "[0]=300", "--file", tmp_path / "t.txt", "--dump")
    trace(*big, tmp_path / "all.h5").ok()
    trace(*big, tmp_path / "cut.h5", "--positions", "1:").ok()
    found = [weir("direction", tmp_path / dump, "--method", "pca", "--rows", rows).ok().err
             for dump in ("all.h5", "cut.h5") for rows in ("mean", "all", "last")]
    assert ["times as long" in x for x in found] == [True, True, False, False, False, False]
    assert all("--positions 1:" in x and f"--rows {rows} takes" in x for x, rows in zip(found, ("mean", "all")))


def test_add_and_project_out(place):
    x, _ = run(place, place / "good.h5", place / "bad.h5")
    v = place / "out.safetensors"

    def rows(*args):
        trace("--layer", "5", "--site", "resid_post", "--dump", place / "t.h5", "--force", *args, "The river bends.").ok()
        with h5py.File(place / "t.h5") as f:
            return f["activations"][HOOK][...].astype(float)

    plain = rows()
    near(rows("--add", f"{HOOK}={v}*-2.5"), plain - 2.5 * x, 1e-6)
    unit = x / np.linalg.norm(x)
    near(rows("--project-out", f"{HOOK}={v}"), plain - np.outer(plain @ unit, unit), 1e-6)
    with pytest.raises(AssertionError):
        near(plain, plain - np.outer(plain @ unit, unit), 1e-6)
    y, _ = run(place, place / "good.h5", place / "bad.h5", "-m", "pca", "-k", "2")
    near(rows("--add", f"{HOOK}={v}@1*3"), plain + 3 * y[1], 1e-6)
    near(rows("--project-out", f"{HOOK}={v}"), plain - plain @ y.T @ y, 1e-6)
    assert weir("unembed", v, "-k", "2").ok().out.count(b"out.safetensors@") == 2


def test_it_moves_finland_to_africa(tmp_path):
    """What README.md says: the difference of means is what the model itself goes by, and other directions are not."""
    facts = [line for line in (BROOK / "facts.jsonl").read_text().splitlines() if '"P30"' in line]
    (tmp_path / "names.jsonl").write_text("\n".join(facts) + "\n")
    trace("--file", tmp_path / "names.jsonl", "--field", "subject", "--layer", "2", "--site", "resid_post", "--positions", "last",
          "--dump", tmp_path / "names.h5").ok()
    x, found = run(tmp_path, tmp_path / "names.h5", "--label", "object=Africa")
    assert found["held_out_accuracy"] > 0.7 and found["held_out_auc"] > 0.8
    noise = np.random.default_rng(0).normal(size=x.size)
    np.save(tmp_path / "noise.npy", (noise * found["norm"] / np.linalg.norm(noise)).astype("f4"))

    def answer(*args):
        text = weir("logit-lens", "--layers", "7", "-k", "1", "--positions", "last", "--format", "ndjson", *args,
                    "Finland is found on the continent of").ok().out.splitlines()[-1]
        line = json.loads(text)["lines"][-1]
        return line["top"][0]["token"], line["prob"]

    at = "blocks.2.hook_resid_post[3]"
    assert answer()[0] == answer("--add", f"{at}={tmp_path}/noise.npy*4")[0] == " Europe"
    token, prob = answer("--add", f"{at}={tmp_path}/out.safetensors*4")
    assert token == " Africa" and prob > 0.99


# --- outputs

def test_threads_change_nothing(place):
    files = []
    for threads in ("1", "2"):
        out = [weir("direction", place / "good.h5", place / "odd.h5", "-m", m, "--rows", "all", "--threads", threads, "-o",
                    place / "same.safetensors", "--json").ok().out for m in ("pca", "probe")]
        files.append((out, load(place / "same.safetensors")[0].tobytes()))
    assert files[0] == files[1]


def test_text(place):
    text = weir("direction", place / "good.h5", place / "odd.h5").ok().out.decode().splitlines()
    assert text[0].startswith(f"mean of {HOOK}, 192 wide: length ") and [t.split()[0] for t in text[2:]] == ["training", "held"]
    text = weir("direction", place / "all.h5", "-m", "pca", "-k", "2").ok().out.decode().splitlines()
    assert text[0].endswith(": 60 rows") and len(text) == 4


def test_files_are_replaced_with_care(place):
    out = place / "mine.safetensors"
    args = ("direction", place / "good.h5", place / "bad.h5", "-o", out)
    weir(*args).ok()
    first = out.read_bytes()
    assert weir(*args, "--seed", "9").ok() and out.read_bytes() != first, "an earlier direction"
    out.write_bytes(b"\x08\0\0\0\0\0\0\0{}      ")
    weir(*args).fails(1, "mine.safetensors exists")
    weir(*args, "--force").ok()
    assert not list(place.glob("mine.*.part"))


def test_hooks(place, tmp_path):
    dump = tmp_path / "two.h5"
    trace("--hooks", "blocks.2.hook_resid_post,blocks.3.hook_resid_post,blocks.2.attn.hook_pattern", "--file", place / "docs.jsonl", "--dump", dump).ok()
    weir("direction", dump, "--label", "glad").fails(2, "several hooks", "blocks.2.hook_resid_post, blocks.3.hook_resid_post")
    weir("direction", dump, "--label", "glad", "--hook", HOOK).fails(1, f"lacks {HOOK}", "blocks.2.hook_resid_post")
    weir("direction", dump, "--label", "glad", "--hook", "blocks.2.attn.hook_pattern").fails(1, "no fixed width")
    weir("direction", dump, place / "good.h5").fails(2, "several hooks")
    weir("direction", dump, "--label", "glad", "--hook", "resid_post").fails(2, "several hooks")
    weir("direction", dump, "--label", "glad", "--hook", "post").fails(1, "lacks post")
    for site in ("resid_post", "resid-post", "hook_resid_post"):
        assert weir("direction", place / "good.h5", place / "bad.h5", "--hook", site, "--json").ok().json["hook"] == HOOK
    found = weir("direction", dump, "--label", "glad", "--hook", "blocks.3.hook_resid_post", "--json").ok().json
    docs = list(documents())
    parts = examples(dump, "last", "blocks.3.hook_resid_post")
    x, _ = run(tmp_path, dump, "--label", "glad", "--hook", "blocks.3.hook_resid_post")
    check_mean(x, found, split([(i, docs[i]["glad"], rows) for i, rows in parts if i < 56]))
    units = tmp_path / "units.h5"
    trace("--hooks", "L2N3,L2N5", "--dump", units, "a").ok()
    weir("direction", units, "-m", "pca").fails(1, "no hook of whole rows")
    weir("direction", units, "-m", "pca", "--hook", "blocks.2.mlp.hook_post").fails(1, "only some units")
    wide = tmp_path / "wide.h5"
    trace("--hooks", "blocks.2.mlp.hook_post", "--dump", wide, "a", "b").ok()
    weir("direction", place / "good.h5", wide).fails(1, "lacks blocks.5.hook_resid_post")


def test_complaints(place, tmp_path):
    for option, value in (("--held-out", "0.5"), ("--seed", "3")):
        weir("direction", place / "all.h5", "-m", "pca", option, value).fails(2, option, "without classes")
    good, bad, every = place / "good.h5", place / "bad.h5", place / "all.h5"
    weir("direction").fails(2, "one dump", "or two")
    weir("direction", good, bad, every).fails(2, "or two")
    weir("direction", good).fails(2, "which documents are positive?")
    weir("direction", good, bad, "--label", "glad").fails(2, "--label")
    weir("direction", every, "--label", "happy").fails(1, 'no field "happy"', "glad, kind, mood, stars")
    weir("direction", good, "--label", "glad").fails(1, "their fields: none")
    weir("direction", every, "--label", "kind").fails(2, "--label kind=VALUE")
    weir("direction", every, "--label", "kind=ugly").fails(1, "the positive class is empty")
    weir("direction", every, "--label", "kind=ugly", "-m", "pca").fails(1, "the positive class is empty")
    weir("direction", good, bad, "--held-out", "1").fails(2, "--held-out 1")
    weir("direction", good, bad, "--held-out", "0.001").fails(1, "none was held out")
    weir("direction", good, bad, "--held-out", "0.999999").fails(1, "each was held out")
    weir("direction", good, bad, "-k", "2").fails(2, "--components is about --method pca")
    weir("direction", good, bad, "--l2", "2").fails(2, "--l2 is about --method probe")
    weir("direction", every, "-m", "pca", "--pairs", "yes").fails(2, "two dumps")
    weir("direction", good, place / "odd.h5", "-m", "pca", "--pairs", "yes").fails(1, "has no partner", "document 25")
    weir("direction", good, bad, "--rows", "all", "-m", "pca", "--pairs", "yes", "-k", "200").fails(1, "200 components")
    weir("direction", good, bad, "-m", "pca", "-k", "100").fails(1, "vary in", "fewer --components")
    weir("direction", good, good).fails(1, "the direction is zero")
    weir("direction", good, good, "-m", "pca").fails(1, "both rows of every pair are the same")
    weir("direction", good, bad, "-m", "probe", "--l2", "0").fails(1, "larger --l2")
    weir("direction", good, bad, "-o", "-").fails(2, "-o -")
    weir("direction", tmp_path / "none.h5", bad).fails(1, "none.h5")
    (tmp_path / "text.h5").write_text("no dump")
    weir("direction", tmp_path / "text.h5", bad).fails(1, "text.h5")


def test_one_row_and_values_that_are_no_numbers(place, tmp_path):
    one = tmp_path / "one.h5"
    trace("--layer", "5", "--site", "resid_post", "--positions", "last", "--dump", one, "a").ok()
    weir("direction", one, "-m", "pca").fails(1, "one row has no covariance")
    weir("direction", one, place / "good.h5", "--held-out", "0", "-o", tmp_path / "v.safetensors").ok()
    nan = tmp_path / "nan.h5"
    nan.write_bytes((place / "good.h5").read_bytes())
    with h5py.File(nan, "r+") as f:
        last = int(f["docs/start"][3] + f["docs/count"][3] - 1)
        f["activations"][HOOK][last, 7] = np.nan
    weir("direction", nan, place / "bad.h5", "--held-out", "0", "-o", tmp_path / "w.safetensors").fails(
        1, "nan.h5", f"element 7 of row {last} of {HOOK} is nan")
    assert not (tmp_path / "w.safetensors").exists()


def test_another_model(place, tmp_path):
    other = tmp_path / "other.h5"
    trace("--model", ROOT / "tests/golden/models/gpt2", "--ids", "--hooks", "blocks.0.hook_resid_post", "--dump", other, "1 2 3").ok()
    weir("direction", place / "good.h5", other).fails(1, "another model")
