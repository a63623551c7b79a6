"""The source of a function that builds a graph, drawn from a seed, with arrays to run it on.

Each line calls one op of graphir on values of the lines above: elementwise ops, reductions, casts,
operators with Python numbers, movement, products. All dtypes and rule sets stand below by name, and
no name of a module of graphir: a seed draws the same source when ops, rule sets or modules change.
Lines that graphir refuses are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np

from graphir import DType, Graph, GraphirError, ops

RULES = [
    *("max", "max", "jax", "jax", "jax_x32", "jax_strict", "numpy", "numpy", "numpy_legacy"),
    *("torch", "torch", "tensorflow", "tf_all", "array_api", "python", "dask", "jax_2020"),
]
DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "bfloat16", "float32", "float32", "float64", "float64", "complex64", "complex128"),
    *("tensor_float32", "index", "address", "int4", "uint2", "float8_e4m3fn", "float8_e5m2"),
]
MACHINE_DTYPES = [
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint32", "uint64", "float16"),
    *("float32", "float32", "float64", "float64", "bfloat16", "complex64", "complex128"),
]
SHAPES: list[tuple[int, ...]] = [(), (1,), (7,), (40,), (3, 5), (1, 5), (3, 1), (2, 3, 5), (9, 33)]
UNARY = [
    *("negative", "positive", "abs", "sign", "square", "reciprocal", "relu", "floor", "ceil"),
    *("trunc", "round", "sqrt", "cbrt", "rsqrt", "exp", "expm1", "log", "log1p", "log2", "log10"),
    *("sin", "cos", "tan", "asin", "acos", "atan", "deg2rad", "sinh", "cosh", "tanh", "asinh"),
    *("acosh", "atanh", "erf", "sigmoid", "silu", "softplus", "gelu", "is_nan", "is_inf"),
    *("is_finite", "signbit", "logical_not", "bitwise_invert", "real", "imag", "conj"),
]
BINARY = [
    *("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "fmod", "pow"),
    *("maximum", "minimum", "atan2", "hypot", "logaddexp", "heaviside", "copysign", "nextafter"),
    *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and"),
    *("logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift"),
    *("right_shift", "as_complex"),
]
REDUCTIONS = ["sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "argmax", "argmin"]
TEMPLATES = [
    *("ops.{unary}({x})", "ops.{unary}({x})", "ops.{unary}({x})", "ops.{binary}({x}, {y})"),
    *("ops.{binary}({x}, {y})", "ops.{binary}({x}, {y})", "{x} + {y}", "{x} * {y} - {x}"),
    *("{x} {sign} {number}", "{number} {sign} {x}", "{x} / {y}", "{x}.cast('{dtype}')"),
    *("ops.{reduction}({x}, axis={axis})", "ops.{reduction}({x}, axis={axis}, keepdims=True)"),
    *("ops.where({x} > {y}, {x}, {y})", "ops.clip({x}, {y}, {x})", "ops.where({x} == {x}, {x}, 1)"),
    *("ops.softmax({x}, axis={axis})", "ops.sort({x}, axis={axis})", "ops.argsort({x}, axis=-1)"),
    *("{x}.reshape(-1)", "{x}[..., ::-1]", "{x}[1:]", "ops.concat([{x}, {y}])", "{x}[..., None]"),
    *("ops.cumulative_sum({x}, axis={axis})", "{x} @ {y}", "ops.transpose({x})", "{x} ** 2"),
    *("ops.stack([{x}, {y}])", "ops.layer_norm({x}, {y}, {y})", "ops.matmul({x}, {y})"),
]
SIGNS = ["+", "-", "*", "/", "//", "%", "<", "==", ">="]
NUMBERS = ["2", "3", "-1", "0", "0.5", "1.0", "300", "1e-3", "True", "2j"]
MOST = 5000
"""The most elements of a value."""


class Expressions:
    """A drawn function `build(g)` of a graph, and arrays for the inputs that it makes.

    Draws at most `lines` lines besides those of inputs.
    """

    def __init__(
        self,
        number: int,
        rules: Sequence[str] = RULES,
        dtypes: Sequence[str] = DTYPES,
        lines: int = 12,
    ) -> None:
        self.pick, self.random = Random(number), np.random.default_rng(number)
        self.rules: Any = self.pick.choice(rules)
        few = self.pick.sample(dtypes, self.pick.randint(1, 3))
        shape = self.pick.choice(SHAPES)
        self.arrays: list[np.ndarray] = []
        self.lines: list[str] = []
        self._values: dict[str, Any] = {"g": Graph("drawn", rules=self.rules), "ops": ops}
        self._names: list[str] = []
        for _ in range(self.pick.randint(1, 3)):
            own = self.pick.choice([shape, shape, shape, shape[-1:], self.pick.choice(SHAPES)])
            self._input(self.pick.choice(few), own)
        while not self.arrays:  # the rule set has none of these dtypes
            self._input(self.pick.choice(dtypes), shape)
        for _ in range(self.pick.randint(3, lines)):
            self._line(few)
        chosen = [*self._names[-1:], *self.pick.sample(self._names, min(2, len(self._names)))]
        outputs = ", ".join(dict.fromkeys(chosen))
        body = "".join(f"    {line}\n" for line in [*self.lines, f"g.output({outputs})"])
        self.source = f"def build(g):\n{body}"

    def build(self) -> Graph:
        """Return a new graph of the drawn function."""
        names: dict[str, Any] = {"ops": ops}
        exec(compile(self.source, "drawn.py", "exec"), names)
        graph = Graph("drawn", rules=self.rules)
        names["build"](graph)
        return graph

    def _input(self, dtype: str, shape: tuple[int, ...]) -> None:
        name = f"a{len(self.arrays)}"
        if self._is_added(name, f"g.input('{dtype}', {shape}, name='{name}')"):
            self.arrays.append(self._array(DType(dtype), shape))

    def _array(self, dtype: DType, shape: tuple[int, ...]) -> np.ndarray:
        draw, storage = self.random, np.dtype(dtype)
        numbers = draw.integers(0 if dtype.family in ("uint", "bool") else -9, 10, shape)
        if dtype.family not in ("float", "complex"):
            if dtype.family == "bool":
                return np.asarray(numbers > 4)
            least, most = (0, 3) if dtype.bits == 2 else (-8, 7) if dtype.bits == 4 else (-9, 10)
            return np.asarray(np.clip(numbers, least, most)).astype(storage)
        values = np.asarray(draw.normal(size=shape) * self.pick.choice([1, 1, 30]))
        special = draw.choice([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, 1e30], size=shape)
        values = np.where(draw.random(shape) < self.pick.choice([0, 0, 0.1]), special, values)
        with np.errstate(all="ignore"):
            if dtype.family == "complex":
                values = values + 1j * draw.normal(size=shape)
            return np.asarray(values).astype(storage)

    def _line(self, dtypes: Sequence[str]) -> None:
        pick, x = self.pick, self.pick.choice(self._names[-4:])
        text = pick.choice(TEMPLATES).format(
            x=x,
            y=pick.choice(self._names),
            unary=pick.choice(UNARY),
            binary=pick.choice(BINARY),
            reduction=pick.choice(REDUCTIONS),
            axis=pick.choice([0, -1, -1, None]),
            sign=pick.choice(SIGNS),
            number=pick.choice(NUMBERS),
            dtype=pick.choice(dtypes),
        )
        self._is_added(f"v{len(self.lines)}", text)

    def _is_added(self, name: str, text: str) -> bool:
        try:
            value: Any = eval(text, self._values)
        except (GraphirError, TypeError, ValueError, IndexError, AttributeError):
            return False
        if int(np.prod(list(map(int, value.shape)))) > MOST:
            return False
        self._values[name] = value
        self._names.append(name)
        self.lines.append(f"{name} = {text}")
        return True
