"""Lattice files: JSON that lists, for each node, the nodes directly above it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from graphir.dtype_lattices.order import Lattice
from graphir.dtype_lattices.published import element
from graphir.dtypes import DType
from graphir.errors import GraphError

MOST_NODES, MOST_EDGES = 4_096, 100_000
"""The most nodes and edges of a lattice in a file."""

MOST_LETTERS = 1000
"""The most characters of an error that quotes a file."""


def read_lattice(path: str | os.PathLike[str]) -> Lattice[Any]:
    """Read a lattice from JSON: `{"name": ..., "source": ..., "edges": {low: [high, ...]}}`.

    The object of edges alone is enough. A lattice without a name gets the name of the file. Names,
    aliases and short names (which count bits) of dtypes become dtypes; every other name stays a
    string. Raises GraphError for a file that cannot be read or is malformed: the message names the
    file and the position or the cause. Raises Cyclic, which names the cycle, for edges with a
    cycle.
    """
    if not isinstance(path, (str, os.PathLike)):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise GraphError(
            "a lattice is read from the path of a JSON file",
            got=repr(path),
            fix="for edges at hand use Lattice('mine', {low: [high, ...]})",
        )
    try:
        name, source, edges = _fields(_load(Path(path)))
        return Lattice(name or Path(path).stem, _edges(edges), source)
    except OSError as error:
        raise GraphError(f"{path}: {error.strerror}") from None
    except GraphError as error:
        raise error.within(str(path)).having(longest=MOST_LETTERS) from None


def _load(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=_distinct)
    except GraphError:
        raise
    # Other encodings, other syntax, too many digits, or brackets nested too deeply.
    except (ValueError, RecursionError) as error:
        raise GraphError(f"not JSON: {error}") from None


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, value in pairs:
        if key in fields:
            raise GraphError(f"key {key!r} stands twice")
        fields[key] = value
    return fields


def _fields(content: Any) -> tuple[str, str, Mapping[str, Any]]:
    """Return the name, the source and the edges in a file's JSON content."""
    whole = _object(content)
    if not isinstance(whole.get("edges"), dict):
        return "", "", whole
    if extra := whole.keys() - {"name", "source", "edges"}:
        raise GraphError(f"unknown field {min(extra)!r}", fix="use name, source and edges")
    name, source = whole.get("name", ""), whole.get("source", "")
    if not (isinstance(name, str) and isinstance(source, str)):
        raise GraphError("name and source are text")
    return name, source, whole["edges"]


def _edges(edges: Mapping[str, Any]) -> dict[Any, list[Any]]:
    """Convert edges between names to edges between elements; a GraphError names the wrong key."""
    if not edges:
        raise GraphError('no edges; {"int8": ["int16"]} says that int16 lies directly above int8')
    names = {low: _names(low, above) for low, above in edges.items()}
    count = sum(map(len, names.values()))
    if count > MOST_EDGES:
        raise GraphError("too many edges", got=f"{count:,}", fix=f"use at most {MOST_EDGES:,}")
    distinct = list(dict.fromkeys(n for low, above in names.items() for n in (low, *above)))
    if len(distinct) > MOST_NODES:
        raise GraphError(
            "too many nodes", got=f"{len(distinct):,}", fix=f"use at most {MOST_NODES:,}"
        )
    _check_spelling(distinct)
    return {element(low): [element(name) for name in above] for low, above in names.items()}


def _names(low: str, above: Any) -> list[str]:
    _check_name(low, "a key")
    if not isinstance(above, list):
        raise GraphError(
            f"{low}: must be a list of what lies directly above", got=f"{_value_text(above)}"
        )
    for i, name in enumerate(cast("list[Any]", above)):
        _check_name(name, f"{low}[{i}]")
    return cast("list[str]", above)


def _check_name(name: Any, place: str) -> None:
    if not (isinstance(name, str) and name.strip() and name.isprintable()):
        raise GraphError(f"{place}: must be a name", got=f"{_value_text(name)}")


# NumPy's codes, which count bytes. The codes of _IN_BYTES are no short names of graphir, which
# count bits. The codes of _IN_EITHER are short names too, and mean another dtype.
_IN_BYTES = frozenset(["b1", "i1", "u1", "f2", "f4", "f8", "c8", "c16"])
_IN_EITHER = frozenset(["i2", "i4", "i8", "u2", "u4", "u8"])


def _check_spelling(names: list[str]) -> None:
    """Raise GraphError where a dtype has two names, or a name may mean either of two dtypes."""
    spellings: dict[DType, str] = {}
    for name in names:
        dtype = element(name)
        if isinstance(dtype, DType) and spellings.setdefault(dtype, name) != name:
            raise GraphError(f"{dtype} has two names, {spellings[dtype]!r} and {name!r}")
    if (bytewise := _IN_BYTES & set(names)) and (either := _IN_EITHER & set(names)):
        raise GraphError(
            f"{min(bytewise)!r} counts bytes, as NumPy does, and short names such as "
            f"{min(either)!r} count bits here",
            fix="write full names, such as uint64",
        )


def _object(content: Any) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise GraphError("must be an object", got=f"{_value_text(content)}")
    return cast("dict[str, Any]", content)


def _value_text(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
