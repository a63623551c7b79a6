"""Rows of structured arrays: NumPy voids, whose fields are elements of the array's fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import numpy as np

from graphir.public import Symbol
from graphir.runtime.recording.leaving import AS_BYTES, AS_NUMBER, AS_TRUTH, reading, text_of
from graphir.runtime.recording.operands import traced_leaves
from graphir.runtime.recording.recorder import Recorder
from graphir.runtime.recording.values import (
    RecordedValue,
    TracedScalar,
    UnrecordedError,
    recording,
    view_of,
)


class RecordedRow(np.void, TracedScalar):
    """An element of a structured array; `array` is the same memory as a 0-d array."""

    array: RecordedValue

    @property
    def symbol(self) -> Symbol:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Raise UnrecordedError: the fields have the symbols."""
        raise UnrecordedError("a row has no symbol; its fields have")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the fields."""
        return cast("tuple[str, ...]", self.plain.dtype.names)

    def __getitem__(self, key: Any) -> Any:
        return self.array[self._name(key)][()]

    def __setitem__(self, key: Any, value: Any) -> None:
        self.array[self._name(key)] = value

    def _name(self, key: int | str) -> Any:
        return cast("Any", key if isinstance(key, (str, list)) else self.names[key])

    def __iter__(self) -> Iterator[Any]:
        return (self[name] for name in self.names)

    def item(self, *_: Any) -> Any:
        """Return the fields as Python numbers, which are not recorded any more."""
        return tuple(map(_as_numbers, self))

    tolist = item
    tobytes = reading("tobytes", AS_BYTES)
    __eq__ = reading("__eq__", AS_TRUTH)
    __ne__ = reading("__ne__", AS_TRUTH)
    __hash__ = reading("__hash__", AS_NUMBER)  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        return text_of(self, repr(self.plain))

    def __str__(self) -> str:
        return text_of(self, str(self.plain))


def _as_numbers(field: Any) -> Any:
    if isinstance(cast("object", field), np.generic):
        return field.item()
    return field.copy() if isinstance(cast("object", field), np.ndarray) else field


def row(array: RecordedValue, key: int | tuple[int, ...]) -> RecordedRow:
    """Return an element of a structured array, in the form that the program gets."""
    keys = cast("tuple[Any, ...]", key if type(key) is tuple else (key,))
    place = array.plain[(*keys, ...)]
    element: Any = place.view(np.dtype((RecordedRow, place.dtype)))[()]
    element.plain, element.recorder = place[()], recording()
    element.array = view_of(array, place)
    return element


def table_of_rows(recorder: Recorder, value: Any, real: Any) -> Any:
    """Return the structured array of a list of tuples, assigned field by field; or None."""
    rows = cast("list[Any]", value) if isinstance(value, list) else []
    if not all(isinstance(row, tuple) for row in rows) or not traced_leaves(rows):
        return None
    table = recorder.zeros_of(real)
    for name, column in zip(real.dtype.names, zip(*rows, strict=True), strict=True):
        table[name] = list(column)
    return table if table.plain.tobytes() == real.tobytes() else None
