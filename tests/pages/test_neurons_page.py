"""The page that neuron-top writes, in Chromium: no request, no complaint, the search's own numbers, and everything that a reader can
do to it. The pages are of made-up searches (tests/support/neurons_page.c), written by the tool's own code."""
import json
import re
import subprocess
import time

import pytest

from chromium import PHONE, Keys, browser, fresh, is_whole, needs_browser, until
from weircli import BROOK, built, weir

pytestmark = needs_browser

BIG_BYTES = 16 << 20  # what html.c promises for 20,000 neurons
BIG_SECONDS = 2


@pytest.fixture(scope="module")
def maker(tmp_path_factory):
    """Runs neurons_page: maker(kind, format) is the path of what it wrote."""
    where = tmp_path_factory.mktemp("page")
    program = built("neurons_page.c", where)

    def make(kind, form):
        path = where / f"{kind}.{form}"
        if not path.exists():
            with open(BROOK / "sentences.txt") as text, open(path, "wb") as out:
                subprocess.run([program, kind, form], stdin=text, stdout=out, check=True)
        return path
    return make


@pytest.fixture(scope="module")
def truth(maker):
    """The same search as NDJSON: by (layer, hook, unit)."""
    lines = [json.loads(line) for line in maker("small", "ndjson").read_text().splitlines()]
    return {name(n): n for n in lines[1:]}


def name(n):
    return f"L{n['layer']}N{n['unit']}" if n["layer"] >= 0 else f"{n['hook']} N{n['unit']}"


@pytest.fixture
def page(browser, maker):
    yield from fresh(browser, maker("small", "html"))


def names(browser):
    """Of the rows that can be seen, in order."""
    return browser.run("""return [...document.querySelectorAll('#room .row:not([hidden])')]
        .sort((a, b) => a.ariaRowIndex - b.ariaRowIndex).map(r => r.firstChild.textContent)""")


def put(browser, field, value):
    browser.run("""const e = document.getElementById(arguments[0]); e.value = arguments[1];
        e.dispatchEvent(new Event('input', {bubbles: true})); e.dispatchEvent(new Event('change', {bubbles: true}))""", field, value)
    time.sleep(0.2)


def count(browser):
    return browser.text("#count")


def title(browser):
    return browser.run("return document.querySelector('.bar h2').firstChild.textContent")


def open_neuron(browser, which):
    browser.run("location.hash = arguments[0]", which)
    until(lambda: browser.all(".bar h2") and title(browser) == which)


def tip(browser, selector):
    browser.run("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", selector)
    browser.hover(browser.one(selector))
    until(lambda: browser.run("return !document.getElementById('tip').hidden"))
    return browser.text("#tip")


# --- the list

def test_it_loads_and_lists_in_the_order_of_the_file(page, truth):
    assert count(page) == f"{len(truth)} neurons"
    assert names(page)[:20] == list(truth)[:20]
    rows = page.run("return document.querySelectorAll('#room .row').length")
    assert rows < len(truth) / 2, "only rows that can be seen are made"
    assert page.one("#grid").get_attribute("aria-rowcount") == str(len(truth) + 1)


def test_checks_of_requests_and_complaints_can_fail(browser, maker):
    browser.can_complain(maker("small", "html"))


def test_sorting(page, truth):
    click = "document.querySelector(`[data-key=${arguments[0]}] button`).click()"
    numbers = {key: (lambda n, key=key: n[key]) for key in ("max", "min", "mean", "sd", "skew", "kurtosis")}
    for key, number in {**numbers, "density": density, "effective": lambda n: n["clusters"]["effective"]}.items():
        for down in (True, False):
            page.run(click, key)
            best = sorted(truth.values(), key=number, reverse=down)  # stable: equal ones in the order of the file
            assert names(page)[:15] == [name(n) for n in best[:15]], key
            assert page.one(f"[data-key={key}]").get_attribute("aria-sort") == ("descending" if down else "ascending")
    put(page, "sort", "neuron up")
    assert names(page)[:15] == list(truth)[:15]


def test_filters(page, truth):
    put(page, "layer", "1")
    assert count(page) == f"34 of {len(truth)} neurons" and all(n.startswith("L3") for n in names(page))
    put(page, "name", "5, L0N7, L3N9")
    assert names(page) == ["L3N5", "L3N9"]
    put(page, "layer", "")
    assert [n for n in names(page)] == ["L0N5", "L0N7", "L3N5", "L3N9", "hook_<embed> N5"]
    put(page, "name", "")
    put(page, "least", "1.5")
    put(page, "most", "2")
    want = [k for k, n in truth.items() if 0.015 <= density(n) <= 0.02]
    assert 0 < len(want) < len(truth) and count(page) == f"{len(want)} of {len(truth)} neurons"
    page.run("document.querySelector('[type=reset]').click()")
    until(lambda: count(page) == f"{len(truth)} neurons")
    put(page, "name", "no such")
    assert "nothing fits" in count(page) and names(page) == []


def density(n):
    return n["above"][0] / n["count"]


def test_search(page, truth):
    def having(what):
        return [k for k, n in truth.items() if any(what(h) for h in n["lists"]["top"])]
    put(page, "search", "Kate")
    want = having(lambda h: "Kate" in context(h))
    assert 0 < len(want) < len(truth) and count(page) == f"{len(want)} of {len(truth)} neurons"
    assert names(page)[:10] == want[:10]
    put(page, "where", "token")
    want = having(lambda h: "Kate" in h["token"])
    assert 0 < len(want) and count(page).startswith(f"{len(want)} of ")
    put(page, "search", "kate")  # small letters: either
    assert count(page).startswith(f"{len(want)} of ")
    put(page, "search", "KATE")
    assert count(page).startswith("0 of ")
    put(page, "where", "context")
    put(page, "search", "smiled at")  # over two tokens
    want = having(lambda h: "smiled at" in context(h))
    assert 0 < len(want) and count(page).startswith(f"{len(want)} of ")
    open_neuron(page, want[0])
    assert {"smiled", "at"} <= {w.strip() for w in page.run("return [...document.querySelectorAll('.found')].map(e => e.textContent)")}


def context(h):
    return h["context"]["text"]


# --- a neuron

def test_numbers_are_the_searchs_own(page, truth):
    for which in ("L3N21", "L0N0", "L3N33"):
        open_neuron(page, which)
        n = truth[which]
        tips = dict(t.split(": ", 1) for t in page.run("return [...document.querySelectorAll('.stats [data-tip]')].map(e => e.dataset.tip)"))
        for key in ("mean", "sd", "skew", "kurtosis", "max", "min"):
            assert float(tips[key]) == n[key], (which, key)
        for section in ("top", "bottom", "random"):
            places = page.run("""return [...document.querySelectorAll(`[data-section=${arguments[0]}] li`)].map(e =>
                [e.querySelector('.value').dataset.tip, e.querySelector('.foot span').textContent,
                 e.querySelector('.hit').dataset.tip])""", section)
            assert [(float(v), d) for v, d, _ in places] == [(h["value"], f"doc {h['doc']}:{h['pos']}") for h in n["lists"][section]]
            for (value, _, hover), h in zip(places, n["lists"][section]):
                assert hover.startswith(f"{value}\ndocument {h['doc']}, position {h['pos']}\n")
                assert ("stands once" in hover) == (h["count"] == 1)


def edge(b):
    """Of bin b of the search's histogram: the smallest magnitude where it is positive, the largest where it is negative."""
    k = b - 322 if b > 321 else 321 - b
    return 2.0 ** (k // 8 - 20) * (1 + k % 8 / 8)


def test_histogram_has_the_searchs_counts(page, truth):
    for which in ("L3N21", "hook_%3Cembed%3E.N3"):
        page.run("location.hash = arguments[0]", which)
        name_now = until(lambda: page.all(".bar") and page.run("return location.hash.slice(1) === hashOf(opened) && nameOf(opened)"))
        n = truth[name_now]
        tips = page.run("return [...document.querySelectorAll('.catch')].map(e => [e.dataset.tip, Number(e.dataset.count)])")
        assert sum(c for _, c in tips) == n["count"]
        for said, counted in tips:
            low, high = map(float, re.match(r"(?:between )?(\S+) (?:to|and) (\S+): ", said).groups())
            if low >= 0:
                want = sum(c for b, c in n["hist"] if b > 321 and low <= edge(b) < high)
            elif high <= 0:
                want = sum(c for b, c in n["hist"] if b < 321 and -high <= edge(b + 1) < -low)
            else:
                want = sum(c for b, c in n["hist"] if b == 321 or (edge(b) if b > 321 else edge(b + 1)) < high)
            assert counted == want, (which, said)
    assert tips[0][0].startswith("-0.1875 to -0.125: ") and tips[-1][0].startswith("4 to 6: ")


def test_hover(page, truth):
    open_neuron(page, "L3N21")
    best = truth["L3N21"]["lists"]["top"][0]
    said = tip(page, "[data-section=top] li:first-child .hit")
    assert said.startswith(f"{best['value']!r}"[:6]) and f"document {best['doc']}, position {best['pos']}" in said
    assert re.search(r": [\d,]+ \(", tip(page, ".catch"))


def test_heat(page):
    strength = "return [...document.querySelectorAll(arguments[0])].map(e => Number(e.style.getPropertyValue('--strength')))"
    open_neuron(page, "L3N21")  # named: every token has its value
    assert page.run("return document.querySelectorAll('[data-section=top] li:first-child .heat').length") > 10
    assert page.run(strength, "[data-section=top] .hit")[0] == 1
    assert page.run("return getComputedStyle(document.querySelector('[data-section=bottom] .hit')).getPropertyValue('--colour')") == \
        page.run("return getComputedStyle(document.documentElement).getPropertyValue('--negative')")
    open_neuron(page, "L0N3")
    assert page.run("return document.querySelectorAll('[data-section=top] li:first-child .heat').length") == 1
    put(page, "scale", "all")
    own = page.run(strength, "[data-section=top] .hit")[0]
    most = page.run("return largest")
    assert own == pytest.approx(page.run("return magnitude(opened)") / most, abs=1e-3) and own < 1
    page.press("c")
    assert page.run(strength, "[data-section=top] .hit")[0] == 1


def test_values_around_places_are_the_searchs_own(page, truth):
    open_neuron(page, "L3N21")
    page.press("e")
    hit = truth["L3N21"]["lists"]["top"][0]
    said = page.run("return [...document.querySelectorAll('[data-section=top] li:first-child .piece')].map(e => e.dataset.tip)")
    got = {int(re.search(r"position (\d+)", t)[1]): float(t.split("\n")[0]) for t in said if not t.startswith("value not")}
    want = {hit["context"]["pos"] + i: v for i, v in enumerate(hit["context"]["values"])}
    assert len(want) > 15 and got == want
    page.press("e")


def test_contexts_expand(page):
    open_neuron(page, "L3N21")
    length = "return document.querySelector('[data-section=top] li .text').textContent.length"
    before = page.run(length)
    page.run("document.querySelector('[data-section=top] li .foot button').click()")
    assert page.run(length) > before
    assert page.run("return document.activeElement.getAttribute('aria-expanded')") == "true"
    page.press("e", "e")
    assert page.run(length) == before


# --- keyboard, address, colours

def test_keyboard(page):
    first = names(page)
    page.press("j", Keys.ARROW_DOWN, "k", Keys.ENTER)
    assert title(page) == first[1]
    assert page.run("return location.hash") == "#" + first[1]
    page.press(Keys.ARROW_RIGHT)
    assert title(page) == first[2]
    page.press("k", Keys.ARROW_LEFT)
    assert title(page) == first[0]
    assert page.one("#grid").get_attribute("aria-activedescendant") == page.one("#room [aria-selected=true]").get_attribute("id")
    page.press(Keys.END)
    assert title(page) == "hook_<embed> N33"
    page.press(Keys.ESCAPE)
    assert page.all(".bar") == [] and page.run("return location.hash") == ""
    page.press("/")
    page.press("Kate?")
    until(lambda: " of " in count(page))
    assert page.run("return document.getElementById('search').value") == "Kate?", "keys are text here"
    page.press(Keys.ESCAPE)
    until(lambda: " of " not in count(page))
    page.press(Keys.ESCAPE, "?")
    assert page.run("return document.getElementById('help').open")
    page.press(Keys.ESCAPE)
    assert not page.run("return document.getElementById('help').open")


def test_address(browser, maker):
    path = maker("small", "html")
    browser.open(path, "#L3N21")
    until(lambda: browser.all(".bar"))
    assert title(browser) == "L3N21"
    browser.run("location.hash = 'hook_%3Cembed%3E.N5'")
    until(lambda: title(browser) == "hook_<embed> N5")
    browser.driver.back()
    until(lambda: title(browser) == "L3N21")
    browser.open(path, "#L9N9")
    assert browser.all(".bar") == []
    browser.quiet(path)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(page, scheme):
    page.in_scheme(scheme)
    open_neuron(page, "L3N21")
    time.sleep(0.15)
    page.is_readable(texts=200)
    page.other_theme(scheme)


def test_phone(page):
    page.resize(*PHONE, mobile=True)
    open_neuron(page, "L3N21")
    page.fits_a_phone("grid", "detail")


def test_names_and_roles(page):
    open_neuron(page, "L3N21")
    assert page.nameless() == []
    assert page.run("return [...document.querySelectorAll('#grid [role=row]')].every(r => r.parentElement.getAttribute('role') === 'rowgroup')")
    assert page.one("#count").get_attribute("aria-live") == "polite"
    page.press(Keys.TAB)
    assert page.run("return getComputedStyle(document.activeElement).outlineStyle") != "none"


def test_what_it_is_of_can_be_read(page):
    said = page.text("#provenance")
    for part in ("blocks.3.mlp.hook_post", "1,000 documents", "k = 10", "0 BOS", "made up"):
        assert part in said, part


def test_weights_and_means_of_a_model(browser, tmp_path):
    """By the tool itself: what the weights say, token means, relations. NDJSON has as many of each as places."""
    text = "The cat sat on the mat. The cat sat there. The dog did not."
    def show(form, path):
        return weir("neuron-top", "--neurons", "L3N21", "-k", "20", "--weights", "yes", "--format", form, "-o", path, text).ok()
    show("html", tmp_path / "page.html")
    show("ndjson", tmp_path / "page.ndjson")
    n = json.loads((tmp_path / "page.ndjson").read_text().splitlines()[1])
    browser.resize(1440, 900)
    browser.open(tmp_path / "page.html", "#L3N21")
    until(lambda: browser.all(".bar"))
    chips = browser.run("""return [...document.querySelectorAll('.weights dd')].map(d => [...d.children].map(c =>
        [[...c.childNodes].slice(0, -1).map(e => e.textContent).join(''), c.dataset.tip]))""")
    for got, want in zip(chips, [n["in"]["highest"], n["in"]["lowest"], n["out"]["highest"], n["out"]["lowest"]]):
        assert [(float(tip.split()[1]), int(tip.split()[3])) for _, tip in got] == [(w["score"], w["id"]) for w in want]
        for (drawn, _), w in zip(got, want):  # JSON has no half characters
            assert drawn == w["token"] or "\\x" in drawn and "\ufffd" in w["token"] or "\\" in drawn
    assert len(chips) == 4
    tables = browser.run("""return [...document.querySelectorAll('table')].map(t =>
        [...t.tBodies[0].rows].map(r => [...r.cells].map(c => c.textContent)))""")
    means = [m["token"] for m in n["token_means"]["highest"] if m["count"] > 1]
    assert [row[0] for row in tables[0]] == means and [row[0] for row in tables[1]] == means[::-1] and len(means) > 2
    assert [row[0] for row in tables[2]] == [f"N{r['unit']}" for r in n["related"]["by_r"]][:20]
    browser.quiet(tmp_path / "page.html")


# --- odd text, and much of it

def test_hostile_text_is_text(browser, maker):
    path = maker("hostile", "html")
    browser.resize(1440, 900)
    browser.open(path, "#L3N21")
    until(lambda: browser.all(".bar"))
    assert browser.run("return window.hacked") is None
    assert browser.run("return document.querySelectorAll('img, script:not([id]), #detail script').length") == 1  # the page's own
    text = browser.text("#detail")
    for part in ("</script><script>hacked=1</script>", "<img src=x onerror=hacked=2>", "&lt;b&gt;", "\\x1b[31m", "\\xff\\xfe", "\\x00",
                 "\\xe2\\x80\\xaeabc", "\\\\n", "<#16>", "\\xed\\xa0\\x80"):
        assert part in text, part
    split = browser.run("return [...new Set([...document.querySelectorAll('.split')].map(e => e.textContent))].sort()")
    assert split == [" 😀", "€!"], "drawn once"
    assert "</script>" in browser.text("#what")
    put(browser, "search", "😀")
    assert count(browser).startswith("102 of ") or " of " in count(browser)
    browser.quiet(path)
    assert b"hacked=4</script" not in is_whole(path)


def test_twenty_thousand_neurons(browser, maker):
    path = maker("big", "html")
    assert path.stat().st_size < BIG_BYTES
    browser.resize(1440, 900)
    seconds = browser.seconds_to("list-painted", path, times=5)
    print(f"20,000 neurons: {path.stat().st_size / 1e6:.1f} MB, listed after {seconds:.2f} s")
    assert count(browser) == "20,000 neurons"
    assert seconds < BIG_SECONDS
    assert browser.run("return document.querySelectorAll('#room .row').length") < 60
    begin = time.time()
    put(browser, "search", "Kate")
    until(lambda: " of 20,000" in count(browser))
    assert time.time() - begin < 2
    browser.quiet(path)
