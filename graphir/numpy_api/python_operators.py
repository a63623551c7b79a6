"""Python's operators, each with its function and NumPy's ufunc, for traces and recordings."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

_PYTHON: Any = operator

BINARY: dict[str, tuple[Any, Any]] = {
    "add": (_PYTHON.add, np.add),
    "sub": (_PYTHON.sub, np.subtract),
    "mul": (_PYTHON.mul, np.multiply),
    "truediv": (_PYTHON.truediv, np.divide),
    "floordiv": (_PYTHON.floordiv, np.floor_divide),
    "mod": (_PYTHON.mod, np.remainder),
    "divmod": (divmod, np.divmod),
    "pow": (_PYTHON.pow, np.power),
    "matmul": (_PYTHON.matmul, np.matmul),
    "and": (_PYTHON.and_, np.bitwise_and),
    "or": (_PYTHON.or_, np.bitwise_or),
    "xor": (_PYTHON.xor, np.bitwise_xor),
    "lshift": (_PYTHON.lshift, np.left_shift),
    "rshift": (_PYTHON.rshift, np.right_shift),
}
"""The operators that have a reflected form."""
MUL, POW, MATMUL = (BINARY[name][0] for name in ("mul", "pow", "matmul"))
COMPARISONS: dict[str, tuple[Any, Any]] = {
    "lt": (_PYTHON.lt, np.less),
    "le": (_PYTHON.le, np.less_equal),
    "gt": (_PYTHON.gt, np.greater),
    "ge": (_PYTHON.ge, np.greater_equal),
    "eq": (_PYTHON.eq, np.equal),
    "ne": (_PYTHON.ne, np.not_equal),
}
UNARY: dict[str, tuple[Any, Any]] = {
    "neg": (_PYTHON.neg, np.negative),
    "pos": (_PYTHON.pos, np.positive),
    "abs": (_PYTHON.abs, np.absolute),
    "invert": (_PYTHON.invert, np.invert),
}
UFUNCS = dict([*BINARY.values(), *COMPARISONS.values(), *UNARY.values()])
"""The ufunc of each operator."""
