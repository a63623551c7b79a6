"""Results of a recorded program: the outputs in them, and their conversion to plain values.

`result_leaves` finds the recorded values in a result, `values_leaving` those that left elsewhere,
and `plain_result` is what the caller gets.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from types import CellType, FunctionType, ModuleType
from typing import Any, NamedTuple, cast

import numpy as np

from graphir import ops
from graphir.ir.symbol import Symbol
from graphir.runtime.recording.captured import mapped_tuple, slot_names
from graphir.runtime.recording.recorder import Recorder
from graphir.runtime.recording.subscripts import FlatIterator
from graphir.runtime.recording.values import RecordedNumber, RecordedValue, TracedScalar, plain

_ATOMS = (str, bytes, int, float, complex, type(None), type, ModuleType, FunctionType)


def result_leaves(
    result: Any, left: Any, recorder: Recorder, has_numbers: bool = False
) -> Iterator[Any]:
    """Yield the arrays in a result, then the recorded arrays in `left`; each array once.

    `left` is anything else that the program may have changed. Recorded scalars count as arrays, and
    a Python number stands for the recorded value from which it was made. So do scalars of NumPy
    that are not recorded, if the program `has_numbers` of no other origin than unseen steps.
    """
    leaves_by_id: dict[int, Any] = {}
    visited: set[int] = set()
    _add_leaves(result, leaves_by_id, visited, recorder, True, has_numbers)
    _add_leaves(left, leaves_by_id, visited, recorder, False)
    yield from leaves_by_id.values()


def _add_leaves(
    value: Any,
    leaves_by_id: dict[int, Any],
    visited: set[int],
    recorder: Recorder,
    takes_plain: bool,
    has_numbers: bool = False,
) -> None:
    if isinstance(value, (RecordedValue, TracedScalar)):
        for leaf in recorder.program_arrays.used_fields(value):
            leaves_by_id.setdefault(id(leaf), leaf)
    elif isinstance(value, RecordedNumber):
        leaves_by_id.setdefault(id(value), value.scalar)
    elif type(value) is np.ma.MaskedArray and id(value) not in visited:
        visited.add(id(value))
        _add_leaves(_unmasked(value, recorder), leaves_by_id, visited, recorder, False)
    elif isinstance(value, np.ndarray):
        if takes_plain and type(cast("Any", value)) is np.ndarray:
            leaves_by_id.setdefault(id(cast("Any", value)), value)
    elif has_numbers and recorder.is_unknown_number(value):
        number = np.asarray(value)
        leaf = recorder.wrapped(number, recorder.add_unrecorded_input(number))
        leaves_by_id.setdefault(id(value), leaf)
    elif isinstance(value, (int, float, complex, np.datetime64, np.timedelta64)):
        source = recorder.numbers.source(value)
        if source is not None:
            leaves_by_id.setdefault(id(source), source)
    elif not isinstance(value, _ATOMS) and id(value) not in visited:
        visited.add(id(value))
        for part in _children(value):
            _add_leaves(part, leaves_by_id, visited, recorder, takes_plain, has_numbers)


def _unmasked(value: Any, recorder: Recorder) -> Any:
    """Return the data of a masked array; of the masked elements, only that they are masked."""
    return value.filled(value.dtype.type(0)) if recorder.has(value.dtype) else None


def _children(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(cast("list[Any]", value))
    if isinstance(value, dict):
        return list(cast("dict[Any, Any]", value).values())
    own: dict[str, Any] = getattr(value, "__dict__", {})
    return [*own.values(), *(getattr(value, name) for name in slot_names(value))]


class Leaving(NamedTuple):
    """The values that left a program at one place: one value, or the stack of several rounds."""

    name: str
    rounds: int
    value: Any
    """A recorded value."""


def values_leaving(recorder: Recorder, results: Sequence[Any]) -> list[Leaving]:
    """Return the values that left a program beside its results.

    If there are neither, the answer has the values that the program took as Python numbers.
    """
    leaving = list(_leaving(recorder, results, True))
    return leaving if leaving or results else list(_leaving(recorder, results, False))


def _leaving(recorder: Recorder, results: Sequence[Any], surely: bool) -> Iterator[Leaving]:
    symbols = {symbol.index for x in results if (symbol := recorder.before(x)) is not None}
    for (name, leaves_surely, *_), rounds in recorder.leaving.rounds.items():
        new = {symbol: real for symbol, real in rounds.items() if symbol.index not in symbols}
        if not new or leaves_surely is not surely:
            continue
        symbols.update(symbol.index for symbol in new)
        (symbol, *others), real = new, np.stack([*new.values()])
        if others:
            recorder.here = symbol.location
            symbol = recorder.emit(ops.stack, (symbol, *others), axis=0)
        else:
            real = real[0, ...] if real.dtype.kind in "bmM" else real[0]
        yield Leaving(name, len(new), recorder.wrapped(real, symbol))


def unread_values(recorder: Recorder) -> list[tuple[Symbol, str]]:
    """Return the last values that nothing reads, one of each line, with their names.

    Those that the program made come before those that NumPy's own code made, and these before what
    the program went on by.
    """
    from graphir.passes.analysis.expressions import expression

    symbols = recorder.graph.symbols
    operands = {x.index for symbol in symbols for x in symbol.args}
    steps = (step for step in recorder.steps if step.truth or step.results)
    conditions = {x.index for step in steps for x in step.operands or ()}
    sinks = [x for x in symbols if x.index not in operands]
    computed = [x for x in sinks if x.args and x.index not in conditions]
    own = [x for x in computed if not x.location.compound]
    last = {x.location.place[:2]: x for x in own or computed or sinks}
    pairs: list[tuple[Symbol, str]] = []
    for symbol in [*last.values()][-MOST_UNREAD:]:
        source, line = expression(symbol.location), symbol.location.line
        pairs.append(
            (symbol, f"{source.brief} in line {line}" if source else f"value of line {line}")
        )
    return pairs


MOST_UNREAD = 8
"""The most values that nothing reads which are results."""


def output_names(
    result: Any, outputs: Sequence[Any], recorder: Recorder, leaving: Sequence[Leaving]
) -> list[str]:
    """Return the names of outputs: the keys in dicts, the places of values that left; else "".

    The names of a dict's values are those of variables, of a script or a block.
    """
    names = {id(x.value): x.name for x in leaving}
    pairs = cast("dict[Any, Any]", result).items() if isinstance(result, dict) else ()
    for key, value in pairs:
        if isinstance(key, str):
            for name, leaf in _named_leaves(key, value):
                source = recorder.numbers.source(leaf)
                leaf = leaf if source is None else source
                names[id(leaf.scalar if isinstance(leaf, RecordedNumber) else leaf)] = name
    return [names.get(id(value), "") for value in outputs]


def _named_leaves(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield a value under a name, and those in a tuple, a list or a dict under longer ones."""
    if isinstance(value, dict):
        for key, part in cast("dict[Any, Any]", value).items():
            yield from _named_leaves(f"{name}[{key!r}]", part)
    elif isinstance(value, (list, tuple)):
        fields: Any = getattr(cast("object", value), "_fields", None)
        for place, part in enumerate(cast("list[Any]", value)):
            at = f"[{place}]" if fields is None else f".{fields[place]}"
            yield from _named_leaves(f"{name}{at}", part)
    else:
        yield name, value


def plain_result(result: Any) -> Any:
    """Return the result with plain values in place of recorded ones.

    Mutable containers are changed in place and keep their identity; tuples are made anew.
    """
    return _plain(result, {})


def _plain(value: Any, visited: dict[int, Any]) -> Any:
    if isinstance(value, (RecordedValue, TracedScalar, RecordedNumber)):
        return plain(value)
    if isinstance(value, FlatIterator):
        return value.plain
    if isinstance(value, FunctionType):
        _make_cells_plain(value.__closure__ or (), visited)
        return value
    if isinstance(value, _ATOMS):
        return value
    if id(value) in visited:
        return visited[id(value)]
    visited[id(value)] = value
    if isinstance(value, np.ma.MaskedArray):
        cast("Any", value)._baseclass = np.ndarray
    if isinstance(value, tuple):
        visited[id(cast("object", value))] = new = mapped_tuple(
            cast("Any", value), lambda item: _plain(item, visited)
        )
        return new
    if isinstance(value, list):
        items = cast("list[Any]", value)
        items[:] = [_plain(item, visited) for item in items]
    elif isinstance(value, (set, frozenset)):
        members = cast("Any", value)
        new = visited[id(members)] = _plain_members(members, visited)
        return new
    elif isinstance(value, dict):
        mapping = cast("dict[Any, Any]", value)
        _make_keys_plain(mapping, visited)
        _make_values_plain(mapping, visited)
        _make_slots_plain(mapping, visited)
    else:
        attributes: Any = getattr(cast("Any", value), "__dict__", None)
        if isinstance(attributes, dict):  # those of a class are a proxy
            _make_values_plain(cast("dict[str, Any]", attributes), visited)
        _make_slots_plain(value, visited)
    return cast("object", value)


def _plain_members(members: Any, visited: dict[int, Any]) -> Any:
    """Return the set itself, or a new frozen set, with plain members."""
    items = [_plain(item, visited) for item in members]
    if all(new is item for new, item in zip(items, members, strict=True)):
        return members
    kind = cast("Any", type(members))
    if not hasattr(kind, "update"):
        return kind(items)
    members.clear()
    members.update(items)
    return members


def _make_keys_plain(mapping: dict[Any, Any], visited: dict[int, Any]) -> None:
    keys = [_plain(key, visited) for key in mapping]
    if any(new is not key for new, key in zip(keys, mapping, strict=True)):
        items = [*zip(keys, mapping.values(), strict=True)]
        mapping.clear()
        mapping.update(items)


def _make_values_plain(mapping: dict[Any, Any], visited: dict[int, Any]) -> None:
    for key, item in list(mapping.items()):
        new = _plain(item, visited)
        if new is not item:
            mapping[key] = new


def _make_cells_plain(cells: Iterable[CellType], visited: dict[int, Any]) -> None:
    for cell in cells:
        if id(cell) in visited:
            continue
        visited[id(cell)] = cell
        with contextlib.suppress(ValueError):  # the cell has no value yet
            item = cell.cell_contents
            new = _plain(item, visited)
            if new is not item:
                cell.cell_contents = new


def _make_slots_plain(value: Any, visited: dict[int, Any]) -> None:
    for name in slot_names(value):
        item = getattr(value, name)
        new = _plain(item, visited)
        if new is not item:
            object.__setattr__(value, name, new)


def as_returned(leaf: Any) -> Any:
    """Return a plain copy of a result, which later writes do not change."""
    value = plain(leaf)
    return cast("Any", value).copy("K") if isinstance(value, np.ndarray) else value


def described(result: Any) -> str:
    """Return a short description of a result, for error messages."""
    if isinstance(result, (list, tuple)):
        items = cast("list[Any]", result)
        return f"a {type(items).__name__} of {', '.join(map(described, items[:5])) or 'nothing'}"
    if isinstance(result, (np.ndarray, np.generic)):
        array = cast("Any", result)
        return f"{type(array).__name__} of {array.dtype}{list(array.shape)}"
    return "None" if result is None else f"a {type(result).__name__}"
