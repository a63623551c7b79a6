"""The passes that lower a graph, text in and text out; and Pipeline."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from graphir import DType, Graph, GraphError, PromotionRules, Symbol, ops
from graphir.passes import (
    Pipeline,
    common_subexpressions,
    dead_code,
    fold_constants,
    implicit_cast,
    legalize,
    lower,
    pipeline,
    simplify_casts,
    weak_types,
)
from graphir.runtime import interpret
from tests.support.evaluator import same
from tests.support.rewrites import becomes, parse, stays

# -- implicit_cast


def test_implicit_cast_casts_a_value_once_for_all_its_uses() -> None:
    becomes(
        implicit_cast,
        """
        graph @shared rules=max (%x: int16[n], %y: float32[n]) -> (float32[n]) {
          %0 = add(%x, %y) : float32[n]
          %1 = multiply(%0, %x) : float32[n]
          %2 = add(%x, %x) : int16[n]
          %3 = add(%1, %2) : float32[n]
          return %3
        }
        """,
        """
        graph @shared rules=explicit from=max (%x: int16[n], %y: float32[n]) -> (float32[n]) {
          %0 = cast(%x) {to=float32} : float32[n] because(lhs of add, max: int16 -> float32; \
rhs of multiply, max: int16 -> float32)
          %1 = add(%0, %y) : float32[n]
          %2 = multiply(%1, %0) : float32[n]
          %3 = add(%x, %x) : int16[n]
          %4 = cast(%3) {to=float32} : float32[n] because(rhs of add, max: int16 -> float32)
          %5 = add(%2, %4) : float32[n]
          return %5
        }
        """,
    )


def test_implicit_cast_gives_each_operand_what_its_signature_names() -> None:
    becomes(
        implicit_cast,
        """
        graph @operands rules=max (%c: bool[n], %i: int8[n], %x: float32[]) -> (float32[n]) {
          %0 = where(%c, %i, %x) : float32[n]
          %1 = left_shift(%i, %c) : int8[n]
          %2 = divide(%i, %c) : float64[n]
          %3 = gather(%0, %i) : float32[n]
          return %0
        }
        """,
        """
        graph @operands rules=explicit from=max (%c: bool[n], %i: int8[n], %x: float32[]) \
-> (float32[n]) {
          %0 = cast(%i) {to=float32} : float32[n] because(x of where, max: int8 -> float32)
          %1 = where(%c, %0, %x) : float32[n]
          %2 = cast(%c) {to=int8} : int8[n] because(rhs of left_shift, max: bool -> int8)
          %3 = left_shift(%i, %2) : int8[n]
          %4 = cast(%i) {to=float64} : float64[n] because(lhs of divide, max: int8 -> float64)
          %5 = cast(%c) {to=float64} : float64[n] because(rhs of divide, max: bool -> float64)
          %6 = divide(%4, %5) : float64[n]
          %7 = gather(%1, %i) : float32[n]
          return %1
        }
        """,
    )


def test_implicit_cast_casts_before_the_broadcast() -> None:
    becomes(
        implicit_cast,
        """
        graph @small rules=max (%x: int16[1], %y: float32[n, 3]) -> (float32[n, 3]) {
          %0 = multiply(%x, %y) : float32[n, 3]
          return %0
        }
        """,
        """
        graph @small rules=explicit from=max (%x: int16[1], %y: float32[n, 3]) -> (float32[n, 3]) {
          %0 = cast(%x) {to=float32} : float32[1] because(lhs of multiply, max: int16 -> float32)
          %1 = multiply(%0, %y) : float32[n, 3]
          return %1
        }
        """,
    )


def test_implicit_cast_writes_down_what_the_rules_decided_besides() -> None:
    becomes(
        implicit_cast,
        """
        graph @sums rules=python (%x: bool[n], %y: weak_float[n]) -> (weak_float[n]) {
          %0 = sum(%x) : weak_int[]
          %1 = pow(%y, %0) : weak_float[n]
          return %1
        }
        """,
        """
        graph @sums rules=explicit from=python (%x: bool[n], %y: weak_float[n]) -> (weak_float[n]) {
          %0 = cast(%x) {to=weak_int} : weak_int[n] because(x of sum, python: bool -> weak_int)
          %1 = sum(%0) : weak_int[]
          %2 = cast(%1) {to=weak_float} : weak_float[] because(rhs of pow, python: weak_int \
-> weak_float)
          %3 = pow(%y, %2) : weak_float[n]
          return %3
        }
        """,
    )


def test_implicit_cast_keeps_the_dtype_of_positions_that_the_rules_had() -> None:
    class Short(PromotionRules):
        def position(self, op: str) -> DType:
            return DType.int32

    graph = Graph("places", rules=Short("short", "int32 for positions"))
    x = graph.input("float32", ("n", 2))
    graph.output(ops.argmax(x), ops.shape_of(x), ops.argsort(x, dtype="int8"))
    explicit = implicit_cast(graph).verify()
    assert [symbol.attrs["dtype"] for symbol in explicit.outputs] == [
        *(DType.int32, DType.int32, DType.int8)
    ]
    ones = np.ones((3, 2), np.float32)
    for one, other in zip(interpret(graph, ones), interpret(explicit, ones), strict=True):
        assert same(one, other)


EXPLICIT = """
    graph @plain rules=explicit (%x: int16[n], %y: float32[n]) -> (float32[n]) {
      %0 = cast(%x) {to=float32} : float32[n]
      %1 = add(%0, %y) : float32[n]
      return %1
    }
    """


def test_a_graph_that_has_all_a_pass_wants_is_returned_as_it_is() -> None:
    for each in (implicit_cast, weak_types, legalize, simplify_casts, fold_constants):
        stays(each, EXPLICIT)
    for each in (common_subexpressions, dead_code, lower):
        stays(each, EXPLICIT)


# -- weak_types


def test_weak_types_commits_what_is_still_weak() -> None:
    becomes(
        weak_types,
        """
        graph @weak rules=explicit from=python (%x: weak_int[n], %y: weak_float[n]) \
-> (weak_complex[n]) {
          %0 = constant {dtype=weak_float, value=[0x1.8p+0, -0x0p+0]} : weak_float[2]
          %1 = cast(%x) {to=weak_float} : weak_float[n]
          %2 = cast(%1) {to=weak_complex} : weak_complex[n]
          return %2
        }
        """,
        """
        graph @weak rules=explicit from=python (%x: int64[n], %y: float64[n]) -> (complex128[n]) {
          %0 = constant {dtype=float64, value=[0x1.8p+0, -0x0p+0]} : float64[2]
          %1 = cast(%x) {to=float64} : float64[n]
          %2 = cast(%1) {to=complex128} : complex128[n]
          return %2
        }
        """,
    )


# -- legalize


def test_legalize_widens_computes_and_rounds_once() -> None:
    becomes(
        legalize,
        """
        graph @narrow rules=explicit (%x: bfloat16[n, 3]) -> (bfloat16[n], bool[n, 3]) {
          %0 = add(%x, %x) : bfloat16[n, 3]
          %1 = sum(%0) {axis=[1]} : bfloat16[n]
          %2 = less(%x, %0) : bool[n, 3]
          return %1, %2
        }
        """,
        """
        graph @narrow rules=explicit (%x: bfloat16[n, 3]) -> (bfloat16[n], bool[n, 3]) {
          %0 = cast(%x) {to=float32} : float32[n, 3] because(lhs of add, legalize: bfloat16 \
-> float32; rhs of add, legalize: bfloat16 -> float32; lhs of less, legalize: bfloat16 -> float32)
          %1 = add(%0, %0) : float32[n, 3]
          %2 = cast(%1) {to=bfloat16} : bfloat16[n, 3] because(result of add, legalize: float32 \
-> bfloat16)
          %3 = cast(%2) {to=float32} : float32[n, 3] because(x of sum, legalize: bfloat16 \
-> float32; rhs of less, legalize: bfloat16 -> float32)
          %4 = sum(%3) {axis=[1]} : float32[n]
          %5 = cast(%4) {to=bfloat16} : bfloat16[n] because(result of sum, legalize: float32 \
-> bfloat16)
          %6 = less(%0, %3) : bool[n, 3]
          return %5, %6
        }
        """,
    )


def test_legalize_computes_small_and_address_like_integers_in_whole_bytes() -> None:
    becomes(
        legalize,
        """
        graph @integers rules=explicit (%i: index[n], %q: int4[n]) -> (index[n], int4[], uint2[n]) {
          %0 = negative(%i) : index[n]
          %1 = sum(%q) : int4[]
          %2 = argsort(%q) {dtype=uint2} : uint2[n]
          return %0, %1, %2
        }
        """,
        """
        graph @integers rules=explicit (%i: index[n], %q: int4[n]) -> (index[n], int4[], uint2[n]) {
          %0 = cast(%i) {to=uint64} : uint64[n] because(x of negative, legalize: index -> uint64)
          %1 = negative(%0) : uint64[n]
          %2 = cast(%1) {to=index} : index[n] because(result of negative, legalize: uint64 -> index)
          %3 = cast(%q) {to=int8} : int8[n] because(x of sum, legalize: int4 -> int8; \
x of argsort, legalize: int4 -> int8)
          %4 = sum(%3) : int8[]
          %5 = cast(%4) {to=int4} : int4[] because(result of sum, legalize: int8 -> int4)
          %6 = argsort(%3) {dtype=uint8} : uint8[n]
          %7 = cast(%6) {to=uint2} : uint2[n] because(result of argsort, legalize: uint8 -> uint2)
          return %2, %5, %7
        }
        """,
    )


def test_legalize_leaves_movement_in_the_dtype_it_has() -> None:
    stays(
        legalize,
        """
        graph @moves rules=explicit (%x: float8_e5m2[n], %i: uint4[n]) -> (float8_e5m2[2*n]) {
          %0 = gather(%x, %i) : float8_e5m2[n]
          %1 = concat(%0, %x) : float8_e5m2[2*n]
          %2 = flip(%1) : float8_e5m2[2*n]
          %3 = eye {dtype=tensor_float32, rows=3, columns=3} : tensor_float32[3, 3]
          return %2
        }
        """,
    )


# -- lower and Pipeline


def test_lower_does_all_of_it() -> None:
    becomes(
        lower,
        """
        graph @all rules=max (%x: uint8[n], %w: bfloat16[n]) -> (bfloat16[n]) {
          %0 = constant {dtype=uint8, value=255} : uint8[]
          %1 = constant {dtype=bfloat16, value=0x1p+1} : bfloat16[]
          %2 = divide(%1, %0) : bfloat16[]
          %3 = multiply(%2, %x) : bfloat16[n]
          %4 = exp(%3) : bfloat16[n]
          %5 = maximum(%3, %w) : bfloat16[n]
          return %5
        }
        """,
        """
        graph @all rules=explicit from=max (%x: uint8[n], %w: bfloat16[n]) -> (bfloat16[n]) {
          %0 = constant {dtype=float32, value=0x1.02p-7} : float32[] because(lhs of multiply, \
legalize: bfloat16 -> float32; result of divide, legalize: float32 -> bfloat16; lhs of divide, \
legalize: bfloat16 -> float32; rhs of divide, max: uint8 -> bfloat16; rhs of divide, \
legalize: bfloat16 -> float32)
          %1 = cast(%x) {to=float32} : float32[n] because(rhs of multiply, max: uint8 -> bfloat16; \
rhs of multiply, legalize: bfloat16 -> float32)
          %2 = multiply(%0, %1) : float32[n]
          %3 = cast(%2) {to=bfloat16} : bfloat16[n] because(result of multiply, \
legalize: float32 -> bfloat16)
          %4 = cast(%3) {to=float32} : float32[n] because(x of exp, legalize: bfloat16 -> float32; \
lhs of maximum, legalize: bfloat16 -> float32)
          %5 = cast(%w) {to=float32} : float32[n] because(rhs of maximum, \
legalize: bfloat16 -> float32)
          %6 = maximum(%4, %5) : float32[n]
          %7 = cast(%6) {to=bfloat16} : bfloat16[n] because(result of maximum, \
legalize: float32 -> bfloat16)
          return %7
        }
        """,
    )


def test_lower_of_the_same_graph_is_the_same_graph_until_it_grows() -> None:
    graph = Graph("growing")
    x = graph.input("int16", "n")
    graph.output(x + 1.5 * x.cast("float32"))
    lowered = lower(graph)
    assert lower(graph) is lowered and lower(lowered) is lowered
    _ = x + x
    assert lower(graph) is not lowered


def test_passes_leave_their_argument_as_it_was() -> None:
    graph = parse(EXPLICIT.replace("explicit", "max"))
    before = str(graph), list(graph.symbols)
    lower(graph)
    assert (str(graph), list(map(id, graph.symbols))) == (before[0], list(map(id, before[1])))


def test_lower_frees_what_lies_between_without_the_collector() -> None:
    graph = Graph("between", rules="jax")
    x = graph.input("bfloat16", ("n",))
    graph.output((x * 2 + 1) - (x * 2 + 1))
    gc.collect()
    gc.disable()
    try:
        kept = [*graph, *lower(graph)]
        symbols = [one for one in gc.get_objects() if isinstance(one, Symbol)]
        assert sum(one.graph.name == "between" for one in symbols) == len(kept)
    finally:
        gc.enable()


def test_a_pipeline_names_the_pass_that_failed() -> None:
    def broken(graph: Graph) -> Graph:
        new = graph.like()
        new.outputs = graph.outputs
        return new

    steps = [implicit_cast, dead_code, broken, fold_constants]
    with pytest.raises(GraphError, match=r"in pass broken, after \[implicit_cast, dead_code\]: "):
        Pipeline(steps, verify_each=True)(parse(EXPLICIT))
    assert Pipeline(steps[:2], verify_each=True)(parse(EXPLICIT))


def test_lower_names_the_pass_that_made_a_wrong_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(graph: Graph) -> Graph:
        new = fold_constants(parse(EXPLICIT))
        new.symbols[-1].args = new.symbols[-1].args[::-1][:1]
        return new

    wrong = parse(EXPLICIT)
    wrong.outputs = parse(EXPLICIT).outputs
    with pytest.raises(GraphError, match=r"^before the passes \[implicit_cast, .*an output of"):
        lower(wrong)
    monkeypatch.setattr(pipeline, "LOWERING", (*pipeline.LOWERING[:2], broken))
    with pytest.raises(GraphError, match=r"^in pass broken, after \[implicit_cast, weak_types\]: "):
        lower(parse(EXPLICIT))


def test_a_pipeline_verifies_what_it_is_given() -> None:
    graph = parse(EXPLICIT)
    graph.symbols[-1].op = ops.subtract
    graph.symbols[-1].args = (graph.symbols[0], graph.symbols[1])
    with pytest.raises(GraphError, match="symbol 3"):
        Pipeline([dead_code], verify_each=True)(graph)
    assert Pipeline([dead_code])(graph)


def test_an_empty_pipeline_gives_the_graph_itself() -> None:
    graph = parse(EXPLICIT)
    assert Pipeline([])(graph) is graph
