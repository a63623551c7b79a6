"""Straight-line code: the steps of a small plan as one generated Python function."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from graphir.public import DType, ops
from graphir.runtime.program.codegen.assembly import FunctionWriter
from graphir.runtime.program.codegen.scalars import Statements, inline_iteration
from graphir.runtime.program.codegen.tracing import Storage
from graphir.runtime.program.control import ControlStep
from graphir.runtime.program.cost_model import COST
from graphir.runtime.program.memory import Need, ScratchView, Store
from graphir.runtime.program.region_steps import RegionStep, contiguous_slots
from graphir.runtime.program.rows import caller
from graphir.runtime.program.steps import CallStep, LayoutStep, PlanRun, PlanStep, ScalarStep, Step
from graphir.semantics.evaluation import contiguous


def fits(steps: Sequence[Step]) -> bool:
    """Whether steps are few and small enough for one function: each is a single block."""
    return len(steps) <= COST.STRAIGHT_STEPS and all(step.blocks == 1 for step in steps)


class Straight:
    """Some steps as a generated `function(workspace, *inputs)`, which returns a tuple of results.

    `reads` are the cells of the inputs, `writes` the cells of the results. With `types`, a dtype
    and shape for each input, the function returns None unless each input is a plain array of its
    dtype and shape. `entries` are the steps that run as machine code: the function calls
    `entry(*values)` with the values of the cells that the step alone reads. `empty` makes the
    memory of results. The function takes and returns the cells in `scalars`, which are 0-d, as
    NumPy scalars. `statements` are those of the function without guards.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        reads: Sequence[int],
        writes: Sequence[int],
        constants: Mapping[int, Any] | None = None,
        types: Sequence[tuple[Storage, tuple[int, ...]]] | None = None,
        entries: Mapping[Step, Callable[..., Any]] | None = None,
        empty: Callable[..., Any] = np.empty,
        scalars: Collection[int] = (),
    ) -> None:
        self.reads, self.writes, self.blocks = reads, writes, len(steps)
        self._empty = empty
        self._views: list[ScratchView] = []
        self._scalars = {cell: f"n{cell}" for cell in reads if cell in scalars}
        self._boxed: set[int] = set()
        self._new: set[str] = set()
        self._shapes: dict[int, tuple[int, ...]] = {}
        self._parts: dict[int, Sequence[str]] = {}
        self._names: dict[int, str] = {}
        for step in steps:
            for source, target in _written_in_place(step):
                self._names[target] = self._cell(source)
        inputs = [self._scalars.get(cell) or self._cell(cell) for cell in reads]
        writer = FunctionWriter()
        for cell, array in (constants or {}).items():
            writer.lines.append(f"{self._cell(cell)} = {writer.name(array)}")
        self._steps(steps, entries or {}, set(self._cells(writes)), writer)
        self._arrays([cell for cell in writes if cell not in scalars], writer)
        results = [self._scalar(cell) if cell in scalars else self._cell(cell) for cell in writes]
        writer.lines[:0] = self._scratch(writer)
        self.statements = Statements(inputs, [*writer.lines], results, writer.scope)
        # Nothing reads an update of an input whose slices lie in rows that it leaves.
        writer.lines.append(f"return ({', '.join(results)}{',' * bool(results)})")
        if types is not None:
            writer.lines[:0] = self._tests(types, writer)
        self.function: Callable[..., tuple[Any, ...] | None] = writer.function(
            ["workspace", *[f"{name}=None" for name in inputs], "*more"]
        )

    def _cell(self, cell: int) -> str:
        """Return the variable of a cell; an array and its updates in place share a variable."""
        return self._names.get(cell) or f"v{cell}"

    def _scalar(self, cell: int) -> str:
        """Return the expression of a 0-d cell as a NumPy scalar."""
        return self._scalars.get(cell) or f"{self._cell(cell)}[()]"

    def _cells(self, cells: Sequence[int]) -> list[str]:
        return list(map(self._cell, cells))

    def _steps(
        self,
        steps: Sequence[Step],
        entries: Mapping[Step, Callable[..., Any]],
        results: Collection[str],
        writer: FunctionWriter,
    ) -> None:
        """Write steps, and free each large value but `results` after its last use."""
        last = {name: step for step in steps for name in self._cells(step.reads)}
        large: set[str] = set()
        for step in steps:
            self._step(step, entries.get(step), writer)
            reads = large.intersection(self._cells(step.reads))
            dead = [name for name in reads if last[name] is step]
            if dead:
                large.difference_update(dead)
                writer.lines.append(f"{' = '.join(dead)} = None")
            if math.prod(step.shape) >= COST.FREED:
                large.update(set(self._cells(ends(step)[1])).difference(results))

    def _step(self, step: Step, entry: Callable[..., Any] | None, writer: FunctionWriter) -> None:
        """Write one step; `entry` is its machine code."""
        if entry:
            self._arrays(step.reads, writer)
            self._entry(step, entry, writer)
        elif isinstance(step, ScalarStep):
            self._scalar_region(step, writer)
        elif isinstance(step, RegionStep):
            self._arrays(step.reads, writer)
            self._region(step, writer)
        elif isinstance(step, LayoutStep):
            names = [self._cell(step.reads[0]), *map(writer.name, step.values)]
            writer.lines.append(f"{self._cell(step.write)} = {step.text.format(*names)}")
        elif isinstance(step, CallStep):
            self._call(step, writer)

    def _tests(
        self, types: Sequence[tuple[Storage, tuple[int, ...]]], writer: FunctionWriter
    ) -> Iterator[str]:
        """Yield the guards of the function: statements that check the inputs."""
        yield "if more: return None"
        for cell, (dtype, shape) in zip(self.reads, types, strict=True):
            name = self._cell(cell)
            other = f"{name}.shape != {writer.name(shape)}" if shape else f"{name}.shape"
            yield (
                f"if {writer.name(type)}({name}) is not {writer.name(np.ndarray)} "
                f"or {name}.dtype is not {writer.name(dtype)} or {other}: return None"
            )

    def _scratch(self, writer: FunctionWriter) -> Iterator[str]:
        """Yield the statement that takes the scratch memory of the workspace, if steps need any."""
        if self._views:
            names = ", ".join([f"s{k}" for k in range(len(self._views))])
            yield f"{names}, = workspace.views({writer.name(Need(self._views))})"

    def run(self, run: PlanRun) -> None:
        """Run the function as one step of a plan."""
        outputs = self.function(run.workspace, *[run.values[cell] for cell in self.reads])
        assert outputs is not None
        for cell, value in zip(self.writes, outputs, strict=True):
            run.values[cell] = value

    def _scalar_region(self, step: ScalarStep, writer: FunctionWriter) -> None:
        """Write a region of 0-d values; its results stay scalars until a step needs arrays."""
        names = [self._scalar(cell) for cell in step.reads]
        registers = step.scalars.write(writer, names)
        self._scalars |= dict(zip(step.results, registers, strict=True))

    def _arrays(self, cells: Sequence[int], writer: FunctionWriter) -> None:
        """Write arrays, of one element, of the cells whose values are scalars so far."""
        for cell in cells:
            if cell in self._scalars and cell not in self._boxed:
                self._boxed.add(cell)
                text = f"{writer.name(np.asarray)}({self._scalars[cell]})"
                if shape := self._shapes.get(cell):
                    text = f"{text}.reshape({writer.name(shape)})"
                writer.lines.append(f"{self._cell(cell)} = {text}")

    def _call(self, step: CallStep, writer: FunctionWriter) -> None:
        """Write a call: items, slices, reshapes and updates of slices as Python expressions."""
        symbol, target, line = step.symbol, self._cell(step.write), writer.lines.append
        if self._of_elements(step, writer):
            return
        if symbol.op is ops.item and step.fits:
            self._arrays(step.reads, writer)
            name = f"n{step.write}"
            line(f"{name} = {self._cell(step.reads[0])}[{_places(step.settings['index'])}]")
            self._scalars[step.write] = name
            return
        scalar = self._scalars.get(step.reads[-1]) if step.reads else None
        if symbol.op is ops.slice_update and step.fits:
            x, updates = step.reads
            self._arrays([x] if scalar else step.reads, writer)
            if not step.in_place:
                line(f"{target} = {self._copy(step, writer)}")
            line(f"{target}[{_key(step, writer, scalar)}] = {scalar or self._cell(updates)}")
            return
        self._arrays(step.reads, writer)
        if symbol.op is ops.slice and step.fits:
            line(f"{target} = {self._cell(step.reads[0])}[{_key(step, writer)}]")
        elif step.multiplies and symbol.attrs["layout"] is None:
            names = list(dict.fromkeys(self._cells(step.reads)))
            for name in names:
                self._contiguous(name, writer)
            operands = ", ".join(self._cells(step.reads))
            line(f"{target} = {writer.name(np.asarray)}({writer.name(np.matmul)}({operands}))")
            self._new.add(target)
        elif symbol.op is ops.matmul and (strides := _strides(step)):
            names, (function, *layouts) = self._cells(step.reads), strides
            both = zip(names, layouts, strict=True)
            tests = [
                f"{name}.strides == {writer.name(steps)} and {name}.flags.aligned"
                for name, steps in both
            ]
            product = f"{writer.name(np.asarray)}({writer.name(function)}({', '.join(names)}))"
            line(f"if {' and '.join(tests)}: {target} = {product}")
            line(f"else: {target} = {writer.name(step.call)}({', '.join(names)})")
        elif symbol.op is ops.control.part:
            line(f"{target} = {self._cell(step.reads[0])}[{symbol.attrs['index']}]")
        elif symbol.op is ops.reshape:
            line(f"{target} = {self._cell(step.reads[0])}.reshape({writer.name(step.shape)})")
        else:
            line(f"{target} = {writer.name(step.call)}({', '.join(self._cells(step.reads))})")

    def _of_elements(self, step: CallStep, writer: FunctionWriter) -> bool:
        """Write a call on single elements as an expression of scalars, if it is one."""
        op, single = step.symbol.op, math.prod(step.shape) == 1
        if op is ops.reshape and single and step.reads[0] in self._scalars:
            self._take(step, self._scalars[step.reads[0]])
        elif op is ops.control.part and step.reads[0] in self._parts:
            index: int = step.symbol.attrs["index"]
            self._take(step, self._parts[step.reads[0]][index])
        elif isinstance(step, ControlStep) and (graphs := self._inlined(step)):
            write = self._cond if op is ops.control.cond else self._while
            write(step, graphs, writer)
        elif _is_element(step) and self._scalars.keys() >= set(step.reads[1:]):
            self._element(step, writer)
        else:
            return False
        return True

    def _take(self, step: CallStep, name: str) -> None:
        """Let the value of a step, of one element, be a scalar."""
        self._scalars[step.write], self._shapes[step.write] = name, step.shape

    def _inlined(self, step: ControlStep) -> list[Statements] | None:
        """Return the graphs of an op of control flow whose tuple no other function reads."""
        return None if step.write in self.writes else step.inlined

    def _operands(self, step: CallStep) -> list[str]:
        """Return the operands of a step, 0-d ones as scalars."""
        both = zip(step.reads, step.symbol.args, strict=True)
        return [self._cell(cell) if arg.rank else self._scalar(cell) for cell, arg in both]

    def _while(
        self, step: ControlStep, graphs: Sequence[Statements], writer: FunctionWriter
    ) -> None:
        """Write a `while_loop` over scalars as a `while`, with the statements of its graphs."""
        condition, body = graphs
        body, count = body.renamed(f"k{step.write}b0", {}), len(step.symbol.type.parts)
        both = zip(body.inputs, self._operands(step), strict=True)
        writer.lines += [f"{a} = {b}" for a, b in both]
        carries = body.inputs[:count]
        values = "".join([f"{name}, " for name in carries])
        prefix = f"k{step.write}b1"
        iteration = inline_iteration(condition, body, prefix, values, "break", writer)
        writer.lines += ["while True:", *iteration]
        self._parts[step.write] = carries

    def _cond(
        self, step: ControlStep, branches: Sequence[Statements], writer: FunctionWriter
    ) -> None:
        """Write a `cond` of scalars as an `if`, with the statements of its branches."""
        choice, *names = self._operands(step)
        results = [f"k{step.write}r{k}" for k in range(len(step.symbol.type.parts))]
        last = len(branches) - 1
        tests = [f"{choice} == {k}" for k in range(last)]
        if step.symbol.args[0].dtype is DType.bool:
            tests[0] = f"not {choice}"
        elif tests:
            tests[0] = f"{choice} <= 0"
        for k, branch in enumerate(branches):
            branch = branch.renamed(f"k{step.write}b{k}", {})
            writer.scope |= branch.scope
            head = f"{'elif' if k else 'if'} {tests[k]}:" if k < last else "else:"
            writer.lines.append(head if last else "if True:")
            lines = [f"{a} = {b}" for a, b in zip(branch.inputs, names, strict=True)]
            lines += branch.lines
            lines += [f"{a} = {b}" for a, b in zip(results, branch.results, strict=True)]
            writer.lines += [f"    {line}" for line in lines or ["pass"]]
        self._parts[step.write] = results

    def _element(self, step: CallStep, writer: FunctionWriter) -> None:
        """Write a gather or an update of one element of a vector, whose kernel raises errors."""
        array, *scalars = step.reads
        self._arrays([array], writer)
        name, place = self._cell(array), self._scalars[scalars[-1]]
        if step.symbol.op is ops.gather:
            target = f"n{step.write}"
            line = f"{target} = {name}[{place}]"
            self._take(step, target)
        else:
            copy = "" if step.in_place else ".copy()"
            target = self._cell(step.write)
            writer.lines.append(f"{target} = {name}{copy}")
            line = f"{target}[{place}] = {self._scalars[scalars[0]]}"
        operands = [
            f"{writer.name(np.asarray)}({self._scalars[cell]}).reshape({writer.name(shape)})"
            for cell, shape in zip(scalars, step.operand_shapes[1:], strict=True)
        ]
        call = f"{writer.name(step.call)}({', '.join([name, *operands])})"
        writer.lines += ["try:", f"    {line}", "except IndexError:", f"    {call}"]

    def _copy(self, step: CallStep, writer: FunctionWriter) -> str:
        """Return the expression of the array into which an update writes."""
        array, empty = self._cell(step.reads[0]), self._empty_of(step, step.symbol.dtype.storage)
        if step.copied_rows is None and empty is np.empty and step.box.is_minor(step.shape):
            return f"{array}.copy()"
        copy = partial(step.box.copy_around, copied_rows=step.copied_rows, empty=empty)
        return f"{writer.name(copy)}({array})"

    def _entry(self, step: Step, entry: Callable[..., Any], writer: FunctionWriter) -> None:
        """Write a step as a call of machine code, with a fallback to its Python function.

        The machine code returns None for arrays that are not plain.
        """
        function, stores = alone(step, self._empty), _stores(step)
        lines, (reads, results) = writer.lines, machine_ends(step)
        names = self._cells(reads)
        scratch = [f"s{len(self._views) + slot}" for slot in range(len(stores))]
        if isinstance(step, RegionStep):
            dtypes = dict(step.writes)
            views = [
                ScratchView(slot, dtypes[cell], step.shape) for slot, cell in enumerate(stores)
            ]
            self._views += views
            names[len(step.operands) :] = scratch
        lines.append(f"r = {writer.name(entry)}({', '.join(names)})")
        lines.append("if r is None:")
        other = (
            f"{writer.name(function.function)}(workspace, {', '.join(self._cells(function.reads))})"
        )
        lines.append(f"    {', '.join(self._cells(function.writes))}, = {other}")
        lines.append("else:")
        if results:
            lines.append(f"    {', '.join(self._cells(results))}{',' * (len(results) > 1)} = r")
        for name, store in zip(scratch, stores.values(), strict=True):
            lines += [f"    {text}" for text in self._store(store, writer)]
            key = writer.name(store.box.key_in(step.shape))
            lines.append(f"    {self._cell(store.target)}[{key}] = {name}")

    def _region(self, step: RegionStep, writer: FunctionWriter) -> None:
        body = step.body
        names = [""] * len(body.slots)
        for at, (k, _, _) in enumerate(step.scratch):
            names[k] = f"s{len(self._views) + at}"
        self._views += step.views(step.shape)
        strict = contiguous_slots(step)
        for k, cell, dtype in step.ins:
            names[k] = self._cell(cell)
            if k in strict:
                self._contiguous(names[k], writer)
            if k in step.entering:
                enter = writer.name(step.entering[k])
                writer.lines.append(f"i{k} = {enter}({names[k]})")
                names[k] = f"i{k}"
            if dtype != body.inputs[body.slots[k].number].dtype.storage:
                writer.lines.append(f"i{k} = {names[k]}.view({writer.name(dtype)})")
                names[k] = f"i{k}"
        self._results(step, names, writer)
        writer.call(body.calls, [*names, *map(writer.name, body.constants)])
        for rows in step.rows:
            call_name = writer.name(caller(rows.symbol, rows.settings))
            others = [f"{writer.name(contiguous)}({name})" for name in self._cells(rows.others)]
            operand_text = ", ".join([names[rows.place], *others])
            writer.lines.append(f"{self._cell(rows.cell)} = {call_name}({operand_text})")

    def _contiguous(self, name: str, writer: FunctionWriter) -> None:
        """Write statements that copy an array unless it is contiguous and aligned, as new ones are.

        Each variable needs them once.
        """
        if name in self._new:
            return
        self._new.add(name)
        writer.lines += [
            f"f = {name}.flags",
            "if not f.c_contiguous or not f.aligned:",
            f"    {name} = {writer.name(contiguous)}({name})",
        ]

    def _store(self, store: Store, writer: FunctionWriter) -> Iterator[str]:
        """Yield the statement that makes the array into which a region writes, if it is new."""
        if not store.in_place:
            array = writer.name(partial(store.array, empty=self._empty))
            yield f"{self._cell(store.target)} = {array}({self._cell(store.source)})"

    def _empty_of(self, step: Step, dtype: Storage) -> Callable[..., Any]:
        """Return the function that makes the memory of a result: np.empty for small ones."""
        return self._empty if math.prod(step.shape) * dtype.itemsize >= COST.RECYCLED else np.empty

    def _results(self, step: RegionStep, names: list[str], writer: FunctionWriter) -> None:
        """Write the memory of a region's results, and set the names of their slots."""
        for cell, store in step.stored_cells:
            if store.target == cell:
                continue  # the memory of an operand that dies
            writer.lines += self._store(store, writer)
            box = store.box
            key = box.key if box.shape == step.shape else box.key_in(step.shape)
            writer.lines.append(
                f"{self._cell(cell)} = {self._cell(store.target)}[{writer.name(key)}]"
            )
        for index, (cell, dtype) in enumerate(step.writes):
            if index in step.stores:
                continue
            empty, shape = writer.name(self._empty_of(step, dtype)), writer.name(step.shape)
            writer.lines.append(f"{self._cell(cell)} = {empty}({shape}, {writer.name(dtype)})")
            self._new.add(self._cell(cell))
        for k, index, dtype in step.outs:
            cell, storage = step.writes[index]
            names[k] = self._cell(cell)
            if dtype != storage:
                writer.lines.append(f"o{k} = {names[k]}.view({writer.name(dtype)})")
                names[k] = f"o{k}"


def _is_element(step: CallStep) -> bool:
    """Whether a step reads or writes one element of a vector, at a computed place."""
    if step.symbol.op not in (ops.gather, ops.index_update) or len(step.source_shape) != 1:
        return False
    is_place = step.symbol.args[-1].dtype.family in ("int", "uint")
    return is_place and all(math.prod(shape) == 1 for shape in step.operand_shapes[1:])


def _written_in_place(step: Step) -> Iterator[tuple[int, int]]:
    """Yield the cells of the arrays before and after each update in place that a step does."""
    if isinstance(step, CallStep) and step.in_place and step.symbol.op is ops.slice_update:
        if step.fits:
            yield step.reads[0], step.write
    elif isinstance(step, RegionStep):
        for store in step.stores.values():
            if store.in_place:
                yield store.source, store.target


def alone(step: Step, empty: Callable[..., Any] = np.empty) -> Straight:
    """Return one small step as a function of its own; `empty` makes the memory of results."""
    return Straight([step], *ends(step), empty=empty)


def ends(step: PlanStep) -> tuple[Sequence[int], Sequence[int]]:
    """Return the cells that a step reads, and the cells that it writes."""
    targets = {cell: store.target for cell, store in _stores(step).items()}
    results: Iterable[int] = step.results
    return list(dict.fromkeys(step.reads)), [targets.get(cell, cell) for cell in results]


def machine_ends(step: Step) -> tuple[Sequence[int], Sequence[int]]:
    """Return the cells whose arrays machine code of a step takes, and the cells that it makes.

    Machine code takes scratch memory for the results that a region stores into slices.
    """
    if isinstance(step, RegionStep):
        stores = _stores(step)
        return [*step.operands, *stores], [cell for cell in step.results if cell not in stores]
    return ends(step)


def _stores(step: PlanStep) -> dict[int, Store]:
    """Return the slices into which a region stores results, by the cell of the result."""
    return dict(step.stored_cells) if isinstance(step, RegionStep) else {}


def _key(step: CallStep, writer: FunctionWriter, scalar: str | None = None) -> str:
    """Return the key of a slice or of its update; an update by a scalar has one index an axis."""
    box = step.box
    if scalar and all(high - low == 1 for low, high in zip(box.start, box.stop, strict=True)):
        return _places(box.start)
    return writer.name(box.key)


def _places(index: Sequence[int]) -> str:
    return ", ".join(map(str, index)) or "()"


def _strides(step: CallStep) -> tuple[Callable[..., Any], Any, Any] | None:
    """Return NumPy's function for a product with a layout, and the strides of operands in it.

    The answer is None if the kernel does more for such operands, which are aligned, than to call
    the function.
    """
    symbol, layout = step.symbol, step.settings.get("layout")
    left, right = step.operand_shapes
    may_be_gram = len(left) > 1 and right == (*left[:-2], left[-1], left[-2])
    if not layout or may_be_gram or not step.multiplies:
        return None
    function, *strides, is_gram = layout
    size = symbol.dtype.storage.itemsize
    steps = [tuple([stride * size for stride in operand]) for operand in strides]
    return None if is_gram else (np.dot if function == "dot" else np.matmul, steps[0], steps[1])
