"""Random statements of one expression: `new = ...`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.runtime.audit.drawn_audits import FLOATS, INTS, SIZE, UNITS, Draw, Statement
from tests.runtime.audit.exact_values import (
    BITWISE,
    COMPARING,
    Machine,
    RejectedError,
    Value,
    from_numpy,
    objects,
)


def _binary(d: Draw) -> Statement:
    symbol, name = d.random.choice(
        [("+", "add"), ("-", "subtract"), ("*", "multiply"), ("/", "divide")] * 2
        + [("//", "floor_divide"), ("%", "remainder")]
    )
    x = d.pick()
    if d.random.random() < 0.4:
        number = d.number(d.values[x].kind)
        if d.random.random() < 0.2:
            return d.assign(f"{number} {symbol} {x}", lambda m, a: m.ufunc(name, number, a), x)
        return d.assign(f"{x} {symbol} {number}", lambda m, a: m.ufunc(name, a, number), x)
    y = d.pick(ndim=None)
    return d.assign(f"{x} {symbol} {y}", lambda m, a, b: m.ufunc(name, a, b), x, y)


UNARY = {
    "-{0}": ("negative", "iufcmb"),
    "np.abs({0})": ("absolute", "iufcm"),
    "abs({0})": ("absolute", "ifc"),
    "np.square({0})": ("square", "iufc"),
    "np.sqrt({0})": ("sqrt", "iufc"),
    "np.exp({0})": ("exp", "fci"),
    "np.log1p({0})": ("log1p", "fi"),
    "np.sin({0})": ("sin", "f"),
    "np.floor({0})": ("floor", "f"),
    "np.rint({0})": ("rint", "f"),
    "np.sign({0})": ("sign", "iuf"),
    "np.isnan({0})": ("isnan", "fc"),
    "np.isfinite({0})": ("isfinite", "fc"),
    "np.isnat({0})": ("isnat", "mM"),
    "~{0}": ("invert", "biu"),
    "np.logical_not({0})": ("logical_not", "biuf"),
    "np.conj({0})": ("conjugate", "c"),
}


def _unary(d: Draw) -> Statement:
    text, (name, kinds) = d.random.choice(list(UNARY.items()))
    x = d.pick(kinds, None)
    return d.assign(text.format(x), lambda m, a: m.ufunc(name, a), x)


COMPARISONS = dict(zip(("==", "!=", "<", "<=", ">", ">="), COMPARING, strict=True))


def _comparison(d: Draw) -> Statement:
    symbol, name = d.random.choice(list(COMPARISONS.items()))
    x = d.pick("iuf" if d.random.random() < 0.7 else "iufmMb")
    if d.values[x].kind in "iuf" and d.random.random() < 0.5:
        number = d.number(d.values[x].kind)
        return d.assign(f"{x} {symbol} {number}", lambda m, a: m.ufunc(name, a, number), x)
    y = d.pick("iufmMb")
    return d.assign(f"{x} {symbol} {y}", lambda m, a, b: m.ufunc(name, a, b), x, y)


BITS = {"&": "bitwise_and", "|": "bitwise_or", "^": "bitwise_xor", ">>": "right_shift"}
BITS["<<"] = "left_shift"
assert set(BITS.values()) <= set(BITWISE)


def _bitwise(d: Draw) -> Statement:
    symbol, name = d.random.choice(list(BITS.items()))
    x = d.pick("iu")
    if ">" in symbol or "<" in symbol or d.random.random() < 0.6:
        number = d.random.randrange(1, 7)
        return d.assign(f"{x} {symbol} {number}", lambda m, a: m.ufunc(name, a, number), x)
    y = d.pick("iub")
    return d.assign(f"{x} {symbol} {y}", lambda m, a, b: m.ufunc(name, a, b), x, y)


def _logical(d: Draw) -> Statement:
    symbol, name = d.random.choice([("&", "bitwise_and"), ("|", "bitwise_or")])
    x, y = d.pick("b"), d.pick("b")
    return d.assign(f"{x} {symbol} {y}", lambda m, a, b: m.ufunc(name, a, b), x, y)


def _power(d: Draw) -> Statement:
    x = d.pick("iuf")
    return d.assign(f"{x} ** 2", lambda m, a: m.ufunc("square", a), x)


def _extreme(d: Draw) -> Statement:
    name = d.random.choice(["maximum", "minimum"])
    x = d.pick("iufmM")
    if d.random.random() < 0.4 and d.values[x].kind in "iuf":
        number = d.number(d.random.choice("if"))
        return d.assign(f"np.{name}({x}, {number})", lambda m, a: m.ufunc(name, a, number), x)
    y = d.pick("iufmM", None)
    return d.assign(f"np.{name}({x}, {y})", lambda m, a, b: m.ufunc(name, a, b), x, y)


def _where(d: Draw) -> Statement:
    mask, x = d.pick("b"), d.pick()
    if d.random.random() < 0.5:
        number = d.random.choice([np.nan, 0, 0.5, 1, 1.5])
        text = "np.nan" if number != number else str(number)

        def with_number(m: Machine, at: Value, a: Value) -> Value:
            a, b = m.joined(a, number)
            return Value(a.dtype, _chosen(at, a, b))

        return d.assign(f"np.where({mask}, {x}, {text})", with_number, mask, x)

    y = d.pick(ndim=None)

    def of_two(m: Machine, at: Value, a: Value, b: Value) -> Value:
        a, b = m.joined(a, b)
        return Value(a.dtype, _chosen(at, a, b))

    return d.assign(f"np.where({mask}, {x}, {y})", of_two, mask, x, y)


def _chosen(at: Value, a: Value, b: Value) -> Any:
    try:
        return np.where(at.data.astype(bool), a.data, b.data)
    except ValueError as error:
        raise RejectedError(str(error)) from error


def _select(d: Draw) -> Statement:
    one, other, x, y = d.pick("b"), d.pick("b"), d.pick("iufc"), d.pick("iufc")
    number = d.random.choice([0, 0.5, -1])

    def run(m: Machine, p: Value, q: Value, a: Value, b: Value) -> Value:
        a, b, c = m.joined(a, b, number)
        rest = Value(a.dtype, _chosen(q, b, c))
        return Value(a.dtype, _chosen(p, a, rest))

    text = f"np.select([{one}, {other}], [{x}, {y}], {number})"
    return d.assign(text, run, one, other, x, y)


def _clip(d: Draw) -> Statement:
    x = d.pick("iuf")
    low, high = sorted([d.number("i"), d.number(d.values[x].kind)])

    def run(m: Machine, a: Value) -> Value:
        return m.ufunc("minimum", m.ufunc("maximum", a, low), high)

    return d.assign(f"np.clip({x}, {low}, {high})", run, x)


def _concatenated(d: Draw) -> Statement:
    x, y, at = d.pick(), d.pick(), d.random.randrange(1, 5)
    form = d.random.randrange(4)
    d.require_shapes(x, y, size=3)

    def run(m: Machine, a: Value, b: Value) -> Value:
        a, b = m.joined(a, b)
        if form == 3:
            return Value(a.dtype, np.stack([a.data, b.data], axis=1)[:3].reshape(-1))
        pair = [a.data[:at], b.data[at:]] if form == 0 else [a.data, b.data]
        data = np.concatenate(pair)
        return Value(a.dtype, data if form < 2 else data[-SIZE:])

    text = [
        f"np.concatenate([{x}[:{at}], {y}[{at}:]])",
        f"np.concatenate([{x}, {y}])",
        f"np.append({x}, {y})[-{SIZE}:]",
        f"np.stack([{x}, {y}], axis=1)[:3].reshape(-1)",
    ][form]
    return d.assign(text, run, x, y)


def _appended(d: Draw) -> Statement:
    x = d.pick("iuf")
    number = d.random.choice([np.nan, 0.5, 3])
    text = "np.nan" if number != number else str(number)

    def run(m: Machine, a: Value) -> Value:
        b = from_numpy(np.array([number]))
        a, b = m.joined(a, b)
        return Value(a.dtype, np.concatenate([a.data, b.data])[1:])

    return d.assign(f"np.append({x}, {text})[1:]", run, x)


def _moved(d: Draw) -> Statement:
    x = d.pick(ndim=1)
    d.require_shapes(x, size=3)
    text, at = d.random.choice(
        [
            ("{0}[::-1]", np.s_[::-1]),
            ("np.flip({0})", np.s_[::-1]),
            ("{0}[1:]", np.s_[1:]),
            ("{0}[:3]", np.s_[:3]),
            ("{0}[::2]", np.s_[::2]),
            ("{0}[[2, 0, 1]]", [2, 0, 1]),
        ]
    )
    if "[[" in text:
        return d.assign(text.format(x), lambda m, a: Value(a.dtype, a.data[at]), x)
    return d.assign(text.format(x), lambda m, a: a.view(a.data[at]), x)


def _element(d: Draw) -> Statement:
    x = d.pick("iufcmM")
    at = d.random.randrange(0, 3)
    d.require_shapes(x, size=3)
    data = lambda a: objects([a.data[at]], ())  # noqa: E731
    return d.assign(f"{x}[{at}]", lambda m, a: Value(a.dtype, data(a)), x)


def _repeated(d: Draw) -> Statement:
    x = d.pick()
    text, function = d.random.choice(
        [
            ("np.roll({0}, 2)", lambda a: np.roll(a, 2)),
            ("np.repeat({0}, 2)[:6]", lambda a: np.repeat(a, 2)[:6]),
            ("np.tile({0}, 2)[3:9]", lambda a: np.tile(a, 2)[3:9]),
            ("{0}.copy()", lambda a: a.copy()),
        ]
    )
    return d.assign(text.format(x), lambda m, a: Value(a.dtype, function(a.data).copy()), x)


def _sorted(d: Draw) -> Statement:
    x = d.pick("iufmM")
    if d.random.random() < 0.2:
        return d.assign(f'np.argsort({x}, kind="stable")', lambda m, a: m.argsorted(a), x)
    return d.assign(f"np.sort({x})", lambda m, a: m.sorted(a), x)


def _cast(d: Draw) -> Statement:
    x = d.pick(ndim=None)
    kind, text, chain = d.values[x].kind, x, []
    for _ in range(d.random.choice([1, 1, 2, 3])):
        if kind in "mM":
            unit = d.random.choice(UNITS)
            name = d.random.choice([f"{kind}8[{unit}]"] * 3 + ["i8"])
        elif kind in "iu" and d.random.random() < 0.08:
            name = f"m8[{d.random.choice(UNITS)}]"
        else:
            name = d.random.choice([*INTS, *FLOATS, *FLOATS, "?", "c8", "c16", "f8"])
        kind = np.dtype(name).kind
        chain.append(np.dtype(name))
        text += d.random.choice([f'.astype("{name}")', f'.astype(np.dtype("{name}"))'])

    def run(m: Machine, a: Value) -> Value:
        for dtype in chain:
            a = m.convert(a, dtype, written=True)
        return Value(a.dtype, a.data.copy())

    return d.assign(text, run, x, feature="cast")


def _parts(d: Draw) -> Statement:
    x, name = d.pick("c"), d.random.choice(["real", "imag"])

    def run(m: Machine, a: Value) -> Value:
        data = objects([getattr(x, name) for x in a.data.reshape(-1)], a.data.shape)
        return Value("f4" if a.dtype == "c8" else "f8", data)

    return d.assign(f"{x}.{name} * 1", lambda m, a: m.ufunc("multiply", run(m, a), 1), x)


def _as_complex(d: Draw) -> Statement:
    x, y = d.pick("iuf"), d.pick("iuf")
    return d.assign(
        f"{x} + 1j * {y}", lambda m, a, b: m.ufunc("add", a, m.ufunc("multiply", 1j, b)), x, y
    )


REDUCTIONS = ("sum", "sum", "prod", "max", "min", "mean", "any", "all", "argmax", "argmin")


def _reduced(d: Draw) -> Statement:
    x, name = d.pick(), d.random.choice([*REDUCTIONS, "std", "var"])
    if name in ("std", "var", "prod") and d.values[x].kind == "c":
        raise RejectedError(name)
    if name in ("sum", "prod") and d.values[x].kind in "iub" and d.random.random() < 0.4:
        dtype = d.random.choice(["u1", "i2", "i4", "u4", "i8", "f8"])
        text = f'{x}.{name}(dtype="{dtype}")'
        return d.assign(text, lambda m, a: m.reduction(name, a, None, dtype), x)
    text = d.random.choice([f"{x}.{name}()", f"np.{name}({x})"])
    return d.assign(text, lambda m, a: m.reduction(name, a), x)


def _by_rows(d: Draw) -> Statement:
    x, axis = d.pick("iufmb"), d.random.randrange(2)
    name = d.random.choice(["sum", "max", "min", "mean", "cumsum"])
    d.require_shapes(x, size=6)

    def run(m: Machine, a: Value) -> Value:
        return m.reduction(name, Value(a.dtype, a.data[:6].reshape(2, 3)), axis)

    tail = ".reshape(-1)" if name == "cumsum" else ""

    def flat(m: Machine, a: Value) -> Value:
        result = run(m, a)
        return Value(result.dtype, result.data.reshape(-1))

    return d.assign(f"{x}[:6].reshape(2, 3).{name}(axis={axis}){tail}", flat, x)


def _scanned(d: Draw) -> Statement:
    x = d.pick("iufbm")
    if d.random.random() < 0.5:
        x = d.pick("iufmM")
        return d.assign(
            f"np.diff({x})",
            lambda m, a: m.ufunc("subtract", a.view(a.data[1:]), a.view(a.data[:-1])),
            x,
        )
    name = d.random.choice(["cumsum", "cumsum", "cumprod"])
    if name == "cumsum" and d.values[x].kind in "iu" and d.random.random() < 0.3:
        dtype = d.random.choice(["u1", "i2", "i4"])
        return d.assign(
            f'np.cumsum({x}, dtype="{dtype}")', lambda m, a: m.reduction(name, a, 0, dtype), x
        )
    return d.assign(f"np.{name}({x})", lambda m, a: m.reduction(name, a, 0), x)


def _masked(d: Draw) -> Statement:
    x, mask = d.pick(), d.pick("b")
    d.require_shapes(x, mask)

    def run(m: Machine, a: Value, at: Value) -> Value:
        return Value(a.dtype, a.data[m.mask(at)])

    return d.assign(f"{x}[{mask}]", run, x, mask, feature="mask")


def _with_dtype(d: Draw) -> Statement:
    kind = d.random.choice("if")
    x, y, name = d.pick("iu" if kind == "i" else "f"), d.pick("iu" if kind == "i" else "f"), None
    name = d.random.choice(["add", "multiply", "subtract"])
    dtype = d.random.choice(["i1", "u1", "i4", "i8"] if kind == "i" else FLOATS)

    def run(m: Machine, a: Value, b: Value) -> Value:
        return m.ufunc(name, m.convert(a, dtype), m.convert(b, dtype))

    return d.assign(f'np.{name}({x}, {y}, dtype="{dtype}", casting="unsafe")', run, x, y)


def _of_dates(d: Draw) -> Statement:
    x = d.pick("mM")
    unit, count = d.random.choice(UNITS), d.random.randrange(1, 90)
    name = d.random.choice(["add", "subtract", "divide", "floor_divide", "remainder", "multiply"])
    if d.values[x].kind == "M" and name not in ("add", "subtract"):
        name = "add"
    if name == "multiply":
        y = d.pick("iuf")
        return d.assign(f"{x} * {y}", lambda m, a, b: m.ufunc("multiply", a, b), x, y)
    symbol = {"add": "+", "subtract": "-", "divide": "/", "floor_divide": "//", "remainder": "%"}
    step = np.timedelta64(count, unit)
    text = f'{x} {symbol[name]} np.timedelta64({count}, "{unit}")'
    return d.assign(text, lambda m, a: m.ufunc(name, a, from_numpy(step)), x, feature="dates")


def _as_duration(d: Draw) -> Statement:
    x, unit = d.pick("iu"), d.random.choice(UNITS)
    if d.values[x].dtype.itemsize == 8 and d.values[x].kind == "u":
        raise RejectedError("uint64")
    return d.assign(f'{x}.astype("m8[{unit}]")', lambda m, a: m.convert(a, f"m8[{unit}]", True), x)


def _by_where_of_calls(d: Draw) -> Statement:
    """A calculation that goes through an intermediate without a name."""
    x, y = d.pick("iu"), d.pick("iuf")
    text, run = d.random.choice(
        [
            ("({0}.astype('f8') + {1}).astype('i8')", None),
            ("np.maximum({0} * {1}, 0)", 1),
            ("({0} + {1})[::-1] - {0}", 2),
        ]
    )

    def of(m: Machine, a: Value, b: Value) -> Value:
        if run is None:
            return m.convert(m.ufunc("add", m.convert(a, "f8", True), b), "i8", True)
        if run == 1:
            return m.ufunc("maximum", m.ufunc("multiply", a, b), 0)
        total = m.ufunc("add", a, b)
        return m.ufunc("subtract", total.view(total.data[::-1]), a)

    return d.assign(text.format(x, y), of, x, y)


EXPRESSIONS: Sequence[tuple[Callable[[Draw], Statement], float]] = [
    (_binary, 8),
    (_unary, 3),
    (_comparison, 4),
    (_bitwise, 1.5),
    (_logical, 1),
    (_power, 1),
    (_extreme, 2),
    (_where, 3),
    (_select, 2),
    (_clip, 1.5),
    (_concatenated, 2),
    (_appended, 2),
    (_moved, 2),
    (_element, 1),
    (_repeated, 1.5),
    (_sorted, 2),
    (_cast, 5),
    (_parts, 2),
    (_as_complex, 1.5),
    (_reduced, 3),
    (_by_rows, 2),
    (_scanned, 3),
    (_masked, 2),
    (_with_dtype, 1.5),
    (_of_dates, 3),
    (_as_duration, 1),
    (_by_where_of_calls, 1.5),
]
"""The makers of statements, each with its weight."""
