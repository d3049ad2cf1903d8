"""weir probe-pos: it holds in every family; hooks of one's own that mix positions are found out, at the place where trace finds them."""
import re
import subprocess

import h5py
import numpy as np
import pytest

from weircli import ROOT, trace, weir

TEXT = "Boulder is in the state of Colorado."
MODELS = sorted(p.name for p in (ROOT / "tests/golden/models").iterdir())
CC_LINE = re.search(r"^ *(cc -shared .*)$", (ROOT / "hooks/README.md").read_text(), re.M)[1]

# Adds a thousandth of element 5 of the row `by` rows away (of the same sequence) to element 5 of each row.
MIX = r"""
#include <stdlib.h>
#include <weir/hook.h>

typedef struct state {
    weir_selector *selector;
    int64_t by;
} state;

static void destroy(void *self)
{
    weir_selector_free(((state *)self)->selector);
    free(self);
}

static weir_status create(void **self, const weir_model *m, const char *args, weir_err *err)
{
    static const char *const keys[] = {"by=", NULL};
    weir_hook_args *a;
    WEIR_TRY(weir_hook_args_parse(&a, "mix", args, keys, err));
    state *s = calloc(1, sizeof *s);
    weir_status st = weir_hook_args_int(a, "by", -8, 8, &s->by, err);
    if (!st)
        st = weir_selector_build(&s->selector, m, weir_hook_args_selectors(a), NULL, NULL, err);
    weir_hook_args_free(a);
    *self = s;
    return st;
}

static weir_want wants(void *self, const weir_point *p)
{
    return weir_selector_matches(((state *)self)->selector, p) ? WEIR_WRITE : WEIR_NONE;
}

static weir_status on_value(void *self, const weir_value *v, weir_err *err)
{
    const int64_t by = ((state *)self)->by, n = v->rows->n;
    for (int64_t i = 0; i < n; i++) {
        const int64_t t = by > 0 ? i : n - 1 - i, from = t + by; /* what is read was not written yet */
        if (from >= 0 && from < n && v->rows->seq[from] == v->rows->seq[t])
            v->data[t * v->width + 5] += 0.001f * v->data[from * v->width + 5];
    }
    return WEIR_OK;
}

extern const weir_hook_class weir_hook_mix;
const weir_hook_class weir_hook_mix = {.struct_size = sizeof(weir_hook_class), .abi = WEIR_HOOK_ABI, .name = "mix", .help = "",
                                       .args = "", .create = create, .wants = wants, .on_value = on_value, .destroy = destroy};
"""


@pytest.fixture(scope="module")
def mix(tmp_path_factory):
    where = tmp_path_factory.mktemp("mix")
    (where / "mix.c").write_text(MIX)
    subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-Werror", "-I", ROOT / "lib/include", "mix.c", "-o", "mix.so"], cwd=where,
                   check=True)
    return where / "mix.so"


def probe(*args, **more):
    return weir("probe-pos", "--json", "--quiet", *args, **more)


def test_it_holds_at_every_position():
    got = probe("--all", TEXT).ok().json
    n = got["tokens"]
    assert n == 11 and got["probes"] == n and got["windows"] == 1 and got["holds"]
    assert got["earlier"] == {"rows": 167 * n * (n - 1) // 2, "differ": 0}
    assert got["mlp_held"] == {"rows": 8 * 3 * n * (n - 1), "differ": 0}  # pre, post, mlp_out
    assert got["mlps"] == got["mlps_reached"] == 8 * n
    with_listener = probe("--all", "--hook", "stats:blocks.1.hook_mlp_out", "--seed", "7", TEXT)
    assert with_listener.code == 0


@pytest.mark.parametrize("model", MODELS)
def test_it_holds_in_every_family(model):
    got = probe("--model", ROOT / "tests/golden/models" / model, "--ids", "--all", "1 2 3 4 5 6 7", "8 9").ok().json
    assert got["holds"] and got["probes"] == 9 and got["mlps_reached"] == got["mlps"] > 0


def test_one_position_of_each_window():
    got = probe("--position", "-1", "--ctx", "5", TEXT, "The river bends.").ok().json
    assert got["windows"] == got["probes"] == 5
    assert got["holds"]
    middle = probe(TEXT).ok().json
    assert middle["earlier"]["rows"] == 167 * 5 and probe("--position", "5", TEXT).ok().json == middle
    assert probe("--position", "-6", TEXT).ok().json == middle
    text = weir("probe-pos").ok().out.decode()
    assert text.count("all the same to the bit") == 2 and "8 of 8 MLPs read another input" in text


def recorded(tmp_path, hook, ids, *args):
    dump = tmp_path / "rows.h5"
    trace("--ids", "--bos", "no", "--hooks", hook, "--dump", dump, "--force", *args, " ".join(map(str, ids))).ok()
    with h5py.File(dump) as f:
        return f["activations"][hook][:]


@pytest.mark.parametrize("where", ["blocks.3.mlp.hook_post", "blocks.0.hook_resid_pre"])
def test_what_flows_backwards_is_found(mix, tmp_path, where):
    ids = [34, 681, 265, 274, 289, 261, 906]
    hook = ("--hook", f"{mix}:{where},by=1")
    r = probe("--ids", "--bos", "no", "--position", "4", "--token", "#1000", *hook, " ".join(map(str, ids)))
    assert r.code == 3
    got = r.json
    first = got["earlier"]["first"]
    assert not got["holds"] and got["earlier"]["differ"] > 0
    assert (first["hook"], first["doc"], first["pos"], first["changed_pos"], first["element"]) == (where, 0, 3, 4, 5)
    a = recorded(tmp_path, where, ids, *hook)
    b = recorded(tmp_path, where, ids[:4] + [1000] + ids[5:], *hook)
    assert (a[:3] == b[:3]).all() and (a[3, :5] == b[3, :5]).all()
    assert (np.float32(first["was"]), np.float32(first["is"])) == (a[3, 5], b[3, 5]) and a[3, 5] != b[3, 5]
    assert f"{where} at document 0, position 3, element 5" in r.err
    in_mlp = "mlp" in where
    assert ("first" in got["mlp_held"]) == in_mlp and len(r.err.splitlines()) == 1 + in_mlp


def test_an_mlp_that_looks_at_its_neighbour_is_found(mix):
    r = probe("--position", "4", "--hook", f"{mix}:blocks.3.mlp.hook_pre,by=-1", TEXT)
    assert r.code == 3
    got = r.json
    assert got["earlier"]["differ"] == 0 and "first" not in got["earlier"]  # nothing flows backwards
    first = got["mlp_held"]["first"]
    assert (first["hook"], first["pos"], first["element"]) == ("blocks.3.mlp.hook_pre", 5, 5)
    assert len(r.err.splitlines()) == 1 and "its own input held" in r.err
    assert probe("--position", "-1", "--hook", f"{mix}:blocks.3.mlp.hook_pre,by=-1", TEXT).code == 0  # nothing stands behind it
    text = weir("probe-pos", "--all", "--hook", f"{mix}:blocks.3.mlp.hook_pre,by=-1", TEXT)
    assert text.code == 3 and "all the same to the bit" in text.out.decode() and " differ\n" in text.out.decode()


def test_mixing_before_the_mlp_is_no_fault_of_the_mlp(mix):
    """Its input is held behind what mixes."""
    assert probe("--hook", f"{mix}:blocks.3.ln2.hook_out,by=-1", TEXT).ok().json["holds"]


def test_interventions_of_weir_keep_positions_apart():
    for change in (("--ablate", "blocks.2.hook_mlp_out[3]=zero"), ("--scale", "resid_post=1.5"), ("--ablate", "L3H2=zero")):
        got = probe("--all", *change, TEXT).ok().json
        assert got["holds"] and got["interventions"][0]["rows_changed"] > 0
    dead = probe("--ablate", "blocks.0.hook_resid_pre=zero", TEXT).ok().json
    assert dead["mlps_reached"] == 0  # which tells that nothing was put to the test


def test_tables_and_threads_change_nothing():
    want = probe("--kernel", "ref", "--threads", "1", "The river bends.").ok().json
    assert probe("The river bends.").ok().json == want


def test_complaints(tmp_path):
    weir("probe-pos", "--all", "--position", "3", "x").fails(2, "--all", "--position")
    weir("probe-pos", "--position", "99", TEXT).fails(1, "no window has the position 99")
    weir("probe-pos", "--position", "-99", TEXT).fails(1, "no window has the position -99")
    weir("probe-pos", "--position", "5", "--token", " in", TEXT).fails(1, "--token  in stands there already")
    weir("probe-pos", "--token", "no such token", TEXT).fails(2, "--token")
    weir("probe-pos", "--ctx", "200", "--batch", "100", TEXT).fails(2, "--batch is 100")
    weir("probe-pos", "--ids", "--bos", "no", "7").fails(1, "one token")
    weir("probe-pos", "--quiet", "--file", "-", stdin=b"\n").fails(1, "holds no document")
    mine = tmp_path / "mine.txt"
    mine.write_text("dear diary")
    weir("probe-pos", "-o", mine, TEXT).fails(1, "mine.txt exists")
    out = tmp_path / "probe.json"
    for _ in range(2):
        probe("-o", out, TEXT).ok()
    assert out.read_text().startswith('{"model":"brook"')
