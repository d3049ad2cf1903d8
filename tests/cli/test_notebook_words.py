"""Parts of notebook-export alone: values of parameters, the Markdown of pages, how a notebook names its file."""
import ast
import html.parser
import os
import subprocess

import pytest

from weircli import built


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    program = built("notebook_words.c", tmp_path_factory.mktemp("words"))

    def run(*args, text=b"", cwd=None):
        p = subprocess.run([program, *args], input=text, stdout=subprocess.PIPE, cwd=cwd, check=True, timeout=60)
        return p.stdout
    return run


def typed(words, pairs):
    lines = b"".join(os.fsencode(was) + b"\t" + os.fsencode(given) + b"\n" for was, given in pairs)
    return words("values", text=lines).decode().splitlines()


TAKEN = [
    # the template's value, what was typed, what Python reads
    ("0", "12", 12), ("0", "-3", -3), ("0", "None", None), ("5", "9223372036854775807", 9223372036854775807),
    ("0.5", "3", 3.0), ("0.5", "1e-3", 0.001), ("0.5", "-0.25", -0.25),
    ("True", "False", False), ("False", "True", True),
    ('"prob"', "kl", "kl"), ('"prob"', "a b", "a b"), ('"prob"', '"a b"', "a b"), ('"prob"', "12", "12"), ('"prob"', "None", None),
    ('"prob"', '"None"', "None"), ('"prob"', '"', '"'), ('"prob"', '"a', '"a'), ('"prob"', "", ""), ('"prob"', r'"\u00e9\n"', "é\n"),
    ('"prob"', "True", "True"), ('"prob"', "[1]", "[1]"),
    ("[1, 2]", "[3]", [3]), ("[1, 2]", "3,4", [3, 4]), ("[1, 2]", "7", [7]), ("[1, 2]", "[]", []), ("[0.5]", "1, 2.5", [1, 2.5]),
    ('["a"]', '"b","c"', ["b", "c"]), ("[1]", "None", None), ("[]", "1, \"x\"", [1, "x"]),
    ("None", "3", 3), ("None", "0.5", 0.5), ("None", "L3", "L3"), ("None", "[1,2]", [1, 2]), ("None", "None", None), ("None", "True", True),
]


def test_values_are_taken_by_their_type(words):
    got = typed(words, [(was, given) for was, given, _ in TAKEN])
    assert len(got) == len(TAKEN)
    for (was, given, want), line in zip(TAKEN, got):
        value = ast.literal_eval(line)
        assert value == want and type(value) is type(want), (was, given, line)


REFUSED = [
    ("0", "x", "a whole number"), ("0", "1.5", "a whole number"), ("0", "", "a whole number"), ("0", "1e3", "a whole number"),
    ("0", "True", "a whole number"), ("0", "9223372036854775808", "a whole number"), ("0", "01", "a whole number"), ("0", " 1 2", "a whole number"),
    ("0.5", "x", "a number"), ("0.5", "nan", "a number"), ("0.5", "1e999", "a number"), ("0.5", "True", "a number"),
    ("True", "1", "True or False"), ("True", "true", "True or False"), ("True", "yes", "True or False"),
    ("[1]", "a", "a whole number"), ("[1]", "[1.5]", "a whole number"), ("[1]", "[[1]]", "a list"), ("[1]", '"a"', "a list"),
    ("[0.5]", '["a"]', "a number"), ("[1]", "[1", "a list"),
]


def test_values_of_another_type_are_refused(words):
    for (was, given, word), line in zip(REFUSED, typed(words, [(was, given) for was, given, _ in REFUSED])):
        assert line.startswith("! must be ") and word in line, (was, given, line)


HOSTILE = [b'a"b', b"a'b", b"a\\", b'\\"', b"a\rb\tc", b'"""', b"\xff\xfe", b"caf\xe9", "é ü 語 😀".encode(), b"\x1b[31m", b"a\x00b"[:1], b"%ls", b"!ls",
           b"#", b"{x}", b"$(id)", b"</script>", "\u202e\u2028\u0085\u00ad\ufeff".encode(), b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\xaf", b"a\x7f"]


def test_texts_are_python_whatever_they_hold(words):
    """One line of printable characters that Python reads as the same bytes, as it has them in file names."""
    lines = words("values", text=b"".join(b'"x"\t' + h + b"\n" for h in HOSTILE)).decode().splitlines()
    assert len(lines) == len(HOSTILE)
    for given, line in zip(HOSTILE, lines):
        assert os.fsencode(ast.literal_eval(line)) == given, (given, line)
        assert line.isprintable(), line


MARKDOWN = [
    ("# A heading", "<h1>A heading</h1>\n"), ("### A `code`", "<h3>A <code>code</code></h3>\n"),
    ("one\ntwo\n\nthree", "<p>one\ntwo</p>\n<p>three</p>\n"),
    ("- a\n- b\n  more", "<ul>\n<li>a</li>\n<li>b\nmore</li>\n</ul>\n"), ("1. a\n2. b", "<ol>\n<li>a</li>\n<li>b</li>\n</ol>\n"),
    ("a\n- b", "<p>a</p>\n<ul>\n<li>b</li>\n</ul>\n"),
    ("**bold** and *soft*, 2 * 3 * 4", "<p><strong>bold</strong> and <em>soft</em>, 2 * 3 * 4</p>\n"),
    ("hook_resid_post and _x_", "<p>hook_resid_post and _x_</p>\n"), ("`` a`b ``", "<p><code>a`b</code></p>\n"), ("a ` b", "<p>a ` b</p>\n"),
    ("`**x**`", "<p><code>**x**</code></p>\n"), (r"\*x\* \\", "<p>*x* \\</p>\n"),
    ("```\nx < y\n# z\n```\nafter", "<pre><code>x &lt; y\n# z\n</code></pre>\n<p>after</p>\n"), ("```\nopen", "<pre><code>open\n</code></pre>\n"),
    ("[h5py](https://www.h5py.org/a_b?c=1&d)", '<p><a href="https://www.h5py.org/a_b?c=1&amp;d">h5py</a></p>\n'),
    ("[page](../x/y.md)", '<p><a href="../x/y.md">page</a></p>\n'),
    ("[x](javascript:alert(1))", "<p>x)</p>\n"), ('[x](https://a" onclick="b)', "<p>x</p>\n"), ("[x](data:text/html,a)", "<p>x</p>\n"),
    ("a [b] (c)", "<p>a [b] (c)</p>\n"), ("<b>&\"'</b>", "<p>&lt;b&gt;&amp;&quot;'&lt;/b&gt;</p>\n"), ("", ""), ("#none", "<p>#none</p>\n"), ("**", "<p>**</p>\n"),
    ("****", "<p>****</p>\n"), ("*a", "<p>*a</p>\n"), ("`", "<p>`</p>\n"), ("[", "<p>[</p>\n"), ("\\", "<p>\\</p>\n"), ("***x***", None),
]


def test_markdown_becomes_html(words):
    for text, want in MARKDOWN:
        got = words("markdown", text=text.encode()).decode()
        assert want is None or got == want, (text, got)


class Nesting(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.seen = [], set()

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.add(tag)
        assert tag == "a" or not attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_any_markdown_is_well_formed(words):
    import random
    r = random.Random(9)
    parts = ["*", "**", "`", "``", "[", "](", ")", "x", " ", "\n", "\n\n", "- ", "# ", "1. ", "<b>", "&", "\\", "```\n", "https://a.b/", "_", "\"", "é"]
    allowed = {"p", "em", "strong", "code", "pre", "ul", "ol", "li", "a", "h1"}
    for _ in range(60):
        n = Nesting()
        n.feed(words("markdown", text="".join(r.choices(parts, k=120)).encode()).decode())
        assert n.open == [] and n.seen <= allowed, n.seen


def test_a_notebook_names_its_file_from_where_it_lies(words, tmp_path):
    here = tmp_path / "here"
    for d in ("a/b", "notebooks", "data"):
        (here / d).mkdir(parents=True)
    (tmp_path / "link").symlink_to(here / "a")
    top = os.path.realpath(tmp_path)
    for out, file, want in [
        ("x.ipynb", "x.h5", "x.h5"), ("x.ipynb", "./a/../x.h5", "x.h5"), ("x.ipynb", "a/b/x.h5", "a/b/x.h5"),
        ("a/x.ipynb", "a/x.h5", "x.h5"), ("notebooks/x.ipynb", "data/x.h5", "../data/x.h5"), ("a/b/x.ipynb", "x.h5", "../../x.h5"),
        (f"{here}/x.ipynb", f"{here}/data/x.h5", "data/x.h5"), (f"{here}/a/x.ipynb", "data/x.h5", "../data/x.h5"),
        ("../x.ipynb", "x.h5", "here/x.h5"), ("x.ipynb", "../x.h5", f"{top}/x.h5"), ("x.ipynb", "../link/b/x.h5", "a/b/x.h5"),
        ("../link/x.ipynb", "a/x.h5", "x.h5"), ("a/x.ipynb", f"{top}/x.h5", f"{top}/x.h5"), ("-", "a/x.h5", "a/x.h5"),
        ("x.ipynb", "/x.h5", "/x.h5"),
    ]:
        assert words("from", out, file, cwd=here).decode() == want + "\n", (out, file)
    (here / "a2").mkdir()
    assert words("from", "a/x.ipynb", "a2/x.h5", cwd=here) == b"../a2/x.h5\n"  # a is no directory of a2's name
