"""logit-lens -o FILE.h5 (weir-lens-map): the bits that ndjson prints, the same from a text and from its dump, equal bytes from equal runs, and
what each mistake says."""
import json

import h5py
import numpy as np
import pytest

from lenses import STATS, STREAM
from weircli import ROOT, trace, weir

MODELS = ROOT / "tests" / "golden" / "models"
TEXT = ["The capital city of Colombia is", "Boulder is in the state of", "Ann\tsaid <b>$x</b> \"日本\" & went home."]


def lens(*args, **more):
    return weir("logit-lens", *args, **more)


def bits(x):
    x = np.array(x, dtype=np.float32)
    return np.where(np.isnan(x), np.uint32(0x7fc00000), x.view(np.uint32))


def strings(group):
    b, o = group["bytes"][:].tobytes(), group["offsets"][:]
    return [b[i:j] for i, j in zip(o[:-1], o[1:])]


def everything(path, leave=()):
    """{path: bits of it} of a file, attributes too."""
    out = {}
    with h5py.File(path) as f:
        out |= {f"@{k}": v for k, v in f.attrs.items() if k not in leave}
        f.visititems(lambda name, d: out.update({name: (d.shape, d.dtype.str, d[()].tobytes())}) if isinstance(d, h5py.Dataset) else None)
    return out


def differences(path, out):
    """What of a map differs from ndjson, as names."""
    head, *rows = map(json.loads, out.splitlines())
    wrong = set()

    def check(name, have, want):
        if not np.array_equal(have, want):
            wrong.add(name)

    with h5py.File(path) as f:
        for key in ("model", "fingerprint", "tokenizer", "input", "lens", "norm", "shown", "vocabulary", "padding_from", "k", "ctx", "stride"):
            check(f"@{key}", f.attrs[key], head[key])
        for key in ("bos", "softcap_left_out", "padding_masked"):
            check(f"@{key}", f.attrs[key], int(head[key]))
        check("@target", f.attrs.get("target"), head["target"])
        check("@contrast", [f.attrs.get("contrast_a"), f.attrs.get("contrast_b")], head["contrast"] or [None, None])
        check("@source", json.loads(f.attrs["source"]), head["source"])
        check("@interventions", json.loads(f.attrs["interventions"]), head["interventions"] or [])
        for key, of in (("name", "line"), ("hook", "hook"), ("site", "site")):
            check(f"lines/{key}", [s.decode() for s in strings(f[f"lines/{key}"])], [line[of] for line in head["lines"]])
        check("lines/layer", f["lines/layer"][:], [line["layer"] for line in head["lines"]])
        check("stats", sorted(f["stats"]), sorted(head["stats"]))
        for key in ("doc", "pos"):
            check(f"tokens/{key}", f[f"tokens/{key}"][:], [r[key] for r in rows])
        for key, of in (("id", "input"), ("next", "next"), ("target", "target")):
            check(f"tokens/{key}", f[f"tokens/{key}"][:], [r[of]["id"] if r[of] else -1 for r in rows])
        for stat in head["stats"]:
            want = [[r["lines"][i][stat] for r in rows] for i in range(len(head["lines"]))]
            none = 0 if stat == "rank" else np.nan
            check(f"stats/{stat}", bits(f[f"stats/{stat}"][:]), bits([[none if x is None else x for x in line] for line in want]))
        tops = [[r["lines"][i]["top"] for r in rows] for i in range(len(head["lines"]))]
        fill = [{"id": -1, "logprob": np.nan}] * head["k"]  # ndjson leaves out what is none
        tops = [[(cell + fill)[:head["k"]] for cell in line] for line in tops]
        check("top/id", f["top/id"][:], [[[t["id"] for t in cell] for cell in line] for line in tops])
        check("top/logprob", bits(f["top/logprob"][:]), bits([[[t["logprob"] for t in cell] for cell in line] for line in tops]))
        words = strings(f["vocab"])
        for r in rows:
            if r["input"]["token"] is not None:
                want = bytes.fromhex(r["input"]["hex"]) if r["input"]["hex"] else r["input"]["token"].encode()
                check("vocab", words[r["input"]["id"]], want)
        number, start, count = (f[f"docs/{name}"][:] for name in ("number", "start", "count"))
        check("docs", np.repeat(number, count), f["tokens/doc"][:])
        check("docs", start, np.cumsum([0, *count])[:-1])
    return wrong


OPTIONS = {"plain": [], "target": ["--target", "next", "-k", 3], "final": ["--target", "final", "--stat", "rank", "--layer-step", 3],
           "word": ["--target", " Asia", "--contrast", " Asia, Europe", "--positions", "-2:"],
           "sites": ["--site", "resid-mid,mlp-out", "--layers", "0,4-6", "--norm", "cached"], "changed": ["--ablate", "L5H2", "--bos", "no", "--ctx", 5]}


@pytest.mark.parametrize("name", OPTIONS)
def test_the_bits_of_ndjson(name, tmp_path):
    lens(*OPTIONS[name], *TEXT, "-o", tmp_path / "map.h5").ok()
    out = lens(*OPTIONS[name], *TEXT, "--format", "ndjson").ok().out
    assert differences(tmp_path / "map.h5", out) == set()
    with h5py.File(tmp_path / "map.h5") as f:
        assert f.attrs["format"] == "weir-lens-map" and f.attrs["format_version"] == 1 and f["stats/kl"].dtype == np.float32


def test_a_changed_bit_is_seen(tmp_path):
    lens(*TEXT, "-o", tmp_path / "map.h5").ok()
    out = lens(*TEXT, "--json").ok().out
    with h5py.File(tmp_path / "map.h5", "r+") as f:
        kl = f["stats/kl"][:]
        kl.view(np.uint32)[3, 2] ^= 1
        f["stats/kl"][...] = kl
        f["top/id"][1, 1, 9] = 7
    assert differences(tmp_path / "map.h5", out) == {"stats/kl", "top/id"}


def test_a_model_without_a_tokenizer_and_logits_that_are_not_finite(tmp_path):
    lens("--ids", "--model", MODELS / "neox-parallel", "5 6 7 8", "-o", tmp_path / "map.h5").ok()
    out = lens("--ids", "--model", MODELS / "neox-parallel", "5 6 7 8", "--json").ok().out
    assert differences(tmp_path / "map.h5", out) == set()
    with h5py.File(tmp_path / "map.h5") as f:
        assert f["vocab/offsets"][:].tolist() == [0] and f["vocab/bytes"].shape == (0,)
    options = [TEXT[0], "--layers", "0,7", "--scale", "blocks.3.hook_resid_post=1e38"]
    assert lens(*options, "-o", tmp_path / "nan.h5").code == 3
    r = lens(*options, "--json")
    assert r.code == 3 and differences(tmp_path / "nan.h5", r.out) == set()
    with h5py.File(tmp_path / "nan.h5") as f:
        assert np.isnan(f["stats/entropy"][-1, 3]) and f["stats/rank"][-1, 3] == 0 and (f["top/id"][-1, 3] == -1).all()


def test_from_a_dump_as_from_the_text(tmp_path):
    trace("--hooks", STREAM, "--dump", tmp_path / "stream.h5", *TEXT).ok()
    for options in ([], ["--target", "final", "-k", 2], ["--tuned", tuned(tmp_path)]):
        lens(*options, *TEXT, "-o", tmp_path / "text.h5").ok()
        lens(*options, tmp_path / "stream.h5", "-o", tmp_path / "dump.h5").ok()
        leave = ("input", "source")
        text, dump = (everything(tmp_path / name, leave) for name in ("text.h5", "dump.h5"))
        assert text.pop("tokens/next")[0] == dump.pop("tokens/next")[0]  # the dump's last window knows no token behind it
        assert text == dump and len(text) > 20


def tuned(to):
    if not (to / "tuned").exists():
        weir("lens-fit", "-o", to / "tuned", "--steps", 1, "--quiet", *TEXT).ok()
    return to / "tuned"


def test_equal_runs_write_equal_bytes(tmp_path):
    lens(*TEXT, "-o", tmp_path / "a.h5").ok()
    for more in (["--threads", 1], ["--batch", 3]):
        lens(*TEXT, *more, "-o", tmp_path / "b.h5", "--stats-plot", tmp_path / "b.svg").ok()
        assert (tmp_path / "a.h5").read_bytes() == (tmp_path / "b.h5").read_bytes()
        assert (tmp_path / "b.svg").read_text().startswith("<?xml")


def test_what_mistakes_say(tmp_path):
    lens("a", "-o", "map.h5", cwd=tmp_path).ok()
    before = (tmp_path / "map.h5").read_bytes()
    lens("map.h5", cwd=tmp_path).fails(2, "map.h5 is a map that logit-lens wrote", "9 lines of 2 positions in 1 document)", "notebook-export map.h5")
    lens("--from", "map.h5", "--stat", "kl", cwd=tmp_path).fails(2, "map.h5 is a map")
    lens("--corpus", "map.h5", cwd=tmp_path).fails(2, "map.h5 is a map")
    lens("--format", "h5", "a", cwd=tmp_path).fails(2, "-o FILE.h5")
    lens("--format", "h5", "a", "-o", "-", cwd=tmp_path).fails(2, "-o FILE.h5")
    lens("a", "-o", "map.h5", "--width", 80, cwd=tmp_path).fails(2, "--width")
    (tmp_path / "mine.h5").write_text("mine")
    lens("a", "-o", "mine.h5", "--force", cwd=tmp_path).fails(1, "mine.h5 exists", "--force is not for HDF5")
    lens("--corpus", "a", "-o", "map.h5", cwd=tmp_path).fails(1, "map.h5 exists")
    lens("a", "-o", "map.h5", "--stats-plot", "map.h5", cwd=tmp_path).fails(2, "same file")
    lens("a", "-o", "nowhere/map.h5", cwd=tmp_path).fails(1, "nowhere")
    damaged = bytearray(before)
    damaged[len(damaged) // 2] ^= 1
    (tmp_path / "damaged.h5").write_bytes(damaged)
    lens("damaged.h5", cwd=tmp_path).fails(1, "damaged.h5")
    assert (tmp_path / "map.h5").read_bytes() == before and (tmp_path / "mine.h5").read_text() == "mine"
    lens("other", "-o", "map.h5", cwd=tmp_path).ok()
    assert (tmp_path / "map.h5").read_bytes() != before and sorted(p.name for p in tmp_path.iterdir()) == ["damaged.h5", "map.h5", "mine.h5"]
