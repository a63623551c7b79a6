"""np.einsum as ops: diagonals, sums, products of matrices, and axes put in order."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from graphir import Symbol, ops
from graphir.location import CompoundLocation
from runtime.recording.method_ops import places_of
from runtime.recording.recorder import Recorder
from runtime.recording.steps import Permute, Pick, UnrecordedError


class Term(NamedTuple):
    """A factor, its axes named by letters, each once."""

    x: Symbol
    axes: str

    def sizes(self, axes: str) -> tuple[Any, ...]:
        """The sizes of some of its axes."""
        return tuple(self.x.shape[self.axes.index(axis)] for axis in axes)


def einsum(recorder: Recorder, real: Any, subscripts: Any, *arrays: Any, **_: Any) -> Symbol:
    """The sum of products that subscripts ask for, such as `ij,jk->ik`; without `...`."""
    if not isinstance(subscripts, str) or "." in subscripts:
        raise UnrecordedError("its subscripts are no letters")
    terms, output = _parsed(subscripts)
    recorder.here = CompoundLocation.of(recorder.here)
    factors = [_factor(recorder, axes, one) for axes, one in zip(terms, arrays, strict=True)]
    found = factors[0]
    for i, factor in enumerate(factors[1:], 1):
        found = _product(recorder, found, factor, output + "".join(terms[i + 1 :]))
    return _ordered(recorder, _summed(recorder, found, output), output).x


def _parsed(subscripts: str) -> tuple[list[str], str]:
    """The letters of each factor and of the result: those that come once, where it is left out."""
    given, arrow, output = subscripts.replace(" ", "").partition("->")
    if not arrow:
        output = "".join(c for c in sorted(set(given) - {","}) if given.count(c) == 1)
    return given.split(","), output


def _factor(recorder: Recorder, axes: str, array: Any) -> Term:
    """A factor; of axes that have one letter, the diagonal."""
    x, once = recorder.symbol(array), "".join(dict.fromkeys(axes))
    if once != axes:
        diagonal = np.einsum(f"{axes}->{once}", places_of(x))
        x = Pick(np.array(diagonal)).forward(recorder, x)
    return Term(x, once)


def _summed(recorder: Recorder, term: Term, kept: Iterable[str]) -> Term:
    """Summed over the axes that nobody needs."""
    over = tuple(i for i, axis in enumerate(term.axes) if axis not in kept)
    if not over:
        return term
    x = recorder.emit(ops.sum, (term.x,), axis=over, keepdims=False, dtype=term.x.dtype)
    return Term(x, "".join(axis for axis in term.axes if axis in kept))


def _ordered(recorder: Recorder, term: Term, axes: str) -> Term:
    """With its axes in this order."""
    if term.axes == axes:
        return term
    dims = tuple(map(term.axes.index, axes))
    return Term(Permute(dims).forward(recorder, term.x), axes)


def _product(recorder: Recorder, a: Term, b: Term, needed: str) -> Term:
    """Two factors made one, by a product of matrices for each element of the axes they share."""
    a, b = _summed(recorder, a, needed + b.axes), _summed(recorder, b, needed + a.axes)
    shared = "".join(axis for axis in a.axes if axis in b.axes and axis in needed)
    inner = "".join(axis for axis in a.axes if axis in b.axes and axis not in needed)
    rows = "".join(axis for axis in a.axes if axis not in b.axes)
    columns = "".join(axis for axis in b.axes if axis not in a.axes)
    left = _matrix(recorder, a, shared, rows, inner)
    right = _matrix(recorder, b, shared, inner, columns)
    product = recorder.emit(ops.matmul, (left, right))
    shape = (*a.sizes(shared), *a.sizes(rows), *b.sizes(columns))
    return Term(recorder.reshaped(product, shape), shared + rows + columns)


def _matrix(recorder: Recorder, term: Term, shared: str, rows: str, columns: str) -> Symbol:
    ordered = _ordered(recorder, term, shared + rows + columns)
    sides = (math.prod(term.sizes(rows)), math.prod(term.sizes(columns)))
    return recorder.reshaped(ordered.x, (*term.sizes(shared), *sides))
