"""Malformed text: a ParseError at the right place, and for no text anything else."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphir import Graph, ParseError
from graphir.text.printer import graph_text
from tests.graphir.text.texts import EXPLICIT, QUESTION, T, check_same, every_dtype, every_op, f32
from tests.support.tables import every, sampled
from tests.support.work import Work, count_work


def body(line, inputs="%x: float32[n], %i: int64[3]"):
    return f"graph @g rules=max ({inputs}) -> () {{\n  {line}\n}}"


def heading(text):
    return text + " {\n}"


def constant(dtype, value, shape):
    return body(f"%0 = constant {{dtype={dtype}, value={value}}} : {dtype}{shape}")


def full(value):
    return body(f"%0 = full {{dtype=float32, value={value}, shape=[]}} : float32[]")


def caused(origin):
    return body(f"%0 = cast(%x) {{to=f32}} : f32[n] because({origin})")


DEEP = 100_000
BAD = {
    "": (1, 1, "expected 'graph'.* the end of the text"),
    "graph": (1, 6, "expected '@'"),
    "graf @g": (1, 1, "expected 'graph'.*not 'graf'"),
    "graph @": (1, 8, "name"),
    'graph @"g': (1, 8, "unterminated string"),
    'graph @"\\q"': (1, 8, "JSON"),
    "graph @g (": (1, 10, "expected 'rules'"),
    "graph @g rules=maxx () -> ()": (1, 16, "maxx.*max"),
    "graph @g rules=max from=mex () -> ()": (1, 25, "mex.*max"),
    "graph @g rules=max tf32=odd () -> ()": (1, 25, "'even', 'away'"),
    "graph @g rules=max functions=exact () -> ()": (1, 30, "'numpy', 'rounded'"),
    heading("graph @g rules=max (%x: float23[]) -> ()"): (1, 25, "float23.*float32"),
    heading("graph @g rules=max (%x: float32) -> ()"): (1, 32, r"expected '\['"),
    heading("graph @g rules=max (%x: float32[-1]) -> ()"): (1, 25, "a dim is at least 0"),
    heading("graph @g rules=max (%x: float32[n//0]) -> ()"): (1, 33, "divided by positive"),
    heading("graph @g rules=max (%x: float32[n//m]) -> ()"): (1, 33, "divided by positive"),
    heading("graph @g rules=max (%x: float32[1.5]) -> ()"): (1, 33, "a dim"),
    heading("graph @g rules=max (%x: float32[n m]) -> ()"): (1, 35, r"expected '\]'"),
    heading("graph @g rules=max (%x: float32[n,]) -> ()"): (1, 35, "a dim"),
    heading("graph @g rules=max (%1: float32[]) -> ()"): (1, 21, "identifier, not '1'"),
    heading("graph @g rules=max (%: float32[]) -> ()"): (1, 21, "an input"),
    heading("graph @g rules=max (%x: f32[], %x: f32[]) -> ()"): (1, 32, "%x is defined already"),
    heading("graph @g rules=max () -> (float32[])"): (2, 1, "'return'"),
    "graph @g rules=max () -> () {": (1, 30, "expected '}'"),
    heading("graph @g rules=max () -> ()") + " x": (2, 3, "end of the text, not 'x'"),
    heading("graph @g rules=max () -> ()") + " $": (2, 3, r"not '\$'"),
    body("%0 = add(%x, %x) float32[n]"): (2, 20, "expected ':'"),
    body("%0 add(%x, %x) : float32[n]"): (2, 6, "expected '='"),
    body("%0 = ad(%x, %x) : float32[n]"): (2, 8, "no op is named 'ad'.* add"),
    body("%0 = add(%x, %y) : float32[n]"): (2, 16, "%y is not defined above"),
    body("%0 = add(%x, %0) : float32[n]"): (2, 16, "%0 is not defined above"),
    body("%x = add(%x, %x) : float32[n]"): (2, 3, "%x is defined already"),
    body("%0 = add(%x) : float32[n]"): (2, 8, r"takes 2 operands \(lhs, rhs\), not 1"),
    body("%0 = add : float32[n]"): (2, 12, r"expected '\('"),
    body("%0 = add(%x, %x : float32[n]"): (2, 19, r"expected '\)' or ','"),
    body("%0 = concat() : float32[n]"): (2, 8, "at least one operand"),
    body("%0 = add(%x, %x) : float32[m]"): (2, 22, r"float32\[m\], but add gives float32\[n\]"),
    body("%0 = add(%x, %i) : float32[n]"): (2, 8, r"float32\[n\], int64\[3\].*do not broadcast"),
    body("%0 = input {dtype=float32, shape=[]} : float32[]"): (2, 8, "header"),
    body("%0 = sum(%x) {axes=0} : float32[]"): (2, 17, "'axes'; it takes axis, keepdims, dtype"),
    body("%0 = sum(%x) {axis=1} : float32[]"): (2, 22, "axis 1 is out of range for rank 1"),
    body("%0 = sum(%x) {keepdims=true, axis=0.5} : float32[]"): (2, 37, "an int is needed"),
    body("%0 = sum(%x) {axis=0, axis=0} : float32[]"): (2, 25, "'axis' is given twice"),
    body("%0 = sum(%x) {axis=0 : float32[]"): (2, 24, "expected '}' or ','"),
    body("%0 = sum(%x) {axis} : float32[]"): (2, 21, "expected '='"),
    body("%0 = sum(%x) {axis=} : float32[]"): (2, 22, "a value"),
    body("%0 = cast(%x) : float32[n]"): (2, 8, "the attribute 'to' is missing"),
    body("%0 = cast(%x) {to=none} : float32[n]"): (2, 21, "no dtype is named 'none'"),
    body('%0 = cast(%x) {to="float32"} : float32[n]'): (2, 21, "a dtype"),
    body("%0 = gelu(%x) {approximate=1} : float32[n]"): (2, 30, "'tanh'"),
    full("0x"): (2, 35, "not a number"),
    full("1q"): (2, 36, "expected '}'"),
    full("0x1p+99999999"): (
        2,
        35,
        "too large",
    ),
    full("1e999"): (2, 35, "too large"),
    full(f"{'9' * 5000}"): (
        2,
        35,
        "5000 char",
    ),
    full("--1"): (2, 36, "a value, not '-'"),
    body("%0 = constant {dtype=int8} : int8[]"): (2, 8, "the attribute 'value' is missing"),
    constant("int8", "128", "[]"): (2, 36, "128 is not a value of int8"),
    constant("int8", "1.0", "[]"): (2, 36, "1.0 is not a value of int8"),
    constant("bool", "1", "[]"): (2, 36, "1 is not a value of bool"),
    constant("f32", "true", "[]"): (
        2,
        35,
        "True is not a value of float32",
    ),
    constant("f32", "0.1", "[]"): (
        2,
        35,
        "0.1 is not .*nearest.* 0.10000000149",
    ),
    constant("f32", "16777217", "[]"): (2, 35, "nearest value is 16777216"),
    constant("f32", f"{'9' * 399}", "[]"): (2, 35, "not a value"),
    constant("f32", "complex(0, 0)", "[]"): (2, 35, "0j is not a value"),
    constant("c64", f"complex({'9' * 399}, 0)", "[]"): (
        2,
        35,
        "not possible",
    ),
    constant("float4_e2m1fn", "nan", "[]"): (2, 45, "nan is not"),
    constant("float8_e8m0fnu", "0.0", "[]"): (
        2,
        46,
        "0.0 is not",
    ),
    constant("int8", "[1, 2]", "[3]"): (
        2,
        36,
        "2 values for an axis of 3",
    ),
    constant("int8", "[1, [2]]", "[2]"): (2, 36, "nested deeper"),
    constant("int8", "1", "[3]"): (2, 36, "one value for an axis of 3"),
    constant("int8", "[[], []]", "[2, 0, n]"): (2, 36, "known sizes"),
    constant("int8", "[[], []]", f"[2, 0, {2**70}]"): (2, 36, "no constant has type int8"),
    constant("int8", 'npz("c0")', "[n]"): (2, 36, "Graph.parse"),
    constant("int8", "npz(c0)", "[n]"): (2, 40, "in quotes"),
    body('%0 = add(%x, %x) : float32[n] loc("a.py)'): (2, 37, "unterminated string"),
    body('%0 = add(%x, %x) : float32[n] loc("a.py")'): (2, 43, "expected ':' and a line"),
    body('%0 = add(%x, %x) : float32[n] loc("a.py":1:x)'): (2, 46, "a column, not 'x'"),
    body('%0 = add(%x, %x) : float32[n] loc("a.py":1:2, 3)'): (2, 49, "expected 'layer'"),
    body('%0 = add(%x, %x) : float32[n] loc("a.py":1:2 to)'): (2, 50, "a line or ':', not"),
    body('%0 = add(%x, %x) : float32[n] because(lhs of add "a":1:1, max: int8 -> f32)'): (
        *(2, 33, "only a cast"),
    ),
    caused(""): (2, 43, "the name of an operand"),
    caused("lhs of ad, max: int8 -> f32"): (
        2,
        50,
        "'ad'.*add",
    ),
    caused("lhs of add, mix: int8 -> f32"): (
        2,
        55,
        "mix.*max",
    ),
    caused("lhs of add, max: int8 f32"): (
        2,
        65,
        "expected '->'",
    ),
    body("return %x"): (2, 3, "1 results, but the header has 0"),
    body("return"): (3, 1, "an operand"),
    QUESTION.replace("return %3, %0", "return %3"): (6, 3, "1 results, but the header has 2"),
    QUESTION.replace("return %3, %0", "return %3, %1"): (
        6,
        14,
        r"int16\[n\]; the header says int16\[\]",
    ),
    QUESTION.replace("  return %3, %0\n", ""): (6, 1, "'return'"),
    QUESTION[:-2]: (6, 16, "expected '}', not the end of the text"),
    "[" * DEEP: (1, 1, "expected 'graph'"),
    body(f"%0 = sum(%x) {{axis={'[' * DEEP}"): (2, 86, "nested more than 64 deep"),
    heading(f"graph @g rules=max (%x: f32[{'(' * DEEP}"): (1, 93, "nested more than 64 deep"),
    heading(f"graph @g rules=max (%x: f32[n{'//2' * DEEP}"): (1, 29, "too many terms"),
    heading(f"graph @g rules=max (%x: f32[n{'*n' * DEEP}"): (1, 29, "too many terms"),
    heading(f"graph @g rules=max (%x: f32[2{'*9' * DEEP}"): (1, 29, "too many terms"),
    heading("graph @g rules=max (%x: f32[" + "*".join(f"(a{i}+b{i})" for i in range(99))): (
        *(1, 29, "too many terms"),
    ),
    heading("graph @g rules=max (%x: f32[" + ",".join(f"a{i}+b{i}" for i in range(50)) + "]"): (
        *(1, 28, "1000 terms"),
    ),
    heading(f"graph @g rules=max (%x: f32[{'1,' * 99}1]"): (1, 28, "at most 64 axes"),
}


@every("text", BAD)
def test_malformed_text(text):
    line, column, message = BAD[text]
    with pytest.raises(ParseError, match=message) as caught:
        Graph.parse(text)
    assert (caught.value.line, caught.value.column) == (line, column), caught.value
    assert str(caught.value).startswith(f"line {line}, column {column}: ")


EVERY = [str(every_op()), graph_text(every_op(), locations=False), str(every_dtype())]
SINGLE = [
    f"{text[: text.index(' -> ')]} -> () {{\n{line}\n}}"
    for text in EVERY[:2]
    for line in text.split("\n")[1:-2]
]
DIMS = str(Graph("dims", [T(f32, ("3*((n+1)//2)", "m*n-2*m"))]))
CHARACTERS = (
    st.sampled_from(list('"%()[]{}<>,;:=+-*/.#@\\ \n0129xepnm_é\x00٣²℘\ud800')) | st.characters()
)
PIECES = st.sampled_from(
    """true none inf nan - // 0x1p+1024 999999999999999999999999999999 1e400 [ ] [[ ( " npz("c0")
    complex( float32[ n*n %0 %x0 loc( because( -1 0 axis=0 int4 bool complex128 weak_int
    explicit 0.5 [] [0,1] "tanh" return""".split()  # noqa: SIM905
)


@st.composite
def mutations(draw):
    """A valid text in which a few pieces are deleted, doubled, replaced, inserted, or cut off."""
    some = st.sampled_from([QUESTION, EXPLICIT, DIMS])
    text = draw(st.sampled_from(SINGLE) | some | st.sampled_from(SINGLE) | st.sampled_from(EVERY))
    for _ in range(draw(st.integers(1, 3))):
        words = re.findall(r"\w+|\W", text)
        at = draw(st.integers(0, max(0, len(words) - 1)))
        other = draw(PIECES | st.sampled_from(words or [""]) | CHARACTERS)
        kind = draw(st.sampled_from(["delete", "insert", "replace", "truncate", "double"]))
        if kind == "truncate":
            words = words[:at]
        elif kind == "insert":
            words.insert(at, other)
        else:
            span = draw(st.integers(1, 4))
            new = {"delete": [], "replace": [other], "double": words[at : at + span] * 2}[kind]
            words[at : at + span] = new
        text = "".join(words)
    return text


def parses_or_refuses(text):
    """A text either is a graph, which prints to itself again, or a ParseError; nothing else."""
    try:
        graph = Graph.parse(text, {"c0": np.arange(3)})
    except ParseError as error:
        lines = text.split("\n")
        assert 1 <= error.line <= len(lines)
        assert 1 <= error.column <= len(lines[error.line - 1]) + 1
        assert "not possible" not in error.problem
    else:
        again = str(graph)
        assert str(Graph.parse(again)) == again
        check_same(graph, Graph.parse(again))


@sampled(2)
@every("text", [QUESTION, EXPLICIT])
def test_texts_cut_anywhere(text):
    for at in range(len(text)):
        with pytest.raises(ParseError):
            Graph.parse(text[:at])
        parses_or_refuses(text[:at] + text[at + 1 :])


@pytest.mark.exhaustive
@settings(max_examples=20 * settings().max_examples)
@given(mutations())
def test_mutated_texts(text):
    parses_or_refuses(text)


@settings(max_examples=2 * settings().max_examples)
@given(st.text() | st.lists(CHARACTERS | PIECES, max_size=30).map("".join))
def test_any_text(text):
    parses_or_refuses("graph @g rules=max (" + text)
    parses_or_refuses(body("%0 = " + text))
    parses_or_refuses(body("%0 = full {dtype=float32, value=" + text))


@sampled(2)
@every("operator", ["*", "+"])
def test_long_dims_are_read_in_linear_work(operator: str) -> None:
    def work(n: int) -> Work:
        dims = (operator.join(f"n{i}_{j}" for j in range(200)) for i in range(n))
        inputs = ", ".join(f"%x{i}: float32[{dim}]" for i, dim in enumerate(dims))
        text = f"graph @g rules=max (%y: int8[], {inputs}) -> (int8[]) {{\n  return %y\n}}"
        return count_work(lambda: Graph.parse(text))

    first, second = work(8), work(16)
    assert second.calls < 2.2 * first.calls and first.calls < 50 * 8 * 200
