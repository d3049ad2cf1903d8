"""The page that `weir attention` writes, in Chromium: no request, no complaint, the weights that trace records, and everything that a
reader can do."""
import shutil

import h5py
import numpy as np
import pytest

from chromium import PHONE, Keys, browser, fresh, is_whole, needs_browser, until
from hostile import HOSTILE, hostile_tokenizer
from weircli import ROOT, trace, weir

pytestmark = needs_browser

TEXT = ["Boulder is in the state of Colorado. A boat 🚣 on the river.", "The capital city of Colombia is Bogotá."]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The page of all heads over two documents, and the patterns that trace records: {(doc, layer, head): [n, n]}."""
    where = tmp_path_factory.mktemp("page")
    weir("attention", "-o", where / "a.html", *TEXT).ok()
    trace("--hooks", "blocks.*.attn.hook_pattern", "--dump", where / "a.h5", *TEXT).ok()
    want = {}
    with h5py.File(where / "a.h5") as f:
        for d, (s, n) in enumerate(zip(f["docs/start"][...], f["docs/count"][...])):
            for hook, x in f["activations"].items():
                for h in range(x.shape[1]):
                    want[d, int(hook.split(".")[1]), h] = x[s:s + n, h, :n]
    return where / "a.html", want


@pytest.fixture
def page(browser, made):
    yield from fresh(browser, made[0])


def lists(browser):
    """What the token reads and what reads it: [(index, weight, share)]."""
    return [browser.run("""return [...document.querySelectorAll(arguments[0] + ' tbody tr[data-at]')].map(r =>
        [Number(r.dataset.at), Number(r.cells[3].textContent), parseFloat(r.cells[2].textContent) / 100])""", selector)
        for selector in ("#reads", "#readers")]


def best(x, first):
    """The ten largest of x, as the page lists them."""
    order = sorted((i for i in range(len(x)) if x[i] > 0), key=lambda i: (-x[i], i))[:10]
    return [(first + i, x[i]) for i in order]


def agrees(browser, x, i):
    reads, readers = lists(browser)
    for got, want in ((reads, best(x[i, :i + 1], 0)), (readers, best(x[i:, i], i))):
        if [g[0] for g in got] != [w[0] for w in want] or any(np.float32(g[1]) != w[1] for g, w in zip(got, want)):
            return False
        if any(abs(g[2] - w[1]) > 0.02 * w[1] for g, w in zip(got, want)):
            return False
    return True


def test_every_weight_arrives(page, made):
    got = page.run("return maps.map((m, d) => head.heads.map((_, h) => [...patternOf(m, h)]))")
    names = page.run("return head.heads")
    assert len(got) == 2 and len(names) == 48
    for d in (0, 1):
        for (layer, h), values in zip(names, got[d]):
            x = made[1][d, layer, h]
            assert np.array_equal(np.array(values, dtype=np.float32), x[np.tril_indices(len(x))])
    assert not np.array_equal(np.array(got[0][0], dtype=np.float32), made[1][0, 0, 1][np.tril_indices(len(made[1][0, 0, 1]))])


def test_lists_are_the_weights_own(page, made):
    for d, head, i in ((0, 0, 0), (0, 13, 7), (1, 47, 10), (1, 20, 3)):
        page.run("setMap(arguments[0]); setHead(arguments[1]); moveTo(arguments[2])", d, head, i)
        assert page.text("#name") == f"L{head // 6}H{head % 6}"
        assert agrees(page, made[1][d, head // 6, head % 6], i)
    assert not agrees(page, made[1][1, 3, 3], 3), "the check can fail"


def test_hover_over_the_text(page, made):
    x = made[1][0, 3, 1]
    page.run("setHead(19)")
    page.hover(page.one("#t6"))
    until(lambda: page.run("return looked") == 6)
    assert agrees(page, x, 6)
    colours = page.run("return [...document.querySelectorAll('.token')].map(e => e.style.background)")
    most = max(x[q, k] for q in range(len(x)) for k in range(1, q + 1))
    for i, colour in enumerate(colours):
        value = x[6, i] if i <= 6 else x[i, 6]
        assert (colour == "") == (value / most < 0.02)
        if colour:
            r, _, b = (int(c) for c in colour[4:-1].replace(",", " ").split())
            assert (r >= b) == (i <= 6), "orange before, blue behind"
    page.hover(page.one("h1"))
    until(lambda: page.run("return looked") == len(x) - 1)


def test_hover_over_the_map(page, made):
    page.run("setHead(10)")
    x = made[1][0, 1, 4]
    size = page.run("return cellSize()")
    page.run("""const box = $('canvas').getBoundingClientRect();
        $('canvas').dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + (2.5) * arguments[0],
            clientY: box.top + 5.5 * arguments[0], pointerType: 'mouse'}))""", size)
    said = page.text("#under")
    assert "(5) reads" in said and "(2): " in said and np.float32(said.rsplit(": ", 1)[1]) == x[5, 2]
    assert page.run("return looked") == 5


def test_pictures_have_the_weights_colours(page, made):
    page.run("setHead(9)")
    x = made[1][0, 1, 3]
    most = max(x[q, k] for q in range(len(x)) for k in range(1, q + 1))
    got = page.run("""const c = $('canvas'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height);
        return [c.width, c.height, [...d.data]]""")
    n = len(x)
    assert got[:2] == [n, n]
    data = np.array(got[2]).reshape(n, n, 4)
    stops = np.array([(255, 255, 255), (255, 228, 166), (247, 170, 86), (233, 116, 66)], dtype=float)
    for q in range(n):
        assert not data[q, q + 1:, 3].any(), "nothing is read of what comes later"
        for k in range(q + 1):
            at = 3 * min(1, x[q, k] / most)
            i = min(2, int(at))
            assert np.abs(data[q, k, :3] - (stops[i] + (at - i) * (stops[i + 1] - stops[i]))).max() <= 1.01
    until(lambda: page.run("return performance.getEntriesByName('heads-painted').length"))
    assert page.run("return thumbs.every(b => b.firstChild.width === Math.min(44, shown.n))")


def test_keyboard(page, made):
    last = len(made[1][0, 0, 0]) - 1
    assert page.run("return [cursor.at, large]") == [last, 0]
    page.press(Keys.ARROW_LEFT, "h", Keys.ARROW_DOWN, "j")
    assert page.run("return [cursor.at, large]") == [last - 2, 2]
    page.press(Keys.HOME, Keys.ARROW_LEFT, "l", "k", Keys.ARROW_UP, Keys.ARROW_UP)
    assert page.run("return [cursor.at, large]") == [1, 0]
    assert page.one("#text").get_attribute("aria-activedescendant") == "t1"
    assert page.run("return document.querySelector('.head[aria-pressed=true]').title") == "L0H0"
    page.press("]")
    assert page.run("return shown.number") == 1
    page.press("]", "[")
    assert page.run("return shown.number") == 0
    before = page.text("#most")
    page.press("f")
    assert page.text("#most") != before and page.run("return $('first').checked")
    page.press("?")
    page.press(Keys.ARROW_RIGHT, Keys.ESCAPE)
    assert not page.run("return $('help').open") and page.run("return cursor.at") == 1
    page.run("$('document').focus()")
    page.press(Keys.ESCAPE)
    assert page.run("return document.activeElement.id") == "text"
    page.run("thumbs[0].focus()")
    page.press(Keys.ARROW_DOWN)
    assert page.run("return document.activeElement.title") == "L0H1"


def test_address(browser, made):
    browser.open(made[0], "#map=1&head=L3H2&token=4")
    assert browser.run("return [shown.number, large, cursor.at]") == [1, 20, 4]
    assert agrees(browser, made[1][1, 3, 2], 4)
    browser.open(made[0], "#map=9&head=<b>&token=x")
    assert browser.run("return [shown.number, large, cursor.at]") == [0, 0, 0]
    browser.quiet(made[0])


def test_a_split_character_is_drawn_once(page):
    drawn = page.run("return namesOf(shown)")
    at = drawn.index("·🚣")
    assert drawn[at + 1] == "…" and drawn.count("·🚣") == 1
    assert page.run("return $('document').options[1].textContent").startswith("1: The capital city of Colombia is Bog")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(page, scheme):
    page.in_scheme(scheme)
    page.run("setHead(19)")
    page.is_readable(texts=60)
    page.other_theme(scheme)


def test_phone(page):
    page.resize(*PHONE, mobile=True)
    page.fits_a_phone("heads", "view", "cell")


def test_names_and_roles(page):
    assert page.nameless() == []
    assert page.run("return [...$('text').children].every(e => e.getAttribute('role') === 'option')")
    assert "L0H0" in page.one("#canvas").get_attribute("aria-label")
    said = page.text("#provenance")
    for part in ("brook", "arguments", "a row sums to 1", "before each window"):
        assert part in said, part


def test_hostile_text_is_text(browser, tmp_path):
    model = tmp_path / "</script><b>&"
    model.mkdir(parents=True)
    for name in ("config.json", "model.safetensors"):
        shutil.copy(ROOT / "tests" / "golden" / "models" / "gpt2" / name, model / name)
    hostile_tokenizer(model / "tokenizer.json")
    path = tmp_path / "h.html"
    weir("attention", "--model", model, "--ids", "--bos", "no", "-o", path, " ".join(str(i) for i in range(len(HOSTILE) + 1))).ok()
    browser.resize(1440, 900)
    browser.open(path)
    assert browser.run("return window.hacked") is None
    assert browser.run("return document.querySelectorAll('img, #text script, #cell script').length") == 0
    drawn = browser.run("return [...document.querySelectorAll('.token')].map(e => e.textContent)")
    for text in ("</script><script>hacked=1</script>", "·😀", "\\xff\\xfe", "\\n", "\\x00", "\\xe2\\x80\\xaeabc", "€!", "\\xed\\xa0\\x80"):
        assert text in drawn, text
    browser.quiet(path)
    is_whole(path)


def test_one_token_and_some_queries(browser, tmp_path):
    weir("attention", "--bos", "no", "--heads", "L0H0", "-o", tmp_path / "one.html", "x").ok()
    browser.open(tmp_path / "one.html")
    assert lists(browser) == [[[0, 1, 1]], [[0, 1, 1]]]
    browser.quiet(tmp_path / "one.html")
    weir("attention", "--positions", "last", "-o", tmp_path / "last.html", TEXT[1]).ok()
    browser.open(tmp_path / "last.html")
    browser.press(Keys.ARROW_LEFT)
    assert "not asked for" in browser.text("#reads") and len(lists(browser)[1]) == 1
    browser.quiet(tmp_path / "last.html")


def test_a_full_context_opens_fast(browser, tmp_path):
    text = " ".join(str(i) for i in range(125))
    path = tmp_path / "full.html"
    weir("attention", "-o", path, text).ok()
    seconds = browser.seconds_to("map-painted", path, times=2)
    n = browser.run("return shown.n")
    print(f"48 heads over {n} tokens: {path.stat().st_size / 1e6:.1f} MB, drawn after {seconds:.2f} s")
    assert seconds < 2 and path.stat().st_size < 60_000 + 48 * (n * (n + 1) // 2) * 5.4
    browser.quiet(path)
