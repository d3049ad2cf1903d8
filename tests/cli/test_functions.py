"""weir act and weir norm: against the formulas in double precision, written out here; the kernels against both."""
import json
import math
import xml.etree.ElementTree as ET

import pytest

from weircli import weir

PHI = lambda x: 0.5 * math.erfc(-x / math.sqrt(2))
SIGMOID = lambda x: 1 / (1 + math.exp(-x)) if x > -700 else 0.0
FORMULA = {
    "relu": lambda x: max(0.0, x), "relu2": lambda x: max(0.0, x) ** 2, "gelu": lambda x: x * PHI(x),
    "gelu_tanh": lambda x: 0.5 * x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3))),
    "quick_gelu": lambda x: x * SIGMOID(1.702 * x), "silu": lambda x: x * SIGMOID(x), "swish": lambda x: x * SIGMOID(3 * x),
    "sigmoid": SIGMOID, "identity": lambda x: x, "drelu": lambda x: max(0.0, x),
    "gpt_oss": lambda x: min(x, 7.0) * SIGMOID(1.702 * min(x, 7.0)),
}
AT = [-9.5, -3.0, -1.278, -0.5, -0.01, 0.25, 1.0, 2.5, 6.75, 8.5]


def act(*args):
    return weir("act", "-j", *args).ok().json["functions"]


@pytest.fixture(scope="module")
def curves():
    return {f["name"]: f for f in act(*FORMULA, "--beta", "3", "--at", ",".join(map(str, AT)))}


@pytest.mark.parametrize("name", FORMULA)
def test_values_and_slopes(curves, name):
    f, h = FORMULA[name], 1e-5
    for p in curves[name]["points"]:
        x = p["x"]
        assert p["value"] == pytest.approx(f(x), rel=1e-12, abs=1e-14)
        assert p["slope"] == pytest.approx((f(x + h) - f(x - h)) / (2 * h), rel=1e-6, abs=1e-8)
        assert (p["kernel"] is not None) == curves[name]["runs"]
        if p["kernel"] is not None:
            assert p["kernel"] == pytest.approx(f(x), abs=4e-7 * max(1, abs(f(x))))
            assert p["kernel_slope"] == pytest.approx(p["slope"], rel=1e-6, abs=2e-6)


def test_models_run_what_is_shown(curves):
    assert {n for n, c in curves.items() if c["runs"]} >= {"relu", "relu2", "gelu", "gelu_tanh", "quick_gelu", "silu"}


def test_lowest_places(curves):
    low = {n: c["lowest"] for n, c in curves.items()}
    # x sigmoid(x) is lowest at -(1 + W(1/e)), where it is -W(1/e); W = Lambert's function.
    w = 0.2784645427610738
    assert low["silu"]["x"] == pytest.approx(-1 - w, rel=1e-14) and low["silu"]["y"] == pytest.approx(-w, rel=1e-14)
    assert low["swish"]["x"] == pytest.approx((-1 - w) / 3, rel=1e-12) and low["swish"]["y"] == pytest.approx(-w / 3, rel=1e-12)
    for name in ("gelu", "gelu_tanh", "quick_gelu", "gpt_oss"):
        x, y = low[name]["x"], low[name]["y"]
        assert low[name]["kind"] == "dip" and y == FORMULA[name](x) or y == pytest.approx(FORMULA[name](x), rel=1e-13)
        assert all(FORMULA[name](x + d) > y for d in (-1e-4, 1e-4, -3, 3))
    assert [low[n]["kind"] for n in ("relu", "sigmoid", "identity", "drelu")] == ["flat", "limit", "unbounded", "flat"]


def test_the_worked_example():
    p = act("silu", "--gate", "2,-2,0.5", "--up", "1.5,3,-1")[0]["products"]
    assert [round(x["opened"], 4) for x in p] == [1.7616, -0.2384, 0.3112]
    assert [round(x["product"], 4) for x in p] == [2.6424, -0.7152, -0.3112] == [round(x["kernel"], 4) for x in p]


@pytest.mark.parametrize("name, gate, up, product", [
    ("glu", 0, 4, 2), ("bilinear", -3, 4, -12), ("reglu", -3, 4, 0), ("drelu", 2, -4, 0), ("drelu", 2, 4, 8),
    ("gpt_oss", 9, 9, FORMULA["gpt_oss"](7) * 8), ("gpt_oss", 1, -9, FORMULA["gpt_oss"](1) * -6), ("gpt-oss", 1, 0, FORMULA["gpt_oss"](1)),
])
def test_gates(name, gate, up, product):
    assert act(name, f"--gate={gate}", f"--up={up}")[0]["products"][0]["product"] == pytest.approx(product, rel=1e-14, abs=0)


def test_exact_against_tanh_gelu():
    far = act("gelu", "--against", "gelu_tanh", "--from", "-8", "--to", "8")[0]["against"]
    grid = max(abs(FORMULA["gelu"](i / 1000) - FORMULA["gelu_tanh"](i / 1000)) for i in range(-8000, 8001))
    assert grid <= far["difference"] < grid * 1.00001
    assert act("silu", "--against", "swish")[0]["against"]["difference"] == 0


def test_forms_and_picture(tmp_path):
    lines = weir("act", "relu", "silu", "--from", "-1", "--to", "1", "--step", "0.1", "--format", "tsv").ok().out.decode().splitlines()
    assert len(lines) == 1 + 2 * 21 and lines[-1].split("\t")[:2] == ["silu", "1"]
    text = weir("act", "silu", "--width", "60").ok().out.decode()
    assert "-0.27846" in text and " o f(x)" in text.replace("        o", " o") and max(map(len, text.splitlines())) < 100
    assert weir("act").ok().out.decode().count("\n") == 1 + len(FORMULA)
    svg = tmp_path / "a.svg"
    weir("act", "relu", "gelu", "--svg", svg, "-q").ok()
    assert len(ET.parse(svg).getroot().findall("{http://www.w3.org/2000/svg}g")) == 2
    svg.write_text("mine")
    weir("act", "relu", "--svg", svg).fails(1, "a.svg exists", "--force")
    assert svg.read_text() == "mine"


@pytest.mark.parametrize("args, words", [
    (("sillu",), ("no activation", "did you mean silu?")), (("silu", "--gate", "1,2", "--up", "3"), ("2 numbers", "1")),
    (("silu", "--gate", "1"), ("--gate", "--up")), (("silu", "--at", "1,,2"), ('"" is no number',)),
    (("silu", "--at", "1,"), ('"" is no number',)), (("silu", "--at", "nan"), ("no number",)), (("silu", "--step", "0"), ("--step 0",)),
    (("silu", "--from", "2", "--to", "1"), ("must be larger",)), (("silu", "--at", "1e39"), ("fp32",)),
    (("silu", "--step", "1e-9"), ("100,000",)), (("silu", "--against", "x"), ("no activation",)),
    (("silu", "--gate", "1", "--up", "2", "--step", "1"), ("--gate and --step",)), (("silu", "--width", "40", "--at", "1"), ("--width",)),
    (("silu", "--against", "relu", "--step", "1"), ("--against and --step",)),
    (("--step", "1"), ("name a function",)), (("--width", "40"), ("name a function",)),
    (("silu", "--gate", "1", "--up", "2", "--at", "1", "--format", "tsv"), ("one table",)),
    (("silu", "--against", "relu", "--at", "1", "--format", "tsv"), ("one table",)),
])
def test_wrong_act_lines(args, words):
    weir("act", *args).fails(2, *words)


# --- norms

X, GAIN, BIAS = [2.0, -1.0, 0.5, 3.25, -0.125], [1.0, 2.0, -0.5, 0.25, 3.0], [0.5, 0.0, -1.0, 2.0, 0.25]


def words(v):
    return ",".join(map(str, v))


def norm(*args):
    return weir("norm", "-j", *args).ok().json


def test_norms_against_their_formulas():
    got = norm("--x", words(X), "--gain", words(GAIN), "--bias", words(BIAS), "--eps", "0.001")
    n, mean = len(X), sum(X) / len(X)
    sd = math.sqrt(sum((x - mean) ** 2 for x in X) / n + 0.001)
    rms = math.sqrt(sum(x * x for x in X) / n + 0.001)
    layer = [(x - mean) / sd * g + b for x, g, b in zip(X, GAIN, BIAS)]
    assert got["layernorm"]["exact"] == pytest.approx(layer, rel=1e-14) and got["layernorm"]["out"] == pytest.approx(layer, rel=2e-6)
    plain = [x / rms * g for x, g in zip(X, GAIN)]
    assert got["rmsnorm"]["exact"] == pytest.approx(plain, rel=1e-14) and got["rmsnorm"]["out"] == pytest.approx(plain, rel=2e-6)
    assert got["layernorm"]["mean"] == pytest.approx(mean, rel=1e-6) and got["rmsnorm"]["mean"] == 0
    gemma = norm("--x", words(X), "--gain", words(GAIN), "--gemma", "--eps", "0.001")
    assert gemma["rmsnorm"]["exact"] == pytest.approx([x / rms * (1 + g) for x, g in zip(X, GAIN)], rel=1e-14)
    assert gemma["layernorm"]["exact"] == pytest.approx([(x - mean) / sd * g for x, g in zip(X, GAIN)], rel=1e-14)


def test_what_tells_the_norms_apart():
    got = norm("--x", words([x + 5 for x in X]), "--eps", "0")
    layer, rms = got["layernorm"], got["rmsnorm"]
    assert rms["cosine"] == pytest.approx(1, abs=1e-7) and rms["rms"] == pytest.approx(1, abs=1e-6) and layer["cosine"] < 0.9
    assert layer["change_shifted"] < 2e-6 < 0.05 < rms["change_shifted"]
    assert layer["change_scaled"] < 2e-6 and rms["change_scaled"] < 2e-6
    assert got["centred_rmsnorm_difference"] < 2e-6 and got["centred_rmsnorm_difference_exact"] < 1e-14
    assert got["same_bits_among_other_rows"] is True
    assert norm("--x", words(X), "--gain", words(GAIN))["rmsnorm"]["cosine"] < 0.95  # only equal gains keep the direction


def test_norm_is_the_same_from_every_table_of_kernels():
    args = ("norm", "--x", words(X * 7), "--format", "tsv")
    assert weir(*args, "--kernel", "ref").ok().out == weir(*args).ok().out


@pytest.mark.parametrize("args, words_", [
    ((), ("--x",)), (("3,4",), ("--x",)), (("--x", "1,2", "--gain", "1"), ("--gain has 1", "--x 2")),
    (("--x", "1,b"), ('"b" is no number',)), (("--x", "1", "--gemma"), ("--gemma", "--gain")), (("--x", "1", "--eps", "-1"), ("--eps -1",)),
])
def test_wrong_norm_lines(args, words_):
    weir("norm", *args).fails(2, *words_)


def test_a_vector_of_zeros_is_no_trouble():
    got = norm("--x", "0,0,0")
    assert got["rmsnorm"]["out"] == [0, 0, 0] and got["rmsnorm"]["cosine"] is None
    assert json.dumps(got)


def test_what_overflows_has_no_difference_of_zero():
    got = norm("--x", "3e38,3e38")
    assert got["layernorm"]["out"] == [None, None] and got["layernorm"]["change_shifted"] is None
    assert got["centred_rmsnorm_difference"] is None
    assert norm("--x", "0,0", "--eps", "0")["centred_rmsnorm_difference_exact"] is None
