"""Calls of other libraries' functions in an audit: their values in wide arithmetic.

The graph of an audit has an op for each result of such a call. The reference run has the result
that the library gave in the run. The wide run asks the call for its results on wide operands: the
same function of the same library, with dtypes among its parameters widened (see LibraryCall). A
result counts if three guards hold: it is wide, it has the shape of the run's result, and the wide
call on the operands of the run agrees with the run's result up to rounding (see `disagreement`).
Otherwise the result has no value in wide arithmetic, and errors behind it are unknown.

Integers and bools that a call computes from floats are choices: positions, counts, masks. Wide
arithmetic keeps the choices of the run. If it would choose otherwise, the report says so, and the
call's floats, which belong to the other choices, have no value in wide arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import isfinite, prod, sqrt
from operator import is_
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir.ops.attribute_record import AttributeRecord
from graphir.ops.op import Attr, Attributes, Resolved, Signature, Types
from graphir.passes.rewriter import Rewriter
from graphir.public import DType, ExecutionError, Graph, Op, PromotionRules, Symbol
from graphir.runtime.audit.double_double import round_numbers
from graphir.runtime.audit.exact_arrays import fits_float64, is_exact_array
from graphir.runtime.audit.opaque import OpaqueStep, RecordedFacts
from graphir.semantics.library_calls import (
    NewArrayPlace,
    NumPyCall,
    OperandPlace,
    leaves,
    mapped,
    new_leaves,
)

Array: TypeAlias = NDArray[Any]

GREATEST = 2.0**-4
"""The greatest difference that `disagreement` takes for rounding, whatever the dtype."""


class LibraryCall:
    """A call of a library's function, as an audit asks for it; the base knows nothing of it."""

    run_draws: tuple[Array, ...] | None = None
    """The results of random draws, which an audit keeps; None of other calls."""

    @property
    def precision(self) -> int | None:
        """The bits of the significand of the results, if fewer than those of their dtype."""
        return None

    @property
    def keeps_order(self) -> bool:
        """Whether the floats among the results depend on no choice: those of sort and top_k."""
        return False

    @property
    def keeps_integers(self) -> bool:
        """Whether no integer of the results can wrap: they are those of operands, or checked."""
        return False

    @property
    def data_of(self) -> tuple[int, ...] | None:
        """The positions of the operands that tell the results, which are data of the run.

        Random draws are data of no operand, and so are the bits of keys data of their keys. None of
        a call whose results are computed.
        """
        return None

    @property
    def draws(self) -> bool:
        """Whether the results are random choices, which the run keeps whatever its operands are."""
        return False

    def is_number(self, place: int) -> bool:
        """Whether the call may compute with an operand of integers, not only count and index."""
        return True

    def widened(self, operands: Sequence[Array]) -> Sequence[Any]:
        """Return the results of the same call on wide operands; ExecutionError if none are known.

        The operands are float64, complex128, int64 and bool arrays, whose values may be those of
        the run. The call must not write to them.
        """
        raise ExecutionError("its library computes it in the dtypes of the run alone")

    def results_in(self, operands: Sequence[Array], dtype: DType) -> Sequence[Any]:
        """Return the results of the call in wide arithmetic, with all floats inside of a dtype.

        A call of one op has no floats inside: whoever asks rounds the results.
        """
        return self.widened(operands)

    def adjoints(
        self, operands: Sequence[Array], place: int, adjoint: Array
    ) -> Sequence[Array | None] | None:
        """Return the adjoints of wide operands, from that of the result at a place.

        None if the library has no derivatives of the call; an adjoint is None of an operand in
        which the call is not differentiable.
        """
        return None


class TracedCall(LibraryCall):
    """A call of NumPy in a traced graph: the same function on wide operands in row-major order."""

    def __init__(self, call: NumPyCall) -> None:
        self._call = call

    def widened(self, operands: Sequence[Array]) -> Sequence[Any]:
        """Return the results of the function on copies of wide operands."""
        values = [np.array(x) for x in operands]

        def argument(leaf: Any) -> Any:
            if isinstance(leaf, OperandPlace):
                value = values[leaf.index]
                return value[()] if leaf.layout is None else value
            if isinstance(leaf, NewArrayPlace):
                return np.zeros(leaf.shape, wide_setting("dtype", leaf.dtype))
            return leaf

        call = self._call
        keywords = {name: wide_setting(name, value) for name, value in call.kwargs.items()}
        args, kwargs = mapped(argument, [[*call.args], keywords])
        with np.errstate(all="ignore"):
            result = call.function(*args, **kwargs)
        places = [x for x in leaves([call.args, call.kwargs]) if isinstance(x, OperandPlace)]
        outputs = [values[x.index] for x in places if x.is_output]
        return [*new_leaves(result, values), *outputs]


_FLOATS = str.maketrans("efF", "ddD")
_LETTERS = _FLOATS | str.maketrans("bhilBHIL", "qqqqqqqq")
"""The letters of NumPy's dtypes, and those of wide ones."""


def wide_setting(name: str, value: Any) -> Any:
    """Return the value of a keyword of a function of NumPy, with wide dtypes."""
    if name == "signature" and isinstance(value, str):
        return value.translate(_FLOATS)
    if name == "dtype" and value is not None:
        return np.dtype(np.dtype(value).char.translate(_LETTERS))
    return value


class CallResult(NamedTuple):
    """One result of a call: the call, and the result's place among the results.

    `real` is the result of the run. `refuted` says why the wide call is not that of the run.
    """

    call: LibraryCall
    place: int
    real: Any = None
    refuted: str = ""


def _resolved(rules: PromotionRules, op: Op, types: Types, attrs: Attributes) -> Resolved:
    return Resolved(tuple(type_.dtype for type_ in types), attrs["dtype"])


_SIGNATURE = Signature(
    "library", _resolved, (), doc="The operands keep their dtypes; the library gives the result's."
)


def _same(value: Any, types: Types) -> Any:
    return value


@lru_cache(maxsize=1024)
def call_op(name: str) -> Op:
    """Return the op of the results of a library's function."""
    return Op(
        name,
        ("x",),
        _SIGNATURE,
        lambda op, types, attrs: attrs["shape"],
        "One result of a function of another library, in the graph of an audit.",
        (Attr("dtype", _same), Attr("shape", _same), Attr("place", _same)),
        "rowwise",
        variadic=True,
    )


def with_calls(
    graph: Graph, arrays: Sequence[Array], facts: RecordedFacts
) -> tuple[Graph, Sequence[Array], RecordedFacts]:
    """Return a graph in which the results of measured calls are ops instead of inputs.

    `arrays` are the values of the inputs. The new facts have the calls, and the run's results as
    `observed` values, instead of the opaque steps.
    """
    results = {
        result.index: (step, place)
        for step in facts.steps
        if _is_measured(step)
        for place, result in enumerate(step.results)
    }
    if not results:
        return graph, arrays, facts
    rewriter = Rewriter(graph)
    values, calls = rewriter.values, dict[Symbol, CallResult]()
    for symbol in graph.symbols:
        if symbol.index not in results:
            rewriter.copy(symbol)
            continue
        step, place = results[symbol.index]
        attrs = {"dtype": symbol.dtype, "shape": symbol.shape, "place": len(calls)}
        args = tuple(values[x.index] for x in step.operands or ())
        new = rewriter.new.append(
            call_op(step.what), args, AttributeRecord.of(attrs), symbol.type, symbol.source
        )
        assert step.call is not None
        calls[new] = CallResult(step.call.call, step.call.place + place)
        rewriter.replace(new)
    inputs = [*zip(graph.inputs, graph.input_names, arrays, strict=True)]
    observed = {values[x.index]: array for x, _, array in inputs if x.index in results}
    calls = {x: call._replace(real=observed[x]) for x, call in calls.items()}
    new_graph = rewriter.finish()
    left = [item for item in inputs if item[0].index not in results]
    new_graph.set_interface((values[x.index] for x, *_ in left), (name for _, name, _ in left))
    steps = tuple(step for step in facts.steps if not _is_measured(step))
    rest = facts._replace(steps=steps)
    new = rest.remap([values[x.index] for x in rest.symbols()])
    new = new._replace(calls=calls, observed={**new.observed, **observed})
    return new_graph, [array for *_, array in left], new


def _is_measured(step: OpaqueStep) -> bool:
    """Whether a step has a call whose operands are all known before its results."""
    if step.call is None or step.exact or not step.results or not step.operands:
        return False
    first = min(x.index for x in step.results)
    return all(x.index < first for x in step.operands)


class CallRun:
    """The wide results of calls, by the symbols of their results; see CallResult.

    It keeps the results of the last call on other operands, because the results of one call follow
    each other in a graph. With a dtype, the floats inside of the calls are rounded to it.
    `failures` has the indices of results that the run could not compute, with the reasons.
    """

    def __init__(self, calls: Mapping[int, CallResult], dtype: DType | None = None) -> None:
        self.calls, self.dtype = calls, dtype
        self.failures: dict[int, str] = {}
        self._last: tuple[Any, Sequence[Array], Sequence[Any]] = None, (), ()
        self._local: tuple[Sequence[int], Sequence[Array]] = (), ()

    def results(self, symbol: Symbol, operands: Sequence[Array]) -> Sequence[Any]:
        """Return all wide results of the call of a symbol; ExecutionError if the call fails."""
        call, _, _, refuted = self.calls[symbol.index]
        if refuted:
            raise ExecutionError(refuted)
        last, arrays, results = self._last
        if last is call and all(map(is_, arrays, operands)):
            return results
        try:
            results = (
                call.widened(operands)
                if self.dtype is None
                else call.results_in(operands, self.dtype)
            )
        except ExecutionError:
            raise
        except Exception as error:  # each library has exceptions of its own
            text = f"{type(error).__name__}: {error}".partition("\n")[0][:200]
            raise ExecutionError(f"fails on wide operands: {text}") from None
        self._last = call, operands, results
        return results

    def result(self, symbol: Symbol, operands: Sequence[Array]) -> Array:
        """Return the wide result of a symbol; ExecutionError if it is narrow or of another shape.

        Of integers that the call computes from floats, the answer is the wide run's own choice.
        """
        call, place = self.calls[symbol.index][:2]
        exact_places = (i for i, x in enumerate(operands) if is_exact_array(x))
        if any(map(call.is_number, exact_places)):
            raise ExecutionError("takes integers beyond 64 bits, or beyond float64 among floats")
        operands = [round_numbers(x) for x in operands]
        results = self.results(symbol, operands)
        if place >= len(results):
            raise ExecutionError("has fewer results in wide arithmetic")
        result, dtype = np.asarray(results[place]), symbol.graph.storage_dtype(symbol)
        if result.shape != symbol.attrs["shape"]:
            got = f"{[*result.shape]} in wide arithmetic, {[*symbol.attrs['shape']]} in the run"
            raise ExecutionError(f"has another shape: {got}")
        is_wide = result.dtype.char in _WIDE[dtype.family]
        if is_choice(symbol):
            is_wide = result.dtype.kind in "iub"
        if not is_wide:
            raise ExecutionError(f"computes in {result.dtype} on wide operands")
        rounded = (i for i, x in enumerate(operands) if x.dtype == np.int64 and not fits_float64(x))
        if dtype.is_inexact and any(map(call.is_number, rounded)):
            raise ExecutionError("rounds integers beyond 2**53 to float64 inside")
        may_wrap = dtype.is_integer and not is_choice(symbol) and not call.keeps_integers
        if may_wrap and self._may_wrap(symbol, operands, result):
            raise ExecutionError("may exceed int64 inside")
        family = "int" if dtype.is_integer else dtype.family
        return np.ascontiguousarray(result, _STORAGE[family]).reshape(result.shape)

    def _may_wrap(self, symbol: Symbol, operands: Sequence[Array], result: Array) -> bool:
        """Whether integers that a call computes of integers may have wrapped in int64.

        Sums of products of two operands that stay below 2**62 do not; of others, the same call on
        float64 tells. Small integers besides the first operand may be indices, and stay.
        """
        integers = [x for x in operands if x.dtype == np.int64 and x.size]
        sizes = [max(-int(x.min()), int(x.max())) for x in integers]
        terms = max((x.size for x in integers), default=0)
        has_powers = symbol.op.name.startswith(("multiply.", "power."))
        if not has_powers and terms * max(sizes, default=0) ** 2 < 2**62:
            return False
        floats = [
            x.astype(np.float64) if x.dtype == np.int64 and (not i or not _is_small(x)) else x
            for i, x in enumerate(operands)
        ]
        call, place, *_ = self.calls[symbol.index]
        try:
            wide = np.asarray(call.widened(floats)[place])
        except Exception:  # each library has exceptions of its own
            return True
        if wide.dtype.kind != "f":
            return False
        return wide.shape != result.shape or not bool((abs(wide - result) < 2.0**62).all())

    def local(self, symbol: Symbol, operands: Callable[[Symbol], Sequence[Array]]) -> Array:
        """Return the wide result of a symbol on the operands of the run, which `operands` gives.

        The results of one call share the operands.
        """
        places, arrays = self._local
        if places != [x.index for x in symbol.args]:
            arrays = operands(symbol)
            self._local = [x.index for x in symbol.args], arrays
        return self.result(symbol, arrays)

    def differs_by_choice(self, symbol: Symbol, operands: Sequence[Array], other: CallRun) -> bool:
        """Whether a call makes another choice than on the last operands of another run of it."""
        call = self.calls[symbol.index].call
        if call.keeps_order or not any(x.dtype.is_inexact for x in symbol.args):
            return False
        pairs = zip(self.results(symbol, operands), other._last[2], strict=True)
        arrays = ((np.asarray(x), np.asarray(y)) for x, y in pairs)
        return any(x.dtype.kind in "iub" and not np.array_equal(x, y) for x, y in arrays)


_WIDE = {"float": "d", "complex": "D", "int": "lqLQ", "uint": "lqLQ", "bool": "?"}
_STORAGE = {"float": np.float64, "complex": np.complex128, "int": np.int64, "bool": np.bool_}


def _is_small(x: Array) -> bool:
    return not x.size or bool(x.min() > -(2**31) and x.max() < 2**31)


def is_choice(symbol: Symbol) -> bool:
    """Whether a result of a call is a choice: integers or bools by values of floats or bools.

    Of integers and bools, a call computes integers, which may wrap.
    """
    if symbol.dtype.is_inexact:
        return False
    if any(x.dtype.is_inexact for x in symbol.args):
        return True
    return not any(x.dtype.is_integer for x in symbol.args)


def disagreement(local: Array, actual: Array, symbol: Symbol, precision: int | None = None) -> str:
    """Return how a wide call on the run's operands differs from the run's result; "" if it agrees.

    The rounding errors of n terms grow as sqrt(n) units, of independent signs (N. J. Higham and
    T. Mary, A new approach to probabilistic rounding error analysis, SISC 41, 2019). No sum in a
    call has more terms than its greatest operand has elements. So each element agrees within
    8 * eps * sqrt(n) of the greatest magnitude, and within GREATEST in any case; eps is that of the
    dtype, or of a lower `precision` of the call. `local` and `actual` are wide arrays. Integers
    agree modulo the range of their dtype; choices always do.
    """
    dtype = symbol.graph.storage_dtype(symbol)
    if is_choice(symbol) or not local.size:
        return ""
    if not dtype.is_inexact:
        bits = dtype.bits if dtype.is_integer else 1
        mask = -1 if bits == 64 else 2**bits - 1
        same = (local.astype(np.int64) & mask) == (actual.astype(np.int64) & mask)
        return "" if same.all() else "gives other integers in wide arithmetic"
    size = np.abs(local)
    finite = np.isfinite(size)
    greatest = float(size.max(where=finite, initial=0.0))
    eps = 2.0 ** (1 - min(dtype.part.precision, precision or dtype.part.precision))
    sizes = (prod(dim for dim in x.shape if isinstance(dim, int)) for x in symbol.args)
    terms = max(sizes, default=1)
    bound = min(8 * eps * sqrt(max(terms, 1)), GREATEST)
    error = np.abs(actual - local)
    least = 0.0 if dtype.part.format is None else 4 * dtype.part.format.least
    agrees = (error <= bound * greatest + least) | (local == actual)
    agrees |= np.isnan(local) & np.isnan(actual)
    if dtype.part.format is not None:
        agrees |= ~np.isfinite(actual) & (size >= float(dtype.part.max))
    if agrees.all():
        return ""
    worst = float(np.max(error, where=np.isfinite(error) & finite, initial=0.0))
    share = worst / greatest if greatest and isfinite(worst) else np.inf
    return (
        f"differs from the run by {share:.2g} in wide arithmetic on the run's operands: more than "
        f"rounding explains, {bound:.2g}"
    )
