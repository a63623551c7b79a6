"""PyTorch itself against the rule set "torch": joins, every op, literals and their values."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations, product
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed, so nothing is compared with it")

import torch

from graphir import DType, Graph, GraphirError, TensorType, ops, runtime
from graphir.promotion.torch import TORCH as NEWEST
from tests.peers import CALLS, Deviation, Operand, any_complex, differences, ours, unexplained
from tests.peers import torch_ as peer
from tests.support.tables import every

TORCH = NEWEST.of_release(torch.__version__)
DTYPES = tuple(peer.DTYPES)
FLOAT8 = tuple(dtype for dtype in DTYPES if dtype.narrow)
UNSIGNED = (DType.uint16, DType.uint32, DType.uint64)
CORE = tuple(dtype for dtype in DTYPES if dtype not in (*FLOAT8, *UNSIGNED))
N_D, ZERO_D = (2,), ()
NUMBERS = (True, 1, 1.0, 1j)
TENSORS: list[Operand] = [(dtype, shape) for dtype in DTYPES for shape in (N_D, ZERO_D)]
PAIRS = [
    pair
    for pair in product([*TENSORS, *NUMBERS], repeat=2)
    if any(isinstance(one, tuple) for one in pair)
]

pytestmark = pytest.mark.filterwarnings("ignore")


def answer(*operands: Operand) -> DType | None:
    """What the rules answer to the question that peer.result_type asks PyTorch."""
    return TORCH.answer(*(TensorType(*x) if isinstance(x, tuple) else x for x in operands))


# -- the join


def test_pairs_of_n_d_and_0d_tensors_and_numbers():
    found = [pair for pair in PAIRS if answer(*pair) is not peer.result_type(*pair)]
    assert found == []


@every("op", ["add", "multiply"])
def test_pairs_added_and_multiplied(op: str):
    found = [pair for pair in PAIRS if ours(TORCH, op, *pair) is not peer.result(op, *pair)]
    assert found == []


def test_the_result_of_two_is_the_same_in_either_order():
    assert all(answer(*pair) is answer(*pair[::-1]) for pair in PAIRS)


@every("shape", [N_D, ZERO_D])
def test_all_triples_in_their_order(shape: tuple[int, ...]):
    for triple in product(DTYPES, repeat=3):
        operands: list[Operand] = [(dtype, shape) for dtype in triple]
        assert answer(*operands) is peer.result_type(*operands), triple


def test_triples_with_one_operand_of_each_rung():
    for a, b, number in product(DTYPES, DTYPES, NUMBERS[1:]):
        operands: tuple[Operand, ...] = (a, N_D), (b, ZERO_D), number
        expected = peer.result_type(*operands)
        assert {answer(*order) for order in permutations(operands)} == {expected}, operands


@every("op", ["concat", "clip"])
def test_triples_in_ops_of_three(op: str):
    dtypes = (DType.int8, DType.uint16, DType.float16, DType.float32, DType.complex64)
    for triple in product(dtypes, repeat=3):
        operands: list[Operand] = [(dtype, N_D) for dtype in triple]
        assert ours(TORCH, op, *operands) is peer.result(op, *operands), triple


# -- every op


def _halves(dtypes: Sequence[DType]) -> bool:
    return any(dtype.bits <= 16 and dtype.is_float for dtype in dtypes)


def _some(*dtypes: DType) -> Callable[[Sequence[DType]], bool]:
    return lambda found: any(dtype in dtypes for dtype in found)


NO_INF = (DType.float8_e4m3fn, DType.float8_e4m3fnuz, DType.float8_e5m2fnuz)
DEVIATIONS = [
    Deviation("sigmoid silu logaddexp", any_complex, "graphir computes it of real numbers alone"),
    Deviation(
        "heaviside",
        lambda d: not (d[0].is_float or d[0].is_complex),
        "graphir computes it of floats alone",
    ),
    Deviation("nextafter", _halves, "graphir steps through float32 and float64 alone"),
    Deviation(
        "layer_norm",
        lambda d: d[0] in (DType.float16, DType.bfloat16) and d[1] is d[2] is DType.float32,
        "scale and shift of float32 for a half: graphir's norm has one dtype",
    ),
    Deviation("is_finite logaddexp", _some(*NO_INF), "PyTorch has no kernel anywhere, no rule"),
]


def test_every_op_that_pytorch_has_on_every_pair_of_dtypes():
    assert set(CALLS) - set(peer.OPS) == {
        *("cbrt", "rebind", "shape_of", "affine_view", "item", "numpy_sum", "slice_update"),
        *("index_update", "index_add"),
    }
    found = differences(TORCH, peer.result, peer.OPS, DTYPES)  # pyright: ignore[reportArgumentType]
    assert unexplained(found, DEVIATIONS) == ([], [])


def test_conditions():
    for dtype in DTYPES:
        operands: list[Operand] = [(dtype, N_D), (DType.int8, N_D), (DType.int8, N_D)]
        assert ours(TORCH, "where", *operands) is peer.result("where", *operands), dtype


# -- literals

INTS = (
    *(0, 1, -1, 2, 127, 128, -129, 255, 256, -256, 2049, 65505),
    *(2**24 + 1, 2**63, 2**64 - 1, -(2**63), -(2**63) - 1, 2**64),
)
FLOATS = (0.1, -1.5, 2049.0, 65504.5, 65520.0, 1e39, 3.40282350e38, float("inf"), float("nan"))
LITERALS = (True, *INTS, *FLOATS, 1j, 1e39j)
TAKING_NUMBERS = (
    *("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "pow"),
    *("equal", "less", "bitwise_and", "left_shift", "where", "clip"),
)


class Asked(NamedTuple):
    """An op of a tensor and a literal, which comes first or last (as both bounds of clip)."""

    op: str
    dtype: DType
    shape: tuple[int, ...]
    literal: Any
    first: bool

    def operands(self, tensor: Any, condition: Any) -> tuple[Any, ...]:
        if self.op == "clip":
            return tensor, self.literal, self.literal
        pair = (self.literal, tensor) if self.first else (tensor, self.literal)
        return (condition, *pair) if self.op == "where" else pair

    def ours(self) -> tuple[DType, Any] | None:
        """The dtype and value of the result on 3 (bool: True), None where anything refuses."""
        g = Graph(rules=TORCH)
        try:
            x = g.input(self.dtype, self.shape)
            g.output(ops.CATALOGUE[self.op](*self.operands(x, np.zeros(self.shape, bool))))
            value = runtime.interpret(g, np.full(self.shape, 3, self.dtype.storage))
        except GraphirError:
            return None
        return g.outputs[0].dtype, value

    def theirs(self) -> tuple[DType, Any] | None:
        """The same of PyTorch; of complex32 None."""
        x = torch.full(self.shape, 3.0).to(peer.DTYPES[self.dtype])
        condition = torch.zeros(self.shape, dtype=torch.bool)
        try:
            found = peer.OPS[self.op](*self.operands(x, condition))
        except (TypeError, RuntimeError, OverflowError, ZeroDivisionError):
            return None
        dtype = next((ours for ours, t in peer.DTYPES.items() if t is found.dtype), None)
        half = found.is_floating_point() and found.itemsize <= 2  # NumPy may lack it
        return dtype and (dtype, (found.float() if half else found).numpy())


def asked() -> Iterator[Asked]:
    for op, dtype, literal in product(TAKING_NUMBERS, DTYPES, LITERALS):
        if dtype not in CORE and op != "where":  # for which PyTorch has few kernels
            continue
        for shape, first in (((1,), True), ((1,), False), ((), False)):
            if not (op == "clip" and first):
                yield Asked(op, dtype, shape, literal, first)


def _divides_by_0(one: Asked) -> bool:
    integer = not one.dtype.is_float and not one.dtype.is_complex and isinstance(one.literal, int)
    bits = 64 if one.dtype is DType.bool else one.dtype.bits
    return integer and one.op in ("floor_divide", "remainder") and one.literal % 2**bits == 0


WITHOUT_COMPLEX = {dtype for dtype, parts in TORCH.complex_dtypes.items() if parts is None}
LITERAL_DEVIATIONS: dict[str, Callable[[Asked], bool]] = {
    "x // 0 and x % 0 of ints raise in PyTorch and are 0 here": (
        lambda one: _divides_by_0(one) and not one.first
    ),
    "a half and a complex number compare in complex32 or bcomplex32, which gives bool": (
        lambda one: (
            one.op == "equal" and one.dtype in WITHOUT_COMPLEX and isinstance(one.literal, complex)
        )
    ),
    "an int from 2**63 on is a 0-d uint64 here, which mixes with 0-d floats alone": (
        lambda one: (
            not one.shape
            and isinstance(one.literal, int)
            and one.literal >= 2**63
            and (one.dtype in FLOAT8 or not one.dtype.is_float)
        )
    ),
}


def test_literals_are_taken_and_refused_alike():
    unused = dict(LITERAL_DEVIATIONS)
    for one in asked():
        us, them = one.ours(), one.theirs()
        if (us and us[0]) is not (them and them[0]):
            reasons = [why for why, where in LITERAL_DEVIATIONS.items() if where(one)]
            assert reasons, (one, us, them)
            for why in reasons:
                unused.pop(why, None)
    assert not unused


# PyTorch keeps a literal that multiplies or divides a half in float32, divides a literal by
# multiplying with a reciprocal, and rounds pow and complex arithmetic otherwise.
EXACT = set(TAKING_NUMBERS) - {"divide", "pow"}


def test_literals_wrap_and_round_to_the_same_values():
    count = 0
    for one in asked():
        exact = one.op in EXACT
        if one.dtype.bits <= 16 and one.dtype.is_float:
            exact = exact and "multiply" not in one.op and "divide" not in one.op
        us, them = (one.ours(), one.theirs()) if exact and one.dtype in CORE else (None, None)
        if us and them and not us[0].is_complex:
            count += 1
            np.testing.assert_array_equal(us[1].astype(them[1].dtype), them[1], str(one))
    assert count > 5000


# -- NumPy's scalars, which PyTorch takes as Python numbers

SCALARS = [
    *(np.dtype(code).type(1) for code in "?bhilBHILefdFD"),
    *(np.complex64(2 + 3j), np.complex128(2 + 3j), np.longdouble(1.5), np.uint64(2**63)),
]
WITH_SCALARS: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name)
    for name in (
        *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "eq", "lt"),
        *("and_", "lshift"),
    )
}


def _compared_in_halves(name: str, dtype: DType, scalar: Any) -> bool:
    """A half and a complex number compare in complex32 or bcomplex32, which gives bool."""
    return name == "eq" and dtype in WITHOUT_COMPLEX and isinstance(scalar, complex)


@every("name", WITH_SCALARS)
def test_numpys_scalars_beside_tensors(name: str):
    function, count = WITH_SCALARS[name], 0
    for dtype, shape, scalar in product((*CORE, *UNSIGNED), (N_D, ZERO_D), SCALARS):
        tensor, x = torch.ones(shape).to(peer.DTYPES[dtype]), Graph(rules=TORCH).input(dtype, shape)
        for swapped in (False, True):
            order = slice(None, None, -1 if swapped else 1)
            try:
                theirs = peer.dtype_of(function(*(tensor, scalar)[order]))
            except peer.REFUSALS as refusal:
                if peer.lacks_kernel(refusal):
                    continue  # of an unsigned dtype, which is no rule
                theirs = None
            try:
                ours_ = function(*(x, scalar)[order]).dtype
            except GraphirError:
                ours_ = None
            count += 1
            if not _compared_in_halves(name, dtype, scalar):
                assert ours_ is theirs, (dtype, shape, repr(scalar), swapped)
    assert count > 800


def test_the_numbers_that_numpys_scalars_are():
    for scalar in (np.bool_(True), np.complex64(2 + 3j), np.float16(0.1), np.int64(-7)):
        g = Graph(rules=TORCH)
        g.output(g.input(DType.int32, (2,)) * scalar)
        found = runtime.interpret(g, np.array([2, 3], np.int32))
        theirs = (torch.tensor([2, 3], dtype=torch.int32) * scalar).numpy()
        np.testing.assert_array_equal(found, theirs, strict=True)
