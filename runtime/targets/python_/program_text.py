"""The Python target: a lowered graph as a NumPy function, in source that runs without graphir.

Control flow becomes statements, with the graphs in place, as blocks of lines. Identifiers resemble
the names of the graph, and are distinct under Python's comparison.
"""

from __future__ import annotations

import ast
import builtins
import io
import keyword
import os
import re
import tokenize
import unicodedata
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir.location import Location
from graphir.ops.dims import Dim, Size
from graphir.passes import decompose
from graphir.public import DType, Graph, Symbol, ops
from graphir.runtime.binding import numpy_name
from graphir.runtime.targets.emission import (
    Names,
    bindings,
    emitter,
    lacking,
    live_symbols,
    lowered_for,
    unbound,
)
from graphir.runtime.targets.python_.expressions import (
    COMPOSITES,
    PYTHON,
    Line,
    cast_expression,
    word,
)
from graphir.text.atomic_files import Replacement

_MODULE_WORDS = ("np", "ml_dtypes", "base64", "Path", "DATA", "Any", "NDArray")
_RESERVED_WORDS = frozenset({*dir(builtins), *keyword.kwlist, *keyword.softkwlist, *_MODULE_WORDS})


class Identifiers:
    """A source of identifiers that resemble the names of a graph and are unique in a module.

    Python compares identifiers in the normal form NFKC. All identifiers here are in NFKC, so
    distinct texts are distinct identifiers. An identifier is never a keyword, a builtin, a dunder
    name, or a name that the module copies or imports.
    """

    def __init__(self) -> None:
        self._names = Names({*_RESERVED_WORDS, *defined()})

    def new(self, base: str) -> str:
        """Return a unique identifier: the name itself if valid and free, else a similar name."""
        return self._names.new(identifier(base))


def identifier(base: str) -> str:
    """Return a valid identifier similar to a name, in NFKC even with a number appended."""
    text = unicodedata.normalize("NFKC", base)
    text = "".join(c if f"_{c}".isidentifier() else "_" for c in text) or "graph"
    text = text if text.isidentifier() else f"_{text}"
    if not (text.isidentifier() and unicodedata.is_normalized("NFKC", f"{text}_2")):
        text = "".join(c if c.isascii() else "_" for c in text)
    dunder = text.startswith("__") and text.endswith("__")
    return f"_{text.strip('_')}_" if dunder else text


def dim_text(dim: Dim, names: Mapping[str, str]) -> str:
    """Return the expression of a dim, with the identifiers of its names from `names`."""
    text = ""
    for atoms, coefficient in dim.terms:
        factors = [
            names[atom]
            if isinstance(atom, str)
            else f"(({dim_text(atom.dividend, names)}) // {atom.divisor})"
            for atom in atoms
        ]
        if abs(coefficient) != 1 or not factors:
            factors.insert(0, str(abs(coefficient)))
        sign = "-" if coefficient < 0 else "+" if text else ""
        text += (f" {sign} " if text else sign) + " * ".join(factors)
    return text


class Block(NamedTuple):
    """The lines that compute a graph, and the expressions of its outputs."""

    lines: list[str]
    outputs: list[str]


class ControlLine(NamedTuple):
    """An op of control flow to write.

    `results` are the names for its results. `block` writes a graph on operands, and `name` returns
    a unique name.
    """

    line: Line
    results: Sequence[str]
    block: Callable[[Graph, Sequence[str]], Block]
    name: Callable[[str], str]


Statements: TypeAlias = Callable[[ControlLine], Iterator[str]]


def _cond(control: ControlLine) -> Iterator[str]:
    """Write if, elif and else; the comparisons clamp the index."""
    line = control.line
    dtype = line.symbol.args[0].dtype
    branches: Sequence[Graph] = line.symbol.attrs["branches"]
    branches = branches[:2] if dtype is DType.bool else branches
    index = f"int({line[0]})" if dtype.narrow else line[0]
    for place, branch in enumerate(branches):
        test = f"{index} == {place}"
        if not place:
            test = f"not {index}" if dtype is DType.bool else f"{index} <= 0"
        lines = _assigned(control, control.block(branch, line.args[1:]))
        if len(branches) == 1:
            yield from lines
            return
        last = place == len(branches) - 1
        yield "else:" if last else f"{'elif' if place else 'if'} {test}:"
        yield from _indented(lines)


def _while_loop(control: ControlLine) -> Iterator[str]:
    line, results = control.line, control.results
    initial, captured = line.args[: len(results)], line.args[len(results) :]
    yield _assignment(results, initial)
    test = control.block(line.symbol.attrs["condition"], [*results, *captured])
    (verdict,) = test.outputs
    before = test.lines
    if len(before) == 1 and before[0].startswith(f"{verdict} = "):
        before, verdict = [], before[0].removeprefix(f"{verdict} = ")
    yield f"while {verdict}:" if not before else "while True:"
    if before:
        yield from _indented([*before, f"if not {verdict}:", "    break"])
    body = control.block(line.symbol.attrs["body"], [*results, *captured])
    yield from _indented(_assigned(control, body))


def _scan(control: ControlLine) -> Iterator[str]:
    line, attrs = control.line, control.line.symbol.attrs
    carries, ends = attrs["carries"], attrs["carries"] + attrs["scanned"]
    scanned, captured = line.args[carries:ends], line.args[ends:]
    values, stacked = control.results[:carries], control.results[carries:]
    if values:
        yield _assignment(values, line.args[:carries])
    for name, type_ in zip(stacked, line.symbol.type.parts[carries:], strict=True):
        yield f"{name} = np.empty({line.tuple(type_.shape)}, {numpy_name(type_.dtype)})"
    place = control.name("i")
    places = f"range({f'len({scanned[0]})' if scanned else line['length']})"
    yield f"for {place} in {f'reversed({places})' if attrs['reverse'] else places}:"
    rows = [control.name("row") for _ in scanned]
    lines, outputs = control.block(attrs["body"], [*values, *rows, *captured])
    yield from _indented(f"{row} = {x}[{place}, ...]" for row, x in zip(rows, scanned, strict=True))
    yield from _indented(lines)
    updates = [f"{name}[{place}] = {y}" for name, y in zip(stacked, outputs[carries:], strict=True)]
    yield from _indented(updates)
    if values:
        yield from _indented([_assignment(values, outputs[:carries])])


STATEMENTS: Mapping[str, Statements] = {"cond": _cond, "while_loop": _while_loop, "scan": _scan}
"""The statements of each op of control flow."""


def _assigned(control: ControlLine, block: Block) -> list[str]:
    return [*block.lines, _assignment(control.results, block.outputs)]


def _assignment(names: Sequence[str], values: Sequence[str]) -> str:
    return f"{', '.join(names)} = {', '.join(values)}"


def _indented(lines: Sequence[str] | Iterator[str]) -> Iterator[str]:
    return (f"    {line}" for line in lines)


def python(graph: Graph) -> str:
    """Return the source of a NumPy function that computes the outputs of a graph.

    The target lowers the graph first. The function has the name of the graph. It takes the inputs
    in order, by position or by name, as `interpret` does, and its results have the bits of
    `interpret`. A comment above each cast names the use that the cast serves, and the source line
    of that use. The source imports numpy, and ml_dtypes for dtypes of that package; it contains a
    copy of all other code that it needs, with constants as text. Raises TargetError if nothing
    binds a dim.
    """
    return _writer(graph).source()


def write_python(graph: Graph, file: str | os.PathLike[str]) -> None:
    """Write the source of `python` to a file, and its constants above 1 KB to an .npz beside it.

    The .npz has the name of the file; the module loads it once, when it is imported. It holds each
    constant in its NumPy dtype, and the bytes of a constant whose dtype is of ml_dtypes.
    """
    path = Path(file)
    data_path = path.with_name(f"{path.name.removesuffix('.py')}.npz")
    writer = _writer(graph)
    if path.is_file() or not path.exists():  # a device has nothing beside it
        writer.data_file = data_path.name
    source = writer.source()
    with Replacement() as files:
        files.open(path).write(source.encode())
        if writer.data:
            np.savez(files.open(data_path), allow_pickle=False, **writer.data)


def _writer(graph: Graph) -> _Writer:
    return _Writer(decompose(lowered_for("Python", graph), COMPOSITES))


class _Writer:
    """The writer of one function.

    `data` has the constants that go to `data_file`, by name; without a file the source has all.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.data_file = ""
        self.data: dict[str, NDArray[Any]] = {}
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
        inputs = ", ".join(f"{name}: {_annotation(x)}" for x, name in self.inputs.items())
        outputs = ", ".join(map(_annotation, self.graph.outputs))
        result = outputs if len(self.graph.outputs) == 1 else f"tuple[{outputs}]"
        lines = [f"def {self.title}({inputs}) -> {result}:", f"    {self._promised()}"]
        lines += [f"    {line}" for line in body]
        text = "\n".join(part for line in lines for part in wrapped(line))
        data = _LOADED.format(self.data_file) if self.data else ""
        imports, pieces = excerpt({*self.uses, *_used(f"{text} {data}", _TYPING)})
        imports.setdefault("", set()).update({"numpy as np", *_used(text, _MODULES)})
        if data:
            imports["pathlib"] = {"Path"}
        rules = self.graph.rules_before or self.graph.rules.name
        title = f"The graph {_quoted(self.graph.name)} under the rules {_quoted(rules)}"
        head = f'"""{title}, as NumPy computes it."""\n\n{_imports(imports)}'
        head = f"{head}\n\n{data}" if data else head
        while pieces and not pieces[0].startswith(("def ", "class ", "@")):
            head = f"{head}\n\n{pieces.pop(0)}"
        return "\n\n\n".join([head, *pieces, f'@np.errstate(all="ignore")\n{text}\n'])

    def _promised(self) -> str:
        """Return the docstring of the function, which lists the types of the results."""
        types = ", ".join(str(x.type) for x in self.graph.outputs)
        docstring = f'"""Returns {_ascii(types)}."""'
        # A line break within a word could split an escape sequence.
        return fill(
            docstring, 96, subsequent_indent=" " * 4, break_long_words=False, break_on_hyphens=False
        )

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
            text = self._stored(symbol) or emitter("Python", PYTHON, symbol)(line)
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

    def _stored(self, symbol: Symbol) -> str:
        """Return the expression of a constant that the data file holds, or "" for other symbols."""
        if not self.data_file or symbol.op is not ops.constant:
            return ""
        value = np.asarray(symbol.attrs["value"])
        if value.nbytes <= _MAX_TEXT:
            return ""
        name, dtype = f"c{len(self.data)}", numpy_name(symbol.dtype)
        if dtype.startswith("np."):
            self.data[name] = value
            return f'DATA["{name}"]'
        self.data[name] = np.ascontiguousarray(value).reshape(-1).view(np.uint8)
        return f'DATA["{name}"].view({dtype}).reshape({value.shape})'

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


_WIDTH = 100
"""The most characters of a line of code."""

_MAX_TEXT = 1024
"""The most bytes of a constant that a source with a data file holds as text."""

_LOADED = """DATA: dict[str, NDArray[Any]] = dict(np.load(Path(__file__).with_name("{}")))"""

_MODULES, _TYPING = ("ml_dtypes", "base64"), ("Any", "NDArray")


def _used(text: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if re.search(rf"\b{name}\b", text)]


def _annotation(symbol: Symbol) -> str:
    """Return the type of an input or output; an array without axes may be a NumPy scalar."""
    element = numpy_name(symbol.dtype)
    element = element if element.startswith("np.") else "Any"
    array = f"NDArray[{element}]"
    return array if symbol.rank else "Any" if element == "Any" else f"{element} | {array}"


def wrapped(line: str) -> list[str]:
    """Break a line of code that is too long within a pair of outer brackets.

    It is the last pair of which the text before it fits, else the longest; the first pair of a
    `def`. What stands between the brackets has a line, or a line for each part between commas.
    """
    code = line.lstrip()
    pairs = [] if len(line) <= _WIDTH or code.startswith(("#", '"""')) else _outer_pairs(code)
    if not pairs:
        return [line]
    indent, is_head = " " * (len(line) - len(code)), code.startswith("def ")
    fitting = [pair for pair in pairs if len(indent) + pair[0] <= _WIDTH]
    start, end, commas = pairs[0] if is_head else max(fitting[-1:] or pairs, key=_length)
    inner = [f"{indent}    {code[start:end]}"]
    if is_head and not commas:
        inner[0] += ","
    if len(inner[0]) > _WIDTH and commas:
        places = [start, *commas, end]
        parts = [code[i:j].strip(", ") for i, j in pairwise(places)]
        inner = [f"{indent}    {part}," for part in parts if part]
    within = [piece for part in inner for piece in wrapped(part)]
    first, *rest = wrapped(f"{indent}{code[start - 1]}{code[end:]}")  # a pair, for the tokenizer
    return [f"{indent}{code[:start]}", *within, first.replace(code[start - 1], "", 1), *rest]


def _outer_pairs(code: str) -> list[tuple[int, int, list[int]]]:
    """Return the text in each outer pair of brackets that are not empty: start, end, commas."""
    pairs: list[tuple[int, int, list[int]]] = []
    depth, start, commas = 0, 0, list[int]()
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        place = token.start[1]
        if token.type != tokenize.OP:
            continue
        if token.string in "([{":
            depth += 1
            start, commas = (place + 1, []) if depth == 1 else (start, commas)
        elif token.string in ")]}":
            depth -= 1
            if not depth and place > start:
                pairs.append((start, place, commas))
        elif token.string == "," and depth == 1:
            commas.append(place)
    return pairs


def _length(pair: tuple[int, int, list[int]]) -> int:
    return pair[1] - pair[0]


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
    own = [line for line in lines if line.split()[1].split(".")[0] not in ("numpy", "ml_dtypes")]
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


# -- excerpts of graphir's own source, with all definitions they refer to, so that they run alone

SOURCES = (
    "graphir.semantics.rounded_functions",
    "graphir.semantics.data_movement",
    "graphir.semantics.special_functions",
    "graphir.semantics.matrix_products",
    "graphir.semantics.sums",
    "graphir.conversions",
    "graphir.semantics.kernels",
    "graphir.runtime.targets.python_.support",
)
"""The modules of the excerpts; for a name that two modules define, the later module wins."""


class Excerpt(NamedTuple):
    """A top-level definition of a module: its place, its text, and the names it refers to."""

    place: tuple[int, int]
    text: str
    names: frozenset[str]


def excerpt(names: Iterable[str]) -> tuple[dict[str, set[str]], list[str]]:
    """Return the imports and the definitions that some names need, directly and indirectly.

    Imports are sets of names by module, with the import of a whole module under "". Definitions are
    in the order of SOURCES and of their lines.
    """
    pieces, imports = _definitions()
    excerpts: dict[str, Excerpt] = {}
    pending, imports_used = list(names), dict[str, set[str]]()
    while pending:
        name = pending.pop()
        if name in imports:
            imports_used.setdefault(imports[name][0], set()).add(imports[name][1])
        if name in pieces and name not in excerpts:
            excerpts[name] = pieces[name]
            pending += pieces[name].names
    return imports_used, [piece.text for piece in sorted({*excerpts.values()})]


@cache
def _definitions() -> tuple[dict[str, Excerpt], dict[str, tuple[str, str]]]:
    """Return all definitions by name, and the imports from other projects by name."""
    pieces: dict[str, Excerpt] = {}
    imports: dict[str, tuple[str, str]] = {}
    for position, name in enumerate(SOURCES):
        for statement, text in _portable(name):
            imports |= _imported(statement)
            if names := tuple(names_defined(statement)):
                piece = Excerpt((position, statement.lineno), text, _referred(ast.parse(text)))
                pieces |= dict.fromkeys(names, piece)
    return pieces, imports


def _portable(module: str) -> Iterator[tuple[ast.stmt, str]]:
    """Yield the top-level statements of a module, each with its text for a program by itself.

    In annotations, Any stands for names of graphir. Comments to tools are left out.
    """
    file = import_module(module).__file__
    assert file is not None  # a source module has a file
    source = Path(file).read_text(encoding="utf-8")
    statements, lines = ast.parse(source).body, source.splitlines()
    known = {*dir(builtins), *(name for each in statements for name in _imported(each))}
    for statement in statements:
        names = {(x.lineno - 1, x.col_offset): x.id for x in _annotating_names(statement)}
        for (row, column), name in sorted(names.items(), reverse=True):  # columns before it stay
            if name not in known:
                line = lines[row]
                lines[row] = f"{line[:column]}Any{line[column + len(name) :]}"
        rows = [statement.lineno, *(x.lineno for x in getattr(statement, "decorator_list", []))]
        text = "\n".join(lines[min(rows) - 1 : statement.end_lineno])
        text = re.sub(r"  # (?:noqa|pyright|type):.*", "", text)
        yield statement, _BROKEN_HEAD.sub(_rejoined, text)


_BROKEN_HEAD = re.compile(r"^( *def \w+\()\n +(.*[^,\n])\n *(\).*)$", re.M)


def _rejoined(head: re.Match[str]) -> str:
    """Return the head of a function on one line, if it fits with the shorter annotations."""
    joined = "".join(head.groups())
    return joined if len(joined) <= _WIDTH else head[0]


def _annotating_names(statement: ast.stmt) -> Iterator[ast.Name]:
    """Yield the names in the annotations of a statement, and in its calls of `typing.cast`."""
    for node in ast.walk(statement):
        annotation = getattr(node, "annotation", None) or getattr(node, "returns", None)
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "cast"
        ):
            annotation = node.args[0]
        for name in ast.walk(annotation) if annotation else ():
            if isinstance(name, ast.Name):
                yield name


def _imported(statement: ast.stmt) -> dict[str, tuple[str, str]]:
    """Return the names that an import from another project binds, each with module and name.

    For the import of a whole module, the module is "".
    """
    if isinstance(statement, ast.Import):
        return {alias.asname or alias.name: ("", ast.unparse(alias)) for alias in statement.names}
    if not isinstance(statement, ast.ImportFrom) or statement.module is None:
        return {}
    if statement.module.split(".")[0] in ("graphir", "__future__"):
        return {}
    return {alias.name: (statement.module, alias.name) for alias in statement.names}


def names_defined(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that a top-level statement of a module defines."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        yield statement.name
    elif isinstance(statement, ast.Assign):
        for node in ast.walk(statement.targets[0]):
            if isinstance(node, ast.Name):
                yield node.id


def _referred(statement: ast.AST) -> frozenset[str]:
    """Return the free names of a definition: names it reads at run time and does not assign."""
    loads, own = set[str](), set[str]()
    for node in ast.walk(statement):
        if isinstance(node, ast.arg):
            own.add(node.arg)
        elif isinstance(node, ast.Name):
            (loads if isinstance(node.ctx, ast.Load) else own).add(node.id)
    return frozenset(loads - own)


def defined() -> frozenset[str]:
    """Return all names that definitions and imports of excerpts may bind."""
    pieces, imports = _definitions()
    return frozenset({*pieces, *imports})
