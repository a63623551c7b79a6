"""Values that a command draws for inputs of which it is given the types."""

from __future__ import annotations

import inspect
from typing import Any, TypeVar, cast

import numpy as np

from graphir import ExecutionError, TensorType

Call = TypeVar("Call", bound=Any)  # a ProgramCall

HIGH = 100
"""The integers that a command draws are less."""


class Draws:
    """The values drawn for types among the inputs of a command, and the notes about them.

    Floats and the parts of complex numbers are standard normal; integers are uniform from 0 on,
    less than HIGH, so that they are indices of most arrays.
    """

    def __init__(self, seed: int) -> None:
        self._seed, self._generator = seed, np.random.default_rng(seed)
        self.notes: list[str] = []

    def value(self, type_: TensorType, name: str) -> Any:
        """Return an array of a type for the input of a name; ExecutionError for named sizes."""
        if not all(isinstance(size, int) for size in type_.shape):
            raise ExecutionError(
                f"the values of input {name} are drawn, and its type has a named size",
                got=str(type_),
                fix=f"write sizes, as in {type_.dtype}{[8] * type_.rank}",
            )
        shape = cast("tuple[int, ...]", type_.shape)
        dtype, how = type_.dtype, "standard normal"
        normal = self._generator.standard_normal
        if dtype.is_complex:
            array: Any = normal(shape) + 1j * normal(shape)
        elif dtype.is_inexact:
            array = normal(shape)
        else:
            high = 2 if dtype.family == "bool" else int(min(HIGH, dtype.max + 1))
            array, how = self._generator.integers(high, size=shape), f"integers less than {high}"
        text = f"the values of input {name}, {type_}, are drawn: {how}, seed {self._seed}"
        self.notes.append(text)
        return np.asarray(array).astype(dtype.storage)

    def call(self, call: Call) -> Call:
        """Return the call of a function with values in place of the types among its arguments."""
        function, positional = call.function, call.positional
        try:
            names = list(inspect.signature(getattr(function, "forward", function)).parameters)
        except (TypeError, ValueError):  # compiled functions may lack a signature
            names = []
        names += [f"number {place}" for place in range(len(names) + 1, len(positional) + 1)]
        return call._replace(
            positional=[self._fill(value, names[place]) for place, value in enumerate(positional)],
            keywords={name: self._fill(value, name) for name, value in call.keywords.items()},
        )

    def _fill(self, value: Any, name: str) -> Any:
        if isinstance(value, TensorType):
            return self.value(value, name)
        if isinstance(value, dict):
            items = cast("dict[str, Any]", value).items()
            return {key: self._fill(each, f"{name}.{key}") for key, each in items}
        return value
