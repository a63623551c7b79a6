"""Draw calls of NumPy's functions, methods and operators, right and wrong, inside try/except.

    python -m tests.runtime.jit.fuzz_handlers --programs 5000 --seed 1

Each program catches the error of its call by one of several handlers, in a drawn order, so that
another class of error leads to another result. `difference` runs a program in NumPy, under `jit`
and in a recording.
"""

from __future__ import annotations

import argparse
import operator
import random
import warnings
from collections import Counter
from typing import Any

import numpy as np

from graphir import GraphirError
from graphir.runtime import jit, record

_FILES = (
    *("save", "savez", "savez_compressed", "savetxt", "load", "loadtxt", "genfromtxt", "fromfile"),
    *("fromregex", "info", "test", "get_include", "frompyfunc", "printoptions"),
)
_SETTINGS = (
    *("set", "get", "show", "binary_repr", "array2string", "array_repr", "array_str", "base_repr"),
    *("format_float", "busday", "is_busday", "datetime", "empty", "may_share", "shares"),
    "isfortran",
)
"""The starts of names that are not drawn: settings, text, dates, and what depends on memory."""
FUNCTIONS = [
    f"np.{prefix}{name}"
    for prefix, module in (("", np), ("linalg.", np.linalg))
    for name in dir(module)
    if callable(getattr(module, name)) and not isinstance(getattr(module, name), type)
    if name[0] != "_" and name not in _FILES and not name.startswith(_SETTINGS)
]
OPERATORS: list[Any] = [
    *(operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod),
    *(operator.pow, operator.matmul, operator.and_, operator.or_, operator.xor, operator.lshift),
    *(operator.lt, operator.eq, operator.ne, operator.ge, operator.getitem, operator.iadd),
    *(operator.imul, operator.ifloordiv, operator.iand, operator.ipow, divmod, operator.neg),
    *(operator.invert, abs, operator.index, bool, float, int, complex, len, iter, hash, repr, str),
    *(round, sum, max, sorted, list, tuple, operator.contains, reversed, isinstance, callable),
]
METHODS = [
    name
    for name in dir(np.ndarray)
    if name[0] != "_"
    and name not in ("tofile", "dump", "dumps", "ctypes", "data", "setflags", "resize", "setfield")
    and name not in ("flags", "strides", "base", "nbytes")
]
_VALUES = ["x", "m", "i", "s", "q", "x[:2]", "m.T", "x > 1"]
_OPERANDS = [
    *_VALUES,
    *("2", "0", "-1", "300", "1.5", "1j", "True", "None", "'a'", "[1, 2]", "(0, 1)", "(2,)", "()"),
    *("[0.5, 1.0, 2.0]", "np.ones(2)", "np.ones((3, 2))", "np.int8(3)", "np.float32(2)", "int"),
    *("slice(1)", "'float32'", "x.astype(np.int8)", "object()"),
]
_KEYWORDS = [
    *[""] * 5,
    *("axis=0", "axis=1", "axis=5", "axis=-1", "axis=(0, 1)", "dtype=np.float32", "dtype=int"),
    *("keepdims=True", "out=x", "where=x > 1", "bar=1", "initial=0", "order='F'", "casting='no'"),
    *("mode='wrap'", "k=1"),
]
_ERRORS = [
    *("ValueError", "TypeError", "IndexError", "AttributeError", "OverflowError", "LookupError"),
    *("ZeroDivisionError", "np.linalg.LinAlgError", "(TypeError, ValueError)", "ArithmeticError"),
    *("NotImplementedError", "np.exceptions.AxisError"),
]
_PROGRAM = """
def program(x, m, i, q):
    s = x[1]
    try:
        r = {call}
        if isinstance(r, (tuple, list)):
            r = r[0] if len(r) else 0
        if not isinstance(r, (np.ndarray, np.generic, int, float, complex)):
            r = 1 if r else 0
{handlers}
    except Exception:
        r = x - 50
    return r, x + 0
"""


def drawn_call(draw: random.Random) -> str:
    """Return the text of a call, whose arguments NumPy may refuse."""
    count = draw.choice([1, 1, 2, 2, 2, 3])
    operands = [draw.choice(_VALUES if draw.random() < 0.5 else _OPERANDS) for _ in range(count)]
    keyword, kind = draw.choice(_KEYWORDS), draw.random()
    if kind < 0.45:
        arguments = ", ".join([*operands, *filter(None, [keyword])])
        return f"{draw.choice(FUNCTIONS)}({arguments})"
    if kind < 0.7:
        return f"OPERATORS[{draw.randrange(len(OPERATORS))}]({', '.join(operands[:2])})"
    method = f"{draw.choice(_VALUES[:5])}.{draw.choice(METHODS)}"
    arguments = ", ".join([*operands[1:], *filter(None, [keyword])])
    return method if draw.random() < 0.15 else f"{method}({arguments})"


def drawn_program(draw: random.Random) -> tuple[str, str]:
    """Return the text of a drawn call, and of the program that catches its error."""
    call, errors = drawn_call(draw), draw.sample(_ERRORS, draw.choice([1, 3, 5, 8]))
    lines = [
        f"    except {error}:\n        r = x + {place + 10}" for place, error in enumerate(errors)
    ]
    return call, _PROGRAM.format(call=call, handlers="\n".join(lines))


def _arguments() -> list[Any]:
    return [
        np.array([3.0, 1.0, 2.0]),
        np.arange(6.0).reshape(2, 3) + 1,
        np.array([2, 0, 1]),
        np.array([1 + 1j, 2.0]),
    ]


def _alike(a: Any, b: Any) -> bool:
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(map(_alike, a, b))
    if type(a) is not type(b):
        return False
    x, y = np.asarray(a), np.asarray(b)
    if x.dtype != y.dtype or x.shape != y.shape:
        return False
    return np.allclose(x, y, rtol=1e-9, atol=0, equal_nan=True)


def outcome(draw: random.Random) -> tuple[str, str]:
    """Draw a program and return its call and what became of it.

    That is "same", "refused" (with NumPy's value for a reason), "left out" where NumPy gives no
    numbers, or how jit or a recording differ.
    """
    call, text = drawn_program(draw)
    names: dict[str, Any] = {"np": np, "OPERATORS": OPERATORS, "__name__": "drawn_program"}
    exec(text, names)
    program = names["program"]
    theirs = _arguments()
    try:
        expected = program(*theirs)
    except Exception:
        return call, "left out"
    if np.asarray(expected[0]).dtype.kind not in "biufc":
        return call, "left out"
    for name, run in (("jit", jit(program)), ("record", lambda *a: record(program, *a).result)):
        ours = _arguments()
        try:
            result = run(*ours)
        except GraphirError:
            return call, "refused"
        except Exception as error:
            return call, f"{name} raises {error!r}"
        if not _alike(result, expected) or not _alike(ours, theirs):
            return call, f"{name} gives {result!r}, NumPy {expected!r}"
    return call, "same"


def main() -> None:
    """Draw programs, print the ones that differ, and count."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--programs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    draw, counts = random.Random(options.seed), Counter[str]()
    warnings.simplefilter("ignore")
    for _ in range(options.programs):
        call, what = outcome(draw)
        counts[what.split()[0]] += 1
        if what not in ("same", "refused", "left out"):
            print(call, "|", what)
    print(dict(counts))


if __name__ == "__main__":
    main()
