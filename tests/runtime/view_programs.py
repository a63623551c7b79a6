"""Programs of views and writes, drawn from a seed, and their arguments.

A program has up to five names for arrays: slices, transposes, reshapes and copies of each other, or
results of operators. It writes through them: items, slices, masks, places, in-place operators and
out=. The arguments may share memory.
"""

from __future__ import annotations

from random import Random
from typing import Any, NamedTuple

import numpy as np

DTYPES = ["f8", "f8", "f4", "i8", "i4", "i2", "c16", "?"]
SHAPES: list[tuple[int, ...]] = [(6,), (4, 6), (6, 4), (2, 3, 4), (3, 3), (5,), (1, 6), (12,)]
VIEWS = [
    *("{v}[1:]", "{v}[:-1]", "{v}[::2]", "{v}[::-1]", "{v}[1]", "{v}[-1]", "{v}[...]"),
    *("{v}[..., 0]", "{v}[..., ::-1]", "{v}[..., 1:3]", "{v}[None]", "{v}[:, 1:]", "{v}.T"),
    *("{v}.reshape(-1)", "{v}.ravel()", "np.ravel({v})", "{v}.reshape(2, -1)", "{v}.flatten()"),
    *("{v}.swapaxes(0, -1)", "np.moveaxis({v}, 0, -1)", "{v}.squeeze()", "np.flip({v})"),
    *("np.atleast_2d({v})", "np.expand_dims({v}, 1)", "{v}.view()", "np.transpose({v})"),
    *("{v}.diagonal()", "np.broadcast_to({v}, (2, *{v}.shape))", "{v}.real", "{v}.imag"),
    *("{v}.reshape(-1, order='F')", "np.asarray({v})", "{v}[1:, None]", "np.split({v}, 2)[1]"),
    *("np.rot90({v})", "{v}[1, ..., None]", "{v}.mT", "{v}[:, ::-2]", "{v}.astype({v}.dtype)"),
    *("{v}.astype({v}.dtype, copy=False)", "np.lib.stride_tricks.sliding_window_view({v}, 2, 0)"),
    *("np.lib.stride_tricks.sliding_window_view({v}, 2, -1, writeable=True)[..., ::2, :]",),
    *("np.einsum('...i->i...', {v})", "np.einsum('ii->i', {v})", "np.einsum('ij->ji', {v})"),
]
COPIES = [
    *("{v}.copy()", "{v} + 1", "{v} * {w}", "np.where({v} > 1, {v}, {w})", "{v} - {w}"),
    *("{v}[[0, 1]]", "{v}[[1, 0, 1]]", "np.zeros_like({v})", "np.full_like({v}, 2)", "{v} % 3"),
    *(
        "np.zeros({v}.shape, {v}.dtype)",
        "np.zeros({v}.shape)",
        "np.ones(4)",
        "{v}.astype('f4')",
    ),
    *("np.array({v})", "np.array([{v}, {v}])", "np.concatenate([{v}, {v}])", "np.arange(6.)"),
    *("np.cumsum({v}, axis=0)", "np.sort({v}, axis=-1)", "np.stack([{v}, {v}], -1)", "np.abs({v})"),
    *("{v}[:, [0, 2]]", "{v}[np.array([[0, 1], [1, 0]])]", "np.copy({v})", "{v}.T + {v}.T"),
    *("np.roll({v}, 1, 0)", "{v}.max(axis=0)", "np.diff({v}, axis=0)", "np.tile({v}, 2)", "-{v}"),
    *("{v}[I]", "{v}[I, ...]", "{v}[..., I]", "{v}[I[0]]", "np.take({v}, I, 0)", "{v} @ {v}.T"),
    *("{v}.max(axis=0, initial=1, where={v} > 1)", "np.sum({v}, 0, where={v} > {w})"),
    *(
        "{v} + {v}[{v} > 1].max(initial=0)",
        "{v} * {v}[{v} < {w}].sum()",
        "{v}.mean(-1, where={v} > 1)",
    ),
]
WRITES = [
    *("{v}[0] = {s}", "{v}[1:] = {s}", "{v}[...] = {s}", "{v}[:-1] += {s}", "{v}[1:] = {v}[:-1]"),
    *(
        "{v} += {s}",
        "{v} *= {s}",
        "{v} -= {w}",
        "{v} += {w}",
        "{v}[0] += {w}[0]",
        "{v}[-1] = {w}[0]",
    ),
    *("{v}[{v} > 1] = {s}", "{v}[{v} < {w}] = {s}", "{v}[[0, 1]] = {s}", "{v}[[0, 0]] += {s}"),
    *("{v}[::2] = {w}[::2]", "{v}[..., 1] = {w}[..., 0]", "{v}[:] = {w}", "{v}.fill({s})"),
    *(
        "np.add({v}, {s}, out={v})",
        "np.multiply({v}, {w}, out={v})",
        "{v}.sort()",
        "{v}.T[0] = {s}",
    ),
    *(
        "np.copyto({v}, {w})",
        "np.negative({v}, out={v})",
        "{v}[::-1] += {v}",
        "{v}.flat[1:3] = {s}",
    ),
    *("{v}[{v} > 1] += {s}", "{v}[{v} > 1] *= {v}[{v} > 1]", "{v}.reshape(-1)[2] = {s}"),
    *(
        "{v}.real[...] = {s}",
        "{v}.imag[0] = {s}",
        "{v}[1] *= {v}[0]",
        "{v}[I] = {s}",
        "{v}[I] += {s}",
    ),
    *("{v}[..., I] = {s}", "{v}[I[0]] = {s}", "{v}[I[0]] += {w}[0]", "np.add({v}, {w}, out={v})"),
    *(
        "np.copyto({v}, {s}, where={v} > 1)",
        "np.add({v}, 1, out={v}, where={v} > 1)",
        "{v} //= {s}",
    ),
    *("{v}[0], {v}[1] = {v}[1], {v}[0]", "{v} **= 2", "{v} /= {s}", "{v}[:, 1:3] = {s}"),
    *("np.add.at({v}, [0, 0, 1], {s})", "np.fill_diagonal({v}, {s})", "np.put({v}, [1, 2], {s})"),
    "for r in {v}: r *= {s}",
    "a, *b = {v}\na += 1",
    "for i in range(len({v})): {v}[i] = {v}[i - 1] + {s}",
]
SCALARS = ["1", "2", "3.5", "0", "-1", "K", "{w}[0]", "{w}.sum()", "np.float32(2)", "True", "2j"]


class Grammar(NamedTuple):
    """The lines that programs consist of; `{v}` and `{w}` are names, `{s}` is a number or array."""

    namespace: str
    views: list[str]
    copies: list[str]
    writes: list[str]
    scalars: list[str]


NUMPY = Grammar("np", VIEWS, COPIES, WRITES, SCALARS)
STANDARD = Grammar(
    "xp",
    [
        *("{v}[1:]", "{v}[:-1, ...]", "{v}[::2, ...]", "{v}[::-1, ...]", "{v}[1, ...]"),
        *("{v}[-1, ...]", "{v}[...]", "{v}[..., 0]", "{v}[..., ::-1]", "{v}[..., 1:3]"),
        *("{v}[None, ...]", "{v}[:, 1:]", "{v}.T", "{v}.mT", "xp.reshape({v}, (-1,))"),
        *("xp.reshape({v}, (2, -1))", "xp.moveaxis({v}, 0, -1)", "xp.squeeze({v}, axis=0)"),
        *("xp.flip({v})", "xp.flip({v}, axis=-1)", "xp.expand_dims({v}, axis=1)", "{v}"),
        *("xp.broadcast_to({v}, (2, *{v}.shape))", "xp.real({v})", "xp.imag({v})"),
        *("xp.asarray({v})", "xp.asarray({v}, copy=False)", "xp.matrix_transpose({v})"),
        *("{v}[1:, None, ...]", "{v}[:, ::-2]", "xp.astype({v}, {v}.dtype, copy=False)"),
        *("xp.unstack({v})[-1]", "xp.unstack({v}, axis=-1)[0]", "xp.linalg.diagonal({v})"),
        *("xp.permute_dims({v}, tuple(range({v}.ndim))[::-1])", "xp.broadcast_arrays({v}, {w})[0]"),
        *("xp.reshape({v}, (-1,), copy=False)", "xp.concat([{v}])", "{v}[()]"),
    ],
    [
        *("xp.asarray({v}, copy=True)", "{v} + 1", "{v} * {w}", "xp.where({v} > 1, {v}, {w})"),
        *("{v} - {w}", "{v}[I]", "{v}[I, ...]", "{v}[..., I]", "xp.zeros_like({v})"),
        *("xp.full_like({v}, 2)", "{v} % 3", "xp.zeros({v}.shape, dtype={v}.dtype)", "-{v}"),
        *("xp.astype({v}, {v}.dtype)", "xp.concat([{v}, {v}])", "xp.stack([{v}, {w}], axis=-1)"),
        *("xp.cumulative_sum({v}, axis=0)", "xp.sort({v}, axis=-1)", "xp.abs({v})"),
        *("xp.roll({v}, 1, axis=0)", "xp.max({v}, axis=0)", "xp.diff({v}, axis=0)"),
        *("xp.tile({v}, (2,))", "xp.take({v}, I, axis=0)", "{v} @ {v}.mT", "xp.tril({v})"),
        *("xp.repeat({v}, 2, axis=0)", "xp.sum({v}, axis=0, dtype={v}.dtype)", "{v} ** 2"),
        *("xp.reshape({v}, {v}.shape, copy=True)", "xp.triu({v})", "xp.square({v})"),
        *("xp.meshgrid({v}, {w})[0]", "xp.minimum({v}, {w})", "xp.clip({v}, 1, 3)", "{v} // 2"),
        *("{v}[{v} > 1]", "{v} / 2", "xp.conj({v})", "xp.prod({v}, axis=-1, dtype={v}.dtype)"),
    ],
    [
        *("{v}[0, ...] = {s}", "{v}[1:, ...] = {s}", "{v}[...] = {s}", "{v}[:-1, ...] += {s}"),
        *("{v}[1:, ...] = {v}[:-1, ...]", "{v} += {s}", "{v} *= {s}", "{v} -= {w}", "{v} += {w}"),
        *("{v}[0, ...] += {w}[0, ...]", "{v}[-1, ...] = {w}[0, ...]", "{v}[{v} > 1] = {s}"),
        *("{v}[{v} < {w}] = {s}", "{v}[::2, ...] = {w}[::2, ...]", "{v}[..., 1] = {w}[..., 0]"),
        *("{v}[...] = {w}", "{v}.mT[0, ...] = {s}", "{v}[::-1, ...] += {v}", "{v}[I] = {s}"),
        *("{v}[{v} > 1] += {s}", "{v}[{v} > 1] *= {v}[{v} > 1]", "xp.reshape({v}, (-1,))[2] = {s}"),
        *("{v}[1, ...] *= {v}[0, ...]", "{v} //= {s}", "{v} **= 2", "{v} /= {s}", "{v} %= 3"),
        *("{v}[:, 1:3] = {s}", "{v}[..., ::2] = {s}", "{v}[0, ...] = {v}[1, ...]", "{v} = {v} + 1"),
        *("for i in range({v}.shape[0]): {v}[i, ...] = {v}[i - 1, ...] + {s}", "{v} @= {w}"),
        *(
            "{v}[None, ...][0, ...] = {s}",
            "xp.flip({v})[1:, ...] = {s}",
            "{v}[...] = {v}[..., ::-1]",
        ),
    ],
    ["1", "2", "3", "0", "-1", "K", "{w}[0, ...] * 1", "xp.sum({w}, dtype={w}.dtype)"],
)


def program(pick: Random, args: tuple[Any, ...], grammar: Grammar = NUMPY) -> str:
    """The source of a function of x, y, an array I of indices and a number K.

    Of the lines drawn those that NumPy refuses on these arguments are mostly left out.
    """
    names, lines = ["x", "y"], []
    space = dict(zip("xyIK", args, strict=True)) | {grammar.namespace: np}
    for _ in range(pick.randint(5, 14)):
        line = _line(pick, names, grammar)
        before = dict(space)
        try:
            with np.errstate(all="ignore"):
                exec(line, space)
        except Exception:
            if pick.random() < 0.97:
                continue
        name = line.partition(" = ")[0]
        if grammar is STANDARD and name in space and not _is_standard(space[name], before):
            space = before
            continue
        if name in ("a", "b", "c"):
            names = sorted({*names, name})
        lines += line.split("\n")
    results = pick.sample(names, min(len(names), 3))
    body = "\n    ".join([*lines, f"return {', '.join(results)}, x"])
    return f"def f(x, y, I, K):\n    a = b = c = x\n    {body}\n"


def _is_standard(value: Any, names: dict[str, Any]) -> bool:
    """Whether a NumPy value has a like in the standard: an array, row-major unless it is a view.

    The standard knows neither scalars nor the order of memory.
    """
    if not isinstance(value, np.ndarray):
        return False
    others = [other for other in names.values() if isinstance(other, np.ndarray)]
    return value.flags.c_contiguous or any(np.may_share_memory(value, x) for x in others)


def _line(pick: Random, names: list[str], grammar: Grammar) -> str:
    v, w = pick.choice(names), pick.choice(names)
    s = pick.choice(grammar.scalars).format(w=pick.choice(names))
    kind = pick.random()
    if kind < 0.5:
        return pick.choice(grammar.writes).format(v=v, w=w, s=s)
    source = pick.choice(grammar.views if kind < 0.8 else grammar.copies).format(v=v, w=w)
    return f"{pick.choice(['a', 'b', 'c'])} = {source}"


def arguments(pick: Random) -> tuple[Any, ...]:
    """Arrays that may lie in any order and share memory, indices, and a number."""
    dtype = pick.choice(DTYPES)
    shape = pick.choice(SHAPES)
    size = int(np.prod(shape))
    numbers = [pick.randint(0, 6) + pick.choice([0, 1 / 7]) for _ in range(4 * size)]
    whole = np.array(numbers).astype(dtype)
    x = whole[:size].reshape(shape)
    way = pick.randrange(8)
    y: Any = np.array([pick.randint(0, 6) for _ in range(size)]).astype(pick.choice(DTYPES))
    y = y.reshape(shape)
    if way == 0:
        x = whole[: 2 * size : 2].reshape(shape)
    elif way == 1:
        x = x.reshape(shape[::-1]).T
    elif way == 2:
        y = x
    elif way == 3:
        y = x[::-1]
    elif way == 4:
        y = whole[size // 2 : size // 2 + size].reshape(shape)
    elif way == 5:
        x.setflags(write=False)
    indices = np.array([pick.randrange(-1, 1) for _ in range(2)])  # of any array that has elements
    return x, y, indices, pick.choice([1, 2, 2.5, -1])


def plain_arguments(pick: Random) -> tuple[Any, ...]:
    """Arrays of one dtype, each in memory of its own, indices, and a number.

    The elements are whole numbers: the standard leaves the order of additions open.
    """
    x, _, indices, number = arguments(pick)
    x = np.rint(x.real).astype(x.dtype, order="C")
    number = number if x.dtype.kind in "fc" else int(number)
    y = np.array([pick.randint(0, 6) for _ in range(x.size)]).astype(x.dtype).reshape(x.shape)
    return x, y, indices, number


def copied(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """The same arguments in other memory, which they share alike."""
    x, y = args[:2]
    if not np.may_share_memory(x, y):
        return (*map(_copied, (x, y)), *args[2:])
    owner = x
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    new = owner.copy()
    start = owner.__array_interface__["data"][0]
    views: list[Any] = []
    for array in (x, y):
        offset = array.__array_interface__["data"][0] - start
        view: Any = np.ndarray(array.shape, array.dtype, new, offset, array.strides)
        view.setflags(write=array.flags.writeable)
        views.append(view)
    return (*views, *args[2:])


def _copied(x: Any) -> Any:
    low, high = np.lib.array_utils.byte_bounds(x)
    start = x.__array_interface__["data"][0] - low
    new: Any = np.ndarray(x.shape, x.dtype, np.empty(high - low, np.uint8), start, x.strides)
    new[...] = x
    new.setflags(write=x.flags.writeable)
    return new


def differs(ours: Any, theirs: Any) -> bool:
    """Whether two arrays, or lists of arrays, differ in dtype, shape or a bit; NaN is NaN."""
    if isinstance(theirs, list):
        return len(ours) != len(theirs) or any(map(differs, ours, theirs))
    a, b = np.asarray(ours), np.asarray(theirs)
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return True
    return a.tobytes() != b.tobytes() and not np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
