"""Policies: which casts are of which kind, what happens to them, and what a budget refuses."""

from __future__ import annotations

import itertools
import pickle
import warnings
from collections import Counter
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphir import CastWarning, DType, Graph, GraphError, PromotionError, ops, rules
from graphir.loss import EXACT, loss
from graphir.passes import (
    Policy,
    cast_report,
    dead_code,
    implicit_cast,
    lower,
    rebuild,
)
from graphir.passes.analysis.policies.hits import CastHit, WidthHit
from graphir.passes.analysis.policies.patterns import cast_pattern
from tests.passes.analysis.programs import Program, programs
from tests.support.tables import every

ACTIONS = ("allow", "warn", "forbid")
INTS = {"int2", "int4", "int8", "int16", "int32", "int64", "weak_int"}
UINTS = {"uint2", "uint4", "uint8", "uint16", "uint32", "uint64", "index", "address"}
COMPLEX = {"complex64", "complex128", "weak_complex"}
WORDS = {
    "*": {str(dtype) for dtype in DType},
    "bool": {"bool"},
    "int": INTS,
    "uint": UINTS,
    "integer": INTS | UINTS,
    "complex": COMPLEX,
    "float": {str(dtype) for dtype in DType} - INTS - UINTS - COMPLEX - {"bool"},
    **{str(dtype): {str(dtype)} for dtype in DType},
    "half": {"float16"},
    "f32": {"float32"},
    "bf16": {"bfloat16"},
    "tf32": {"tensor_float32"},
}
PAIRS = list(itertools.product(DType, DType))


def of_kind(text: str) -> set[tuple[str, str]]:
    """The pairs of dtypes whose casts are of a kind that says nothing of loss."""
    kind = cast_pattern(text)
    return {(str(a), str(b)) for a, b in PAIRS if kind.matches(a, b, loss(a, b))}


@pytest.mark.exhaustive
@pytest.mark.parametrize("word", WORDS)
def test_a_side_names_the_dtypes_that_it_says(word: str) -> None:
    names, every = WORDS[word], WORDS["*"]
    assert of_kind(f"to:{word}") == of_kind(f"*->{word}") == set(itertools.product(every, names))
    assert of_kind(f"from:{word}") == set(itertools.product(names, every))
    for other in ("int", "float", "bool", "bfloat16", "integer"):
        both = set(itertools.product(names, WORDS[other]))
        assert of_kind(f"{word}->{other}") == of_kind(f" {word} -> {other} ") == both


COMPARED = [
    *(np.bool_, np.int8, np.uint8, np.int16, np.uint16, np.float16, ml_dtypes.bfloat16),
    *(ml_dtypes.float8_e5m2, ml_dtypes.float8_e4m3fn),
]


@every("source", COMPARED)
@every("target", COMPARED)
def test_lossy_is_what_changes_a_value(source: Any, target: Any) -> None:
    """All values of a dtype, converted by NumPy, and compared as numbers."""
    dtype = np.dtype(source)
    size = 2 if dtype == np.bool_ else 256**dtype.itemsize
    unsigned = np.uint8 if dtype.itemsize == 1 else np.uint16
    values = np.arange(size, dtype=unsigned).view(dtype)
    with np.errstate(all="ignore"):
        made = values.astype(target)
        before, after = values.astype(np.float64), made.astype(np.float64)
    signs = (np.signbit(before) == np.signbit(after)) | np.isnan(before)
    same = np.array_equal(before, after, equal_nan=True) and bool(signs.all())
    a, b = DType(source), DType(target)
    assert cast_pattern("lossy").matches(a, b, loss(a, b)) is not same
    assert cast_pattern("exact").matches(a, b, loss(a, b)) is same


def test_kinds_of_loss_are_those_that_the_cast_has() -> None:
    kinds = ("range", "sign", "precision", "underflow", "special")
    for a, b in PAIRS:
        lost = loss(a, b)
        assert tuple(kind for kind in kinds if cast_pattern(kind).matches(a, b, lost)) == lost.kinds
        assert sum(cast_pattern(kind).matches(a, b, lost) for kind in ("lossy", "exact")) == 1


@every(
    ("word", "told"),
    [
        ("lossi", "'lossy'"),
        ("float64", "'to:float64', 'from:float64'"),
        ("to:flaot64", "'to:float64'"),
        ("intt->float", "'int->float'"),
        ("int->", "it is one of lossy, exact"),
        ("", "it is one of lossy, exact"),
        ("into:float64", "it is one of lossy, exact"),
        ("int=>float", "it is one of lossy, exact"),
    ],
)
@every("where", ["forbid", "warn", "allow"])
def test_an_unknown_kind_names_the_nearest(word: str, told: str, where: str) -> None:
    with pytest.raises(GraphError) as refused:
        Policy(**{where: {word}})
    assert f"{word!r} is no kind of cast" in str(refused.value) and told in str(refused.value)


@every("word", [3, None, DType.float64, ["lossy"]])
def test_a_kind_is_text(word: Any) -> None:
    with pytest.raises(GraphError, match="a kind of cast is text such as 'to:float64'; got"):
        Policy(forbid=[word])


@every("casts", ["error", "", None, True, "Forbid"])
def test_casts_is_one_of_three(casts: Any) -> None:
    with pytest.raises(GraphError, match="casts is 'allow', 'warn' or 'forbid'; got"):
        Graph("g", policy=Policy(casts=casts))


@every("widest", ["bool", "weak_float", {"float32", "bool"}])
def test_a_limit_has_a_width(widest: Any) -> None:
    with pytest.raises(GraphError, match="has no width to keep to"):
        Graph("g", policy=Policy(widest=widest))


def test_one_word_is_a_set_of_one() -> None:
    assert Policy(forbid="lossy") == Policy(forbid={"lossy"}) == Policy(forbid=["lossy", " lossy"])
    assert Policy(widest="f32") == Policy(widest=[DType.float32]) == Policy(widest=np.float32)
    assert Policy(forbid="lossy") != Policy(warn="lossy")
    assert len({Policy(warn={"exact", "lossy"}), Policy(warn=("lossy", "exact"))}) == 1


@every("casts", ACTIONS)
@every("named", list(itertools.product((False, True), repeat=3)))
def test_of_the_sets_that_name_a_cast_the_strictest_wins(casts: Any, named: Any) -> None:
    sets = {
        action: {"int->float", "to:bool"} if there else {"to:complex"}
        for action, there in zip(ACTIONS, named, strict=True)
    }
    policy = Policy(casts, **sets)
    expected = casts
    for action, there in zip(ACTIONS, named, strict=True):
        expected = action if there else expected
    verdict = policy.judge(DType.int8, DType.float32, EXACT)
    assert verdict.action == expected
    assert verdict.why == (("'int->float'",) if any(named) else (f"casts={casts!r}",))


# -- what is found in graphs


def exact_and_lossy(rules: str = "max", **policy: Any) -> Graph:
    g = Graph("two", rules=rules, policy=Policy(**policy))
    x, h = g.input("int8", ("n",), name="x"), g.input("float16", ("n",), name="h")
    y = g.input("int32", ("n",), name="y")
    g.output(x + h, y * h)
    return g


@every("name", [one.name for one in map(rules, ("numpy", "jax", "torch", "max"))])
def test_what_is_forbidden_raises_once_for_all(name: str) -> None:
    with pytest.raises(PromotionError) as refused:
        exact_and_lossy(casts="forbid", rules=name)
    rows = cast_report(exact_and_lossy(rules=name)).only("implicit")
    text = str(refused.value)
    assert f"forbids {len(rows)} casts:" in text.splitlines()[0]
    for row in rows:
        assert f"{row.operand} {row.source} -> {row.target} under {name!r}" in text


def test_sets_choose_among_casts() -> None:
    with pytest.raises(PromotionError, match=r"forbids 1 cast:\n.*int32 -> float16.*'lossy'"):
        exact_and_lossy(forbid={"lossy"})
    with pytest.raises(PromotionError, match=r"forbids 1 cast:\n.*int8 -> float16.*'exact'"):
        exact_and_lossy(forbid={"exact"})
    with pytest.raises(PromotionError, match=r"forbids 1 cast:\n.*int32 -> float16.*casts='forb"):
        exact_and_lossy(casts="forbid", allow={"exact"})
    exact_and_lossy(casts="forbid", allow={"int->float16"})
    exact_and_lossy(forbid={"to:float64", "float->*", "sign"})


@given(programs())
def test_the_hits_are_the_implicit_casts_of_the_report(program: Program) -> None:
    graph = program.build()
    found: Counter[Any] = Counter()
    for hit in Policy("forbid").hits(graph):
        assert isinstance(hit, CastHit)
        row = hit.row
        if row.conversion.stores or row.symbol.op is not ops.constant:
            found[row.location, row.op, row.operand, row.source, row.target] += hit.times
    expected: Counter[Any] = Counter()
    for row in cast_report(implicit_cast(dead_code(graph))).only("implicit"):
        if row.operand == "result" or row.symbol.args[0].op is not ops.constant:
            expected[row.location, row.op, row.operand, row.source, row.target] += 1
    assert found == expected


def test_the_row_of_a_hit_says_what_the_report_says() -> None:
    """Rows of casts that a graph implies, and of the same casts once they are written down."""
    graph = exact_and_lossy(rules="jax")
    rows = {(row.location, row.operand): row for row in cast_report(graph)}
    hits = Policy("forbid").hits(graph)
    assert len(hits) == len(rows) == 2
    for hit in hits:
        assert isinstance(hit, CastHit)
        row = rows[hit.location, hit.row.operand]
        assert hit.row == row and hit.row.path == row.path and hit.row.others == row.others
        assert (hit.row.elements, hit.row.bytes_added) == (row.elements, row.bytes_added)


@every(
    ("value", "dtype", "found"),
    [
        (2.2, "float16", None),
        (1, "float16", None),
        (True, "float16", None),
        (2049, "float16", None),
        (1e6, "float16", "range"),
        (1e-9, "float16", "underflow"),
        (70000, "float16", "range"),
        (1e300j, "complex64", "range"),
        (2.2j, "complex64", None),
    ],
)
@every("under", ["numpy", "jax"])
def test_a_number_is_a_cast_where_it_overflows(
    value: Any, dtype: str, found: str | None, under: str
) -> None:
    def build(policy: dict[str, Any]) -> None:
        g = Graph("numbers", rules=under, policy=Policy(**policy))
        g.output(g.input(dtype, ("n",)) * value)

    for policy in ({"casts": "forbid"}, {"forbid": {"lossy"}}, {"forbid": {found or "lossy"}}):
        if found is None:
            build(policy)
        else:
            with pytest.raises(PromotionError, match="forbids 1 cast"):
                build(policy)
    build({"forbid": {"int8->*", "sign"}})


def test_a_known_number_with_a_dtype_is_judged_by_its_value() -> None:
    def build(number: int) -> None:
        g = Graph("known", policy=Policy(forbid={"lossy"}))
        g.output(g.input("float16", ("n",)) * g.scalar[DType.int32](number))

    build(2048)
    with pytest.raises(PromotionError, match=r"2049 becomes 2048.0"):
        build(2049)


def test_the_cast_of_a_result_is_found_too() -> None:
    g = Graph("result", rules="torch", policy=Policy(casts="forbid"))
    x = g.input("uint8", ("n",))
    with pytest.raises(PromotionError, match=r"any\(.*: result bool -> uint8 .*casts='forbid'\n"):
        g.output(x.any())


# -- budgets

WIDTHS = {
    "float32": {"float64", "complex128", "weak_float", "weak_complex"},
    "complex64": {"complex128", "weak_complex"},
    "int32": {"int64", "uint64", "index", "address", "weak_int"},
    "uint32": {"int64", "uint64", "index", "address", "weak_int"},
    "float64": set(),
    "int64": set(),
    "bfloat16": {
        *("float32", "tensor_float32", "float64", "complex64", "complex128"),
        *("weak_float", "weak_complex"),
    },
}


@every("limit", WIDTHS)
def test_what_is_too_wide(limit: str) -> None:
    assert {str(dtype) for dtype in Policy(widest=limit).too_wide} == WIDTHS[limit]
    both = Policy(widest={limit, "int32"}).too_wide
    assert {str(dtype) for dtype in both} == WIDTHS[limit] | WIDTHS["int32"]


def widths(g: Graph) -> list[tuple[str, str, int, str]]:
    hits = g.policy.hits(g)
    return [(h.symbol.op.name, str(h.dtype), h.follows, h.fix) for h in hits if _is_width(h)]


def _is_width(hit: object) -> bool:
    return isinstance(hit, WidthHit)


def test_a_budget_says_where_a_dtype_first_became_wide() -> None:
    g = Graph("wide", rules="numpy", policy=Policy(widest="float32"))
    x, y = g.input("int32", ("n",), name="x"), g.input("float32", ("n",), name="y")
    first = x + y
    then = ops.sin(first) * 2.0
    mixed = then + y
    assert widths(g) == [("add", "float64", 3, 'x.astype("float32") + y')]
    with pytest.raises(PromotionError) as refused:
        g.output(mixed)
    assert "forbids 1 dtype" in str(refused.value)
    assert "float64 is wider than float32, and 3 symbols after it" in str(refused.value)
    assert str(first.location) in str(refused.value)


def test_a_budget_counts_the_own_hand_and_what_is_compared() -> None:
    g = Graph("hand", rules="numpy", policy=Policy(widest={"float32", "int32"}))
    x, y = g.input("int32", ("n",), name="x"), g.input("float32", ("n",), name="y")
    g.input("complex128", (), name="z")
    _ = (y.cast("float64"), x < y, g.scalar[DType.float64](1), y.argmax(), y * 2.5, y + 1)
    assert widths(g) == [
        ("input", "complex128", 0, 'dtype "complex64"'),
        ("cast", "float64", 0, 'dtype "float32"'),
        ("less", "float64", 0, 'x.astype("float32") < y'),
        ("constant", "float64", 0, 'dtype "float32"'),
        ("argmax", "int64", 0, 'dtype "int32"'),
    ]


def test_integers_that_follow_wide_floats_are_wide_themselves() -> None:
    g = Graph("both", policy=Policy(widest={"float32", "int32"}))
    x = g.input("float64", ("n",), name="x")
    _ = x.argmax() + 1
    assert widths(g) == [
        ("input", "float64", 0, 'dtype "float32"'),
        ("argmax", "int64", 1, 'dtype "int32"'),
    ]


def test_weak_numbers_count_where_they_are_computed_with() -> None:
    g = Graph("weak", rules="jax", policy=Policy(widest="float32"))
    x = g.input("float32", ("n",), name="x")
    _ = x * 2.5 + g.scalar(1.0)
    assert widths(g) == []
    _ = ops.sin(g.scalar(1.0))
    assert [found[:2] for found in widths(g)] == [("sin", "float64")]


# -- where a policy goes


def test_a_policy_goes_with_the_graph_and_not_with_its_text() -> None:
    g = exact_and_lossy(warn={"to:complex"}, widest="float32")
    for made in (g.like(), pickle.loads(pickle.dumps(g)), lower(g), rebuild(g, "numpy")):
        assert made.policy == g.policy == Policy(warn={"to:complex"}, widest="float32")
    assert Graph.parse(str(g)).policy is None is Graph("new").policy
    assert len(widths(rebuild(g, "numpy"))) == 1  # what passes make is not judged, but can be


def test_explicit_graphs_imply_no_casts() -> None:
    assert Policy("forbid").hits(exact_and_lossy())
    assert Policy("forbid").hits(implicit_cast(exact_and_lossy())) == []


def test_a_refused_output_leaves_the_graph_usable() -> None:
    g = Graph("again", policy=Policy(forbid={"lossy"}))
    x, h = g.input("int32", ("n",)), g.input("float16", ("n",))
    wrong, text = x * h, ""
    for _ in range(2):
        with pytest.raises(PromotionError) as refused:
            g.output(wrong)
        assert g.outputs == () and text in ("", str(refused.value).split("\n", 1)[1])
        text = str(refused.value).split("\n", 1)[1]
    g.output(x.astype("float64") * h)
    assert len(g.outputs) == 1 and g.policy.hits(g) == []


@given(programs(), st.sampled_from([{}, {"casts": "warn"}, {"warn": {"lossy"}}]))
def test_a_policy_changes_no_graph(program: Program, policy: dict[str, Any]) -> None:
    graph = program.build()
    again = graph.like()
    again.policy = Policy(**policy)
    text = str(graph)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        again.policy.check(graph)
    assert str(graph) == text
    assert len(caught) == len(Policy(**policy).hits(graph))
    assert all(one.category is CastWarning for one in caught)
