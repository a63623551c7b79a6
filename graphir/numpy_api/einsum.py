"""np.einsum of symbols, in terms of ops.

The factors multiply two at a time, from the left. A repeated label within a factor becomes a
diagonal. Before each product, each factor is summed over the labels that neither the output nor
another factor needs. The product itself is a batched matmul: shared labels that stay are batch
axes, the other shared labels form the inner axis. A final permute orders the output's axes.
"""

from __future__ import annotations

import string
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from graphir import ops
from graphir.errors import GraphError, ShapeError
from graphir.hints import ArrayOrNumber
from graphir.ir.symbol import Symbol
from graphir.numpy_api.movement import as_symbols, diagonal
from graphir.ops.dims import Size, product


class Term(NamedTuple):
    """A factor whose axes have distinct letters as labels."""

    x: Symbol
    axes: str

    def size(self, axis: str) -> Size:
        """Return the size of a labelled axis, or 1 if the factor lacks the label."""
        return self.x.shape[self.axes.index(axis)] if axis in self.axes else 1

    def sizes(self, axes: str) -> tuple[Size, ...]:
        """Return the sizes of several labelled axes."""
        return tuple(map(self.size, axes))


def einsum(
    subscripts: str | ArrayOrNumber, *operands: ArrayOrNumber, optimize: Any = False
) -> Symbol:
    """Return the sum of products for subscripts such as `ij,jk->ik` or `...i,i`.

    The products run two factors at a time, from the left. The function raises GraphError if the
    subscripts are no text, and ShapeError if they do not fit the operands.
    """
    if not isinstance(subscripts, str):
        raise GraphError(
            "the first argument of einsum must be text", fix="use 'ij,jk->ik' or the like"
        )
    symbols = _alike(as_symbols(*operands))
    terms, output = _parse(subscripts, [x.rank for x in symbols])
    factors = [_factor(axes, x) for axes, x in zip(terms, symbols, strict=True)]
    factors = [_without_ones(factor_, factors) for factor_ in factors]
    product_ = factors[0]
    for i, factor in enumerate(factors[1:], 1):
        product_ = _product(
            product_, factor, output + "".join(factor_.axes for factor_ in factors[i + 1 :])
        )
    return _order_axes(_sum_out(product_, output), output)


def summed_labels(subscripts: str) -> set[str]:
    """Return the labels that an output, named or implied by the inputs, lacks."""
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    labels = {label for label in inputs if label.isalpha()}
    own = {*output} if arrow else {label for label in labels if inputs.count(label) == 1}
    return labels - own


def _alike(symbols: list[Symbol]) -> list[Symbol]:
    """Return the factors, cast to their common dtype before any sum."""
    graph = symbols[0].graph
    if len({x.dtype for x in symbols}) == 1:
        return symbols
    dtype = graph.rules.common(graph.builder.types_of(symbols))
    positions = [0, *[1] * (len(symbols) - 1)]
    return [
        graph.implied_cast(x, dtype, ops.multiply, position)
        for x, position in zip(symbols, positions, strict=True)
    ]


def _parse(subscripts: str, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Return the labels of each factor and of the output.

    Without `->`, the output has the labels that occur once, in alphabetical order.
    """
    inputs, arrow, output = subscripts.replace(" ", "").partition("->")
    terms = inputs.split(",")
    if len(terms) != len(ranks):
        raise ShapeError(f"{subscripts!r} has {len(terms)} inputs", got=f"{len(ranks)} operands")
    counts = [rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks, strict=True)]
    if any(count and (count < 0 or "..." not in term) for count, term in zip(counts, terms)):  # noqa: B905
        raise ShapeError(
            f"the labels of {subscripts!r} do not match the ranks of its operands",
            got=f"ranks {list(ranks)}",
        )
    free = [term for term in string.ascii_letters if term not in subscripts][: max(counts)]
    terms_expanded = [
        term.replace("...", "".join(free[len(free) - count :]))
        for term, count in zip(terms, counts, strict=True)
    ]
    letters = "".join(terms).replace(".", "")
    once = "".join(c for c in sorted(set(letters)) if letters.count(c) == 1)
    output = output.replace("...", "".join(free)) if arrow else "".join(free) + once
    if not set(output) <= set("".join(terms_expanded)) or len(set(output)) < len(output):
        raise ShapeError(
            "a label of the output is repeated, or labels no axis of an input", got=repr(subscripts)
        )
    return terms_expanded, output


def _factor(axes: str, x: Symbol) -> Term:
    """Return a factor with distinct labels; axes with the same label become their diagonal."""
    for axis in dict.fromkeys(axes):
        while axes.count(axis) > 1:
            first = axes.index(axis)
            second = axes.index(axis, first + 1)
            if x.shape[first] != x.shape[second]:
                raise ShapeError(f"axes {axis!r} differ in size", got=str(x.type))
            x = diagonal(x, 0, first, second)
            axes = axes[:first] + axes[first + 1 : second] + axes[second + 1 :] + axis
    return Term(x, axes)


def _without_ones(term: Term, all_terms: Sequence[Term]) -> Term:
    """Drop axes of size 1 that are longer in another factor, since the product repeats them."""
    for axis in term.axes:
        if term.size(axis) == 1 and any(other.size(axis) != 1 for other in all_terms):
            x = ops.squeeze(term.x, term.axes.index(axis))
            term = Term(x, term.axes.replace(axis, ""))
    return term


def _sum_out(term: Term, labels: Iterable[str]) -> Term:
    """Return the factor summed over the axes whose labels are not in `labels`."""
    over = tuple(i for i, axis in enumerate(term.axes) if axis not in labels)
    if not over:
        return term
    x = ops.sum(term.x, axis=over, dtype=term.x.dtype)
    return Term(x, "".join(axis for axis in term.axes if axis in labels))


def _order_axes(term: Term, axes: str) -> Symbol:
    """Return the factor's symbol with its axes in the order of `axes`."""
    return term.x if term.axes == axes else ops.permute(term.x, tuple(map(term.axes.index, axes)))


def _product(a: Term, b: Term, output_labels: str) -> Term:
    """Return the product of two factors as a batched matmul over the axes that they share."""
    a, b = _sum_out(a, output_labels + b.axes), _sum_out(b, output_labels + a.axes)
    batch = "".join(axis for axis in a.axes if axis in b.axes and axis in output_labels)
    inner = "".join(axis for axis in a.axes if axis in b.axes and axis not in output_labels)
    rows = "".join(axis for axis in a.axes if axis not in b.axes)
    columns = "".join(axis for axis in b.axes if axis not in a.axes)
    left, right = _matrix(a, batch, rows, inner), _matrix(b, batch, inner, columns)
    shape = (*a.sizes(batch), *a.sizes(rows), *b.sizes(columns))
    return Term(_reshape(ops.matmul(left, right), shape), batch + rows + columns)


def _matrix(term: Term, batch: str, rows: str, columns: str) -> Symbol:
    sides = product(term.sizes(rows)), product(term.sizes(columns))
    return _reshape(_order_axes(term, batch + rows + columns), (*term.sizes(batch), *sides))


def _reshape(x: Symbol, shape: tuple[Size, ...]) -> Symbol:
    return x if x.shape == shape else ops.reshape(x, shape)
