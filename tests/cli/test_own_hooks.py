"""Hooks of one's own, built by the line that hooks/README.md gives and run with `trace --hook ./NAME.so`; and what topk, lens and stats
leave in files."""
import json
import os
import re
import shlex
import subprocess

import h5py
import numpy as np
import pytest

from weircli import BIN, ROOT, trace, weir

TEXT = "The river bends. Among the places of Colorado is Boulder."
CC_LINE = re.search(r"^ *(cc -shared .*)$", (ROOT / "hooks/README.md").read_text(), re.M)[1]

# Scales the stream after layer 1, keeps the norm of each row (before) in a dataset of its own, stops after `passes` passes
# (or is interrupted).
NORMS = r"""
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <weir/record.h>

typedef struct state {
    weir_selector *selector;
    double by;
    int64_t passes, most;
    bool abrupt, interrupt;
    const weir_point *point;
    struct weir_dump *dump;
    int id;
} state;

static void destroy(void *self)
{
    state *s = self;
    weir_selector_free(s->selector);
    free(s);
}

static weir_status create(void **self, const weir_model *m, const char *args, weir_err *err)
{
    static const char *const keys[] = {"by=", "passes=", "abrupt", "interrupt", NULL};
    weir_hook_args *a;
    WEIR_TRY(weir_hook_args_parse(&a, "norms", args, keys, err));
    state *s = calloc(1, sizeof *s);
    s->by = 1;
    s->most = INT64_MAX;
    s->abrupt = weir_hook_args_text(a, "abrupt");
    s->interrupt = weir_hook_args_text(a, "interrupt");
    weir_status st = weir_hook_args_number(a, "by", &s->by, err);
    if (!st)
        st = weir_hook_args_int(a, "passes", 1, 1000, &s->most, err);
    const char *sel = weir_hook_args_selectors(a);
    if (!st)
        st = weir_selector_build(&s->selector, m, sel ? sel : "blocks.1.hook_resid_post", NULL, NULL, err);
    weir_hook_args_free(a);
    if (st)
        destroy(s);
    else
        *self = s;
    return st;
}

static weir_want wants(void *self, const weir_point *p)
{
    state *s = self;
    if (!weir_selector_matches(s->selector, p))
        return WEIR_NONE;
    s->point = p;
    return s->by == 1 ? WEIR_READ : WEIR_WRITE;
}

static weir_status on_dump(void *self, struct weir_dump *d, weir_err *err)
{
    state *s = self;
    s->dump = d;
    return weir_dump_own_new(d, "norms", "norm", s->point, WEIR_DUMP_F32, 1, &s->id, err);
}

static weir_status on_value(void *self, const weir_value *v, weir_err *err)
{
    state *s = self;
    for (int64_t t = 0; t < v->rows->n; t++) {
        float *x = v->data + t * v->width, sum = 0;
        for (int64_t i = 0; i < v->width; i++) {
            sum += x[i] * x[i];
            if (s->by != 1)
                x[i] *= (float)s->by;
        }
        sum = sqrtf(sum);
        if (s->dump && v->rows->keep[t])
            WEIR_TRY(weir_dump_own_append(s->dump, s->id, &sum, 1, err));
    }
    return s->abrupt && s->passes + 1 >= s->most ? WEIR_STOP : WEIR_OK;
}

static weir_status on_end(void *self, const weir_rows *rows, weir_err *err)
{
    state *s = self;
    bool last = ++s->passes >= s->most;
    if (last && s->interrupt)
        raise(SIGINT); /* as Ctrl-C would, but always here */
    return last && !s->interrupt ? WEIR_STOP : WEIR_OK;
}

static weir_status finish(void *self, FILE *out, weir_err *err)
{
    state *s = self;
    if (out)
        fprintf(out, "passes\t%lld\n", (long long)s->passes);
    return WEIR_OK;
}

extern const weir_hook_class weir_hook_norms;
const weir_hook_class weir_hook_norms = {
    .struct_size = sizeof(weir_hook_class), .abi = WEIR_HOOK_ABI + ABI_PLUS, .flags = WEIR_HOOK_ANY_ORDER, .name = "norms",
    .help = "", .args = "", .create = create, .wants = wants, .on_dump = on_dump, .on_value = on_value, .on_end = on_end,
    .finish = finish, .destroy = destroy};
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A directory with what the README's line makes of the template, and the hook above, once for another ABI."""
    where = tmp_path_factory.mktemp("hooks")
    (where / "lib").symlink_to(ROOT / "lib")
    (where / "hooks").mkdir()
    (where / "hooks/mine.c").write_text((ROOT / "hooks/template.c").read_text().replace("template", "mine"))
    subprocess.run(CC_LINE, shell=True, cwd=where, check=True)
    (where / "norms.c").write_text(NORMS)
    (where / "old").mkdir()
    for out, plus in (("norms.so", 0), ("old/norms.so", 1)):
        subprocess.run(["cc", "-shared", "-fPIC", "-Wall", "-Werror", f"-DABI_PLUS={plus}", "-I", "lib/include", "norms.c", "-o", out],
                       cwd=where, check=True)
    return where


def test_the_readmes_line_builds_a_hook(built):
    own = trace("--hook", "./mine.so:resid_post", TEXT, cwd=built).ok()
    built_in = trace("--hook", "template:resid_post", TEXT).ok()
    assert own.out == built_in.out and own.out.count(b"\n") > 3


def test_a_hook_is_built_where_weir_is_installed(built, tmp_path):
    line = re.search(r"`(cc -shared [^`]*pkg-config[^`]*)`", (ROOT / "hooks/README.md").read_text())[1]
    subprocess.run(["make", "install", f"DESTDIR={tmp_path}", "PREFIX=/usr/local"], cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    prefix = tmp_path / "usr/local"
    env = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
    env.update(PATH=f"{prefix}/bin:{env['PATH']}", PKG_CONFIG_PATH=f"{prefix}/lib/pkgconfig", PKG_CONFIG_SYSROOT_DIR=str(tmp_path))
    (tmp_path / "mine.c").write_text((built / "hooks/mine.c").read_text())
    subprocess.run(line, shell=True, cwd=tmp_path, env=env, check=True)
    out = subprocess.run(["weir", "trace", "--hook", "./mine.so:resid_post", TEXT], cwd=tmp_path, env=env, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, check=True).stdout
    assert out == trace("--hook", "template:resid_post", TEXT).ok().out


def exported(path):
    out = subprocess.run(["nm", "-D", "--defined-only", path], stdout=subprocess.PIPE, check=True, text=True).stdout
    return {line.split()[-1] for line in out.splitlines()}


def test_the_program_exports_what_the_library_does():
    """Also what no tool calls: a hook may. And nothing else."""
    library = exported(ROOT / os.environ.get("WEIR_BUILD", "build/release") / "libweir.so.0")
    assert exported(BIN / "weir") == library and "weir_hook_args_number" in library


def test_the_line_needs_no_warning(built):
    subprocess.run(CC_LINE + " -Wall -Wextra -Werror", shell=True, cwd=built, check=True)


def recorded(path):
    with h5py.File(path) as f:
        names = []
        for group in ("activations", "hooks"):
            if group in f:
                f[group].visititems(lambda n, d: names.append(f"{group}/{n}") if isinstance(d, h5py.Dataset) else None)
        return {**{n: f[n][:] for n in names}, "id": f["tokens/id"][:], "complete": int(f.attrs["complete"]),
                "interventions": f.attrs["interventions"]}


def test_a_hook_writes_and_the_recording_sees_it(built, tmp_path):
    for name, hook in (("plain", []), ("tenth", ["--hook", f"{built}/norms.so:by=0.5"])):
        trace("--site", "resid_post", "--dump", tmp_path / f"{name}.h5", *hook, TEXT).ok()
    plain, half = recorded(tmp_path / "plain.h5"), recorded(tmp_path / "tenth.h5")
    at = "activations/blocks.{}.hook_resid_post".format
    assert (half[at(0)] == plain[at(0)]).all()
    assert (half[at(1)] == plain[at(1)] * np.float32(0.5)).all()
    assert (half[at(2)] != plain[at(2)]).any()
    assert "norms" in half["interventions"] and "by=0.5" in half["interventions"]
    assert json.loads(plain["interventions"]) == []


def test_a_hook_keeps_a_dataset_of_its_own(built, tmp_path):
    files = {}
    for name, options in (("a", []), ("b", ["--batch", "5", "--positions", "2:"])):
        path = tmp_path / f"{name}.h5"
        trace("--site", "resid_post", "--dump", path, "--hook", f"{built}/norms.so", *options, TEXT, "A second text.").ok()
        files[name] = recorded(path)
    for got in files.values():
        norm, x = got["hooks/norms/norm"], got["activations/blocks.1.hook_resid_post"]
        assert norm.shape == (len(x), 1) and norm.dtype == np.float32
        assert np.allclose(norm[:, 0], np.linalg.norm(x, axis=1), rtol=1e-5)
    assert len(files["b"]["hooks/norms/norm"]) < len(files["a"]["hooks/norms/norm"])


def test_a_hook_has_seen_enough(built, tmp_path):
    texts = [f"Text number {i} is short." for i in range(20)]
    for name, hook in (("all", []), ("some", ["--hook", f"{built}/norms.so:passes=2"])):
        p = trace("--site", "resid_post", "--dump", tmp_path / f"{name}.h5", "--batch", "16", *hook, *texts).ok()
    assert p.out == b"passes\t2\n"
    whole, some = recorded(tmp_path / "all.h5"), recorded(tmp_path / "some.h5")
    n = len(some["id"])
    assert some["complete"] == 1 and 0 < n < len(whole["id"])
    for name in (k for k in whole if k.startswith("activations")):
        assert len(some[name]) == n and (some[name] == whole[name][:n]).all()
    p = trace("--hook", f"{built}/norms.so:passes=2", "--batch", "16", *texts).ok()
    assert p.out == b"passes\t2\n"


def test_a_pass_that_is_cut_short_cannot_be_recorded(built, tmp_path):
    hook = ["--hook", f"{built}/norms.so:passes=2,abrupt", "--batch", "16"]
    p = trace(*hook, TEXT, TEXT).ok()
    assert p.out == b"passes\t2\n"
    trace("--dump", tmp_path / "d.h5", *hook, TEXT, TEXT).fails(1, "a hook stopped in the middle of a pass")
    assert not (tmp_path / "d.h5").exists()


def test_mistakes_get_one_line(built, tmp_path):
    (tmp_path / "text.so").write_text("no library")
    abi = int(re.search(r"WEIR_HOOK_ABI = (\d+)", (ROOT / "lib/include/weir/hook.h").read_text())[1])
    for hook, words in ((f"{built}/none.so", ["none.so", "cannot be loaded"]),
                        (f"{tmp_path}/text.so:post", ["text.so", "cannot be loaded"]),
                        (f"{built}/old/norms.so", [f"ABI {abi + 1}, this is {abi}", "compile it again"]),
                        (f"{built}/norms.so:bu=2", ["no argument \"bu\"", "the nearest is \"by\""]),
                        (f"{built}/norms.so:by=x", ["by=x must be a number"]),
                        (f"{built}/norms.so:pots", ["the nearest is \"post\""])):
        trace("--hook", hook, TEXT).fails(2, "--hook", *words)


# --- the built-in hooks that keep something


def test_the_readmes_commands_run(tmp_path):
    page = (ROOT / "hooks/README.md").read_text().split("## Write your own")[0]
    commands = re.findall(r"^    weir (trace .*)$", page, re.M)
    assert len(commands) == 4
    for command in commands:
        p = weir(*shlex.split(command), cwd=tmp_path).ok()
        assert p.out.count(b"\n") > 5 or "--dump" in command, command


def ranked(x, k, order):
    """Indices and values of the k first elements of each row, ties to the lower index."""
    key = {"largest": -x, "smallest": x, "abs": -np.abs(x)}[order]
    index = np.argsort(key, axis=1, kind="stable")[:, :k]
    return index, np.take_along_axis(x, index, 1)


@pytest.mark.parametrize("order", ["largest", "smallest", "abs"])
def test_topk_is_a_sparse_recording(tmp_path, order):
    path = tmp_path / "d.h5"
    args = "blocks.3.mlp.hook_post,L2H1,k=7" + ("" if order == "largest" else f",{order}")
    p = trace("--hooks", "blocks.3.mlp.hook_post", "--hooks", "blocks.2.attn.hook_z", "--dump", path, "--batch", "5", "--hook",
              f"topk:{args}", TEXT, "A second text.").ok()
    assert p.out == b""
    got = recorded(path)
    for point, first, n in (("blocks.3.mlp.hook_post", 0, None), ("blocks.2.attn.hook_z", 32, 32)):
        x = got[f"activations/{point}"][:, first:][:, :n]
        index, value = ranked(x, 7, order)
        assert (got[f"hooks/topk/{point}.index"] == index + first).all()
        assert (got[f"hooks/topk/{point}.value"] == value).all()
        assert got[f"hooks/topk/{point}.index"].dtype == np.int32


def test_lens_is_recorded_for_every_row(tmp_path):
    path = tmp_path / "d.h5"
    trace("--hooks", "unembed.hook_out", "--dump", path, "--batch", "5", "--hook", "lens:resid_post,k=3", TEXT, "A second text.").ok()
    got = recorded(path)
    logits = got["activations/unembed.hook_out"].astype(np.float64)
    layers = sorted(int(re.search(r"blocks\.(\d+)", n)[1]) for n in got if n.startswith("hooks/lens/") and n.endswith(".id"))
    assert layers == list(range(layers[-1] + 1))
    last = f"hooks/lens/blocks.{layers[-1]}.hook_resid_post"
    index, value = ranked(logits, 3, "largest")
    assert (got[f"{last}.id"] == index).all()
    log_sum = np.log(np.exp(logits - logits.max(1, keepdims=True)).sum(1, keepdims=True)) + logits.max(1, keepdims=True)
    assert np.allclose(got[f"{last}.logprob"], value - log_sum, atol=1e-5)


def test_rows_that_positions_leave_out_are_empty(tmp_path):
    path = tmp_path / "d.h5"
    trace("--site", "resid_post", "--layer", "7", "--dump", path, "--hook", "topk:blocks.7.hook_resid_post[-1],k=2", "--hook",
          "lens:blocks.7.hook_resid_post[-1],k=2", TEXT, "A second text.").ok()
    got = recorded(path)
    with h5py.File(path) as f:
        last = f["docs/start"][:] + f["docs/count"][:] - 1
    chosen = np.isin(np.arange(len(got["id"])), last)
    for empty, values in (("hooks/topk/{}.index", "hooks/topk/{}.value"), ("hooks/lens/{}.id", "hooks/lens/{}.logprob")):
        index, value = (got[n.format("blocks.7.hook_resid_post")] for n in (empty, values))
        assert (index[~chosen] == -1).all() and np.isnan(value[~chosen]).all()
        assert (index[chosen] >= 0).all() and np.isfinite(value[chosen]).all()


def test_the_order_of_layers_changes_nothing(tmp_path):
    files = {}
    for order in ("batch", "layer"):
        path, stats = tmp_path / f"{order}.h5", tmp_path / f"{order}-stats.h5"
        p = trace("--order", order, "--site", "resid_post", "--dump", path, "--batch", "16", "--hook", "topk:post,k=3", "--hook",
                  "lens:k=2", "--hook", f"stats:{stats}=post", TEXT, "A second text.", TEXT).ok()
        files[order] = recorded(path), statistics(stats)[0], p.out
    (a, stats_a, out_a), (b, stats_b, out_b) = files["batch"], files["layer"]
    assert out_a == out_b and a.keys() == b.keys() and any(n.startswith("hooks/lens") for n in a)
    for name in a:
        assert np.asarray(a[name]).tobytes() == np.asarray(b[name]).tobytes(), name
    for name in stats_a:
        assert all(stats_a[name][c].tobytes() == stats_b[name][c].tobytes() for c in stats_a[name])


def statistics(path):
    with h5py.File(path) as f:
        assert f.attrs["format"] == "weir-stats" and f.attrs["format_version"] == 1 and f.attrs["complete"] == 1
        return {name: {column: f[f"stats/{name}/{column}"][:] for column in f[f"stats/{name}"]} for name in f["stats"]}, dict(f.attrs)


def test_statistics_do_not_depend_on_how_the_text_is_cut(tmp_path):
    texts = [TEXT, "A second text.", "And a third one, about nothing."]
    trace("--hooks", "blocks.1.mlp.hook_post,blocks.2.attn.hook_z", "--dump", tmp_path / "d.h5", *texts).ok()
    found = []
    for i, options in enumerate((["--batch", "4", "--threads", "1"], ["--batch", "512", "--threads", "2"])):
        hook = f"stats:{tmp_path}/s{i}.h5=blocks.1.mlp.hook_post,blocks.2.attn.hook_z[:,1],hook_embed[:,3+5]"
        trace("--hook", hook, *options, *texts).ok()
        found.append(statistics(tmp_path / f"s{i}.h5"))
    (a, attributes), (b, _) = found
    for name in a:
        for column in a[name]:
            assert a[name][column].tobytes() == b[name][column].tobytes()
    x = recorded(tmp_path / "d.h5")["activations/blocks.1.mlp.hook_post"].astype(np.float64)
    post = a["blocks.1.mlp.hook_post"]
    assert (post["count"] == len(x)).all() and post["count"].dtype == np.int64
    assert np.allclose(post["mean"], x.mean(0), rtol=1e-12, atol=1e-15)
    assert np.allclose(post["m2"], ((x - x.mean(0)) ** 2).sum(0), rtol=1e-11, atol=1e-15)
    assert not np.allclose(post["mean"], x[1:].mean(0), rtol=1e-12, atol=1e-15)
    with h5py.File(tmp_path / "s0.h5") as f, h5py.File(tmp_path / "d.h5") as d:
        assert f["stats/blocks.2.attn.hook_z"].attrs["units"].tolist() == list(range(32, 64))
        assert f["stats/hook_embed"].attrs["units"].tolist() == [3, 5] and len(f["stats/hook_embed/mean"]) == 2
        assert "units" not in f["stats/blocks.1.mlp.hook_post"].attrs
        assert f.attrs["fingerprint"] == d.attrs["fingerprint"] and f.attrs["model"] == d.attrs["model"]


def test_masked_scores_do_not_count(tmp_path):
    hook = f"stats:{tmp_path}/s.h5=blocks.0.attn.hook_attn_scores"
    trace("--hook", hook, "--batch", "3", TEXT).ok()
    scores = statistics(tmp_path / "s.h5")[0]["blocks.0.attn.hook_attn_scores"]
    with h5py.File(tmp_path / "s.h5") as f:
        at = f["stats/blocks.0.attn.hook_attn_scores"].attrs
        rows = scores["count"].reshape(at["heads"], at["head_size"])[0]
    tokens = int(rows[0])
    assert rows[:tokens].tolist() == list(range(tokens, 0, -1)) and (rows[tokens:] == 0).all()
    empty = scores["count"] == 0
    assert np.isnan(scores["mean"][empty]).all() and np.isfinite(scores["mean"][~empty]).all()


def test_resuming_goes_on_with_own_datasets_and_refuses_statistics(built, tmp_path):
    texts = [f"Text number {i} is short." for i in range(12)]
    options = ["--site", "resid_post", "--batch", "16", *texts]
    trace("--dump", tmp_path / "whole.h5", "--hook", f"{built}/norms.so", "--hook", "topk:post,k=3", *options).ok()
    path = tmp_path / "cut.h5"
    p = trace("--dump", path, "--hook", f"{built}/norms.so:passes=2,interrupt", "--hook", "topk:post,k=3", *options)
    assert p.code == 1 and path.with_suffix(".h5.part").exists(), p.err
    again = ["--resume", "--dump", path, "--hook", f"{built}/norms.so", "--hook", "topk:post,k=3"]
    p = trace(*again, "--hook", f"stats:{tmp_path}/s.h5=post", *options)
    assert p.code == 1 and p.err.splitlines()[-1].endswith("resume without it"), p.err
    assert path.with_suffix(".h5.part").exists() and not list(tmp_path.glob("s.h5*"))
    trace(*again, *options).ok()
    whole, cut = recorded(tmp_path / "whole.h5"), recorded(path)
    assert whole.keys() == cut.keys() and cut["complete"] == 1
    for name, values in whole.items():
        assert np.asarray(values).tobytes() == np.asarray(cut[name]).tobytes(), name


def test_a_statistics_file_replaces_only_ours(tmp_path):
    ours, other = tmp_path / "s.h5", tmp_path / "t.h5"
    other.write_text("precious")
    for _ in range(2):
        trace("--hook", f"stats:{ours}=post", TEXT).ok()
    trace("--hook", f"stats:{other}=post", TEXT).fails(2, "t.h5", "not a file of weir's")
    assert other.read_text() == "precious"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["s.h5", "t.h5"]
