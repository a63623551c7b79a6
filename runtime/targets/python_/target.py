"""The Python target: a lowered graph as a NumPy function, in source that runs without graphir."""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from textwrap import fill

from graphir import DType, Graph, Symbol, ops
from graphir.location import Location
from graphir.ops.dims import Dim, Size
from graphir.passes import decompose
from graphir.passes.pipeline import lower_to_ops
from graphir.runtime.binding import numpy_name
from graphir.runtime.targets.emission import (
    bindings,
    emitter,
    lacking,
    live_symbols,
    require_no_calls,
    require_numpy_functions,
    unbound,
)
from graphir.runtime.targets.python_.control import STATEMENTS, Block, ControlLine
from graphir.runtime.targets.python_.excerpts import excerpt
from graphir.runtime.targets.python_.names import Identifiers, dim_text
from graphir.runtime.targets.python_.ops import COMPOSITES, PYTHON, Line
from graphir.runtime.targets.python_.values import cast_expression, word


def python(graph: Graph) -> str:
    """Return the source of a NumPy function that computes the outputs of a graph.

    The target lowers the graph first. The function has the name of the graph. It takes the inputs
    in order, by position or by name, as `interpret` does, and its results have the bits of
    `interpret`. A comment above each cast names the use that the cast serves, and the source line
    of that use. The source imports numpy, and ml_dtypes for dtypes of that package; it contains a
    copy of all other code that it needs. Raises TargetError if nothing binds a dim.
    """
    lowered_graph = lower_to_ops(graph)
    require_no_calls("Python", lowered_graph)
    require_numpy_functions("Python", lowered_graph)
    return _Writer(decompose(lowered_graph, COMPOSITES)).source()


class _Writer:
    """The writer of one function."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.names = Identifiers()
        self.title = self.names.new(graph.name)
        self.inputs = {
            symbol: self.names.new(name)
            for symbol, name in zip(graph.inputs, graph.input_names, strict=True)
        }
        self.sizes: dict[str, str] = {}
        self.values: dict[Symbol, str] = dict(self.inputs)
        self.views = {*self.inputs.values()}
        self.depth, self.constants = 0, list[str]()
        self.uses: set[str] = {"checked_input"} if graph.inputs else set()

    def source(self) -> str:
        """Return the source of the whole module."""
        body = [
            *self._bound(),
            *self._checked(),
            *self._lines(self.graph, self.values),
            self._returned(),
        ]
        text = "\n".join(f"    {line}" for line in body)
        imports, pieces = excerpt(self.uses)
        imports.setdefault("", set()).update({"numpy as np", *self._modules(text)})
        rules = self.graph.rules_before or self.graph.rules.name
        title = f"The graph {_quoted(self.graph.name)} under the rules {_quoted(rules)}"
        head = f'"""{title}, as NumPy computes it."""\n\n{_imports(imports)}'
        function = (
            f'@np.errstate(all="ignore")\ndef {self.title}({", ".join(self.inputs.values())}):\n'
            f"    {self._promised()}\n{text}\n"
        )
        return "\n\n\n".join([head, *pieces, function])

    def _promised(self) -> str:
        """Return the docstring of the function, which lists the types of the results."""
        types = ", ".join(str(x.type) for x in self.graph.outputs)
        docstring = f'"""Returns {_ascii(types)}."""'
        # A line break within a word could split an escape sequence.
        return fill(
            docstring, 96, subsequent_indent=" " * 4, break_long_words=False, break_on_hyphens=False
        )

    def _modules(self, text: str) -> Iterator[str]:
        return (module for module in ("ml_dtypes", "base64") if re.search(rf"\b{module}\.", text))

    # -- dims

    def _bound(self) -> Iterator[str]:
        """Yield the lines that bind every named dim to its size."""
        for name, symbol, axis in bindings(self.graph):
            size, dim = f"{self.inputs[symbol]}.shape[{axis}]", symbol.shape[axis]
            if isinstance(dim, Dim) and str(dim) != name:
                at_0, at_1 = (
                    dim_text(dim, ChainMap({name: n}, self.sizes)) for n in ("(0)", "(1)")
                )
                size = f"({size} - ({at_0})) // ({at_1} - ({at_0}))"
            self.sizes[name] = self.names.new(name)
            yield f"{self.sizes[name]} = {size}"

    def size(self, dim: Size) -> str:
        """Return the expression of a dim. Raises TargetError if nothing binds a name in it."""
        if not isinstance(dim, Dim):
            return str(dim)
        for name in dim.names():
            if name not in self.sizes:
                raise unbound(self.graph, name, dim)
        return dim_text(dim, self.sizes)

    def _checked(self) -> Iterator[str]:
        for (symbol, name), input_name in zip(
            self.inputs.items(), self.graph.input_names, strict=True
        ):
            shape = Line(symbol, (), self.size, self.uses).tuple(symbol.shape)
            dtype = numpy_name(symbol.dtype)
            yield f"{name} = checked_input({word(input_name)}, {name}, {dtype}, {shape})"
            if symbol.dtype.emulated:
                storage = DType.from_numpy(symbol.dtype.storage)
                rounding = cast_expression(name, storage, symbol.dtype, self.graph.tf32, self.uses)
                yield f"{name} = {rounding}"

    # -- values

    def _lines(self, graph: Graph, values: dict[Symbol, str]) -> Iterator[str]:
        """Yield the lines that compute a graph; `values` gets the expressions of its symbols."""
        parts: dict[Symbol, list[str]] = {}
        for symbol in live_symbols(graph):
            if symbol.op is ops.input:
                continue
            if symbol.op is ops.control.part:
                values[symbol] = parts[symbol.args[0]][symbol.attrs["index"]]
                continue
            args = tuple(values[arg] for arg in symbol.args)
            line = Line(symbol, args, self.size, self.uses)
            if symbol.op.kind == "control":
                parts[symbol] = self._results(symbol)
                yield from self._statements(line, parts[symbol])
                continue
            text = emitter("Python", PYTHON, symbol)(line)
            if symbol.op is ops.constant and not symbol.rank and text.startswith("np."):
                values[symbol] = text
                continue
            if text in line.args:
                yield from _comments(symbol)
                values[symbol] = text
                continue
            values[symbol] = name = self.names.new(f"v{symbol.name[1:]}")
            if symbol.op in _VIEWS:
                self.views.add(name)
            lines = [*_comments(symbol), f"{name} = {text}"]
            if symbol.op is ops.constant and self.depth:
                self.constants += lines
            else:
                yield from lines

    # -- control flow

    def _results(self, symbol: Symbol) -> list[str]:
        """Return names for the results of control flow, which may share memory."""
        base = f"v{symbol.name[1:]}"
        names = [self.names.new(f"{base}_{i}") for i in range(len(symbol.type.parts))]
        self.views.update(names)
        return names

    def _statements(self, line: Line, results: Sequence[str]) -> Iterator[str]:
        """Yield the statements of control flow, after the constants of its graphs.

        The constants stand outside of all loops.
        """
        if self.depth == _MAX_DEPTH:
            why = f"nests at most {_MAX_DEPTH} blocks"
            raise lacking("Python", line.symbol, why, "use fewer loops within loops")
        self.depth += 1
        row = STATEMENTS[line.symbol.op.name]
        lines = [*row(ControlLine(line, results, self._block, self.names.new))]
        self.depth -= 1
        if not self.depth:
            yield from self.constants
            self.constants.clear()
        yield from lines

    def _block(self, graph: Graph, args: Sequence[str]) -> Block:
        values = dict(zip(graph.inputs, args, strict=True))
        lines = [*self._lines(graph, values)]
        return Block(lines, [values[output] for output in graph.outputs])

    def _returned(self) -> str:
        """Return the return statement, with copies of results that share memory."""
        results: list[str] = []
        shared_names = set(self.views)
        for symbol in self.graph.outputs:
            text = self.values[symbol]
            results.append(f"{text}.copy()" if text in shared_names else text)
            shared_names.add(text)
        return f"return {', '.join(results)}"


_MAX_DEPTH = 20
"""The most blocks within blocks: Python refuses more than 20 nested loops."""

_VIEWS = (ops.constant, ops.reshape, ops.rebind, ops.squeeze, ops.unsqueeze, ops.tile)
"""Ops whose results may be read-only or share memory; NumPy's tile of an empty array is a view."""


def _imports(names: Mapping[str, set[str]]) -> str:
    """Return the import lines of names by module, the standard library first."""
    lines = [f"import {module}" for module in names[""]]
    lines += [
        f"from {module} import {', '.join(sorted(names[module]))}" for module in names if module
    ]
    lines.sort(key=lambda line: (line.startswith("from"), line))
    own = [line for line in lines if line.split()[1] not in ("numpy", "ml_dtypes")]
    rest = [line for line in lines if line not in own]
    return "\n\n".join("\n".join(part) for part in (own, rest) if part)


def _comments(symbol: Symbol) -> Iterator[str]:
    """Yield the comments for the uses that a cast serves."""
    if symbol.op is not ops.cast:
        return
    source = symbol.args[0].type
    if not symbol.origins:
        yield f"# {_line(symbol.location)}: cast: {source.dtype} -> {symbol.dtype}"
    for origin in symbol.origins:
        where = f"{origin.operand} of {origin.op} at {_line(origin.location)}"
        yield f"# {where}, {_ascii(origin.rule)}: {origin.source} -> {origin.target}"


def _line(location: Location) -> str:
    """Return a location as one line of ASCII, for any names of layers."""
    return _ascii(location.layered)


def _quoted(name: str) -> str:
    return ascii(name).replace('"', "'").replace("\\", "/")


def _ascii(text: str) -> str:
    return ascii(text)[1:-1]
