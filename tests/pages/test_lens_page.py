"""logit-lens' page in Chromium, and its pictures: no request, no complaint, the measurement's own numbers, and everything that a reader can
do. The measurements are made up (tests/support/lens_page.c) and written by the tool's own code."""
import json
import math
import re
import subprocess
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from chromium import PHONE, Keys, browser, fresh, is_whole, needs_browser, until
from hostile import hostile_tokenizer
from weircli import BROOK, built, weir

STATS = ["prob", "logit", "rank", "entropy", "kl", "kl_prev", "jsd", "ce", "contrast"]
PAGE_BYTES = 320 << 10  # what html.c promises for 128 positions of 13 rows with ten tokens
LONG_SECONDS = 2
LINES = 13
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def maker(tmp_path_factory):
    """Runs lens_page: maker(kind, format) is the path of what it wrote, maker.run the program."""
    where = tmp_path_factory.mktemp("page")
    program = built("lens_page.c", where)
    sentences = (BROOK / "sentences.txt").read_text().splitlines()
    text = " ".join(sentences[:40])[:470] + "\n" + "A boat 🚣 on the café's river. " + sentences[2] + "\n" + sentences[3] + "\n"

    def run(kind, form, out):
        tokenizer = hostile_tokenizer(where / "hostile.json") if kind == "hostile" else BROOK / "tokenizer.json"
        return subprocess.run([program, kind, form, tokenizer], input=text.encode(), stdout=out, stderr=subprocess.PIPE)

    def make(kind, form):
        path = where / f"{kind}.{form}"
        if not path.exists():
            with open(path, "wb") as out:
                assert run(kind, form, out).returncode == 0
        return path
    make.run = run
    return make


def truth_of(path, lines=LINES):
    """The pieces of JSON as whole documents: {doc: {pos, id, ..., stat [lines, n], top_id [lines, n, k]}}."""
    docs = {}
    for piece in map(json.loads, path.read_text().splitlines()):
        n = len(piece["pos"])
        shaped = {k: np.array(v, dtype=float) for k, v in piece.items() if k != "doc" and v}
        for k in shaped:
            if k in STATS:
                shaped[k] = shaped[k].reshape(lines, n)
            elif k.startswith("top_"):
                shaped[k] = shaped[k].reshape(lines, n, -1)
        old = docs.get(piece["doc"])
        docs[piece["doc"]] = shaped if old is None else {
            k: np.concatenate([old[k], shaped[k]], axis=1 if shaped[k].ndim > 1 else 0) for k in shaped}
    return docs


@pytest.fixture(scope="module")
def truth(maker):
    return truth_of(maker("small", "json"))


@pytest.fixture
def page(browser, maker):
    yield from fresh(browser, maker("small", "html"))


def name_of(line):
    return "embed" if line == 0 else "out" if line == 12 else f"L{line}"


def title(browser):
    return browser.run("return document.querySelector('#cell h2').firstChild.textContent")


def shown(browser):
    """The cell's numbers: statistics by name, tokens as (id, log-probability, percentage)."""
    stats = browser.run("return [...document.querySelectorAll('.statistics tr')].map(r => [r.dataset.stat, r.cells[1].textContent])")
    tops = browser.run("""return [...document.querySelectorAll('.tops tbody tr')].map(r =>
        [Number(r.dataset.token), Number(r.cells[3].textContent), r.cells[2].textContent, r.cells[1].textContent])""")
    return dict(stats), tops


def equals(got, want, rank=False):
    """A statistic as the page has it."""
    return got == "–" if math.isnan(want) or rank and want == 0 else np.float32(got) == np.float32(want)


def agrees(browser, doc, line, i):
    """Is the cell that is shown the measurement's own?"""
    stats, tops = shown(browser)
    ids, logprobs = doc["top_id"][line, i], doc["top_logprob"][line, i]
    return (all(equals(text, doc[name][line, i], name == "rank") for name, text in stats.items())
            and [t[0] for t in tops] == list(ids) and [np.float32(t[1]) for t in tops] == list(logprobs.astype(np.float32))
            and all(abs(float(t[2].rstrip("%")) / 100 - math.exp(p)) <= 0.06 * math.exp(p) for t, p in zip(tops, logprobs)))


# --- the map

@needs_browser
def test_cells_are_the_measurements_own(page, truth):
    for d, doc in truth.items():
        page.run("setDocument(arguments[0])", d)
        for line, i in ((0, 0), (5, 3), (12, len(doc["pos"]) - 1), (7, len(doc["pos"]) // 2)):
            page.run("moveTo(arguments[0], arguments[1])", line, i)
            assert title(page) == f"{name_of(line)}, position {i}"
            stats, tops = shown(page)
            assert list(stats) == STATS[:8] and len(tops) == 10
            assert agrees(page, doc, line, i), (d, line, i)
    assert not agrees(page, doc, 6, i), "the check can fail"


@needs_browser
def test_every_value_arrives(page, truth):
    """All of them, as the page holds them: float32 to the bit."""
    got = page.run("""return documents.map(d => { const c = columnsOf(d);
        return {pos: [...c.pos], id: [...c.id].map(t => tokens().id[t]), next: [...c.next].map(t => t < 0 ? -1 : tokens().id[t]),
                stat: head.stats.map(s => [...c.stat[s]].map(String)),
                tops: head.lines.map((_, l) => [...c.pos.keys()].map(i => topsOf(d, l, i).map(t => [tokens().id[t.token], t.logprob])))} })""")
    for g, doc in zip(got, truth.values()):
        assert g["pos"] == list(doc["pos"]) and g["id"] == list(doc["id"]) and g["next"] == list(doc["next"])
        for name, values in zip(STATS, g["stat"]):
            assert np.array_equal(np.array(values, dtype=float).astype(np.float32).reshape(LINES, -1), doc[name].astype(np.float32), equal_nan=True)
        tops = np.array(g["tops"])
        assert np.array_equal(tops[..., 0], doc["top_id"]) and np.array_equal(tops[..., 1].astype(np.float32), doc["top_logprob"].astype(np.float32))


def drawn(browser):
    return browser.run("""return [...document.querySelectorAll('.cell')].map(e => [...e.id.slice(1).split('-').map(Number), e.textContent,
        getComputedStyle(e).backgroundColor])""")


@needs_browser
def test_lines_by_row(page, truth):
    """The chart below the map: the position's own values and the median of all positions but the first."""
    page.run("moveTo(3, 7)")
    doc = truth[0]["kl"]
    own, median = (points_of(page.run("return document.querySelector(arguments[0]).getAttribute('d')", f"#chart .{kind}"))
                   for kind in ("own", "median"))
    mid = np.array([np.median(row[np.isfinite(row)]) for row in doc[:, 1:]])
    assert len(median) == LINES
    base, one = median[-1][1], (median[1][1] - median[-1][1]) / (mid[1] - mid[-1])
    for (_, y), value in zip(median, mid):
        assert y == pytest.approx(max(2, base + one * (value - mid[-1])), abs=0.3)
    values = doc[:, 7][np.isfinite(doc[:, 7])]
    assert len(own) == len(values)
    for (_, y), value in zip(own, values):
        assert y == pytest.approx(max(2, base + one * (value - mid[-1])), abs=0.3)
    assert not own[2][1] == pytest.approx(median[2][1], abs=0.3), "the check can fail"
    page.press("3")
    assert "Rank by row" in page.run("return document.querySelector('#chart svg').getAttribute('aria-label')")


@needs_browser
def test_stars_where_the_next_token_is_first(page, truth):
    cells = drawn(page)
    assert len(cells) >= 100
    for line, i, text, _ in cells:
        assert text.startswith("*") == (truth[0]["top_id"][line, i, 0] == truth[0]["next"][i])
    assert any(c[2].startswith("*") for c in cells)


@needs_browser
def test_hover(page, truth):
    for line, i in ((2, 4), (9, 1)):
        page.hover(page.one(f"#c{line}-{i}"))
        until(lambda: title(page) == f"L{line}, position {i}")
        assert agrees(page, truth[0], line, i)
    page.hover(page.one("h1"))
    until(lambda: title(page) == "out, position 0")


def ramp(name, values):
    """What lens/ramp.h says, again: a function of a value."""
    v = values[np.isfinite(values) & ((name != "rank") | (values > 0))].astype(np.float32).astype(float)
    low, high = np.quantile(v, [.05, .95])
    if name == "prob":
        low, high = 0, 1
    elif name == "rank":
        low, high = 0, math.log(max(10, high))
    elif name == "contrast":
        low, high = -max(abs(low), abs(high)), max(abs(low), abs(high))
    elif name != "logit":
        low = 0

    def strength(x):
        if math.isnan(x) or name == "rank" and x == 0:
            return math.nan
        s = min(1, max(0, ((math.log(x) if name == "rank" else x) - low) / (high - low)))
        return 1 - s if name == "rank" else 2 * s - 1 if name == "contrast" else s
    return strength


STOPS = {1: [(255, 255, 255), (255, 228, 166), (247, 170, 86), (233, 116, 66)],
         -1: [(255, 255, 255), (205, 226, 252), (135, 185, 243), (86, 154, 236)]}


def near(colour, s):
    """Is this the colour of a strength?"""
    if math.isnan(s):
        return colour in ("none", "rgba(0, 0, 0, 0)")
    at, stops = abs(s) * 3, STOPS[-1 if s < 0 else 1]
    i = min(2, int(at))
    want = [stops[i][j] + (at - i) * (stops[i + 1][j] - stops[i][j]) for j in range(3)]
    return max(abs(int(c) - w) for c, w in zip(re.findall(r"\d+", colour), want)) <= 1.01


@needs_browser
@pytest.mark.parametrize("kind", ["small", "target"])
def test_colours(browser, maker, kind):
    """Every statistic's scale is that of the other positions than the first: outliers and BOS do not wash it out."""
    browser.resize(1440, 900)
    browser.prefer("light")
    browser.open(maker(kind, "html"))
    doc = truth_of(maker(kind, "json"))[0]
    others = doc["pos"] > 0
    for key, name in enumerate(STATS if kind == "target" else STATS[:8], 1):
        browser.press(str(key))
        assert browser.run("return $('stat').value") == name
        cells, strength = drawn(browser), ramp(name, doc[name][1:, others])
        for line, i, _, colour in cells:
            assert near(colour, strength(doc[name][line, i])), (name, line, i)
        assert len({c[3] for c in cells}) > 20
        assert not all(near(c[3], strength(doc[name][c[0], c[1]] * 2 + 1)) for c in cells), "the check can fail"
    browser.press("5", "f")
    cells, strength = drawn(browser), ramp("kl", doc["kl"][1:])
    assert all(near(c[3], strength(doc["kl"][c[0], c[1]])) for c in cells)
    ends = browser.run("return [...document.querySelectorAll('#marks span')].map(e => Number(e.textContent))")
    assert ends[0] == 0 and ends[2] == pytest.approx(np.quantile(doc["kl"][1:][np.isfinite(doc["kl"][1:])], .95), rel=5e-3)
    browser.quiet(maker(kind, "html"))


@needs_browser
def test_target_and_contrast(browser, maker):
    path = maker("target", "html")
    browser.open(path)
    doc = truth_of(maker("target", "json"))[0]
    assert 2 not in doc["pos"]
    browser.run("moveTo(4, 2)")
    assert title(browser) == "L4, position 3" and agrees(browser, doc, 4, 2)
    assert "asked about" in browser.text(".where") and "' yes'" in browser.run("return statistics.contrast.long")
    assert "…" in browser.text("#cell .text"), "what is left out is shown as left out"
    browser.quiet(path)


# --- keyboard, choices, address

@needs_browser
def test_keyboard(page):
    page.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_UP)
    assert title(page) == "L11, position 2"
    assert page.run("return document.querySelector('#grid').getAttribute('aria-activedescendant')") == "c11-2"
    assert page.run("return document.querySelector('.cell[aria-selected=true]').id") == "c11-2"
    page.press("h", "k", "l", "l", "j")
    assert title(page) == "L11, position 3"
    page.press(Keys.END)
    last = page.run("return shown.n - 1")
    assert title(page) == f"L11, position {last}"
    box = page.run("const b = document.querySelector('.cell.here').getBoundingClientRect(); return [b.left, b.right]")
    assert box[0] >= 50 and box[1] <= page.run("return $('grid').getBoundingClientRect().right") + 1, "the cursor can be seen"
    page.press(Keys.PAGE_UP, Keys.HOME)
    assert title(page) == "L11, position 0"
    page.press("s")
    assert page.run("return $('stat').value") == "kl_prev"
    page.press("S", "S", "1")
    assert page.run("return $('stat').value") == "prob" and page.run("return document.querySelector('.chosen').dataset.stat") == "prob"
    page.press("?")
    assert page.run("return $('help').open")
    page.press("2", Keys.ESCAPE)
    assert not page.run("return $('help').open") and page.run("return $('stat').value") == "prob", "keys are the help's while it is open"
    page.run("$('stat').focus()")
    page.press(Keys.ESCAPE)
    assert page.run("return document.activeElement.id") == "grid"


@needs_browser
def test_last_layer_on_top(page):
    names = "return [...document.querySelectorAll('.line .name')].map(e => e.textContent)"
    assert page.run(names) == [name_of(i) for i in range(13)]
    page.press("u")
    assert page.run(names) == [name_of(i) for i in range(12, -1, -1)]
    page.press(Keys.ARROW_DOWN)
    assert title(page).startswith("L11")


@needs_browser
def test_documents(page, truth):
    texts = page.run("return [...$('document').options].map(o => o.textContent)")
    assert len(texts) == len(truth) and texts[1].startswith("1: A boat 🚣 on") and texts[1].endswith(f"({len(truth[1]['pos'])})")
    page.press("]")
    assert page.run("return shown.doc") == 1 and agrees(page, truth[1], 12, 0)
    page.press("]", "]", "[")
    assert page.run("return shown.doc") == 1
    assert page.run("return [$('before').disabled, $('behind').disabled]") == [False, False]
    heads = page.run("return [...document.querySelectorAll('.position')].map(e => e.textContent)")
    at = next(i for i, h in enumerate(heads) if "🚣" in h)
    n = int(re.search(r"part 1/(\d)", heads[at])[1])
    assert n > 1 and [f"part {k + 1}/{n}" in heads[at + k] for k in range(n)] == [True] * n and "".join(heads).count("🚣") == 1


@needs_browser
def test_address(browser, maker, truth):
    path = maker("small", "html")
    browser.open(path, "#doc=1&row=L3&pos=4&stat=entropy")
    until(lambda: title(browser) == "L3, position 4")
    assert browser.run("return [shown.doc, stat]") == [1, "entropy"] and agrees(browser, truth[1], 3, 4)
    browser.run("location.hash = 'doc=0&row=out&pos=100&stat=ce'")
    until(lambda: title(browser) == "out, position 100")
    browser.open(path, "#doc=9&row=<b>&pos=-1&stat=none")
    assert title(browser) == "out, position 0"
    browser.quiet(path)


# --- how it looks

@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(page, scheme):
    page.in_scheme(scheme)
    for stat in ("2", "5"):
        page.press(stat)
        page.is_readable(texts=200)
    page.other_theme(scheme)


@needs_browser
def test_phone(page):
    page.resize(*PHONE, mobile=True)
    page.run("moveTo(3, 5)")
    page.fits_a_phone("grid", "cell")


@needs_browser
def test_names_and_roles(page):
    assert page.nameless() == []
    assert page.run("return [...document.querySelectorAll('#grid [role=row]')].every(r => r.parentElement.getAttribute('role') === 'rowgroup')")
    assert page.run("return [...document.querySelectorAll('#grid [role=row] > *')].every(e => /^(gridcell|rowheader|columnheader)$/.test("
                    "e.getAttribute('role')) && Number(e.ariaColIndex) >= 1)")
    n = page.run("return shown.n")
    assert page.one("#grid").get_attribute("aria-rowcount") == "14" and page.one("#grid").get_attribute("aria-colcount") == str(n + 1)
    assert page.run("return document.querySelector('#c3-4').ariaColIndex") == "6"
    page.run("$('stat').focus()")
    page.press(Keys.TAB)
    assert page.run("return document.activeElement.id") == "first"
    assert page.run("return getComputedStyle(document.activeElement).outlineStyle") != "none"
    said = page.text("#provenance")
    for part in ("00ff", "11ee", "of each row itself", "made up"):
        assert part in said, part


@needs_browser
def test_checks_of_requests_and_complaints_can_fail(browser, maker):
    browser.can_complain(maker("small", "html"))


# --- odd text, and much of it

@needs_browser
def test_hostile_text_is_text(browser, maker):
    path = maker("hostile", "html")
    browser.resize(1440, 900)
    browser.open(path)
    assert browser.run("return window.hacked") is None
    assert browser.run("return document.querySelectorAll('img, #grid script, #cell script').length") == 0
    browser.run("$('grid').style.width = '3000px'; document.body.style.width = '3600px'; draw()")
    heads = browser.run("return [...document.querySelectorAll('.position span')].map(e => e.textContent)")
    for text in ("</script><script>hacked=1</script>", "<img src=x onerror=hacked=2>", "·😀", "\\xff\\xfe", "\\n", "\\t", "\\x00", "\\x1b[31m",
                 "\\xe2\\x80\\xaeabc", "&lt;b&gt;", "\\\\n", "€!", "\\xed\\xa0\\x80", "·", "</script><script>hacked=3</script>"):
        assert text in heads, text
    assert "</script>" in browser.text("#what")
    browser.quiet(path)
    assert b"hacked=4</script" not in is_whole(path)


@needs_browser
@pytest.mark.parametrize("kind, lines", [("one", 1), ("empty", 0), ("ids", 13), ("sites", 16)])
def test_odd_sizes(browser, maker, kind, lines):
    path = maker(kind, "html")
    browser.resize(1440, 900)
    browser.open(path)
    if kind == "empty":
        assert "No position" in browser.text("#grid") and browser.all(".cell") == []
        browser.press(Keys.ARROW_RIGHT, Keys.END, "s", "u", "f", "]")
    else:
        truth = truth_of(maker(kind, "json"), lines)
        assert agrees(browser, truth[0], lines - 1, 0)
        assert len(browser.all(".line")) == lines
    if kind == "ids":
        assert re.fullmatch(r"\*?<#\d+>", browser.text("#c0-0"))
    if kind == "sites":
        assert browser.run("return [...document.querySelectorAll('.line .name')].slice(0, 3).map(e => e.textContent)") == \
            ["L0 mid", "L0 mlp_out", "L0 post"]
    browser.quiet(path)


@needs_browser
def test_usual_size_is_small(maker, truth):
    positions = sum(len(d["pos"]) for d in truth.values())
    page, empty = maker("small", "html").stat().st_size, maker("empty", "html").stat().st_size
    usual = empty + (page - empty) * 128 / positions
    print(f"128 positions x 13 rows x 10 tokens: {usual / 1024:.0f} KiB")
    assert usual < PAGE_BYTES


@needs_browser
def test_long_document_does_not_freeze(browser, maker):
    path = maker("long", "html")
    browser.resize(1440, 900)
    seconds = browser.seconds_to("map-painted", path, times=2)
    print(f"8,000 positions: {path.stat().st_size / 1e6:.1f} MB, drawn after {seconds:.2f} s")
    assert seconds < LONG_SECONDS
    assert browser.run("return document.querySelectorAll('.cell').length") < 13 * 60
    browser.press(Keys.END, Keys.ARROW_UP)
    assert title(browser) == "L11, position 7999"
    spent = browser.run("""const begin = performance.now(); for (let i = 0; i < 20; i++) moveTo(i % 13, 397 * i);
                           return performance.now() - begin""")
    assert spent < 5000, "twenty steps"
    assert browser.run("return $('grid').getAttribute('aria-colcount')") == "8001"
    browser.quiet(path)


@needs_browser
def test_a_fact_of_brook(browser, tmp_path):
    """By the tool itself: its page has its own numbers, and its pictures are XML."""
    text = ("--target", "next", "Boulder is in the state of Colorado.")
    weir("logit-lens", "-o", tmp_path / "a.html", "--stats-plot", tmp_path / "plot.svg", *text).ok()
    weir("logit-lens", "-o", tmp_path / "a.svg", *text).ok()
    assert len(list(tree(tmp_path / "a.svg").iter(SVG + "rect"))) > 50 and len(list(tree(tmp_path / "plot.svg").iter(SVG + "path"))) > 30
    rows = [json.loads(line) for line in weir("logit-lens", "--format", "ndjson", *text).ok().out.splitlines()]
    browser.resize(1440, 900)
    browser.open(tmp_path / "a.html")
    assert [line["line"] for line in rows[0]["lines"]] == browser.run("return head.lines.map(l => l.name)")
    columns = browser.run("const c = columnsOf(shown); return {pos: [...c.pos], stat: head.stats.map(s => [...c.stat[s]].map(String))}")
    n = len(columns["pos"])
    assert n == len({r["pos"] for r in rows[1:]}) and n > 5
    colorado = browser.run("return [...columnsOf(shown).next].findIndex(t => t >= 0 && tokenText(t) === '·Colorado')")
    browser.run("moveTo(finalLine, arguments[0])", colorado)
    assert "asked about" in browser.text("#cell") and " Colorado" in browser.text(".where")
    browser.quiet(tmp_path / "a.html")


# --- pictures

def tree(path):
    root = ET.parse(path).getroot()
    assert root.find(SVG + "desc").text.startswith("weir logit-lens ")
    fonts = {e.get("font-family") for e in root.iter() if e.get("font-family")}
    assert root.tag == SVG + "svg" and fonts <= {"sans-serif", "monospace"}
    assert {e.tag for e in root.iter()} <= {SVG + t for t in ("svg", "title", "desc", "rect", "text", "g", "path", "clipPath")}
    for e in root.iter():
        assert all(re.fullmatch(r"url\(#p\d+\)", v) if "url" in v else ":" not in v and "href" not in k for k, v in e.attrib.items())
    return root


def test_picture_of_the_map(maker, truth):
    root = tree(maker("small", "svg"))
    cells = [g for g in root.iter(SVG + "g") if g.find(SVG + "title") is not None]
    assert len(cells) == LINES * sum(len(d["pos"]) for d in truth.values())
    strengths = [ramp("kl", d["kl"][1:, d["pos"] > 0]) for d in truth.values()]
    said = {}
    for g in cells:
        line, pos, rest = re.fullmatch(r"(embed|L\d+|out), position (\d+) (.*)", g.find(SVG + "title").text, re.S).groups()
        said.setdefault(({"embed": 0, "out": 12}.get(line) if line[0] != "L" else int(line[1:]), int(pos)), []).append((g, rest))
    for (line, pos), found in said.items():
        docs = [(d, s) for d, s in zip(truth.values(), strengths) if pos < len(d["pos"])]
        assert len(found) == len(docs)
        for (g, rest), (doc, strength) in zip(found, docs):
            p, follows, kl = re.search(r"' (\S+?)(, comes next)?; kl (\S+)$", rest).groups()
            want = doc["kl"][line, pos]
            assert kl == "none" if math.isnan(want) else np.float32(kl) == np.float32(want)
            assert float(p) == pytest.approx(math.exp(doc["top_logprob"][line, pos, 0]), rel=6e-3)
            assert bool(follows) == (doc["top_id"][line, pos, 0] == doc["next"][pos]) == g.find(SVG + "text").text.startswith("*")
            assert near(g.find(SVG + "rect").get("fill"), strength(want))


def test_hostile_pictures_are_xml(maker):
    for form in ("svg", "plot"):
        root = tree(maker("hostile", form))
        said = "".join(t for t in root.itertext())
        for text in ("</script><script>hacked=4</script>\\xff<!-- & \"", "<img src=x onerror=hacked=2>", "\\xef\\xbf\\xbe", "]]>"):
            assert text in said, text


@pytest.mark.parametrize("kind", ["one", "empty", "ids", "sites", "target"])
def test_odd_pictures_are_xml(maker, kind):
    for form in ("svg", "plot"):
        tree(maker(kind, form))


def points_of(d):
    """Of a path: [(x, y)] of what it joins."""
    return [tuple(map(float, p.split())) for p in re.findall(r"[ML]([-\d.]+ [-\d.]+)", d)]


def points(path):
    return points_of(path.get("d"))


def test_plot(maker, truth):
    root = tree(maker("small", "plot"))
    panels = [g for g in root.iter(SVG + "g") if g.get("clip-path")]
    assert len(panels) == 3 * len(truth)
    for number, panel in enumerate(panels):
        doc, name = list(truth.values())[number // 3], ("rank", "entropy", "kl")[number % 3]
        n = len(doc["pos"])
        groups = panel.findall(SVG + "g")
        assert len(groups) == n
        named = [g for g in groups if g.find(SVG + "path").get("stroke") != "#b4bac4"]
        assert len(named) == min(12, n) and len({g.find(SVG + "path").get("stroke") for g in named}) == len(named)
        values = {int(re.match(r"position (\d+)", g.find(SVG + "title").text)[1]): points(g.find(SVG + "path")) for g in groups}
        assert sorted(values) == list(range(n))
        scaled = np.where((doc[name] > 0) | (name != "rank"), doc[name], np.nan)
        top = np.nanmax(scaled[:, 1:])
        scaled, top = (np.log10(scaled), max(1, math.log10(top))) if name == "rank" else (scaled, top)
        base = 50 + (number // 3) * 318 + 58

        def heights(x):
            return [base + 220 * (1 - v / top) for v in x if math.isfinite(v)]
        for pos in (1, n // 2, n - 1):
            assert [y for _, y in values[pos]] == pytest.approx(heights(scaled[:, pos]), abs=0.06)
        median = panel.findall(SVG + "path")[-1]
        assert [y for _, y in points(median)] == pytest.approx(heights(np.log10(np.nanmedian(10 ** scaled, axis=1)) if name == "rank" else
                                                                       np.nanmedian(scaled, axis=1)), abs=0.06)
        assert not [y for _, y in values[1]] == pytest.approx(heights(scaled[:, 2]), abs=0.06), "the check can fail"
    words = "".join(root.itertext())
    assert f"{len(truth[0]['pos']) - 12} others" in words and "median" in words


def test_plot_has_a_row_of_panels_for_each_site(maker):
    root = tree(maker("sites", "plot"))
    said = [t for t in root.itertext() if t.startswith("document 0, ")]
    assert said == ["document 0, resid_mid", "document 0, mlp_out", "document 0, resid_post"]


def test_too_much_for_a_picture(maker):
    for form in ("svg", "plot"):
        r = maker.run("long", form, subprocess.PIPE)
        assert r.returncode == 1 and r.stdout == b"" and b"at most 100000 cells" in r.stderr and b"--positions" in r.stderr
