"""Signatures of calls: the dtypes, ranks and Python types of arguments; and those of results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, cast

import numpy as np

MOST_PARTS = 4
"""The most elements of a container, and MOST_ATTRIBUTES of an object, that a signature has."""
MOST_ATTRIBUTES = 12
MOST_RESULTS = 16
"""The most elements of a container in a result."""


def call_key(args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Return a hashable key of the dtypes, ranks and Python types of arguments."""
    if keywords:
        return tuple(map(_key, args)), tuple((name, _key(x)) for name, x in keywords.items())
    return tuple(map(_key, args))


def _key(value: Any, depth: int = 0) -> Any:
    kind: Any = type(value)  # pyright: ignore[reportUnknownVariableType]
    if kind in _ATOMS:
        return kind
    if kind is np.ndarray:
        return kind, value.dtype.char, value.ndim
    if kind is tuple or kind is list:
        parts = () if depth > 1 else tuple([_key(x, depth + 1) for x in value[:MOST_PARTS]])
        return kind, parts
    if kind is dict:
        items = () if depth > 1 else islice(value.items(), MOST_PARTS)
        return kind, tuple([(name, _key(x, depth + 1)) for name, x in items if type(name) is str])
    bases = kind.__mro__
    if np.ndarray in bases:
        own = np.ndarray if kind.__module__ == _RECORDED else kind
        return own, value.dtype.char, value.ndim
    if np.generic in bases or type in bases:
        return bases[1] if kind.__module__ == _RECORDED else kind
    if _is_foreign(kind):
        dtype = _foreign_dtype(value)
        return (kind, dtype, len(value.shape)) if dtype and depth <= 1 else kind
    attributes = None if depth > 1 else _attributes(value)
    return kind, tuple(
        [
            (name, x.dtype.char, x.ndim)
            for name, x in islice((attributes or {}).items(), MOST_ATTRIBUTES)
            if issubclass(type(x), np.ndarray)
        ]
    )


_RECORDED = "graphir.runtime.recording.arrays"
"""The module of the classes that stand in a shadow for arrays and scalars of NumPy."""


def _attributes(value: Any) -> dict[str, Any] | None:
    """Return the attributes of an object, without a call of its methods; None without any."""
    try:
        own: Any = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return cast("dict[str, Any]", own) if type(own) is dict else None


_ATOMS = frozenset((int, float, complex, bool, str, bytes, type(None)))


def _is_foreign(kind: Any) -> bool:
    return kind.__module__.partition(".")[0] in ("jax", "jaxlib", "torch")


def _foreign_dtype(value: Any) -> str:
    """Return the dtype of an array of JAX or torch as text; "" for other values."""
    if not _is_foreign(cast("Any", type(value))) or not hasattr(value, "shape"):
        return ""
    return str(getattr(value, "dtype", "")).removeprefix("torch.")


def library_of(values: Iterable[Any]) -> str:
    """Return the library of the arrays among arguments, "jax" or "torch"; "" for NumPy."""
    for value in values:
        if _foreign_dtype(value):
            return type(value).__module__.partition(".")[0].removesuffix("lib")
    return ""


def arguments_text(args: Sequence[Any], keywords: Mapping[str, Any]) -> str:
    """Return the dtypes, ranks and types of arguments as text: `float32[:,:], int, axis: None`."""
    texts = [_text(x) for x in args]
    return ", ".join([*texts, *(f"{name}: {_text(x)}" for name, x in keywords.items())])


def _text(value: Any, depth: int = 0) -> str:
    kind = cast("Any", type(value))
    if isinstance(value, np.generic):
        return f"np.{cast('Any', value).dtype}"
    if isinstance(value, np.ndarray):
        array = cast("Any", value)
        is_plain = kind is np.ndarray or kind.__module__.startswith("graphir.runtime.recording")
        prefix = "" if is_plain else f"{kind.__name__} "
        return f"{prefix}{array.dtype}[{','.join(':' * array.ndim)}]"
    dtype = _foreign_dtype(value)
    if dtype:
        return f"{dtype}[{','.join(':' * len(value.shape))}]"
    if value is None or kind in _ATOMS or depth > 1 or isinstance(value, type):
        return "None" if value is None else "type" if isinstance(value, type) else kind.__name__
    if kind in (tuple, list):
        parts = [_text(x, depth + 1) for x in value[:MOST_PARTS]]
        dots = ["..."] if len(value) > MOST_PARTS else []
        ends = "()" if kind is tuple else "[]"
        return f"{ends[0]}{', '.join([*parts, *dots])}{ends[1]}"
    if kind is dict:
        parts = [
            f"{name}: {_text(x, depth + 1)}"
            for name, x in list(value.items())[:MOST_PARTS]
            if type(name) is str
        ]
        return f"{{{', '.join(parts)}}}"
    arrays = [f"{name}: {text}" for name, text in attribute_texts(value)]
    return f"{kind.__name__}({', '.join(arrays)})" if arrays else kind.__name__


_ARRAY_DTYPE = re.compile(r"\w+(?=\[)|np\.\w+")


def array_dtypes(arguments: str) -> frozenset[str]:
    """Return the dtypes of arrays and NumPy scalars in the text of arguments."""
    return frozenset(_ARRAY_DTYPE.findall(arguments))


def attribute_texts(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the arrays among the attributes of an object, as name and text."""
    for name, x in list((_attributes(value) or {}).items())[:MOST_ATTRIBUTES]:
        if issubclass(type(x), np.ndarray):
            yield name, _text(x)


def result_leaves(value: Any, path: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Yield the arrays and numbers in a result, each under the path to it: `[0]`, `.mean`."""
    if isinstance(value, (bool, np.bool_)):
        return
    if isinstance(value, (np.ndarray, np.generic, int, float, complex)) or _foreign_dtype(value):
        yield path or "result", value
    elif depth < 3:
        for part_path, part in _result_parts(value):
            yield from result_leaves(part, f"{path}{part_path}", depth + 1)


def _result_parts(value: Any) -> list[tuple[str, Any]]:
    """Return the parts of a container, or the arrays in an object, with the paths to them."""
    if isinstance(value, tuple):
        parts = cast("tuple[Any, ...]", value)
        names: Any = getattr(parts, "_fields", range(len(parts)))
        texts = [f".{name}" if isinstance(name, str) else f"[{name}]" for name in names]
        return list(zip(texts, parts, strict=False))[:MOST_RESULTS]
    if isinstance(value, list):
        return [("[]", part) for part in cast("list[Any]", value)[:MOST_RESULTS]]
    if isinstance(value, dict):
        items = list(cast("dict[Any, Any]", value).items())[:MOST_RESULTS]
        return [(f"[{name!r}]", part) for name, part in items if isinstance(name, str)]
    own = {} if isinstance(value, type) else _attributes(value) or {}
    parts_of_object = list(own.items())[:MOST_ATTRIBUTES]
    return [
        (f".{name}", x) for name, x in parts_of_object if isinstance(x, (np.ndarray, np.generic))
    ]


def dtype_text(value: Any) -> str:
    """Return the dtype of an array or a number in a result: `float32`, `np.float32`, `float`."""
    if isinstance(value, np.generic):
        return f"np.{cast('Any', value).dtype}"
    if isinstance(value, np.ndarray):
        return str(cast("Any", value).dtype)
    return _foreign_dtype(value) or type(value).__name__
