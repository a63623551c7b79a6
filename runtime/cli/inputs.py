"""The option --input of commands that run a program: inputs in order or by name."""

from __future__ import annotations

import argparse
import ast
import inspect
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np

from graphir.ops.grammar import read_type
from graphir.public import ExecutionError, Graph, TensorType
from graphir.runtime.binding import match_inputs
from graphir.runtime.cli.programs import find_object
from graphir.runtime.sources import from_onnx
from graphir.runtime.sources.libraries import LIBRARIES
from graphir.runtime.sources.onnx_.model import input_names, read_model
from graphir.runtime.sources.op_rows import identifier
from graphir.runtime.value_files import number, read_input


def path(text: str) -> str:
    """Argument type of a file path, which need not exist yet; rejects the empty text."""
    if not text:
        raise argparse.ArgumentTypeError("'' names no file")
    return text


def add_inputs(command: argparse.ArgumentParser) -> None:
    """Add the option --input to a command."""
    command.add_argument(
        "--input",
        action="append",
        default=[],
        dest="inputs",
        metavar="[NAME=]VALUE",
        help="an input: x.npy, file.npz, file.npz:key or a Python number; for a function also a "
        "type, 'float32[8, 3]' (audit draws values of it), SCRIPT.py:NAME, or "
        "a quoted Python literal; for a model.onnx also a type, which states "
        "the input's sizes; by name, or in order",
    )
    command.add_argument(
        "--size",
        action="append",
        default=[],
        dest="sizes",
        type=_size,
        metavar="NAME=SIZE",
        help="the size of a named dim of a model.onnx; of an exported graph (StableHLO needs that "
        "of each, others keep names)",
    )
    command.add_argument(
        "--library",
        choices=LIBRARIES,
        help="the library of a function, where its code and its inputs do not tell",
    )


def _size(text: str) -> tuple[str, int]:
    name, equals, size = text.partition("=")
    if not (name and equals and size.isascii() and size.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=SIZE, as in n=4")
    return name, int(size)


def of_model(
    file: str, inputs: Sequence[str], sizes: Sequence[tuple[str, int]]
) -> tuple[Graph, list[str]]:
    """Return the graph of an ONNX model, and the inputs that are no types.

    A type among the inputs, by name or in order, states the sizes of an input of the model.
    """
    model = read_model(file)
    positional, by_name = _split_by_name(inputs)
    names = [identifier(name) for name in input_names(model)]
    values = positional[len(names) :]  # too many, which the run refuses
    types: dict[str, TensorType] = {}
    for name, text in [*zip(names, positional, strict=False), *by_name.items()]:
        type_ = _type(text)
        if type_ is None:
            values.append(f"{name}={text}")
        else:
            types[name] = type_
    return from_onnx(model, **dict(sizes), **types), values


def of_graph(graph: Graph, inputs: Sequence[str], draws: Draws | None = None) -> list[Any]:
    """Return the values of a graph's inputs, in its order; `draws` gives those of types.

    Raises ExecutionError that names the missing or invalid input.
    """
    positional, by_name = _split_by_name(inputs)
    names = graph.input_names[len(positional) :]
    missing = [name for name in names if name not in by_name and name not in graph.defaults]
    if missing and by_name.keys() <= set(graph.input_names):
        pairs = zip(graph.input_names, graph.inputs, strict=True)
        takes = ", ".join(f"{name}: {symbol.type}" for name, symbol in pairs)
        raise ExecutionError(
            f"graph {graph.name!r} is missing {', '.join(missing)}; it takes ({takes})",
            fix="add " + " ".join(f"--input {name}={name}.npy" for name in missing),
        )
    texts = match_inputs(graph, positional, by_name)
    dtypes = [graph.concrete_dtype(symbol.dtype) for symbol in graph.inputs]
    values: list[Any] = []
    for text, dtype, name in zip(texts, dtypes, graph.input_names, strict=True):
        type_ = _type(text) if isinstance(text, str) and draws is not None else None
        if type_ is not None and draws is not None:
            values.append(draws.value(type_, name))
        else:
            values.append(read_input(text, dtype) if isinstance(text, str) else text)  # a default
    return values


def of_function(inputs: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
    """Return the values of a function's arguments, by position and by name.

    `config.scale=2.0` is an entry of a dict for the argument `config`.
    """
    positional, texts = _split_by_name(inputs)
    keywords: dict[str, Any] = {}
    for name, text in texts.items():
        *path, last = name.split(".")
        values = keywords
        for key in path:
            values = values.setdefault(key, {})
        if not isinstance(values, dict) or last in values:
            raise ExecutionError(f"--input {name}=... has a value and entries of a dict")
        values[last] = _argument(text)
    return list(map(_argument, positional)), keywords


def _type(text: str) -> TensorType | None:
    """Return the type that a text means; None for other texts, and for the path of a file."""
    if re.fullmatch(r"\w+\[[^\[\]]*\]", text) and not Path(text).exists():
        return read_type(text)
    return None


def _argument(text: str) -> Any:
    """Return the value that a text means.

    That is an array, a type, a number, an object of a script, or a literal.
    """
    type_ = _type(text)
    if type_ is not None:
        return type_
    if ".py:" in text:
        return find_object(text)
    if text.endswith((".npy", ".npz")) or ".npz:" in text:
        return read_input(text)
    value = number(text)
    if value is not None:
        return value
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise ExecutionError(
            f"{text!r} is neither a number nor a file",
            fix="give x.npy, file.npz:key, a number, a type such as 'float32[8, 3]', or "
            f'a Python literal: --input "{text!r}" is a text',
        ) from None


def _split_by_name(inputs: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    positional: list[str] = []
    keywords: dict[str, str] = {}
    for text in inputs:
        name, equals, value = text.partition("=")
        if not (equals and all(map(str.isidentifier, name.split(".")))):
            positional.append(text)
        elif name in keywords:
            raise ExecutionError(f"--input {name}=... is given twice")
        else:
            keywords[name] = value
    return positional, keywords


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
