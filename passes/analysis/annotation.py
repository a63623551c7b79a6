"""The types that the expressions and variables of a program had, by the places of its source.

Each symbol of a graph names the expression that made it. A walk over the syntax tree carries its
type on to what no symbol names: from an operator to its operands, and from an assignment to what
reads the variable. A variable whose value no symbol names has the types with which operators read
it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from graphir.import_names import own_folders
from graphir.ir.inlining import Junction, inlined
from graphir.location import INTERMEDIATE
from graphir.ops.types import NoTensorType, OpaqueType, TupleType
from graphir.passes.analysis.casts import CastReport, CastRow
from graphir.passes.analysis.expressions import operand_nodes
from graphir.public import Graph, Location, Op, Symbol, TensorType, ops
from graphir.source_text import displayed_path, is_cell, source_line, source_tree

Span: TypeAlias = tuple[int, int, int, int]
"""The line and column of the start, then those of the end: from 1, the end is exclusive."""

Types: TypeAlias = dict[TensorType, None]
"""The types that an expression had, in the order of the run: several in a loop."""

AnnotationKind: TypeAlias = Literal["expression", "variable", "parameter"]

UNKNOWN = OpaqueType("unknown")
"""The type of a part of a tuple of which no symbol is known."""


@dataclass(eq=False, slots=True)
class Annotation:
    """The types of an expression, or of the variable or parameter `name`, and its casts.

    `casts` has a row for each conversion of the value, and how often the run made it. `is_read` is
    whether the types of a variable are those with which operators read it.
    """

    span: Span
    kind: AnnotationKind = "expression"
    name: str = ""
    types: Types = field(default_factory=dict[TensorType, None])
    casts: list[tuple[CastRow, int]] = field(default_factory=list["tuple[CastRow, int]"])
    is_read: bool = False

    @property
    def dtypes(self) -> set[str]:
        """The names of the dtypes."""
        parts = (part for type_ in self.types for part in type_.parts)
        return {str(part.dtype) for part in parts if part is not UNKNOWN}


class AnnotatedFile:
    """The annotations of a source file.

    `values` has for a line the variables that a statement assigns there, or the statement's value.
    `marked` are expressions whose dtypes are not those of the expression around them. `lines` are
    the lines of both, with the heads of their functions. Without a readable source these are empty.
    `runs` has how often an expression ran.
    """

    def __init__(self, location: Location) -> None:
        self.file, self.source = location.file, location.source
        self.annotations: dict[tuple[Span, bool], Annotation] = {}
        self.values: dict[int, list[Annotation]] = {}
        self.marked: set[Annotation] = set()
        self.lines: set[int] = set()
        self.runs: dict[Span, int] = {}

    def at(self, span: Span, kind: AnnotationKind = "expression", name: str = "") -> Annotation:
        """Return the annotation of an expression, or of a name; a new one without types if none."""
        return self.annotations.setdefault((span, bool(name)), Annotation(span, kind, name))


def annotated_files(report: CastReport) -> list[AnnotatedFile]:
    """Return the annotated files of a report's program, in the order of the run."""
    files: dict[str, AnnotatedFile] = {}
    found: dict[AnnotatedFile, dict[Span, dict[object, _Evaluation]]] = {}
    for location, evaluation in _evaluations(report):
        file = files.setdefault(location.file, AnnotatedFile(location))
        own = found.setdefault(file, {}).setdefault(location.place[1:], {})
        own.setdefault(evaluation.key, evaluation).count += 1
    walks: list[_Walk] = []
    for file, by_key in [*found.items()]:
        evaluations = {span: [*own.values()] for span, own in by_key.items()}
        if _is_asking(file.source, evaluations):
            del found[file]
            continue
        for span, own in evaluations.items():  # a constant may be that of an operand
            evaluations[span] = [x for x in own if not x.has_only(ops.constant)] or own
        if (tree := source_tree(file.source)) is not None:
            walks.append(_Walk(file, tree, evaluations, report.graph))
            continue
        for span, own in evaluations.items():
            file.at(span).types.update((x.type, None) for x in own if not x.has_only(ops.input))
    for number in range(_PASSES):
        for walk in walks:
            walk.learns = number > 0
            walk.visit(walk.tree, {})
    for walk in walks:
        walk.choose()
    return [file for file in found if any(x.types for x in file.annotations.values())]


_PASSES = 4
"""The number of walks over a file: a later one has what a loop carries back."""


def _is_asking(source: str, evaluations: dict[Span, list[_Evaluation]]) -> bool:
    """Whether a file is that of a command which asks for the graph, and has its inputs alone."""
    is_program = source.endswith(".py") or is_cell(displayed_path(source))
    is_command = source.startswith(own_folders()) or not is_program
    return is_command and all(x.has_only(ops.input) for own in evaluations.values() for x in own)


# -- the symbols of an expression


@dataclass(eq=False, slots=True)
class _Evaluation:
    """An evaluation of an expression: the symbols at its place, and those of them that it gives.

    It stands for `count` evaluations with equal ops and types.
    """

    steps: list[Symbol]
    results: list[Symbol]
    graph: Graph
    count: int = 0

    @property
    def key(self) -> object:
        """The ops and types of the steps and their operands."""
        steps = (y for x in self.steps for y in (x, *x.args))
        return len(self.results), *((x.op, x.type) for x in steps)

    @property
    def type(self) -> TensorType:
        """The type of the value."""
        types = [self.type_of(x) for x in self.results]
        return types[0] if len(types) == 1 else TupleType(types)

    def type_of(self, symbol: Symbol) -> TensorType:
        """Return the type of a symbol, in a dtype that arrays have."""
        return symbol.type.with_dtypes(self.graph.concrete_dtype)

    @property
    def is_direct(self) -> bool:
        """Whether one op computes the result of the operands, or of views of them."""
        kinds = [x.op.kind for x in self.steps if x.op.kind not in ("movement", "creation", "cast")]
        return not self.steps[-1].location.compound and len(kinds) == len(self.results)

    def has_only(self, op: Op) -> bool:
        """Whether all results are of an op."""
        return all(x.op is op for x in self.results)


def _evaluations(report: CastReport) -> Iterator[tuple[Location, _Evaluation]]:
    """Yield the evaluations of the expressions of a program, in the order of its graph.

    One evaluation is the consecutive symbols at one place, with casts and values of no place among
    them. It gives what no other symbol of it uses; a call of Python code that was not recorded line
    by line gives the one symbol that symbols of other places use.
    """
    view = inlined(report.graph)
    evaluations: list[list[Symbol]] = []
    numbers: list[int | None] = [None] * len(view.symbols)
    for symbol in filter(_is_placed, view.symbols):
        if not evaluations or evaluations[-1][-1].location.place != symbol.location.place:
            evaluations.append([])
        evaluations[-1].append(symbol)
        numbers[symbol.index] = len(evaluations) - 1
    users: list[set[int]] = [set() for _ in view.symbols]  # evaluations; -1 for an output
    for output in view.outputs:
        users[output.index].add(-1)
    for symbol in reversed(view.symbols):
        number = numbers[symbol.index]
        if number is not None and symbol.op in _VIEWS and users[symbol.index] == {-1}:
            first = evaluations[number][0]
            if first.op is not symbol.op:  # a view of the result, which is made after the last step
                number = numbers[symbol.index] = None
        for arg in symbol.args:
            users[arg.index] |= users[symbol.index] if number is None else {number}
    for number, steps in enumerate(evaluations):
        steps = [x for x in steps if numbers[x.index] is not None]
        location, results = steps[-1].location, [x for x in steps if number not in users[x.index]]
        if location.compound and not any(isinstance(x.op, Junction) for x in results):
            results = [x for x in steps if users[x.index] - {number}]
            results = results if len(results) == 1 else []
        results = [x for x in results if not (_is_number(x) or isinstance(x.type, NoTensorType))]
        if results:
            yield location, _Evaluation(steps, results, report.graph)


_VIEWS = frozenset((ops.slice, ops.affine_view, ops.reshape, ops.transpose, ops.permute, ops.flip))
"""The ops of views, which have the place at which the program first needs their values."""


def _is_placed(symbol: Symbol) -> bool:
    """Whether a symbol is a step of the expression at its location."""
    op, origins, place = symbol.op, symbol.origins, symbol.location.place
    if (type(op) is Junction and (op.enters or op.gathers)) or place[1:3] >= place[3:]:
        return False
    return not origins or origins[0].operand in ("result", INTERMEDIATE)


def _is_number(symbol: Symbol) -> bool:
    """Whether a symbol is a Python number."""
    is_constant = symbol.op is ops.constant
    return is_constant and bool(
        symbol.attrs["literal"] is not None or symbol.weak or symbol.origins
    )


# -- the walk over the source

_Definitions: TypeAlias = dict[str, tuple[Annotation, ...]]
"""The assignments of which a variable may have its value, by its name."""

_ASKING = frozenset(("record", "audit", "trace", "from_jax", "from_torch", "main"))
"""Functions that make a graph of another function, by the names of calls."""

_Operator: TypeAlias = ast.BinOp | ast.UnaryOp | ast.Compare | ast.AugAssign
_Scope: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef


class _Walk:
    """The walk over a file: it sets the types of the file's annotations."""

    def __init__(
        self,
        file: AnnotatedFile,
        tree: ast.Module,
        evaluations: dict[Span, list[_Evaluation]],
        graph: Graph,
    ) -> None:
        self.file, self.tree, self.evaluations = file, tree, evaluations
        self.learns = False
        """Whether variables get the types with which operators read them."""
        self._entry = graph.name.rpartition(".")[2]
        """The name of the function, or of the class, whose parameters are the graph's inputs."""
        pairs = zip(graph.input_names, graph.inputs, strict=True)
        self._inputs = {name: {x.type: None} for name, x in pairs}
        self._path: tuple[str, ...] = ()
        self._back: dict[ast.AST, _Definitions] = {}

    def span(self, first: Any, last: Any = None) -> Span:
        """Return the span from the start of a node to its end, or to that of another one."""
        last = last or first
        start, end = (first.lineno, first.col_offset), (last.end_lineno, last.end_col_offset)
        return start[0], self._column(*start), end[0], self._column(*end)

    def _column(self, line: int, size: int) -> int:
        """Return the column after `size` bytes of a line."""
        text = source_line(self.file.source, line)
        return 1 + (size if text.isascii() else len(text.encode()[:size].decode(errors="replace")))

    def visit(self, node: ast.AST, variables: _Definitions) -> Types:
        """Walk over a node; return the types of an expression."""
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda() | ast.ClassDef():
                self._visit_scope(node, variables)
            case ast.Assign() | ast.AnnAssign(value=ast.expr()) | ast.NamedExpr():
                return self._assign(node, variables)
            case ast.AugAssign():
                types = self.visit(node.value, variables)
                types = self._evaluate(node, node, variables) or types
                self._bind(node.target, types, variables)
            case ast.Return(value=ast.expr() as value):
                self.file.at(self.span(value)).types = self.visit(value, variables)
            case ast.expr():
                return self._visit_expression(node, variables)
            case ast.stmt() if hasattr(node, "body") or hasattr(node, "cases"):
                self._visit_blocks(node, variables)
            case _:
                self._visit_all(ast.iter_child_nodes(node), variables)
                target = getattr(node, "target", None) or getattr(node, "optional_vars", None)
                if target is not None:
                    self._bind(target, {}, variables)
        return {}

    def _visit_expression(self, node: ast.expr, variables: _Definitions) -> Types:
        match node:
            case ast.Name(id=name):
                return {x: None for one in variables.get(name, ()) for x in one.types}
            case ast.IfExp():
                self.visit(node.test, variables)
                return self.visit(node.body, variables) | self.visit(node.orelse, variables)
            case ast.Tuple(elts=elements):
                values = [[*self.visit(x, variables)] or [UNKNOWN] for x in elements]
                values = [[UNKNOWN] if len(x[0].parts) > 1 else x for x in values]
                count = max(map(len, values), default=0)
                if any(x != [UNKNOWN] for x in values) and {*map(len, values)} <= {1, count}:
                    rows = ([x[i % len(x)] for x in values] for i in range(count))
                    return dict.fromkeys(map(TupleType, rows))
                return {}
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
                self._visit_all([*ast.iter_child_nodes(node)][::-1], dict(variables))
            case _:
                self._visit_all(ast.iter_child_nodes(node), variables)
        return self._evaluate(node, ast.Expr(node), variables)

    def _visit_all(self, nodes: Any, variables: _Definitions) -> None:
        for node in nodes:
            with suppress(RecursionError):  # what is nested too deeply stays without types
                self.visit(node, variables)

    def _visit_scope(self, node: _Scope, variables: _Definitions) -> None:
        """Walk over a function or a class."""
        outer = self._path
        self._path = (*outer, getattr(node, "name", ""))
        is_entry = self._path[-1] == self._entry or self._path[-2:] == (self._entry, "forward")
        inner = dict(variables) if isinstance(node, ast.Lambda) else {}
        if not isinstance(node, ast.ClassDef):
            parameters = (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
            for parameter in parameters:
                own = self._inputs.get(parameter.arg, {}) if is_entry else {}
                self._bind(parameter, own, inner)
        self._visit_all(node.body if isinstance(node.body, list) else [node.body], inner)
        self._path = outer

    def _visit_blocks(self, node: Any, variables: _Definitions) -> None:
        """Walk over a statement with blocks: what ran in a block replaces what was before it."""
        for name, definitions in self._back.get(node, {}).items():
            variables[name] = tuple(dict.fromkeys((*variables.get(name, ()), *definitions)))
        blocks = [getattr(node, name, []) for name in ("body", "orelse", "finalbody")]
        blocks += [x.body for name in ("handlers", "cases") for x in getattr(node, name, [])]
        heads = (x for x in ast.iter_child_nodes(node) if isinstance(x, (ast.expr, ast.withitem)))
        self._visit_all(heads, variables)
        if hasattr(node, "target"):
            self._bind(node.target, {}, variables)
        changed: dict[str, dict[Annotation, None]] = {}
        for block in filter(None, blocks):
            end = dict(variables)
            self._visit_all(block, end)
            if not isinstance(block[-1], (ast.Return, ast.Raise)):
                for name in (x for x in end if end[x] != variables.get(x)):
                    changed.setdefault(name, {}).update(dict.fromkeys(end[name]))
        for name, definitions in changed.items():
            is_sure = any(x.types for x in definitions)
            is_sure = is_sure and not (isinstance(node, ast.If) and not node.orelse)
            old = () if is_sure else variables.get(name, ())
            variables[name] = tuple(dict.fromkeys((*old, *definitions)))
        if isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            self._back[node] = dict(variables)

    def _assign(
        self, node: ast.Assign | ast.AnnAssign | ast.NamedExpr, variables: _Definitions
    ) -> Types:
        types = self.visit(node.value, variables) if node.value else {}
        for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
            array = target
            while isinstance(array, ast.Subscript):
                array = array.value
            spans = self.span(target, node), self.span(target)
            own = next((self.evaluations[x] for x in spans if x in self.evaluations), None)
            if array is target:
                self._bind(target, types, variables)
            elif own is not None:
                written = self.file.at(self.span(target), "variable", ast.unparse(array))
                written.types.update((x.type, None) for x in own)
        return types

    def _bind(self, target: ast.AST, types: Types, variables: _Definitions) -> None:
        """Assign a value of some types to a target, or to a parameter."""
        match target:
            case ast.Name(id=name) | ast.arg(arg=name):
                line, column, *_ = self.span(target)
                span = line, column, line, column + len(name)
                kind = "variable" if isinstance(target, ast.Name) else "parameter"
                annotation = self.file.at(span, kind, name)
                annotation.types = types or annotation.types
                variables[name] = (annotation,)
            case ast.Attribute():
                name = ast.unparse(target)
                self.file.at(self.span(target), "variable", name).types = types
            case ast.Tuple(elts=elements) | ast.List(elts=elements):
                rows = [x.parts for x in types if len(x.parts) == len(elements) > 1]
                for place, element in enumerate(elements):
                    parts = dict.fromkeys(row[place] for row in rows if row[place] is not UNKNOWN)
                    self._bind(element, parts, variables)
            case ast.Starred(value=inner):
                self._bind(inner, {}, variables)
            case _:
                pass

    def _evaluate(self, node: ast.AST, root: ast.stmt, variables: _Definitions) -> Types:
        """Set the types of an expression, and of its operands, by its evaluations."""
        span = self.span(node)
        annotation, evaluations = self.file.at(span), self.evaluations.get(span, [])
        name = getattr(getattr(node, "func", None), "attr", None) or _name(node)
        if name in _ASKING and all(x.has_only(ops.input) for x in evaluations):
            return annotation.types
        nodes = [operand for operand, _ in operand_nodes(root)]
        is_operator = isinstance(node, _Operator)
        is_call = isinstance(node, ast.Call) and not node.keywords
        self.file.runs[span] = 0
        for evaluation in evaluations:
            results = evaluation.results
            if isinstance(node, ast.AugAssign):  # not the array of which the target is a view
                results = [x for x in evaluation.steps if x.op.kind != "movement"] or results
            last = results[-1].op
            if is_operator:  # equal steps are evaluations in a row
                results = [x for x in evaluation.steps if x.op is last]
            is_row = type(last) is not Junction and all(x.op is last for x in results)
            types = map(evaluation.type_of, results) if is_row else [evaluation.type]
            annotation.types.update(dict.fromkeys(types))
            self.file.runs[span] += evaluation.count * (len(results) if is_row else 1)
            for result in results if is_operator or (is_call and evaluation.is_direct) else ():
                result = result.args[0] if result.origins and result.args else result
                dtypes = {x.dtype for x in result.args if not _is_number(x)}
                is_turned = isinstance(node, ast.Compare) and len(dtypes) > 1  # `y > x` of `x < y`
                if len(nodes) == len(result.args) and not is_turned:
                    for operand, arg in zip(nodes, result.args, strict=True):
                        self._learn(operand, arg, evaluation, variables)
        return annotation.types

    def _learn(
        self, node: ast.expr, arg: Symbol, evaluation: _Evaluation, variables: _Definitions
    ) -> None:
        """Give an operand, or the variable that it reads, the type that an operator read."""
        while arg.op is ops.cast and arg.origins and not _is_placed(arg):
            (arg,) = arg.args
        is_here = arg.op is ops.constant and any(x is arg for x in evaluation.steps)
        if is_here or _is_number(arg) or isinstance(arg.type, NoTensorType):
            return  # a constant that an operator makes was a Python number
        if not isinstance(node, ast.Name):
            if self.span(node) not in self.evaluations:
                self.file.at(self.span(node)).types[evaluation.type_of(arg)] = None
        elif self.learns and len(definitions := variables.get(node.id, ())) == 1:
            (definition,) = definitions
            definition.is_read = definition.is_read or not definition.types
            if definition.is_read:
                definition.types[evaluation.type_of(arg)] = None

    # -- what the lines show

    def choose(self) -> None:
        """Set what the lines of the file show."""
        nodes = [x for x in ast.walk(self.tree) if isinstance(x, ast.stmt)]
        for node in nodes:
            self._choose_of(node)
        lines = sorted(self.file.lines)
        for node in nodes:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and any(
                node.lineno <= line <= (node.end_lineno or 0) for line in lines
            ):
                self.file.lines.update(range(node.lineno, node.body[0].lineno))

    def _choose_of(self, node: ast.stmt) -> None:
        """Choose the names that a statement assigns, else its value; and what differs inside."""
        kinds = ast.expr, ast.withitem, ast.arguments
        heads = [child for child in ast.iter_child_nodes(node) if isinstance(child, kinds)]
        own: list[Annotation] = []
        if isinstance(node, (ast.Return, ast.Expr, ast.If, ast.While, ast.Assert)):
            own += [x for x in map(self._known, heads) if x]
        for part in (x for head in heads for x in ast.walk(head)):
            if isinstance(part, ast.arg) or isinstance(getattr(part, "ctx", None), ast.Store):
                own += [x] if (x := self._known(part, True)) else []
        if isinstance(node, ast.AugAssign) and not own and (x := self._known(node)):
            own.append(x)
        around = set[str]().union(*(x.dtypes for x in own)) if own else None
        count = len(self.file.marked)
        for head in heads:
            with suppress(RecursionError):
                self._mark(head, around)
        for annotation in own:
            self.file.values.setdefault(annotation.span[0], []).append(annotation)
        if own or len(self.file.marked) > count:
            ends = [x.end_lineno or 0 for x in heads if isinstance(x, ast.expr)] or [node.lineno]
            self.file.lines.update(range(node.lineno, max(ends) + 1))

    def _known(self, node: ast.AST, is_name: bool = False) -> Annotation | None:
        span = self.span(node)
        if isinstance(node, ast.arg):
            span = (*span[:2], span[0], span[1] + len(node.arg))
        annotation = self.file.annotations.get((span, is_name))
        return annotation if annotation and annotation.types else None

    def _mark(self, node: ast.AST, around: set[str] | None) -> None:
        if isinstance(node, ast.expr) and not isinstance(node, (ast.Name, ast.Constant)):
            annotation = self._known(node)
            if annotation is not None:
                computes = isinstance(node, (ast.BinOp, ast.UnaryOp, ast.Compare, ast.Call))
                if around is None or (computes and not annotation.dtypes <= around):
                    self.file.marked.add(annotation)
                around = annotation.dtypes
        for child in ast.iter_child_nodes(node):
            self._mark(child, around)


def _name(node: ast.AST) -> str:
    """Return the name that an expression reads, or that a call calls; "" without one."""
    node = node.func if isinstance(node, ast.Call) else node
    return node.id if isinstance(node, ast.Name) else ""
