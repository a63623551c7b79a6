"""Reports of a program as text: the plan, and the machine code of a region."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from graphir.display import brief, fragment, paragraphs, printable, verbatim
from graphir.passes.rewriter import bodies_of
from graphir.public import ExecutionError, Symbol, TensorType, ops
from graphir.runtime.binding import bind
from graphir.runtime.program.batches import BatchStep
from graphir.runtime.program.cutting import UPDATES, Call, Region
from graphir.runtime.program.phases import PhasesStep
from graphir.runtime.program.planning import rewrite_steps
from graphir.runtime.program.region_steps import RegionStep
from graphir.runtime.program.rewrites.fusion import ColumnsStep
from graphir.runtime.program.steps import CallStep, Step, is_view, shape_of
from graphir.runtime.program.wavefronts import WavefrontStep
from graphir.semantics.matrix_products import uses_blas

if TYPE_CHECKING:
    from graphir.runtime.program.program import Program


Binding: TypeAlias = "tuple[Sequence[Any], Mapping[str, int]]"
"""The inputs of a call as arrays, and the sizes of the symbolic dims."""


class MachineCode(NamedTuple):
    """The machine code of a region, as LLVM IR and as assembly of this CPU; `str()` is both."""

    llvm: str
    assembly: str

    def __str__(self) -> str:
        return f"{self.llvm}\n{self.assembly}"

    def __repr__(self) -> str:
        counts = (text.count("\n") + 1 for text in self)
        return "<MachineCode, {:,} lines of LLVM IR, {:,} lines of assembly>".format(*counts)


def machine_code(
    program: Program, number: int, inputs: Sequence[Any], keywords: Mapping[str, Any]
) -> MachineCode:
    """Return the machine code of a region for the layouts of some inputs.

    `number` is the number of the region's step. Without inputs the code is that for contiguous
    ones. Raises ExecutionError if the step does not exist or is not a region, and if the region
    has no machine code.
    """
    count = len(program.steps)
    if not 0 <= number < count:
        raise ExecutionError(
            f"step {number} does not exist", fix=f"use a step from 0 to {count - 1}"
        )
    step = program.steps[number]
    if isinstance(step, Call):
        raise ExecutionError(
            f"step {number} is not a region", got=f"a call of {step.symbol.op.name}"
        )
    kernels = program.kernels(number)
    if kernels is None:
        raise ExecutionError(f"no region has machine code: {program.why_numpy}")
    args_bound = _bind(program, inputs, keywords)
    bound: Any = [*program.bound(args_bound[1])][number] if args_bound else None
    values = _values(program, *args_bound) if args_bound else []
    listing = kernels.listing(bound, values)
    if not listing:
        raise ExecutionError(f"the region stays in {kernels.status(bound, values)}")
    return MachineCode(*listing)


def _values(program: Program, inputs: Sequence[Any], sizes: Mapping[str, int]) -> list[Any]:
    """Return the cells after a call that executes movement ops alone.

    All other cells are uninitialized C-ordered arrays: the caller needs layouts, not values.
    """
    values = program.schedule.values(inputs)
    for step in program.steps:
        symbols = [step.symbol] if isinstance(step, Call) else [*step.symbols, *step.rows]
        for symbol in symbols:
            cell = program.schedule.cells.get(symbol.index)
            if symbol.op.kind == "movement" and len(symbol.args) == 1:
                view_step = CallStep(symbol, program.schedule.cells, sizes)
                values[view_step.write] = view_step.call(*[values[k] for k in view_step.reads])
            elif cell is not None and type(symbol.type) is TensorType:
                values[cell] = np.empty(shape_of(symbol, sizes), symbol.dtype.storage)
    return values


def _bind(program: Program, inputs: Sequence[Any], keywords: Mapping[str, Any]) -> Binding | None:
    """Return the bound inputs, unless there are none or the program binds dims as it runs."""
    is_bound = (inputs or keywords) and not program.late_runs
    return bind(program.graph, inputs, keywords) if is_bound else None


class PlanText(str):
    """The text of a plan. Its `repr` has the first lines, as a notebook's text output shows it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return brief(self)

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: the first line, and the steps in a box."""
        head, *steps = self.split("\n")
        return fragment(paragraphs([head]), verbatim(steps))


def explain(program: Program, inputs: Sequence[Any], keywords: Mapping[str, Any]) -> PlanText:
    """Return the plan as text.

    For each step the text has the ops, the bytes that the step reads and writes, its scratch
    memory, and the tier that runs the step. Inputs, if given, bind the symbolic dims, and the text
    then has counts of blocks and threads too. A program with updates of arrays also gets a line
    about the steps of a call, in which regions write into slices and views are merged.
    """
    args_bound = _bind(program, inputs, keywords)
    count = len(program.steps)
    steps: Sequence[Any] = [*program.bound(args_bound[1])] if args_bound else [None] * count
    values = _values(program, *args_bound) if args_bound else []
    is_one_call = count > 1 and bool(args_bound) and program.is_one_call(*args_bound[0])
    graph = program.lowered
    functions = ", rounded functions" if graph.functions == "rounded" else ""
    where = f", NumPy alone: {program.why_numpy}" if program.why_numpy else ""
    lines = [
        f"program {printable(graph.name)}: {count} steps, {len(graph.symbols)} symbols, "
        f"{program.threads} threads{functions}{where}"
    ]
    for number, (step, bound) in enumerate(zip(program.steps, steps, strict=True)):
        if isinstance(step, Call):
            lines.append(f"{number:4} {_call_text(step.symbol)}")
            if bound is not None and (way := _way(program, bound)):
                lines.append(f"       {way}")
            for body in bodies_of(step.symbol):
                text = explain(program.body_program(body), (), {})
                lines += [f"       {line}" for line in text.split("\n")]
            if loop := program.loop(number, step.symbol):
                lines.append(f"       {loop.status}")
            continue
        lines += _region_text(program, number, step, bound)
        if kernels := program.kernels(number):
            lines.append(f"       {kernels.status(None if is_one_call else bound, values)}")
    if args_bound:
        bound = [*program.bound(args_bound[1])]
        rewritten = rewrite_steps(bound, program)
        lines += _phases_text(bound, rewritten.fused)
        if is_one_call:
            lines.append("all steps are one call of machine code")
        if any(symbol.op in UPDATES for symbol in graph.symbols):
            lines.append(_replay_text(rewritten.steps))
    return PlanText("\n".join(lines))


def _replay_text(steps: Sequence[Step]) -> str:
    """Return the steps of a plan with updates as they run: views, updates and copies, as text."""
    regions = [step for step in steps if isinstance(step, RegionStep)]
    stores = [store for region in regions for store in region.stores.values()]
    calls = [step for step in steps if isinstance(step, CallStep) and step.symbol.op in UPDATES]
    in_place = sum(update.in_place for update in (*stores, *calls))
    views = sum(map(is_view, steps))
    flat = sum(region.is_reshaped for region in regions)
    return (
        f"a call runs {len(steps)} steps: {views} views, {len(regions)} regions, {flat} of them in "
        f"flat memory; regions write {len(stores)} results into arrays, calls {len(calls)}; "
        f"{in_place} in place, {len(stores) + len(calls) - in_place} in a copy"
    )


def _phases_text(bound: Sequence[Any], fused: Sequence[Any]) -> Iterator[str]:
    """Yield a line for each step of a plan that runs several steps on some rows or matrices."""
    for step in fused:
        if isinstance(step, BatchStep):
            numbers = ", ".join(str(bound.index(x)) for x in step.members if x in bound)
            inner = len(step.writes) - len(step.results)
            yield (
                f"steps {numbers} run together on the same matrices of the batch "
                f"{list(step.lead)} in machine code, {step.threads} threads; {inner} of their "
                f"{len(step.writes)} results stay in scratch memory"
            )
        if isinstance(step, ColumnsStep):
            numbers = ", ".join(map(str, sorted(bound.index(member) for member in step.members)))
            count = len(step.source.writes)
            yield (
                f"steps {numbers} run together on blocks of rows in machine code; "
                f"{count - len(step.writes)} of {count} results of the region stay in scratch "
                "memory"
            )
        if isinstance(step, WavefrontStep):
            numbers = ", ".join(str(bound.index(member)) for member in step.members)
            yield (
                f"steps {numbers} run together, {step.native_block_rows} rows at a time in machine "
                f"code, and up to {step.ahead} rows ahead of the last "
                f"step; {len(step.inner)} of their {len(step.memories)} arrays stay in scratch "
                f"memory, {step.threads} threads"
            )
        if isinstance(step, PhasesStep):
            numbers = ", ".join(str(bound.index(member)) for member in step.members)
            inner = len(step.writes) - len(step.results)
            yield (
                f"steps {numbers} run together on the same {step.space.rows} rows, "
                f"{step.native_block_rows} rows at a time in machine code, "
                f"{step.block_rows} in NumPy; "
                f"{inner} of their {len(step.writes)} results stay in scratch memory"
            )


def _call_text(symbol: Symbol) -> str:
    kinds = {"movement": "view or copy", "control": "control flow"}
    is_blas = symbol.op is ops.matmul and uses_blas(symbol.dtype.storage)
    kind = "BLAS" if is_blas else kinds.get(symbol.op.kind, "kernel")
    if symbol.op is ops.control.call:
        callee = symbol.attrs["callee"]
        kind = f"{callee.name} by {callee.engine}" if callee.engine else callee.name
    operand_types = ", ".join(str(arg.type) for arg in symbol.args)
    return f"{symbol.op.name}({operand_types}) -> {symbol.type}    {kind}    {symbol.location}"


def _way(program: Program, bound: CallStep) -> str:
    """Return how a call runs, as text, if not by NumPy's function."""
    if bound.is_large_product:
        way = "exact products of floats by BLAS"
        return f"blocks in machine code once it pays, or {way}" if program.native else way
    if bound.is_shared_product and program.native:
        return "each matrix, or a part of it, by one thread once it pays, if that has BLAS's bits"
    return ""


def _region_text(
    program: Program, number: int, region: Region, bound: RegionStep | None
) -> list[str]:
    op_names = _count_names([symbol.op.name for symbol in (*region.symbols, *region.rows)])
    shape = f"[{', '.join(map(str, region.shape))}]"
    if not region.shape and not region.rows:
        return [f"{number:4} scalars: {op_names}"]
    body = program.codes.body(number, bits=True) if bound is None else bound.body
    bytes_read = sum(symbol.dtype.storage.itemsize for symbol in body.inputs)
    bytes_written = sum(symbol.dtype.storage.itemsize for symbol in body.outs)
    calls = _count_names([_name(function, symbol) for function, _, symbol in body.calls])
    scratch = sum(body.widths)
    lines = [
        f"{number:4} region {shape}: {op_names}",
        f"       {len(body.calls)} instructions ({calls})",
        f"       an element: {bytes_read} B read, {bytes_written} B written, {scratch} B of "
        f"scratch in {len(body.widths)} slots",
    ]
    if isinstance(bound, RegionStep):
        longest = max(bound.longest, 1)
        bytes_moved = bound.size * (bytes_read + bytes_written)
        lines.append(
            f"       {bound.size} elements in {bound.blocks} blocks of up to {longest}, "
            f"{bound.threads} threads: {bytes_moved:,} B moved, {longest * scratch:,} B of "
            "scratch each"
        )
    return lines


def _name(function: Callable[..., Any], symbol: Symbol) -> str:
    """Return the name of the function of an instruction: a ufunc, or the whole kernel of an op."""
    return getattr(function, "__name__", f"kernel of {symbol.op.name}")


def _count_names(names: Sequence[str]) -> str:
    """Return the distinct names with their counts, in the order of first occurrence, as text."""
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return ", ".join(f"{name} x{n}" if n > 1 else name for name, n in counts.items())
