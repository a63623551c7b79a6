"""Random stores, callbacks, loops and values that leave; and the drawing of a program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tests.runtime.audit.drawn_audits import (
    FLOATS,
    INTS,
    UNITS,
    Draw,
    Environment,
    Program,
    Statement,
)
from tests.runtime.audit.drawn_expressions import EXPRESSIONS
from tests.runtime.audit.drawn_functions import FUNCTIONS
from tests.runtime.audit.exact_values import (
    Complex,
    Machine,
    RejectedError,
    UndefinedError,
    Value,
    from_numpy,
    objects,
)

# Stores


def _stored(d: Draw) -> Statement:
    x = d.pick()
    dtype = d.random.choice([*INTS, *FLOATS, "f8", "c16"])
    if d.values[x].kind in "mM":
        dtype = f"{d.values[x].kind}8[{d.random.choice(UNITS)}]"
    new, size = d.new(), d.values[x].data.size
    form = d.random.randrange(4)
    start = d.random.choice(["zeros", "ones"]) if dtype[0] not in "mM" else "zeros"
    lines = [f'{new} = np.{start}({size}, "{dtype}")']
    if form == 0:
        lines.append(f"{new}[:] = {x}")
    elif form == 1:
        lines.append(f"{new}[1:4] = {x}[1:4]")
    elif form == 2:
        lines += [f"for k in range({size}):", f"    {new}[k] = {x}[k]"]
    else:
        lines.append(f"np.copyto({new}, {x}, casting='unsafe')")

    def run(m: Machine, values: Environment) -> None:
        array = from_numpy(getattr(np, start)(size, dtype))
        values[new] = array
        a = values[x]
        places = {0: np.s_[:], 1: np.s_[1:4], 3: np.s_[:]}
        if form == 2:
            for k in range(size):
                m.store_element(array, k, Value(a.dtype, objects([a.data[k]], ())))
        else:
            m.store(array, places[form], Value(a.dtype, a.data[places[form]]))

    return Statement(lines, run, (x,), (new,), feature="store")


def _stored_by_mask(d: Draw) -> Statement:
    x, mask = d.pick(), d.pick("b")
    d.require_shapes(x, mask)
    form = d.random.randrange(3)
    if form == 0 or d.values[x].kind in "mM":
        number = d.number(d.values[x].kind)
        if d.values[x].kind in "mM":
            number = "NaT" if d.random.random() < 0.1 else 1

        def run(m: Machine, values: Environment) -> None:
            at = values[mask].data.astype(bool)
            if number == "NaT":
                values[x].data[at] = None
            else:
                m.store(values[x], at, number)

        text = '"NaT"' if number == "NaT" else str(number)
        if values_are_dates := d.values[x].kind == "M":
            raise RejectedError(str(values_are_dates))
        return Statement([f"{x}[{mask}] = {text}"], run, (x, mask), (), (x,), feature="mask")
    y = d.pick()
    d.require_shapes(x, y)

    def of_array(m: Machine, values: Environment) -> None:
        at, a = values[mask].data.astype(bool), values[y]
        if at.any():
            m.store(values[x], at, Value(a.dtype, a.data[at]))

    text = f"{x}[{mask}] = {y}[{mask}]" if form == 1 else f"np.copyto({x}, {y}, where={mask})"
    if form == 2 and not np.can_cast(d.values[y].dtype, d.values[x].dtype, "same_kind"):
        raise RejectedError("copyto")
    return Statement([text], of_array, (x, mask, y), (), (x,), feature="mask")


def _in_place(d: Draw) -> Statement:
    x = d.pick("iufcm")
    symbol, name = d.random.choice([("+", "add"), ("-", "subtract"), ("*", "multiply")])
    part = d.random.choice(["", "", "[1:4]"])
    at = np.s_[1:4] if part else np.s_[:]
    if d.random.random() < 0.4:
        number = d.number(d.values[x].kind)

        def with_number(m: Machine, values: Environment) -> None:
            a = values[x]
            _write(m, a, at, m.ufunc(name, a.view(a.data[at]), number))

        return Statement([f"{x}{part} {symbol}= {number}"], with_number, (x,), (), (x,))
    y = d.pick(ndim=None)
    part_of = part if d.values[y].data.ndim else ""

    def of_array(m: Machine, values: Environment) -> None:
        a, b = values[x], values[y]
        _write(m, a, at, m.ufunc(name, a.view(a.data[at]), b.view(b.data[at]) if part_of else b))

    return Statement([f"{x}{part} {symbol}= {y}{part_of}"], of_array, (x, y), (), (x,))


def _write(m: Machine, target: Value, at: Any, result: Value, where: Any = None) -> None:
    """Write a ufunc's result with casting same_kind."""
    if not np.can_cast(result.dtype, target.dtype, "same_kind"):
        raise RejectedError("same_kind")
    if result.data.shape != target.data[at].shape:
        raise RejectedError("shape")
    if where is None:
        m.store(target, at, result)
    else:
        m.store(target, where, Value(result.dtype, result.data[where]))


def _with_where(d: Draw) -> Statement:
    x, y, mask = d.pick("iuf"), d.pick("iuf"), d.pick("b")
    new, name = d.new(), d.random.choice(["divide", "add", "multiply", "subtract"])
    dtype = d.random.choice(["f8", "f4", "i8", "i4", "i2"])
    size = d.values[x].data.size

    def run(m: Machine, values: Environment) -> None:
        values[new] = from_numpy(np.zeros(size, dtype))
        at = values[mask].data.astype(bool)
        result = m.ufunc(name, values[x], values[y])
        if result.data.shape != at.shape:
            raise RejectedError("shape")
        _write(m, values[new], np.s_[:], result, at)

    lines = [
        f'{new} = np.zeros({size}, "{dtype}")',
        f'np.{name}({x}, {y}, out={new}, where={mask}, casting="same_kind")',
    ]
    return Statement(lines, run, (x, y, mask), (new,), feature="where=")


def _at(d: Draw) -> Statement:
    x, name = d.pick("iuf"), d.random.choice(["add", "add", "subtract", "multiply", "maximum"])
    if d.values[x].dtype == "u8":
        raise RejectedError("NumPy computes with an int64 beside it in float64")
    size = d.values[x].data.size
    count = d.random.randrange(2, 5)
    places = [d.random.randrange(size) for _ in range(count)]
    if d.random.random() < 0.5:
        number: Any = d.number("iu" if d.values[x].kind in "iu" else "f")
        y, text = "", str(number)
    else:
        y, number = d.pick("iuf"), 0
        text = f"{y}[:{count}]"

    def run(m: Machine, values: Environment) -> None:
        a = values[x]
        source = values[y].copy() if y else from_numpy([number] * count)
        if len(source.data) < count:
            raise RejectedError("shape")
        for i, place in enumerate(places):
            old = Value(a.dtype, objects([a.data[place]], ()))
            other = Value(source.dtype, objects([source.data[i]], ()))
            result = m.ufunc(name, old, other)
            if not np.can_cast(result.dtype, a.dtype, "same_kind"):
                raise RejectedError("same_kind")
            m.store(a, place, result)

    text = f"np.{name}.at({x}, {places}, {text})"
    return Statement([text], run, (x, y) if y else (x,), (), (x,), feature=".at")


# Structured arrays, callbacks, loops


def _structured(d: Draw) -> Statement:
    x, y = d.pick("iufmM"), d.pick("iufmM")
    d.require_shapes(x, y)
    dtypes = [
        f"{value.kind}8[{d.random.choice(UNITS)}]"
        if value.kind in "mM"
        else d.random.choice([*INTS, *FLOATS])
        for value in (d.values[x], d.values[y])
    ]
    new, table, size = d.new(), d.new(), d.values[x].data.size
    in_place = d.random.random() < 0.5
    field = d.random.choice("ab")
    number = 3

    def run(m: Machine, values: Environment) -> None:
        fields = [from_numpy(np.zeros(size, dtype)) for dtype in dtypes]
        m.store(fields[0], np.s_[:], values[x])
        m.store(fields[1], np.s_[:], values[y])
        if any(one.undefined for one in fields):
            raise UndefinedError("a field")
        chosen = fields["ab".index(field)]
        if in_place:
            _write(m, chosen, np.s_[:], m.ufunc("multiply", chosen, number))
        values[new] = m.ufunc("add", chosen, chosen) if chosen.kind != "M" else chosen

    lines = [
        f'{table} = np.zeros({size}, [("a", "{dtypes[0]}"), ("b", "{dtypes[1]}")])',
        f'{table}["a"] = {x}',
        f'{table}["b"] = {y}',
    ]
    is_date = dtypes["ab".index(field)][0] == "M"
    if in_place:
        lines.append(f'{table}["{field}"] *= {number}')
    one = f'{table}["{field}"]'
    lines.append(f"{new} = {one}" if is_date else f"{new} = {one} + {one}")
    return Statement(lines, run, (x, y), (new,), feature="structured")


def _along_axis(d: Draw) -> Statement:
    x = d.pick("iuf")
    rows, name = d.random.random() < 0.5, d.random.choice(["lane", "twice"])

    def of_lane(m: Machine, lane: Value) -> Value:
        if name == "twice":
            return m.ufunc("multiply", m.reduction("sum", lane), 2)
        return m.ufunc("add", m.reduction("cumsum", lane, 0), lane.view(lane.data[::-1]))

    def run(m: Machine, a: Value) -> Value:
        if rows:
            if a.data.size < 6:
                raise RejectedError("size")
            lanes = [Value(a.dtype, lane) for lane in a.data[:6].reshape(2, 3)]
        else:
            lanes = [a]
        results = [of_lane(m, lane) for lane in lanes]
        elements = [x for result in results for x in result.data.reshape(-1)]
        data = objects(elements, (len(elements),))
        return Value(results[0].dtype, data)

    array = f"{x}[:6].reshape(2, 3)" if rows else x
    axis = 1 if rows else 0
    text = f"np.apply_along_axis({name}, {axis}, {array}).reshape(-1)"
    return d.assign(text, run, x, feature="callback")


def _vectorized(d: Draw) -> Statement:
    x = d.pick("iuf")
    name, by = d.random.choice(["tripled", "halved"]), d.random.choice(["vectorize", "frompyfunc"])
    is_integer = name == "tripled" and d.values[x].kind in "iu"
    dtype = np.dtype("i8" if is_integer else "f8")

    def run(m: Machine, a: Value) -> Value:
        elements = list(a.data.reshape(-1))
        if any(isinstance(x, Complex) for x in elements):
            raise UndefinedError(name)
        if a.kind == "f" and not m.whole:  # NumPy calls the function with floats
            elements = [float(x) for x in elements]
        results = [x * 3 + 1 for x in elements] if name == "tripled" else [x / 2 for x in elements]
        if is_integer and not m.exact and any(abs(x) >= 2**63 for x in results):
            raise RejectedError("too large")
        return m.made(dtype, results, a.data.shape)

    if by == "vectorize":
        text = f'np.vectorize({name}, otypes=["{dtype.str[1:]}"])({x})'
    else:
        text = f'np.frompyfunc({name}, 1, 1)({x}).astype("{dtype.str[1:]}")'
    return d.assign(text, run, x, feature="callback")


def _loop(d: Draw) -> Statement:
    """A loop of three rounds, with values that leave in each."""
    x = d.pick("iuf")
    y, new, parts = d.pick("iuf"), d.new(), d.new()
    d.require_shapes(x, y, size=3)
    key, mark = d.marked()
    number = d.number(d.values[x].kind)
    symbol, name = d.random.choice([("+", "add"), ("*", "multiply"), ("-", "subtract")])
    form = d.random.randrange(4)
    body = [
        [f"{new} = {new} {symbol} {y}"],
        [f"{new} = {new} {symbol} {number}"],
        [f"{new}[k] = {y}[k]"],
        [f"{new} = {new} {symbol} {y} * k"],
    ][form]
    leaves, of = d.random.choice(
        [
            (f'print(f"round {{k}}: {{{new}.sum()}}")', "sum"),
            (f'print(f"{{{new}[0]:.3f}}")', "first"),
            (f'LOG.info("%s of %d", {new}.max(), k)', "max"),
            (f"print({new} + 0)", "all"),
            (f"{parts}.append({new} + 0)", ""),
        ]
    )
    lines = [f"{new} = {x}.copy()", f"{parts} = []", "for k in range(3):"]
    lines += [f"    {line}" for line in (*body, leaves + mark)]
    if not of:
        lines.append(f"{parts} = np.concatenate({parts})")

    def step(m: Machine, values: Environment, k: int) -> None:
        a, b = values[new], values[y]
        if form == 0:
            values[new] = m.ufunc(name, a, b)
        elif form == 1:
            values[new] = m.ufunc(name, a, number)
        elif form == 2:
            m.store_element(a, k, Value(b.dtype, objects([b.data[k]], ())))
        else:
            values[new] = m.ufunc(name, a, m.ufunc("multiply", b, k))

    def run(m: Machine, values: Environment) -> None:
        values[new] = values[x].copy()
        joined: list[Value] = []
        for k in range(3):
            step(m, values, k)
            a = values[new]
            if of == "first":
                m.leave((key, 0), Value(a.dtype, objects([a.data[0]], ())))
            elif of == "all":
                m.leave((key, 0), m.ufunc("add", a, 0))
            elif of:
                m.leave((key, 0), m.reduction(of, a))
            else:
                joined.append(m.ufunc("add", a, 0))
        if joined:
            joined = m.joined(*joined)
            values[parts] = Value(joined[0].dtype, np.concatenate([v.data for v in joined]))

    makes = (new,) if of else (new, parts)
    keys = [(key, 0)] * 3 if of else []
    return Statement(lines, run, (x, y), makes, leaves=tuple(keys), feature="loop")


# Values that leave


def _leave(d: Draw) -> Statement:
    x, y = d.pick(ndim=None), d.pick("iufcb", None)
    key, mark = d.marked()
    forms: list[tuple[str, list[tuple[str, str]]]] = [
        ("print({0})", [(x, "all")]),
        ('print(f"total {{{0}.sum()}}, {{{1}[0]}}")', [(x, "sum"), (y, "first")]),
        ('print("first", {0}[0], "of", {1})', [(x, "first"), (y, "all")]),
        ('LOG.info("%s and %s", {0}.max(), {1}[0])', [(x, "max"), (y, "first")]),
        ('LOG.info(f"{{{0}[0]}}")', [(x, "first")]),
        ('print("{{}} {{}}".format({0}[0], {1}.sum()))', [(x, "first"), (y, "sum")]),
        ('np.save(FOLDER + "/x.npy", {0})', [(x, "all")]),
        ('np.savetxt(FOLDER + "/x.txt", {0})', [(x, "all")]),
        ('{0}.tofile(FOLDER + "/x.bin")', [(x, "all")]),
        ('np.savez(FOLDER + "/x.npz", a={0}, b={1})', [(x, "all"), (y, "all")]),
        ('pickle.dump({0}, open(FOLDER + "/x.pkl", "wb"))', [(x, "all")]),
        ('json.dump({0}.tolist(), open(FOLDER + "/x.json", "w"))', [(x, "all")]),
        ("print([float(v) for v in {0}])", [(x, "floats")]),
        ("print(float({0}[0]), {1}[0])", [(x, "float"), (y, "first")]),
        ('json.dump({{"n": int({0}.max())}}, open(FOLDER + "/x.json", "w"))', [(x, "max")]),
        ('print(f"{{{0}[0]:.2f}}")', [(x, "first")]),
    ]
    text, left = d.random.choice(forms)
    kinds = d.values[x].kind + d.values[y].kind
    for name, of in left:
        value = d.values[name]
        if of not in ("all", "max", "sum") and value.data.ndim != 1:
            raise RejectedError("a scalar")
        if of == "max" and value.kind not in "iuf":
            raise RejectedError("max")
        if "int(" in text and value.kind not in "iu":
            raise RejectedError("int")
        if of in ("float", "floats") and value.kind not in "iuf":
            raise RejectedError("float")
    if (".2f" in text and kinds[0] not in "iuf") or (
        "savetxt" in text and (kinds[0] not in "iuf" or not d.values[x].data.ndim)
    ):
        raise RejectedError("a format")
    if ("tofile" in text or "json" in text) and kinds[0] not in "iufb":
        raise RejectedError("a file")
    if "tofile" in text and not d.values[x].data.ndim:
        raise RejectedError("a file")

    def run(m: Machine, values: Environment) -> None:
        for place, (name, of) in enumerate(left):
            a = values[name]
            if of == "first":
                a = Value(a.dtype, objects([a.data[0]], ()))
            elif of in ("sum", "max"):
                a = m.reduction(of, a.view(a.data.reshape(-1)))
            elif of == "float":
                a = m.convert(Value(a.dtype, objects([a.data[0]], ())), "f8")
            elif of == "floats":
                a = m.convert(a, "f8")
            m.leave((key, place), a)

    keys = tuple((key, place) for place in range(len(left)))
    d.program.numbers |= {key for key, (_, of) in zip(keys, left, strict=True) if "float" in of}
    uses = tuple(name for name, _ in left)
    return Statement([text.format(x, y) + mark], run, uses, leaves=keys, feature="leave")


def _python_number(d: Draw) -> Statement:
    """A number that leaves NumPy and goes back into arithmetic."""
    x, y = d.pick("f"), d.pick("f")

    def run(m: Machine, a: Value, b: Value) -> Value:
        number = m.convert(Value(b.dtype, objects([b.data[0]], ())), "f8").data[()]
        return m.ufunc("multiply", a, number)

    return d.assign(f"{x} * float({y}[0])", run, x, y, feature="number")


def _branch(d: Draw) -> Statement:
    x, y, z = d.pick("iuf"), d.pick("iuf"), d.pick()
    w = d.pick()

    def run(m: Machine, a: Value, b: Value, p: Value, q: Value) -> Value:
        test = m.ufunc("greater", *(Value(v.dtype, objects([v.data[0]], ())) for v in (a, b)))
        taken = bool(m.mask(test)[()])
        chosen = p if taken else q
        return Value(chosen.dtype, chosen.data.copy())

    text = f"{z}.copy() if {x}[0] > {y}[0] else {w}.copy()"
    return d.assign(text, run, x, y, z, w, feature="branch")


_STATEMENTS: Sequence[tuple[Callable[[Draw], Statement], float]] = [
    (_stored, 4),
    (_stored_by_mask, 3),
    (_in_place, 4),
    (_with_where, 2),
    (_at, 2),
    (_structured, 2),
    (_along_axis, 1),
    (_vectorized, 0.7),
    (_loop, 3),
    (_leave, 8),
    (_python_number, 0.3),
    (_branch, 0.4),
]
_ALL = (*EXPRESSIONS, *_STATEMENTS, *FUNCTIONS)
MAKERS = [maker for maker, _ in _ALL]
WEIGHTS = [weight for _, weight in _ALL]


def draw(seed: int) -> Program:
    """Draw a program."""
    state = Draw(seed)
    wanted, tries = state.random.randrange(4, 13), 0
    while len(state.program.statements) < wanted and tries < 400:
        tries += 1
        maker = state.random.choices(MAKERS, WEIGHTS)[0]
        try:
            state.add(maker(state))
        except RejectedError:
            continue
    names = [name for name, x in state.values.items() if isinstance(x, Value) and name[0] == "v"]
    last = names[-4:] or ["x0"]
    state.program.results = last[-state.random.randrange(1, 5) :]
    return state.program
