"""weir decompose against numpy in float64 (parts_oracle.py), on brook and a tiny model of each family: every number of every part; sums
and identities; the same bytes from a dump, for any threads, kernel, batch."""
import json

import numpy as np
import pytest

from parts_oracle import World, differences, hooks, listed
from weircli import BROOK, ROOT, trace, weir

TINY = ROOT / "tests" / "golden" / "models"
MODELS = {"brook": BROOK, **{n: TINY / n for n in ("gpt2", "llama-gqa-bf16", "llama-llama3-v4", "neox-parallel", "gemma2")}}
IDS = {"brook": "3 14 15"}  # of its 6,144 neurons three positions are enough


class Case:
    def __init__(self, name, out):
        self.name, self.path, self.dump = name, MODELS[name], out / f"{name}.h5"
        self.text = ["--model", self.path, "--ids", IDS.get(name, "3 14 15 9 26 5 35 8")]
        trace(*self.text, "--hooks", hooks(self.path), "--dump", self.dump).ok()
        self.world = World(self.path, self.dump)

    def run(self, *args):
        return weir("decompose", *self.text, "--quiet", *args).ok()

    def positions(self, *args):
        return self.run("--positions", "all", "--json", *args).json["positions"]


@pytest.fixture(scope="module", params=MODELS)
def case(request, tmp_path_factory):
    return Case(request.param, tmp_path_factory.mktemp("parts"))


@pytest.fixture(scope="module")
def gemma(tmp_path_factory):
    return Case("gemma2", tmp_path_factory.mktemp("gemma"))


@pytest.fixture(scope="module")
def brook(tmp_path_factory):
    return Case("brook", tmp_path_factory.mktemp("brook"))


@pytest.fixture(scope="module")
def everything(case):
    """All parts of all positions, of token 7."""
    return case.positions("--target", "#7", "--heads", "all", "--neurons", "all")


def test_every_number(case, everything):
    assert len(everything) == case.world.rows
    for row, p in enumerate(everything):
        assert (p["doc"], p["pos"], p["at"]["id"]) == (0, row, case.world.ids[row])
        assert not differences(listed(p), case.world.parts(row, 7)), (row, differences(listed(p), case.world.parts(row, 7))[:5])


def test_edits_are_the_stream_to_the_bit(case, everything):
    assert case.world.fp32_sum().tobytes() == case.world.stream32.tobytes()
    for row, p in enumerate(everything):
        assert p["sum"]["exact"] is True
        assert p["sum"]["norm"] == pytest.approx(np.linalg.norm(case.world.stream32[row].astype(float)), rel=1e-12)
        total = sum(v for _, v in case.world.edits(row))
        assert np.abs(total - case.world.stream32[row]).max() < 1e-5 * np.abs(total).max()


def test_shares_sum_to_one_and_logits_to_the_models_own(case, everything):
    for row, p in enumerate(everything):
        s, edits = p["sum"], p["edits"]
        assert sum(e["share"] for e in edits) == pytest.approx(1, abs=1e-6) and s["share"] == pytest.approx(1, abs=1e-6)
        assert s["logit"] == case.world.logit(7, row), "the model's own, to the bit"
        assert s["constant"] == pytest.approx(case.world.constant(7), abs=1e-6)
        assert s["parts"] == pytest.approx(s["constant"] + sum(e["logit"] for e in edits), abs=1e-12)
        assert abs(s["difference"]) == pytest.approx(abs(s["parts"] - s["logit"])) and s["holds"] is True
        largest = max(abs(x) for x in [s["logit"], s["constant"], *(e["logit"] for e in edits)])
        assert s["tolerance"] == pytest.approx(1e-4 * largest) and abs(s["difference"]) <= s["tolerance"]


def test_heads_and_neurons_sum_to_their_sublayer(case, everything):
    for row, p in enumerate(everything):
        parts = listed(p)
        for l in range(case.world.layers):
            for which, kinds in (("attn", ("head", "attn_bias")), ("mlp", ("neuron", "mlp_bias"))):
                mine = [v for (kind, layer, _), v in parts.items() if kind in kinds and layer == l]
                whole = parts[which, l, None]
                assert sum(v.share for v in mine) == pytest.approx(whole.share, abs=2e-6)
                assert sum(v.logit for v in mine) == pytest.approx(whole.logit, abs=1e-4 * max(1, *(abs(v.logit) for v in mine)))
                vector = sum(v for _, v in case.world.units(row, l, which))
                out = case.world.at(f"blocks.{l}.hook_{which}_out", row)
                assert np.abs(vector - out).max() < 1e-5 * np.abs(out).max(), "the oracle itself"


def test_a_contrast_is_the_difference_of_two_targets(case):
    a, b, both = (case.positions("--heads", "all", "--neurons", "3,5", *how)
                  for how in (("--target", "#7"), ("--target", "#11"), ("--contrast", "#7,#11")))
    for row in range(case.world.rows):
        x, y, z = (listed(p[row]) for p in (a, b, both))
        want = case.world.parts(row, 7, 11)
        assert not differences(z, {key: v for key, v in want.items() if key in z or key[0] not in ("neuron", "mlp_bias")})
        for key, v in z.items():
            assert v.logit == pytest.approx(x[key].logit - y[key].logit, abs=1e-6 * max(1, abs(x[key].logit)))
            assert v[1:3] == x[key][1:3] == y[key][1:3] or np.isnan(v.cosine)
        assert both[row]["sum"]["logit"] == a[row]["sum"]["logit"] - b[row]["sum"]["logit"]
        assert both[row]["target"]["id"] == 7 and both[row]["against"]["id"] == 11


def test_next_and_final(case):
    following, final, none = (case.positions("--level", "layer", "--target", t) for t in ("next", "final", "none"))
    out = case.world.raw["unembed.hook_out"]
    for row in range(case.world.rows):
        expect = case.world.ids[row + 1] if row + 1 < case.world.rows else None
        p = following[row]
        assert (p["next"] and p["next"]["id"]) == expect and (p["target"] and p["target"]["id"]) == expect
        assert not differences(listed(p), {k: case.world.measure(v, row, expect) for k, v in case.world.edits(row)})
        assert final[row]["target"]["id"] == out[row].argmax()
        assert none[row]["target"] is None and none[row]["sum"]["logit"] is None
        assert "heads" not in p and "neurons" not in p


def top(position, kinds, k, field):
    """Keys of the k parts with the largest magnitude, from everything."""
    parts = [(key, abs(getattr(v, field))) for key, v in listed(position).items() if key[0] in kinds]
    return [key for key, _ in sorted(parts, key=lambda x: -x[1])][:k]


def test_the_ones_that_matter_most(case, everything):
    for args, field in (((), "logit"), (("--rank-by", "share"), "share"), (("--rank-by", "norm"), "norm")):
        for full, p in zip(everything, case.positions("--target", "#7", "-k", 3, *args)):
            for name, kinds in (("heads", ("head", "attn_bias")), ("neurons", ("neuron", "mlp_bias"))):
                want = top(full, kinds, 3, field)
                assert [(x["kind"], x.get("layer"), x.get("unit")) for x in p[name]] == want
                assert p[name + "_of"] == full[name + "_of"] == len(full[name])
                for key in want:
                    assert listed(p)[key] == listed(full)[key]


def test_without_a_target_shares_rank(case, everything):
    for full, p in zip(everything, case.positions("--target", "none", "-k", 2, "--level", "head")):
        assert [(x["kind"], x.get("layer"), x.get("unit")) for x in p["heads"]] == top(full, ("head", "attn_bias"), 2, "share")
        assert all(x["logit"] is None for x in p["heads"])


def test_some_units_and_layers(case, everything):
    last = case.world.layers - 1
    some = case.positions("--target", "#7", "--heads", f"L{last}H0:2", "--neurons", f"3,L{last}N5", "--layers", last)
    for full, p in zip(everything, some):
        got, want = listed(p), listed(full)
        assert [k for k in got if k[0] == "head"] == [("head", last, 0), ("head", last, 1)]
        assert [k for k in got if k[0] == "neuron"] == [("neuron", last, 3), ("neuron", last, 5)]
        assert all(got[k] == want[k] or np.isnan(got[k].cosine) for k in got)
        hidden = [v for (kind, l, _), v in want.items() if kind in ("attn", "mlp") and l < last]
        if not hidden:
            assert "others" not in p
            continue
        assert p["others"]["edits"] == len(hidden)
        assert p["others"]["share"] == pytest.approx(sum(v.share for v in hidden))
        assert p["others"]["logit"] == pytest.approx(sum(v.logit for v in hidden))
        assert p["sum"] == full["sum"]


@pytest.mark.parametrize("form", ["text", "tsv", "ndjson"])
def test_a_dump_gives_the_same(case, form):
    args = ("--positions", "all", "--format", form, "--target", "next")
    live = case.run(*args).out
    dump = weir("decompose", "--model", case.path, "--quiet", "--from", case.dump, *args).ok().out
    if form == "ndjson":  # the head says where the text was from
        live, dump = live.split(b"\n", 1)[1], dump.split(b"\n", 1)[1]
    assert live == dump and len(live) > 1000


@pytest.mark.parametrize("how", [("--threads", 1), ("--threads", 3, "--batch", 3), ("--kernel", "ref"), ("--memory", "8M")])
def test_same_bytes_however_it_runs(case, how):
    args = ("--positions", "all", "--json", "--heads", "all", "-k", 5)
    assert case.run(*args).out == case.run(*args, *how).out


# --- other forms
def test_ndjson_and_one_object_say_the_same(gemma):
    one = gemma.run("--positions", "all", "--json").json
    head, *lines = (json.loads(x) for x in gemma.run("--positions", "all", "--format", "ndjson").out.splitlines())
    assert head == {k: v for k, v in one.items() if k != "positions"} and lines == one["positions"]
    assert head["schema"] == "weir-parts/1" and head["model"] == "gemma2" and head["target"] == "final"
    assert head["interventions"] == [] and head["source"]["text"][0]["argument"] == "arg"


def test_tsv(gemma):
    lines = [x.split("\t") for x in gemma.run("--positions", "-2:", "--format", "tsv", "--heads", "all").out.decode().splitlines()]
    names, rows = lines[0], [dict(zip(lines[0], x)) for x in lines[1:]]
    assert all(len(x) == len(names) for x in lines)
    for p in gemma.run("--positions", "-2:", "--json", "--heads", "all").json["positions"]:
        mine = [r for r in rows if int(r["pos"]) == p["pos"]]
        assert all(r["target_id"] == str(p["target"]["id"]) and r["token_id"] == str(p["at"]["id"]) for r in mine)
        number = lambda x: None if x == "" else float(x)
        want = listed(p)
        got = {(r["kind"], number(r["layer"]), number(r["unit"])): r for r in mine}
        for key, v in want.items():
            for field in v._fields:
                x = number(got[key][field])
                assert x is None and np.isnan(getattr(v, field)) or x == pytest.approx(getattr(v, field), rel=1e-8)
        s = p["sum"]
        for kind, value in (("constant", s["constant"]), ("sum", s["parts"]), ("model", s["logit"]), ("capped", s["capped"])):
            assert number(got[kind, None, None]["logit"]) == pytest.approx(value, rel=1e-8)
        assert len(mine) == len(want) + 4


def test_text(brook):
    text = brook.run("--target", "#7", "--color", "never", "--width", 100).out.decode()
    p = brook.run("--target", "#7", "--json").json["positions"][0]
    lines = text.splitlines()
    assert lines[0].startswith('doc 0, position 3, "') and ": logit of " in lines[0]
    rows = {l[:12].strip(): l for l in lines}
    for e in p["edits"] + p["heads"] + p["neurons"]:
        line = rows[e["part"]]
        assert line[12:22].strip() == f"{e['norm']:#.4g}".rstrip(".") and line[22:32].strip() == f"{e['cosine']:+.3f}"
        assert line[32:42].strip() == f"{100 * e['share']:+.1f}%" and line[42:52].strip() == f"{e['logit']:+.4f}"
        bar = line[54:]
        assert (bar.index("#") < bar.index("|")) == (e["logit"] < 0), line
    longest = max(p["edits"] + p["heads"] + p["neurons"], key=lambda e: abs(e["logit"]))
    assert rows[longest["part"]].count("#") == max(l.count("#") for l in lines)
    assert "the edits are the final stream to the bit" in text and ": holds" in text
    assert "top 10 of 56 heads and biases, by |logit|" in text and "\x1b" not in text
    assert all(len(l) <= 100 for l in lines)
    narrow = brook.run("--target", "#7", "--color", "never", "--width", 52).out.decode()
    assert all("|#" not in l and "#|" not in l for l in narrow.splitlines()[1:])
    assert "\x1b[38;2;" in brook.run("--color", "24bit").out.decode()


def test_soft_cap(gemma):
    cap = gemma.world.config["final_logit_softcapping"]
    for row, p in enumerate(gemma.positions("--contrast", "#7,#11", "--level", "layer")):
        logits = gemma.world.raw["hook_logits"][row]
        assert p["sum"]["capped"] == float(logits[7]) - float(logits[11])
        raw = gemma.world.raw["unembed.hook_out"][row].astype(float)
        assert p["sum"]["capped"] == pytest.approx(cap * (np.tanh(raw[7] / cap) - np.tanh(raw[11] / cap)), abs=1e-5)
        assert p["sum"]["logit"] != p["sum"]["capped"]
    assert "behind the soft cap" in gemma.run().out.decode()


def test_comparison_can_fail(gemma):
    got = listed(gemma.positions("--target", "#7", "--heads", "all", "--neurons", "all")[1])
    want = gemma.world.parts(1, 7)
    assert not differences(got, want)
    assert differences(got, gemma.world.parts(1, 8)) and differences(got, gemma.world.parts(2, 7))
    one = dict(got)
    key = next(k for k in one if k[0] == "head")
    one[key] = one[key]._replace(norm=2 * one[key].norm + 0.1)
    assert any("norm" in line for line in differences(one, want))
    del one[key]
    assert any("only in one" in line for line in differences(one, want))
    one[key] = got[key]._replace(logit=np.nan)
    assert any("logit" in line for line in differences(one, want))
