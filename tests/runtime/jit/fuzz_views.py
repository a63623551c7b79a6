"""jit against NumPy on programs of views and writes: python -m tests.runtime.jit.fuzz_views.

A program has up to five names for arrays: slices, transposes, reshapes and copies of each other, or
results of operators. It writes through them: items, slices, masks, places, in-place operators and
out=. The arguments may share memory. Results and arguments after a call are NumPy's, bit by bit, or
the call is refused.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import warnings
from collections import Counter
from random import Random
from types import FunctionType
from typing import Any

import numpy as np

from graphir import GraphirError
from runtime import jit

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


def program(pick: Random, args: tuple[Any, ...]) -> str:
    """The source of a function of x, y, an array I of indices and a number K.

    Of the lines drawn those that NumPy refuses on these arguments are mostly left out.
    """
    names, lines = ["x", "y"], []
    space = dict(zip("xyIK", args, strict=True), np=np)
    for _ in range(pick.randint(5, 14)):
        line = _line(pick, names)
        try:
            with np.errstate(all="ignore"):
                exec(line, space)
        except Exception:
            if pick.random() < 0.97:
                continue
        name = line.partition(" = ")[0]
        if name in ("a", "b", "c"):
            names = sorted({*names, name})
        lines += line.split("\n")
    results = pick.sample(names, min(len(names), 3))
    body = "\n    ".join([*lines, f"return {', '.join(results)}, x"])
    return f"def f(x, y, I, K):\n    a = b = c = x\n    {body}\n"


def _line(pick: Random, names: list[str]) -> str:
    v, w = pick.choice(names), pick.choice(names)
    s = pick.choice(SCALARS).format(w=pick.choice(names))
    kind = pick.random()
    if kind < 0.5:
        return pick.choice(WRITES).format(v=v, w=w, s=s)
    source = pick.choice(VIEWS if kind < 0.8 else COPIES).format(v=v, w=w)
    return f"{pick.choice(['a', 'b', 'c'])} = {source}"


def arguments(pick: Random) -> tuple[Any, ...]:
    """Arrays that may lie in any order, and share memory."""
    dtype = pick.choice(DTYPES)
    shape = pick.choice(SHAPES)
    size = int(np.prod(shape))
    whole = np.array([pick.randint(0, 6) for _ in range(4 * size)]).astype(dtype)
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
    for one in (x, y):
        offset = one.__array_interface__["data"][0] - start
        view: Any = np.ndarray(one.shape, one.dtype, new, offset, one.strides)
        view.setflags(write=one.flags.writeable)
        views.append(view)
    return (*views, *args[2:])


def _copied(x: Any) -> Any:
    low, high = np.lib.array_utils.byte_bounds(x)
    start = x.__array_interface__["data"][0] - low
    new: Any = np.ndarray(x.shape, x.dtype, np.empty(high - low, np.uint8), start, x.strides)
    new[...] = x
    new.setflags(write=x.flags.writeable)
    return new


def outcome(call: Any, args: tuple[Any, ...]) -> Any:
    """The results of a call, or its error."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return call(*args)
        except Exception as error:
            return error


def _casts_beyond(call: Any, args: tuple[Any, ...]) -> bool:
    """Whether NumPy casts floats beyond the range of an integer, as each machine does otherwise."""
    with warnings.catch_warnings(record=True) as messages, np.errstate(all="warn"):
        warnings.simplefilter("always")
        with contextlib.suppress(Exception):
            call(*args)
        return any("in cast" in str(warning.message) for warning in messages)


def differs(ours: Any, theirs: Any) -> bool:
    """Whether two arrays, or lists of arrays, differ in dtype, shape or a bit; NaN is NaN."""
    if isinstance(theirs, list):
        return len(ours) != len(theirs) or any(map(differs, ours, theirs))
    a, b = np.asarray(ours), np.asarray(theirs)
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return True
    return a.tobytes() != b.tobytes() and not np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")


def check(seed: int) -> tuple[str, str]:
    """What is wrong with the program of a seed, and how its calls went."""
    pick = Random(seed)
    args = arguments(pick)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        source = program(pick, copied(args))
    names: dict[str, Any] = {"np": np, "__name__": "user"}
    exec(source, names)
    plain: FunctionType = names["f"]
    jitted = jit(plain)
    for turn in range(3):
        args = arguments(pick) if turn == 1 else args
        mine, his = copied(args), copied(args)
        if _casts_beyond(plain, copied(args)):
            return "", "beyond the range of an integer"
        theirs, ours = outcome(plain, his), outcome(jitted, mine)
        shown = f"{source}\ncall {turn} with {args!r}\n"
        if isinstance(ours, GraphirError):
            kinds = "refused" if not isinstance(theirs, Exception) else "raises"
            return (
                "",
                f"{kinds}: {str(ours).split(': ', 1)[-1][:90]}" if kinds == "refused" else kinds,
            )
        if isinstance(ours, Exception) and type(ours) is type(theirs):
            return "", "raises"
        if isinstance(ours, Exception):
            return f"{shown}raises {ours!r}, which is no GraphirError, where NumPy {theirs!r}", ""
        if isinstance(theirs, Exception):
            return f"{shown}gives {ours!r} where NumPy raises {theirs!r}", ""
        for a, b in zip((*ours, *mine[:2]), (*theirs, *his[:2]), strict=True):
            if differs(a, b):
                return f"{shown}gives {ours!r}, {mine!r}\nwhere NumPy gives {theirs!r}, {his!r}", ""
    return "", "equal"


def main() -> int:
    """Draw and check programs; status 1 if any is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--all", action="store_true", help="go on after what is wrong")
    options = parser.parse_args()
    count, wrong = Counter[str](), 0
    for seed in range(options.seed, options.seed + options.programs):
        found, kind = check(seed)
        count[kind] += 1
        if found:
            wrong += 1
            print(f"--seed {seed} --programs 1\n{found}\n", file=sys.stderr)
            if not options.all:
                return 1
    for kind, number in count.most_common(40):
        print(f"{number:6} {kind}")
    print(f"{options.programs} programs from seed {options.seed}: {wrong} wrong")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
