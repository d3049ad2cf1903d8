"""weir act and weir norm: that their outputs are as tools/act/README.md says. tests/seeds has their numbers."""
import pytest
from weircli import ROOT, weir


def heads():
    """Lists of column names, of the lines of README that have any."""
    lines = (ROOT / "tools/act/README.md").read_text().splitlines()
    rows = [line.split("|")[1:3] for line in lines if line.startswith("| ")]
    return {what.strip(): columns for what, columns in rows}


@pytest.mark.parametrize("asked, args", [
    ("no function", []), ("functions", ["silu", "swish", "--at", "1"]), ("`--gate`, `--up`", ["silu", "--gate", "1,2", "--up", "3,4"]),
    ("`--against`", ["gelu", "--against", "gelu_tanh"])])
def test_tsv_of_act(asked, args):
    lines = weir("act", "--format", "tsv", *args).ok().out.decode().splitlines()
    names = lines[0].split("\t")
    at = [heads()[asked].index(name) for name in names]
    assert at == sorted(at) and len(lines) > 1 and all(len(line.split("\t")) == len(names) for line in lines)


def test_a_vector_of_zeros_has_no_direction():
    out = weir("norm", "--x", "0,0").ok().out.decode()
    assert "nan" not in out and "cosine with x                          -             -\n" in out
    assert weir("norm", "--x", "0,0", "--json").ok().json["rmsnorm"]["cosine"] is None
    one = weir("norm", "--x", "7").ok().out.decode()  # LayerNorm of one number is 0; RMSNorm keeps its sign
    assert "cosine with x                          -             1\n" in one


@pytest.mark.parametrize("args", [["norm"], ["norm", "1,2"], ["norm", "--x", "1,2", "--gain", "1"], ["norm", "--x", "nan"],
                                  ["act", "nosuch"], ["act", "silu", "--gate", "1,2", "--up", "1"]])
def test_complaints(args):
    weir(*args).fails(2, args[0])
