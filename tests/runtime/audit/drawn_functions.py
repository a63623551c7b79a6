"""Random calls of further functions of NumPy, and loops over elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tests.runtime.audit.drawn_audits import Draw, Environment, Statement
from tests.runtime.audit.exact_values import (
    Complex,
    Machine,
    RejectedError,
    UndefinedError,
    Value,
    element,
    from_numpy,
    is_whole,
    objects,
    to_numpy,
)


def _products(m: Machine, a: Value, b: Value) -> Value:
    """`a @ b`."""
    a, b = m.joined(a, b)
    if a.kind not in "iufc":
        raise RejectedError("matmul")
    flat = [*a.data.reshape(-1), *b.data.reshape(-1)]
    exactly = a.kind in "iu" or (m.whole and all(map(is_whole, flat)))
    if exactly and all(isinstance(x, int) or is_whole(x) for x in flat):
        ones, others = [np.vectorize(int, otypes=[object])(x.data) for x in (a, b)]
        result = np.dot(ones, others)
        data = result if isinstance(result, np.ndarray) else objects([result], ())
        return m.made(a.dtype, list(data.reshape(-1)), data.shape)
    if m.exact:
        arrays = [m.floats(list(x.data.reshape(-1)), x.dtype).reshape(x.data.shape) for x in (a, b)]
    else:
        arrays = [to_numpy(x) for x in (a, b)]
    with np.errstate(all="ignore"):
        found = from_numpy(np.matmul(*arrays))
    found.dtype = a.dtype
    return found


def _matmul(d: Draw) -> Statement:
    x, y = d.pick("iuf"), d.pick("iuf")
    d.require_shapes(x, y, size=6)
    if d.random.random() < 0.5:
        return d.assign(f"{x} @ {y}", _products, x, y)

    def run(m: Machine, a: Value, b: Value) -> Value:
        left, right = a.data[:6].reshape(2, 3), b.data[:6].reshape(3, 2)
        result = _products(m, Value(a.dtype, left), Value(b.dtype, right))
        return Value(result.dtype, result.data.reshape(-1))

    text = f"({x}[:6].reshape(2, 3) @ {y}[:6].reshape(3, 2)).reshape(-1)"
    return d.assign(text, run, x, y)


def _outer(d: Draw) -> Statement:
    x, y = d.pick("iuf"), d.pick("iuf")

    def run(m: Machine, a: Value, b: Value) -> Value:
        column = Value(a.dtype, a.data[:2].reshape(-1, 1))
        result = m.ufunc("multiply", column, Value(b.dtype, b.data.reshape(1, -1)))
        return Value(result.dtype, result.data.reshape(-1))

    return d.assign(f"np.outer({x}[:2], {y}).reshape(-1)", run, x, y)


def _rounded(d: Draw) -> Statement:
    x = d.pick("f")

    def run(m: Machine, a: Value) -> Value:
        flat = list(a.data)
        with np.errstate(all="ignore"):
            array = m.floats(flat, a.dtype) if m.exact else to_numpy(a)
            found = from_numpy(np.round(array, 1))
        whole = [
            int(x) if m.whole and isinstance(x, int) else y
            for x, y in zip(flat, found.data, strict=True)
        ]
        return Value(a.dtype, objects(whole, a.data.shape))

    return d.assign(f"np.round({x}, 1)", run, x)


def _accumulated(d: Draw) -> Statement:
    x, name = d.pick("iuf"), d.random.choice(["maximum", "minimum", "add"])

    def run(m: Machine, a: Value) -> Value:
        parts = [element(a, 0)]
        for k in range(1, len(a.data)):
            parts.append(m.ufunc(name, parts[-1], element(a, k)))
        return Value(a.dtype, objects([part.data[()] for part in parts], a.data.shape))

    if name == "add" and (d.values[x].dtype.itemsize < 8 or d.values[x].kind == "f"):
        raise RejectedError("accumulates in a wider dtype")
    return d.assign(f"np.{name}.accumulate({x})", run, x)


def _statistic(d: Draw) -> Statement:
    x, name = d.pick("iuf"), d.random.choice(["median", "count_nonzero", "ptp"])
    if name == "ptp":
        return d.assign(
            f"np.ptp({x})",
            lambda m, a: m.ufunc("subtract", m.reduction("max", a), m.reduction("min", a)),
            x,
        )
    return d.assign(f"np.{name}({x})", lambda m, a: m.reduction(name, a), x)


def _ordered(d: Draw) -> Statement:
    """Elements in an order, or at places, that other values decide."""
    x, y = d.pick(), d.pick("iuf")
    d.require_shapes(x, y)
    form = d.random.randrange(3)

    def run(m: Machine, a: Value, b: Value) -> Value:
        if form == 0:
            order = m.argsorted(b).data.astype(int)
            chosen = m.decided(order)
        elif form == 1:
            chosen = m.mask(m.ufunc("not_equal", b, 0))
        else:
            chosen = m.decided(np.array([m.reduction("argmax", b).data[()]]))
        return Value(a.dtype, a.data[chosen])

    text = [
        f'{x}[np.argsort({y}, kind="stable")]',
        f"{x}[np.flatnonzero({y})]",
        f"{x}[[np.argmax({y})]]",
    ][form]
    return d.assign(text, run, x, y, feature="order")


def _taken(d: Draw) -> Statement:
    x = d.pick()
    d.require_shapes(x, size=3)
    return d.assign(f"np.take({x}, [2, 0, 1])", lambda m, a: Value(a.dtype, a.data[[2, 0, 1]]), x)


def _isin(d: Draw) -> Statement:
    x, y = d.pick("iuf"), d.pick("iuf")

    def run(m: Machine, a: Value, b: Value) -> Value:
        if not m.exact:
            a, b = m.joined(a, b)
        elements = [x if isinstance(x, Complex) else (x,) for x in b.data]
        if any(isinstance(x, Complex) for x in (*elements, *a.data)):
            raise UndefinedError("isin")
        found = [any(x == y for y in b.data) for x in a.data]
        return Value(bool, objects(found, a.data.shape))

    return d.assign(f"np.isin({x}, {y})", run, x, y)


def _located(d: Draw) -> Statement:
    x, y = d.pick("iuf"), d.pick("iuf")
    if d.values[x].dtype != d.values[y].dtype:
        raise RejectedError("dtypes")

    def run(m: Machine, a: Value, b: Value) -> Value:
        flat = [*a.data, *b.data]
        if any(isinstance(x, Complex) or x != x for x in flat):
            raise UndefinedError("searchsorted") if m.exact else RejectedError("NaN")
        places = [sum(x < y for x in a.data) for y in b.data]
        return Value(np.int64, objects(places, b.data.shape))

    return d.assign(f"np.searchsorted(np.sort({x}), {y})", run, x, y)


def _filled(d: Draw) -> Statement:
    x, y = d.pick("iuf"), d.pick("iuf")
    form = d.random.randrange(3)
    if form == 0:
        return d.assign(
            f"np.full(6, {y}[0])",
            lambda m, a: Value(a.dtype, objects([a.data[0]] * 6, (6,))),
            y,
        )
    if form == 1:
        return d.assign(
            f"np.ones_like({x}) * {y}",
            lambda m, a, b: m.ufunc("multiply", _like(a, 1), b),
            x,
            y,
        )

    def run(m: Machine, a: Value) -> Value:
        zero = [0.0 if x != x else x for x in a.data]
        ends = [1.0 if x == np.inf else -1.0 if x == -np.inf else x for x in zero]
        return Value(a.dtype, objects(ends, a.data.shape))

    f = d.pick("f")
    return d.assign(f"np.nan_to_num({f}, nan=0.0, posinf=1.0, neginf=-1.0)", run, f)


def _like(value: Value, number: int) -> Value:
    one = float(number) if value.kind == "f" else number
    return Value(value.dtype, objects([one] * value.data.size, value.data.shape))


def _of_scalars(d: Draw) -> Statement:
    """Scalars in arithmetic, and casts by their classes."""
    x, y = d.pick("iuf"), d.pick("iuf")
    name = d.random.choice(["float16", "float32", "float64"])
    form = d.random.randrange(3)
    d.require_shapes(x, size=3)

    def run(m: Machine, a: Value, b: Value) -> Value:
        one, other = element(a, 0), element(a, 1)
        if form == 0:
            return m.ufunc("multiply", m.convert(one, name, True), b)
        if form == 1:
            return m.ufunc("add", m.ufunc("subtract", one, other), b)
        return m.ufunc("divide", b, m.ufunc("add", one, other))

    text = [f"np.{name}({x}[0]) * {y}", f"({x}[0] - {x}[1]) + {y}", f"{y} / ({x}[0] + {x}[1])"]
    return d.assign(text[form], run, x, y, feature="scalars")


def _total(d: Draw) -> Statement:
    """A sum of scalars in a loop."""
    x, new = d.pick("iuf"), d.new()
    d.require_shapes(x, size=3)
    symbol, name = d.random.choice([("+", "add"), ("*", "multiply")])
    form = d.random.choice(["k", "value"])

    def run(m: Machine, values: Environment) -> None:
        a = values[x]
        total = element(a, 0)
        for k in range(1, 3):
            total = m.ufunc(name, total, element(a, k))
        values[new] = total

    loop = ["for k in range(1, 3):", f"    {new} = {new} {symbol} {x}[k]"]
    if form == "value":
        loop = [f"for value in {x}[1:3]:", f"    {new} = {new} {symbol} value"]
    return Statement([f"{new} = {x}[0]", *loop], run, (x,), (new,), feature="scalars")


def _listed(d: Draw) -> Statement:
    x = d.pick("iuf")

    def run(m: Machine, a: Value) -> Value:
        return m.ufunc("add", m.ufunc("multiply", a, 2), a)

    return d.assign(f"np.array([value * 2 + value for value in {x}])", run, x, feature="scalars")


def _conditional(d: Draw) -> Statement:
    """A loop that decides by elements."""
    x, y, new = d.pick("iuf"), d.pick("iuf"), d.new()
    d.require_shapes(x, y)
    size = d.values[x].data.size

    def run(m: Machine, values: Environment) -> None:
        a, b = values[x], values[y]
        target = values[new] = from_numpy(np.zeros(size))
        for k in range(size):
            test = m.ufunc("greater", element(a, k), element(b, k))
            if bool(m.mask(test)[()]):
                m.store_element(target, k, m.ufunc("multiply", element(a, k), 2))

    lines = [
        f"{new} = np.zeros({size})",
        f"for k in range({size}):",
        f"    if {x}[k] > {y}[k]:",
        f"        {new}[k] = {x}[k] * 2",
    ]
    return Statement(lines, run, (x, y), (new,), feature="branch")


def _printed(d: Draw) -> Statement:
    """Calculations of scalars that leave at once."""
    x = d.pick("iuf")
    d.require_shapes(x, size=3)
    key, mark = d.marked()
    form = d.random.randrange(4)
    text = [
        f'print(f"{{{x}.sum() / 3:.2f}}")',
        f"print({x}[0] - {x}[1])",
        f'LOG.info("%s", {x}.max() - {x}.min())',
        f'print("any", ({x} > 2).any(), {x}[0] == {x}[1])',
    ][form]

    def run(m: Machine, values: Environment) -> None:
        a = values[x]
        if form == 0:
            m.leave((key, 0), m.ufunc("divide", m.reduction("sum", a), 3))
        elif form == 1:
            m.leave((key, 0), m.ufunc("subtract", element(a, 0), element(a, 1)))
        elif form == 2:
            extremes = m.reduction("max", a), m.reduction("min", a)
            m.leave((key, 0), m.ufunc("subtract", *extremes))
        else:
            m.leave((key, 0), m.reduction("any", m.ufunc("greater", a, 2)))
            m.leave((key, 1), m.ufunc("equal", element(a, 0), element(a, 1)))

    leaves = tuple((key, place) for place in range(1 + (form == 3)))
    return Statement([text + mark], run, (x,), leaves=leaves, feature="leave")


FUNCTIONS: Sequence[tuple[Callable[[Draw], Statement], float]] = [
    (_matmul, 1.5),
    (_outer, 1),
    (_rounded, 1),
    (_accumulated, 1),
    (_statistic, 1.5),
    (_ordered, 1),
    (_taken, 0.5),
    (_isin, 1),
    (_located, 0.7),
    (_filled, 1.5),
    (_of_scalars, 2),
    (_total, 1),
    (_listed, 0.5),
    (_conditional, 0.5),
    (_printed, 2),
]
"""The makers of statements, each with its weight."""
