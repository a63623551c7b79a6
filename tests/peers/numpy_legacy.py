"""What NumPy 1.26 answers, whose promotion looked at the values of 0-d arrays and Python scalars.

graphir does not import beside that NumPy, so this prints to stdout what
tests/golden/numpy_legacy.json keeps:

    python tests/peers/numpy_legacy.py > tests/golden/numpy_legacy.json

A dtype is NumPy's character for it, a row of them one character for each n-d array of `dtypes`;
"O" is object, "-" that it raises. An operand is "b" (n-d), "b=-1" (0-d) or "=300" (Python scalar).
"""

from __future__ import annotations

import itertools
import json
import operator
import pickle
import random
import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

DTYPES = "?bhilBHILefdFD"  # bool, int8 ... int64, uint8 ... uint64, float16 ..., complex64 ...
CHARS = {np.dtype(char): char for char in DTYPES}  # long long is long here, and counts as it
INTS = (
    *(0, 1, -1, 127, 128, 255, 256, -128, -129, 32767, 32768, 65535, 65536, -32768, -32769),
    *(2**31 - 1, 2**31, 2**32, 2**63, 2**64 - 1, 2**64, -(2**31) - 1, -(2**63)),
)
FLOATS = (
    *(0.0, 1.5, 0.1, 1e-8, 64999.0, 65000.0, 65504.0, 65520.0, 3.3e38, 3.4e38, 1e39, 1e300),
    *(-65000.0, float("inf"), float("-inf"), float("nan")),
)
COMPLEX = (0j, 1j, 1.5 + 0j, 65000j, 3.3e38j, 3.4e38j, 1e39 + 0j, 1e300j, complex("inf"))
EXPONENTS = (True, *(0, 1, 2, 3), *(-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0), 2 + 0j)
"""Those of which `**` makes another function, and some others."""
LITERALS = (False, True, *INTS, *FLOATS, *COMPLEX)
BASES: dict[str, Callable[[str], Any]] = {
    "0": lambda dtype: np.ones((), dtype),
    "1": lambda dtype: np.ones(2, dtype),
    "s": lambda dtype: np.ones((), dtype)[()],
}
"""0-d arrays, n-d ones, and the scalars that NumPy's functions give."""

OLD_NAMES = {
    **{f"a{name}": f"arc{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2")},
    "pow": "power",
    "bitwise_invert": "invert",
    "concat": "concatenate",
    "is_nan": "isnan",
    "is_inf": "isinf",
    "is_finite": "isfinite",
    "cumulative_sum": "cumsum",
    "cumulative_prod": "cumprod",
}


def functions(*names: str) -> dict[str, Callable[..., Any]]:
    """NumPy's functions by the names of graphir's ops."""
    return {name: getattr(np, OLD_NAMES.get(name, name)) for name in names}


UNARY = functions(
    *("negative", "positive", "abs", "sign", "square", "reciprocal"),
    *("floor", "ceil", "trunc", "round", "sqrt", "exp", "expm1", "log", "log1p", "log2", "log10"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh"),
    *("asinh", "acosh", "atanh", "is_nan", "is_inf", "is_finite", "signbit"),
    *("logical_not", "bitwise_invert", "real", "imag", "conj", "sum", "prod", "max", "min"),
    *("mean", "var", "std", "any", "all", "argmax", "argmin", "cumulative_sum", "cumulative_prod"),
    *("sort", "argsort"),
)
BINARY = functions(
    *("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "pow"),
    *("maximum", "minimum", "atan2", "hypot", "logaddexp", "copysign", "nextafter"),
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"),
    *("logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor"),
    *("left_shift", "right_shift", "searchsorted", "outer"),
) | {
    "where": lambda x, y: np.where(True, x, y),
    "clip": lambda x, y: np.clip(x, y, y),
    "concat": lambda *both: np.concatenate(both),
    "stack": lambda *both: np.stack(both),
    "matmul": lambda *both: np.matmul(*both),
    "tensordot": lambda *both: np.tensordot(*both, 1),
}
IN_PLACE = {
    "add": operator.iadd,
    "subtract": operator.isub,
    "multiply": operator.imul,
    "divide": operator.itruediv,
    "floor_divide": operator.ifloordiv,
    "remainder": operator.imod,
    "pow": operator.ipow,
    "matmul": operator.imatmul,
    "bitwise_and": operator.iand,
    "bitwise_or": operator.ior,
    "bitwise_xor": operator.ixor,
    "left_shift": operator.ilshift,
    "right_shift": operator.irshift,
}
BY_VALUE = ("add", "where", "clip", "divide", "pow", "floor_divide", "atan2", "bitwise_and")
"""Ops whose answers are kept for scalars too: those of one group differ from those of another."""


def char(call: Callable[..., Any], *operands: Any) -> str:
    """The character of the dtype of a result; "-" where it raises."""
    try:
        answer = call(*operands)
    except (TypeError, ValueError, OverflowError, AttributeError):
        return "-"
    dtype = answer if isinstance(answer, np.dtype) else np.asarray(answer).dtype
    return CHARS.get(dtype, dtype.char)


def row(call: Callable[..., Any], operand: Any) -> str:
    """The answers for each n-d array with an operand on its right, which all are as on its left."""
    right = "".join(char(call, np.ones(0, dtype), operand) for dtype in DTYPES)
    left = "".join(char(call, operand, np.ones(0, dtype)) for dtype in DTYPES)
    return right if left == right else f"{right}|{left}"


def zero_d(dtype: str) -> dict[str, Any]:
    """The 0-d arrays of a dtype by their names, of the values above that it has."""
    values = {"?": LITERALS[:2], "e": FLOATS, "f": FLOATS, "d": FLOATS}.get(dtype, INTS)
    if dtype in "FD":
        values = COMPLEX
    made: dict[str, Any] = {}
    for value in values:
        if dtype in "bhilBHIL":
            info = np.iinfo(dtype)
            if not info.min <= value <= info.max:
                continue
        array = np.array(value, dtype)
        if np.isfinite(array) == np.isfinite(value):
            made[f"{dtype}={array.item()}"] = array
    return made


def grouped(rows: dict[str, str]) -> dict[str, str]:
    """Names by their row, all in one string."""
    found: dict[str, list[str]] = {}
    for name, one in rows.items():
        found.setdefault(one, []).append(name)
    return {one: " ".join(names) for one, names in found.items()}


def several(operands: dict[str, Any], count: int) -> dict[str, str]:
    """np.result_type of two to five random operands, one of them n-d."""
    rng = random.Random(0)
    arrays = {dtype: np.ones(2, dtype) for dtype in DTYPES}
    found: dict[str, str] = {}
    for _ in range(count):
        names = rng.choices(list(arrays), k=rng.randint(1, 2))
        names += rng.choices(list(operands), k=rng.randint(1, 3))
        rng.shuffle(names)
        given = [arrays[name] if name in arrays else operands[name] for name in names]
        found[" ".join(names)] = char(np.result_type, *given)
    return found


def measured() -> dict[str, Any]:
    """All of it."""
    arrays = {dtype: np.ones((2, 2), dtype) for dtype in DTYPES}
    vectors = {dtype: np.ones(2, dtype) for dtype in DTYPES}
    zeros = {name: array for dtype in DTYPES for name, array in zero_d(dtype).items()}
    scalars = zeros | {f"={value}": value for value in LITERALS}
    tables: dict[str, str] = {}
    for name, call in {"result_type": np.result_type, **BINARY}.items():
        given = vectors.values() if name == "searchsorted" else arrays.values()
        tables[name] = " ".join("".join(char(call, a, b) for b in given) for a in given)
    plain = dict(zip(DTYPES, tables["result_type"].split(), strict=True))
    types = {name: char(np.asarray, value) for name, value in scalars.items()}
    alone = {
        f"{a} {b}": char(np.result_type, x, y) + char(np.add, x, y)
        for (a, x), (b, y) in itertools.product(scalars.items(), repeat=2)
        if "O" not in (types[a], types[b])
    }
    at_result = {name: row(np.result_type, one) for name, one in scalars.items()}
    found: dict[str, Any] = {
        "numpy": np.__version__,
        "dtypes": DTYPES,
        "unary": grouped(
            {
                name: "".join(char(call, one) for one in arrays.values())
                for name, call in UNARY.items()
            }
        ),
        "binary": grouped(tables),
        "result_type with scalars": grouped(at_result),
    }
    for op in BY_VALUE:
        rows = {name: row(BINARY[op], one) for name, one in scalars.items()}
        if op == "clip":  # the array comes first; the scalar is both bounds
            rows = {name: one.partition("|")[0] for name, one in rows.items()}
        differing = {name: one for name, one in rows.items() if one != at_result[name]}
        found[f"{op} with scalars, where not the result_type"] = grouped(differing)
    found["two scalars, where not the result_type of their dtypes"] = {
        pair: answer
        for pair, answer in alone.items()
        if answer != 2 * plain[types[(names := pair.split())[0]]][DTYPES.index(types[names[1]])]
    }
    found["to the power of a number"] = grouped(
        {
            f"{base}{number!r}": "".join(
                char(operator.pow, BASES[base](dtype), number) for dtype in DTYPES
            )
            for base, number in itertools.product(BASES, EXPONENTS)
        }
    )
    found["to the power of a scalar"] = grouped(
        {
            f"{base}{kind}={number}": "".join(
                char(operator.pow, BASES[base](dtype), np.array(number, kind)[()])
                for dtype in DTYPES
            )
            for base, kind, number in itertools.product(BASES, "bLefdF", (0, 1, 2, 3, -1, 0.5))
            if kind in "efdF" or number in (0, 1, 2, 3)
        }
    )
    found["in place"] = grouped(
        {
            name: " ".join(
                "".join(char(call, x.copy(), y) for y in arrays.values()) for x in arrays.values()
            )
            for name, call in IN_PLACE.items()
        }
    )
    for op in ("add", "divide", "pow"):
        found[f"{op} in place with scalars"] = grouped(
            {
                name: "".join(char(IN_PLACE[op], np.ones(2, dtype), one) for dtype in DTYPES)
                for name, one in scalars.items()
            }
        )
    found["several"] = several(scalars, 700)
    return found


# -- a process that computes for another (numpy_legacy_client.py)


def _in_place(function: Callable[..., Any], x: Any, y: Any) -> Any:
    return function(x.copy(), y)


SERVED: dict[str, Callable[..., Any]] = {
    **UNARY,
    **BINARY,
    "add": operator.add,
    "subtract": operator.sub,
    "multiply": operator.mul,
    "divide": operator.truediv,
    "floor_divide": operator.floordiv,
    "remainder": operator.mod,
    "pow": operator.pow,
    "bitwise_and": operator.and_,
    "bitwise_or": operator.or_,
    "bitwise_xor": operator.xor,
    "bitwise_invert": operator.invert,
    "left_shift": operator.lshift,
    "right_shift": operator.rshift,
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
    **{
        name: partial(_in_place, getattr(operator, name))
        for name in (
            *("iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow"),
            *("iand", "ior", "ixor", "ilshift", "irshift"),
        )
    },
    "where": np.where,
    "clip": np.clip,
    "argsort": lambda x: np.argsort(x, kind="stable"),
    "cumulative_sum": lambda x: np.cumsum(x, -1),
    "cumulative_prod": lambda x: np.cumprod(x, -1),
    "cast": lambda x, to: x.astype(to),
    "reshape": lambda x, shape: np.reshape(x, shape),
    "broadcast_to": lambda x, shape: np.broadcast_to(x, shape),
    "transpose": lambda x: np.swapaxes(x, -2, -1),
    "flip": np.flip,
    "unsqueeze": lambda x, axis: np.expand_dims(x, axis),
    "concat": np.concatenate,
    "stack": np.stack,
}
REFUSALS = (TypeError, ValueError, OverflowError, IndexError, AttributeError)


def serve() -> None:
    """Answer what comes on stdin, pickled, until it ends; arrays stay here."""
    held: list[Any] = []

    def received(operand: Any) -> Any:
        kind, *rest = operand
        if kind == "array":
            return held[rest[0]]
        if kind == "scalar":
            return np.dtype(rest[0]).type(rest[1])
        if kind == "dtype":
            return np.dtype(rest[0])
        return [received(one) for one in rest[0]] if kind == "list" else rest[0]

    while True:
        try:
            message = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pickle.dump(_answered(message, held, received), sys.stdout.buffer, protocol=4)
        sys.stdout.buffer.flush()


def _answered(message: Any, held: list[Any], received: Callable[[Any], Any]) -> Any:
    if message[0] == "make":
        _, dtype, shape, raw = message
        result = np.frombuffer(raw, np.dtype(dtype)).reshape(shape).copy()
    else:
        _, name, operands, attrs = message
        if any(kind == "number" and _is_object(*rest) for kind, *rest in operands):
            return "refused", "object", "an int beyond 64 bits makes an array of objects"
        try:
            result = SERVED[name](*map(received, operands), **attrs)
        except REFUSALS as error:
            return "refused", type(error).__name__, str(error)
    values = np.asarray(result)
    if values.dtype == object:
        return "refused", "object", "the result is an array of objects"
    held.append(result)
    return "ok", len(held) - 1, values.dtype.char, values.shape, values.tobytes()


def _is_object(number: Any) -> bool:
    return isinstance(number, int) and not -(2**63) <= number < 2**64


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    if sys.argv[1:] == ["serve"]:
        serve()
        sys.exit()
    json.dump(measured(), sys.stdout, indent=0)
    print()
