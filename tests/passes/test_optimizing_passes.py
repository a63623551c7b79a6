"""The passes that make a graph smaller, text in and text out."""

from __future__ import annotations

from graphir import DType, Graph
from graphir.passes import common_subexpressions, dead_code, fold_constants, simplify_casts
from tests.support.rewrites import becomes, stays

# -- simplify_casts


def test_simplify_casts_drops_identities_and_joins_what_loses_nothing() -> None:
    becomes(
        lambda graph: dead_code(simplify_casts(graph)),
        """
        graph @chains rules=explicit (%x: int16[n], %y: bfloat16[n]) -> (int16[n], float64[n], \
float16[n], int16[n]) {
          %0 = cast(%x) {to=int16} : int16[n]
          %1 = cast(%0) {to=float32} : float32[n]
          %2 = cast(%1) {to=float64} : float64[n]
          %3 = cast(%y) {to=float32} : float32[n]
          %4 = cast(%3) {to=float16} : float16[n]
          %5 = cast(%2) {to=int16} : int16[n]
          return %0, %2, %4, %5
        }
        """,
        """
        graph @chains rules=explicit (%x: int16[n], %y: bfloat16[n]) -> (int16[n], float64[n], \
float16[n], int16[n]) {
          %0 = cast(%x) {to=float64} : float64[n]
          %1 = cast(%y) {to=float16} : float16[n]
          return %x, %0, %1, %x
        }
        """,
    )


def test_simplify_casts_keeps_what_can_lose_something() -> None:
    stays(
        simplify_casts,
        """
        graph @lossy rules=explicit (%x: int16[n], %y: float64[n]) -> (int8[n], float64[n], \
int16[n], bool[n]) {
          %0 = cast(%x) {to=float32} : float32[n]
          %1 = cast(%0) {to=int8} : int8[n]
          %2 = cast(%y) {to=float32} : float32[n]
          %3 = cast(%2) {to=float64} : float64[n]
          %4 = cast(%x) {to=int8} : int8[n]
          %5 = cast(%4) {to=int16} : int16[n]
          %6 = cast(%2) {to=bool} : bool[n]
          return %1, %3, %5, %6
        }
        """,
    )


def test_simplify_casts_keeps_the_reasons_of_both_casts() -> None:
    becomes(
        lambda graph: dead_code(simplify_casts(graph)),
        """
        graph @reasons rules=explicit (%x: int8[n]) -> (float32[n], float64[n]) {
          %0 = cast(%x) {to=int16} : int16[n] because(lhs of add, max: int8 -> int16)
          %1 = cast(%0) {to=float32} : float32[n]
          %2 = cast(%x) {to=int32} : int32[n]
          %3 = cast(%2) {to=float64} : float64[n]
          return %1, %3
        }
        """,
        """
        graph @reasons rules=explicit (%x: int8[n]) -> (float32[n], float64[n]) {
          %0 = cast(%x) {to=float32} : float32[n] because(lhs of add, max: int8 -> int16; \
x of cast, cast: int16 -> float32)
          %1 = cast(%x) {to=float64} : float64[n]
          return %0, %1
        }
        """,
    )


# -- fold_constants


def test_fold_constants_computes_what_is_known() -> None:
    becomes(
        lambda graph: dead_code(fold_constants(graph)),
        """
        graph @known rules=explicit (%x: float32[n]) -> (float32[n], bfloat16[2]) {
          %0 = constant {dtype=int8, value=3} : int8[]
          %1 = cast(%0) {to=float32} : float32[]
          %2 = negative(%1) : float32[]
          %3 = multiply(%x, %2) : float32[n]
          %4 = constant {dtype=bfloat16, value=[0x1p+0, inf]} : bfloat16[2]
          %5 = add(%4, %4) : bfloat16[2]
          return %3, %5
        }
        """,
        """
        graph @known rules=explicit (%x: float32[n]) -> (float32[n], bfloat16[2]) {
          %0 = constant {dtype=float32, value=-0x1.8p+1} : float32[] because(x of cast, \
cast: int8 -> float32)
          %1 = multiply(%x, %0) : float32[n]
          %2 = constant {dtype=bfloat16, value=[0x1p+1, inf]} : bfloat16[2]
          return %1, %2
        }
        """,
    )


def test_fold_constants_leaves_what_is_unknown_weak_or_has_no_value() -> None:
    stays(
        fold_constants,
        """
        graph @unknown rules=explicit (%x: float32[n]) -> (int32[], float32[n+1]) {
          %0 = constant {dtype=int32, value=-1} : int32[]
          %1 = pow(%0, %0) : int32[]
          %2 = constant {dtype=float32, value=0x1p+0} : float32[]
          %3 = broadcast_to(%2) {shape=[n+1]} : float32[n+1]
          %4 = constant {dtype=weak_int, value=1} : weak_int[]
          %5 = negative(%4) : weak_int[]
          return %1, %3
        }
        """,
    )


def test_fold_constants_needs_every_dim_even_where_the_size_is_known() -> None:
    stays(
        fold_constants,
        """
        graph @sizes rules=explicit (%x: int8[n]) -> (bool[n, 0], int8[2]) {
          %0 = constant {dtype=bool, value=[]} : bool[0]
          %1 = broadcast_to(%0) {shape=[n, 0]} : bool[n, 0]
          %2 = constant {dtype=int8, value=[1, 2, 3]} : int8[3]
          %3 = slice(%2) {start=[n], stop=[n+2], step=[1]} : int8[2]
          return %1, %3
        }
        """,
    )


def test_fold_constants_rounds_as_the_graph_does() -> None:
    for ties, expected in (("even", "0x1p+0"), ("away", "0x1.004p+0")):
        graph = Graph("ties", tf32=ties)
        graph.output(graph.scalar[DType.float32](1 + 2.0**-11).cast("tensor_float32"))
        assert f"value={expected}}}" in str(dead_code(fold_constants(graph)))


def test_fold_constants_leaves_large_results() -> None:
    graph = Graph("large")
    graph.output(graph.scalar[DType.int8](1).broadcast_to(5000))
    assert fold_constants(graph) is graph
    assert fold_constants(graph, limit=5000) is not graph


# -- common_subexpressions


def test_common_subexpressions_computes_equal_things_once() -> None:
    becomes(
        common_subexpressions,
        """
        graph @twice rules=explicit (%x: float32[n], %y: float32[n]) -> (float32[n], float32[n]) {
          %0 = add(%x, %y) : float32[n]
          %1 = add(%y, %x) : float32[n]
          %2 = subtract(%x, %y) : float32[n]
          %3 = subtract(%y, %x) : float32[n]
          %4 = maximum(%x, %y) : float32[n]
          %5 = maximum(%y, %x) : float32[n]
          %6 = multiply(%0, %2) : float32[n]
          %7 = multiply(%1, %2) : float32[n]
          return %6, %7
        }
        """,
        """
        graph @twice rules=explicit (%x: float32[n], %y: float32[n]) -> (float32[n], float32[n]) {
          %0 = add(%x, %y) : float32[n]
          %1 = subtract(%x, %y) : float32[n]
          %2 = subtract(%y, %x) : float32[n]
          %3 = maximum(%x, %y) : float32[n]
          %4 = maximum(%y, %x) : float32[n]
          %5 = multiply(%0, %1) : float32[n]
          return %5, %5
        }
        """,
    )


def test_common_subexpressions_tells_apart_what_only_looks_equal() -> None:
    stays(
        common_subexpressions,
        """
        graph @alike rules=explicit (%x: int8[n], %y: int8[n]) -> (int8[n], int8[n]) {
          %0 = constant {dtype=float32, value=0x0p+0} : float32[]
          %1 = constant {dtype=float32, value=-0x0p+0} : float32[]
          %2 = constant {dtype=int8, value=1} : int8[]
          %3 = constant {dtype=bool, value=true} : bool[]
          %4 = constant {dtype=uint8, value=1} : uint8[]
          %5 = constant {dtype=int8, value=[1]} : int8[1]
          %6 = full {dtype=float32, value=0x0p+0, shape=[2]} : float32[2]
          %7 = full {dtype=float32, value=-0x0p+0, shape=[2]} : float32[2]
          %8 = full {dtype=float32, value=0, shape=[2]} : float32[2]
          %9 = pad(%x) {padding=[[1, 0]], value=1} : int8[n+1]
          %10 = pad(%x) {padding=[[1, 0]], value=true} : int8[n+1]
          return %x, %y
        }
        """,
    )


def test_common_subexpressions_of_equal_nan_constants() -> None:
    becomes(
        common_subexpressions,
        """
        graph @nan rules=explicit () -> (float32[], float32[]) {
          %0 = constant {dtype=float32, value=nan} : float32[]
          %1 = constant {dtype=float32, value=nan} : float32[]
          return %0, %1
        }
        """,
        """
        graph @nan rules=explicit () -> (float32[], float32[]) {
          %0 = constant {dtype=float32, value=nan} : float32[]
          return %0, %0
        }
        """,
    )


def test_common_subexpressions_keeps_the_reasons_of_all_casts() -> None:
    becomes(
        common_subexpressions,
        """
        graph @reasons rules=explicit (%x: int8[n]) -> (float32[n], float32[n], float32[n]) {
          %0 = cast(%x) {to=float32} : float32[n] because(lhs of add, max: int8 -> float32)
          %1 = cast(%x) {to=float32} : float32[n]
          %2 = cast(%x) {to=float32} : float32[n] because(rhs of subtract, max: int8 -> float32)
          return %0, %1, %2
        }
        """,
        """
        graph @reasons rules=explicit (%x: int8[n]) -> (float32[n], float32[n], float32[n]) {
          %0 = cast(%x) {to=float32} : float32[n] because(lhs of add, max: int8 -> float32; \
x of cast, cast: int8 -> float32; rhs of subtract, max: int8 -> float32)
          return %0, %0, %0
        }
        """,
    )


def test_common_subexpressions_keeps_the_reasons_that_folding_left_to_constants() -> None:
    becomes(
        common_subexpressions,
        """
        graph @folded rules=explicit (%x: float32[n]) -> (float32[n]) {
          %0 = constant {dtype=float32, value=0x1p+0} : float32[]
          %1 = constant {dtype=float32, value=0x1p+0} : float32[] because(lhs of add, \
max: int16 -> float32)
          %2 = constant {dtype=float32, value=0x1p+0} : float32[] because(rhs of subtract, \
max: int64 -> float32)
          %3 = add(%x, %0) : float32[n]
          %4 = add(%3, %1) : float32[n]
          %5 = subtract(%4, %2) : float32[n]
          return %5
        }
        """,
        """
        graph @folded rules=explicit (%x: float32[n]) -> (float32[n]) {
          %0 = constant {dtype=float32, value=0x1p+0} : float32[] because(lhs of add, \
max: int16 -> float32; rhs of subtract, max: int64 -> float32)
          %1 = add(%x, %0) : float32[n]
          %2 = add(%1, %0) : float32[n]
          %3 = subtract(%2, %0) : float32[n]
          return %3
        }
        """,
    )


# -- dead_code


def test_dead_code_drops_what_no_output_needs_and_keeps_inputs() -> None:
    becomes(
        dead_code,
        """
        graph @dead rules=max (%x: int8[n], %unused: float32[m]) -> (int8[n]) {
          %0 = negative(%x) : int8[n]
          %1 = exp(%unused) : float32[m]
          %2 = abs(%1) : float32[m]
          %3 = abs(%0) : int8[n]
          %4 = constant {dtype=int8, value=1} : int8[]
          return %3
        }
        """,
        """
        graph @dead rules=max (%x: int8[n], %unused: float32[m]) -> (int8[n]) {
          %0 = negative(%x) : int8[n]
          %1 = abs(%0) : int8[n]
          return %1
        }
        """,
    )
