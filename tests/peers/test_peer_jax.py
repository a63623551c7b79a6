"""JAX itself against its rule sets: joins, every op in four modes, literals and their values."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import combinations_with_replacement, product
from typing import Any, NamedTuple

import numpy as np
import pytest

pytest.importorskip("jax", reason="JAX is not installed, so nothing is compared with it")

import jax

from graphir import DType, Graph, GraphirError, PromotionRules, Symbol, TensorType, ops, runtime
from graphir.promotion.jax import JAX, JAX_LAX, JAX_STRICT, JAX_X32
from tests.peers import (
    CALLS,
    Deviation,
    Operand,
    any_complex,
    choices,
    differences,
    ours,
    unexplained,
)
from tests.peers import jax_ as peer
from tests.support.tables import every

DTYPES = tuple(peer.DTYPES)
SMALL = tuple(dtype for dtype in DTYPES if dtype.narrow)
MAIN = tuple(dtype for dtype in DTYPES if dtype not in SMALL)
SOME = "bool int8 int32 int64 uint8 uint32 uint64 float16 float32 float64 complex64 complex128"
SOME += " weak_int weak_float weak_complex int2 float8_e8m0fnu"
N_D, ZERO_D = (2,), ()
NUMBERS = (True, 1, 1.5, 1j)


class Mode(NamedTuple):
    """A rule set, the settings of JAX that it speaks of, and its functions."""

    rules: PromotionRules
    settings: dict[str, Any]
    functions: dict[str, Callable[..., Any]] = peer.OPS


def _installed(rules: PromotionRules) -> PromotionRules:
    return rules.of_release(jax.__version__)


MODES = {
    "jax": Mode(_installed(JAX), {}),
    "jax_x32": Mode(_installed(JAX_X32), {"x64": False}),
    "jax_strict": Mode(_installed(JAX_STRICT), {"promotion": "strict"}),
    "jax_lax": Mode(_installed(JAX_LAX), {"lax": True}, peer.LAX),
}
JOINING = ("jax", "jax_x32", "jax_strict")


def answer(rules: PromotionRules, *operands: Operand) -> DType | None:
    """What the rules answer to the question that peer.result_type asks JAX."""
    return rules.answer(*(TensorType(*x) if isinstance(x, tuple) else x for x in operands))


# -- the join


@every("name", JOINING)
def test_pairs_of_n_d_and_0d_arrays_and_numbers(name: str):
    mode = MODES[name]
    arrays: list[Operand] = [(dtype, N_D) for dtype in DTYPES]
    others: list[Operand] = [*arrays, *((dtype, ZERO_D) for dtype in DTYPES), *NUMBERS]
    for pair in (*product(arrays, others), *product(NUMBERS, arrays)):
        assert answer(mode.rules, *pair) is peer.result_type(*pair, **mode.settings), pair


@every("name", JOINING)
def test_the_dtypes_of_any_three(name: str):
    mode = MODES[name]
    for triple in combinations_with_replacement(DTYPES if name == "jax" else MAIN, 3):
        operands: list[Operand] = [(dtype, N_D) for dtype in triple]
        found = answer(mode.rules, *operands)
        assert found is peer.result_type(*operands, **mode.settings), triple
        assert answer(mode.rules, *reversed(operands)) is found, triple


@every("op", ["concat", "clip", "where"])
def test_any_three_in_ops(op: str):
    dtypes = (DType.bool, DType.int8, DType.uint64, DType.bfloat16, DType.float16, DType.weak_float)
    asked: list[list[Operand]] = [[(d, N_D) for d in three] for three in product(dtypes, repeat=3)]
    for operands, theirs in zip(asked, peer.results(op, asked), strict=True):
        assert ours(JAX, op, *operands) is theirs, operands


# -- every op


def _bits(found: Sequence[DType], bits: int) -> bool:
    return any(dtype.bits == bits for dtype in found)


def _of_no_join(found: Sequence[DType]) -> bool:
    return JAX_LAX.answer(*found) is None


def _drops_imaginary_part(found: Sequence[DType]) -> bool:
    return found[1].is_complex and not found[0].is_complex


LIMITS = [
    Deviation(
        "relu sigmoid silu softplus softmax logsoftmax deg2rad atan2 logaddexp",
        any_complex,
        "graphir computes it of real numbers alone",
    ),
    Deviation(
        "nextafter",
        lambda found: any(dtype.is_float and dtype.bits <= 16 for dtype in found),
        "graphir steps through float32 and float64 alone",
    ),
    Deviation(
        "pad", lambda found: found[0] is DType.float8_e8m0fnu, "the dtype has no 0 to pad with"
    ),
]
QUIRKS = [
    Deviation(
        "divide mean deg2rad heaviside",
        lambda found: _bits(found, 2),
        "JAX divides int2 and uint2 in 2 bits: an oversight, to_inexact_dtype lacks the two",
    ),
    Deviation(
        "matmul tensordot",
        lambda found: found[0].weak != found[1].weak,
        "JAX takes no weak array that is wider than the result; here it is converted",
    ),
    Deviation(
        "scatter",
        _drops_imaginary_part,
        "JAX warns and drops the imaginary part; here .real says so",
    ),
    Deviation(
        "scatter",
        lambda found: found[0].weak and found[1].narrow,
        "JAX asks whether what is put joins x as if that were strong",
    ),
]
OF_LAX = [
    Deviation(
        "divide",
        lambda found: all(dtype.is_integer for dtype in found),
        "lax.div of integers truncates; no / here does",
    ),
    Deviation("any all", lambda found: found[0].is_integer, "lax.reduce_or is bitwise, not truth"),
    Deviation(
        "matmul tensordot",
        _of_no_join,
        "lax.dot mixes any dtypes, in the one of the greater range; here operands are alike",
    ),
]
DEVIATIONS = {
    "jax": LIMITS + QUIRKS,
    "jax_x32": LIMITS + QUIRKS,
    "jax_strict": LIMITS + [one for one in QUIRKS if one.ops != "scatter"],
    "jax_lax": [one._replace(ops=one.ops.replace("logaddexp", "")) for one in LIMITS] + OF_LAX,
}


def all_at_once(mode: Mode, dtypes: Sequence[DType]) -> Callable[..., DType | None]:
    """What `differences` asks, for each op traced at once."""
    found: dict[tuple[Any, ...], DType | None] = {}
    for op in mode.functions:
        chosen = choices(len(CALLS[op].free), dtypes)
        asked = [tuple(CALLS[op].operands(*one)) for one in chosen]
        for operands, theirs in zip(asked, peer.results(op, asked, **mode.settings), strict=True):
            found[op, *operands] = theirs
    return lambda op, *operands: found[op, *operands]


@every("name", MODES)
def test_every_op_that_jax_has_on_every_pair_of_dtypes(name: str):
    mode = MODES[name]
    dtypes = DTYPES if name == "jax" else [DType(dtype) for dtype in SOME.split()]
    found = differences(mode.rules, all_at_once(mode, dtypes), mode.functions, dtypes)
    assert unexplained(found, DEVIATIONS[name]) == ([], [])


def test_the_ops_that_jax_has():
    assert set(CALLS) - set(peer.OPS) == {
        *("as_complex", "layer_norm", "rebind", "shape_of"),
        *("affine_view", "item", "slice_update", "index_update", "index_add"),
    }
    assert set(peer.LAX) - set(peer.OPS) == {"as_complex"}


@every("op", ["gather", "take_along", "scatter"])
@every("name", JOINING)
def test_index_dtypes(op: str, name: str):
    mode = MODES[name]
    for dtype in DTYPES:
        operands = CALLS[op].operands(*(DType.float32 for _ in CALLS[op].free))
        operands[-1] = (dtype, CALLS[op].shapes[-1])
        theirs = peer.result(op, *operands, **mode.settings)
        if (op, dtype) == ("gather", DType.bool) and name != "jax_strict":
            assert theirs is DType.float32  # jnp.take takes False and True for 0 and 1
            theirs = None
        assert ours(mode.rules, op, *operands) is theirs, dtype


@every("name", MODES)
def test_conditions(name: str):
    mode = MODES[name]
    for dtype in DTYPES:
        operands: list[Operand] = [(dtype, N_D), (DType.int8, N_D), (DType.int8, N_D)]
        theirs = peer.result("where", *operands, **mode.settings)
        if name == "jax_lax" and dtype.is_integer:
            assert theirs is DType.int8  # lax.select takes integers to choose among many
            theirs = None
        assert ours(mode.rules, "where", *operands) is theirs, dtype


# -- literals

LITERALS = (True, 1, -1, 300, 2**31, -(2**31), 2**63 - 1, 2**63, -(2**63) - 1, 1.5, 1e300, 1j)
LITERAL_DTYPES = (*MAIN, DType.int4, DType.uint2, DType.float8_e4m3fn)
TAKING_NUMBERS = "add subtract multiply divide floor_divide remainder pow maximum equal less"
TAKING_NUMBERS += " bitwise_and left_shift where clip"


class Asked(NamedTuple):
    """An op in which a literal stands at one of the places of operands of a dtype."""

    op: str
    dtype: DType
    literal: Any
    place: int

    def operands(self, x: Any, condition: Any) -> list[Any]:
        """The operands, where x is an array of the dtype."""
        operands = [condition if i in CALLS[self.op].fixed else x for i in range(self._count)]
        operands[self.place] = self.literal
        return operands

    @property
    def _count(self) -> int:
        return len(CALLS[self.op].shapes)


def asked(ops_: Iterable[str], dtypes: Iterable[DType], literals: Sequence[Any]) -> Iterator[Asked]:
    for op, dtype in product(ops_, dtypes):
        for literal, place in product(literals, CALLS[op].free):
            yield Asked(op, dtype, literal, place)


def _exponent(one: Asked) -> bool:
    return one.op == "pow" and one.place == 1 and isinstance(one.literal, int)


LITERAL_DEVIATIONS: dict[str, Callable[[Asked], bool]] = {
    "an exponent of floats has no bounds in JAX (lax.integer_pow), here those of an int": (
        lambda one: (
            _exponent(one)
            and (one.dtype.is_float or one.dtype.is_complex)
            and not -(2**31) <= one.literal < 2**31
        )
    ),
    "JAX divides int2 and uint2 in 2 bits": (
        lambda one: one.op == "divide" and one.dtype.bits == 2
    ),
}
OF_LAX_ALONE: dict[str, Callable[[Asked], bool]] = {
    "lax.div of integers truncates; no / here does": (
        lambda one: one.op == "divide" and one.dtype.is_integer
    ),
    "lax.select and lax.clamp broadcast no number": lambda one: one.op in ("where", "clip"),
}


@every("name", MODES)
def test_literals_are_taken_and_refused_alike(name: str):
    mode = MODES[name]
    deviations = unused = OF_LAX_ALONE if name == "jax_lax" else LITERAL_DEVIATIONS
    for op in {*TAKING_NUMBERS.split()} & {*mode.functions}:
        questions = list(asked([op], LITERAL_DTYPES, LITERALS))
        operands = [one.operands((one.dtype, (2,)), (DType.bool, (2,))) for one in questions]
        theirs = peer.results(op, operands, **mode.settings)
        for one, given, them in zip(questions, operands, theirs, strict=True):
            us = ours(mode.rules, op, *given)
            if us is not them:
                reasons = [why for why, where in deviations.items() if where(one)]
                assert reasons, (one, us, them)
                unused = {why: where for why, where in unused.items() if why not in reasons}
    assert not unused


@every("dtype", ["bool", "int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_whole_exponents_give_the_same_values(dtype: str):
    """JAX multiplies so often; here an exponent is one that the base has, with the same powers."""
    mode, exponents = MODES["jax"], (0, True, 2, 63, 127, 128, 200, 255, 2**31 + 1, 2**63, 2**70)
    bases = np.array([*(0, 1, 2, 3, 5, 6, 7, 100, 127), *np.random.default_rng(0).bytes(9)])
    bases = bases.astype(DType(dtype).storage)
    g = Graph(rules=mode.rules)
    x = g.input(dtype, bases.shape)
    g.output(*[x**n for n in exponents])
    with peer.jax.enable_x64(True):
        for n, ours_ in zip(exponents, runtime.interpret(g, bases), strict=True):
            theirs = np.asarray(peer.jnp.asarray(bases) ** n)
            np.testing.assert_array_equal(ours_, theirs, strict=True, err_msg=str(n))


EXPONENTS: list[Any] = [
    *(dtype(n) for dtype in (np.int8, np.uint8, np.int64, np.uint64) for n in (0, 1, 2, 7, 100)),
    *(np.float32(2), np.float64(0.5), np.bool_(True), np.complex64(2), np.int8(-1)),
    *(np.array(2), np.array(3, np.uint8), np.array(2.0, np.float32), np.array([2, 3])),
    *(0, 1, 2, 3, 7, 200, True, False, -1, 2.0, 1j),
]
"""What JAX takes for static: ints, and NumPy integers of rank 0."""

RAISED: list[Callable[[Any, Any], Any]] = [lambda x, n: x**n, ops.pow, np.power]


@every("name", JOINING)
def test_powers_of_static_exponents_and_of_arrays(name: str):
    mode = MODES[name]
    for dtype, shape in product(DTYPES, ((), (2,))):
        asked_ = [[(dtype, shape), one] for one in EXPONENTS]
        for (_, exponent), theirs in zip(
            asked_, peer.results("pow", asked_, **mode.settings), strict=True
        ):
            for raised in RAISED:
                x = Graph(rules=mode.rules).input(TensorType(dtype, shape))
                found = None
                with suppress(GraphirError):
                    found = raised(x, exponent).dtype
                assert found is theirs, (dtype, shape, exponent)


@every("name", JOINING)
def test_hypot_of_0_d_and_n_d_operands(name: str):
    mode, dtypes = MODES[name], [*MAIN, DType.int4]
    operands: list[Operand] = [(dtype, shape) for dtype in dtypes for shape in ((), (2,))]
    pairs = [*product(operands, repeat=2), *product(operands, NUMBERS), *product(NUMBERS, operands)]
    for pair, theirs in zip(pairs, peer.results("hypot", pairs, **mode.settings), strict=True):
        assert ours(mode.rules, "hypot", *pair) is theirs, pair


@every("dtype", ["int2", "int4", "uint2", "uint4", "weak_int"])
def test_powers_by_multiplication_have_the_same_values(dtype: str):
    storage, g = DType(dtype).storage, Graph(rules="jax")
    bases = np.arange(0 if dtype[0] == "u" else -2, 2).astype(storage)
    x = g.input(dtype, bases.shape)
    exponents = (0, 1, 2, 3, 5, 13, 14, 15, 2**40, np.int8(3))
    g.output(*[x**n for n in exponents])
    with peer.settings():
        for n, found in zip(exponents, runtime.interpret(g, bases), strict=True):
            theirs = np.asarray(peer.jnp.asarray(bases) ** n)
            np.testing.assert_array_equal(found.astype(int), theirs.astype(int), str(n))


# The values of & and | are left out: compiling int8 & 300, XLA may crash (jaxlib 0.10.2, CPU).
VALUED = "add multiply less bitwise_xor left_shift where clip"
NUMBERS_IN_RANGE = (
    *(True, -1, 2, 128, 300, 2049, 2**24 + 1, 2**31 - 1, -(2**31)),
    *(0.1, -1.5, 65519.0, 65520.0, 1e39, 1e300, float("inf"), float("nan")),
)
BEYOND_32_BITS = (2**31, -(2**31) - 1, 2**63 - 1, -(2**63))
VALUED_DTYPES = {
    "jax": "int8 uint8 uint64 float16 bfloat16",
    "jax_x32": "int8 uint32 float32",
    "jax_strict": "uint16 float32",
}


@every(("name", "dtypes"), VALUED_DTYPES.items())
def test_literals_wrap_and_round_to_the_same_values(name: str, dtypes: str):
    mode = MODES[name]
    literals = NUMBERS_IN_RANGE + (() if name == "jax_x32" else BEYOND_32_BITS)
    for dtype in map(DType, dtypes.split()):
        g = Graph(rules=mode.rules)
        x, condition = g.input(dtype, (1,)), g.input(DType.bool, (1,))
        made: dict[Asked, Symbol] = {}
        for one in asked(VALUED.split(), [dtype], literals):
            with suppress(GraphirError):
                made[one] = ops.CATALOGUE[one.op](*one.operands(x, condition))
        g.output(*made.values())
        inputs = np.full(1, dtype is DType.bool or 3, dtype.storage), np.zeros(1, bool)
        with peer.settings(**mode.settings):
            theirs = jax.jit(partial(_values, tuple(made)))(*inputs)
        assert len(made) > 60
        for one, us, them in zip(made, runtime.interpret(g, *inputs), theirs, strict=True):
            assert us.dtype == them.dtype, one
            np.testing.assert_array_equal(_exactly(us), _exactly(np.asarray(them)), str(one))


def _values(questions: Sequence[Asked], x: Any, condition: Any) -> list[Any]:
    return [peer.OPS[one.op](*one.operands(x, condition)) for one in questions]


def _exactly(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Integers as they are, the floats of ml_dtypes as NumPy can compare them."""
    return values if values.dtype.kind in "biu" else values.astype(np.float64)
