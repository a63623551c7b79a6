"""`trace` of a Python function: a call of the function on symbols builds the graph.

Arguments and results may be nested tuples, lists and dicts, whose structure a tree records
(numpy_api/argument_trees.py).
"""

from __future__ import annotations

import inspect
import math
import re
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from graphir import ops
from graphir.dtypes import DType
from graphir.errors import GraphError, GraphirError, PromotionError
from graphir.hints import Functions, Number
from graphir.ir.foreign_arrays import is_foreign_array
from graphir.ir.graph import Graph
from graphir.ir.literals import is_literal
from graphir.ir.liveness import all_live, live_mask
from graphir.ir.symbol import Symbol
from graphir.location import location_of_error, user_location
from graphir.numpy_api.argument_trees import (
    DTYPE_NAME,
    NumberSlot,
    Slot,
    Static,
    Varying,
    filled,
    is_pair,
    mapped,
    match,
    type_of,
    values_of_kind,
)
from graphir.numpy_api.arrays.makers import makers_traced
from graphir.numpy_api.arrays.memory import (
    PYTHON_NUMBERS,
    SHUFFLING,
    ArrayValue,
    Cell,
    LayoutUse,
    ScalarValue,
    TraceMemory,
    tracing_with,
)
from graphir.numpy_api.traced_layouts import (
    IN_ORDER,
    ArgumentLayout,
    ResultAlias,
    ResultLayout,
    alias_of,
    axes_in_memory,
    layout_of_result,
    may_differ,
)
from graphir.numpy_api.traced_numbers import NumberTrace, TracedNumber
from graphir.ops.control import call, part
from graphir.ops.types import TensorType
from graphir.promotion import PromotionRules, RulesLike, rules_in_force
from graphir.promotion import rules as rules_named
from graphir.promotion.scalars import WEAK
from graphir.semantics.library_calls import NumPyCall


class Trace(NamedTuple):
    """A traced function: its graph, and the positions of its arguments and results in the graph.

    The trees are nested tuples, lists and dicts of Slots and Statics, in the function's own
    structure. `inputs_tree` is the tree of (positional, named) arguments, `outputs_tree` that of
    the result. `numbers` are the arguments with which the function computes as Python does.
    `captured` are the arrays in the function's closure, each with its position among the inputs.
    `writes` are the arguments that the function writes to: the position of each among the inputs,
    and the position of its new values among the outputs. New values follow the results among the
    outputs. `layout_use` says what the trace depends on beside the arguments' types. `aliases` are
    the results that view an argument. `layouts` are those of the other results that NumPy does not
    lay out in row-major order, and `input_axes` the orders of axes in memory of such inputs, by
    their positions.
    """

    graph: Graph
    inputs_tree: Any
    outputs_tree: Any
    numbers: NumberTrace | None = None
    captured: Sequence[tuple[int, Any]] = ()
    writes: Sequence[tuple[int, int]] = ()
    layout_use: LayoutUse = LayoutUse.NONE
    aliases: Sequence[ResultAlias] = ()
    layouts: Sequence[ResultLayout] = ()
    input_axes: Mapping[int, tuple[int, ...]] = MappingProxyType({})

    def __repr__(self) -> str:
        return f"<Trace {self.graph!r}>"

    def _repr_html_(self) -> str:
        """Return the HTML of the graph for notebooks."""
        return self.graph._repr_html_()  # pyright: ignore[reportPrivateUsage]

    @property
    def output_axes(self) -> dict[int, tuple[int, ...]]:
        """The orders of axes in memory of the outputs that are not in row-major order."""
        axes_by_output: dict[int, tuple[int, ...]] = {}
        for layout in self.layouts:
            type_ = self.graph.outputs[layout.output].type
            axes = layout.axes(math.prod(cast("Any", type_.shape)) * type_.dtype.storage.itemsize)
            if axes is not None and axes != tuple(range(len(axes))):
                axes_by_output[layout.output] = axes
        axes_by_output |= {
            at: self.input_axes[place] for place, at in self.writes if place in self.input_axes
        }
        return axes_by_output

    def inputs(self, *args: Any, **keywords: Any) -> list[Any]:
        """Return the graph's inputs for these arguments.

        The method raises GraphError if the arguments have another structure than the traced ones,
        or if their numbers lead to another graph.
        """
        values: dict[Slot | NumberSlot, Any] = {}
        match(self.inputs_tree, (args, keywords), values, "arguments")
        arrays, numbers = (values_of_kind(values, kind) for kind in (Slot, NumberSlot))
        inputs = [*arrays, *(self.numbers.fed(numbers) if self.numbers else ())]
        for place, array in self.captured:
            inputs.insert(place, np.asarray(array))
        return inputs

    def outputs(self, values: NDArray[Any] | tuple[Any, ...]) -> Any:
        """Return a run's outputs, an array or a tuple, in the structure of the function result."""
        several = cast("Sequence[Any]", values if isinstance(values, tuple) else (values,))
        return filled(self.outputs_tree, several)


def trace(
    function: Callable[..., Any],
    /,
    *types: Any,
    rules: RulesLike | None = None,
    functions: Functions = "numpy",
    **keywords: Any,
) -> Trace:
    """Return the graph of a function's computation on symbols of these types, under these rules.

    Without `rules`, those of an enclosing `with rules(...)` or of set_default_rules hold; else
    "numpy" where every argument with a dtype is an array or has a dtype of NumPy, else "max".

    An argument is a TensorType, a pair (dtype, shape) whose shape is a tuple or list, or anything
    with dtype and shape, such as an array, whose values trace does not read. A DType, a NumPy dtype
    and int, float or complex (weak) each stand for a 0-d input. Tuples, lists and dicts of
    arguments are arguments too. The function receives any other value unchanged, and the value of
    Static(value). Inputs have the names of the parameters: `x`, and `params_w` for params["w"].

    The function returns symbols (its inputs too), arrays and numbers, which become constants, or
    None; or tuples, lists and dicts of those. `functions` is the setting of the graph: NumPy's
    functions of floats, or "rounded" ones. `trace` raises GraphError if a result is none of
    these, if no result is a symbol or constant, or if the arguments do not match the function's
    parameters.
    """
    rule_set = rules_in_force(_usual_rules((types, keywords))) if rules is None else rules
    try:
        graph = Graph(name_of(function), rules=rule_set, functions=functions)
        return trace_into(function, types, keywords, graph)
    except GraphirError as error:
        raise error.at(location_of_error(error) or user_location(), "trace") from None


def trace_into(
    function: Callable[..., Any],
    types: Sequence[Any],
    keywords: Mapping[str, Any],
    graph: Graph,
    layouts: Sequence[ArgumentLayout] | None = None,
) -> Trace:
    """Trace a function into an empty graph, for callers that report the location of a refusal.

    `layouts` are the layouts of the arrays among the types, in their order, if the graph is for
    calls in this process. Without layouts, arrays are in row-major order and share no memory.
    """
    named_types = _name_arguments(function, types, keywords)
    arguments = Arguments(graph, layouts)
    operands_tree: Any = mapped(arguments.entered, named_types, "")
    numbers = graph.trace_state.numbers
    if not graph.inputs and numbers is None:
        mapped(_no_name, named_types, "")
    places = count()  # of the arguments before the call, in which the function may change them
    positional, named = mapped(lambda leaf, _: _slot(leaf, places), operands_tree, "")
    outputs: list[Symbol] = []
    outputs_tree, aliases, result_layouts = _call(function, operands_tree, arguments, outputs)
    writes = arguments.written_arguments(outputs)
    if not outputs:
        raise GraphError(
            "the function returns no symbol, so there is nothing to compute", op=graph.name
        )
    memory = arguments.memory
    if memory is not None:
        outputs += _dead_checks(graph, outputs)
    graph.output(*outputs)
    return Trace(
        graph,
        inputs_tree=(tuple(positional.values()), named),
        outputs_tree=outputs_tree,
        numbers=numbers,
        writes=writes,
        layout_use=LayoutUse.NONE if memory is None else memory.layout_use,
        aliases=aliases,
        layouts=result_layouts,
        input_axes=arguments.axes_of_inputs(),
    )


def _call(
    function: Callable[..., Any], operands_tree: Any, arguments: Arguments, outputs: list[Symbol]
) -> tuple[Any, list[ResultAlias], list[ResultLayout]]:
    """Call a function on its operands and return the tree, aliases and layouts of the results.

    The symbols of the results are appended to `outputs`. A refusal that the function has caught is
    raised again here, in place of the result or of any later error.
    """
    graph, state = arguments.graph, arguments.graph.trace_state
    numbers, (positional, named) = state.numbers, operands_tree
    state.is_tracing = True
    try:
        with makers_traced(function), graph, _no_shuffles(), tracing_with(arguments.memory):
            result = function(*positional.values(), **named)
        if state.refusal is not None:
            raise state.refusal
        tree = mapped(lambda leaf, path: _left(graph, leaf, path, outputs), result, "the result")
        return tree, *arguments.memory_of_results(tree, result)
    except (Exception, SystemExit) as error:
        if state.refusal is None or _is_same(error, state.refusal):
            raise
        raise state.refusal from None  # which the function has caught
    finally:
        state.is_tracing = False
        if numbers is not None:
            numbers.close()


def _is_same(error: BaseException, refusal: GraphirError) -> bool:
    """Whether an error is a refusal, of which the graph keeps a copy."""
    return isinstance(error, GraphirError) and error.location is refusal.location


_RAISING = frozenset((ops.gather, ops.take_along, ops.scatter, ops.index_update, ops.index_add))
"""The ops that raise an error for an index out of range."""


def _dead_checks(graph: Graph, outputs: Sequence[Symbol]) -> list[Symbol]:
    """Return the symbols that no output needs, but that may raise an error, as NumPy would."""
    if all_live(graph, outputs):
        return []
    live = live_mask(graph, outputs)
    return [
        symbol
        for symbol in graph.symbols
        if not live[symbol.index]
        and (
            (symbol.op in _RAISING and symbol.args[-1].op is not ops.constant)
            or (symbol.op is ops.pow and symbol.dtype.is_integer)
            or (symbol.op is part and not symbol.attrs["index"] and _may_raise(symbol.args[0]))
        )
    ]


def _may_raise(symbol: Symbol) -> bool:
    """Whether a call of NumPy's function may raise an error."""
    function = symbol.attrs["callee"].function if symbol.op is call else None
    return isinstance(function, NumPyCall) and function.raises


@contextmanager
def _no_shuffles() -> Generator[None]:
    """Inside the block, refuse shuffles of views, of which NumPy's generators warn.

    The generators swap rows, and rows that are views would be copied twice.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("error", SHUFFLING, UserWarning)
        try:
            yield
        except UserWarning as error:
            if not str(error).startswith(SHUFFLING):
                raise
            refusal = GraphError("rows that are views are copied twice", fix="use x[permutation]")
            raise refusal.at(location_of_error(error) or user_location(), "shuffle") from None


def name_of(function: Callable[..., Any]) -> str:
    """Return the name of the graph of a function."""
    return getattr(function, "__name__", "traced")


def _usual_rules(types: tuple[Any, ...]) -> PromotionRules:
    """Return the default rule set: NumPy's if all arguments come from NumPy, else max."""
    from_numpy: list[bool] = []

    def look(value: Any, _: str) -> None:
        if type_of(value) is not None and not (isinstance(value, type) and value in WEAK):
            pair = cast("tuple[Any, ...]", value) if is_pair(value) else ()
            dtype = pair[0] if pair else value
            if not isinstance(dtype, DType):
                dtype = getattr(dtype, "dtype", dtype)
            from_numpy.append(not isinstance(dtype, (DType, str)))

    mapped(look, types, "")
    return rules_named("numpy" if from_numpy and all(from_numpy) else "max")


def _name_arguments(
    function: Callable[..., Any], types: Sequence[Any], keywords: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the positional arguments by their parameters' names, and the named arguments."""
    names: list[str] = []
    try:
        signature = inspect.signature(function)
    except ValueError:  # a builtin function without a signature
        signature = None
    if signature is not None:
        try:
            signature.bind(*types, **keywords)
        except TypeError as error:
            raise GraphError(
                f"these are not arguments of {getattr(function, '__name__', 'it')}: {error}"
            ) from None
        names = [
            parameter.name
            for parameter in signature.parameters.values()
            if parameter.kind in _POSITIONAL
        ]
    names += [f"x{i}" for i in range(len(names), len(types))]
    return dict(zip(names, types, strict=False)), dict(keywords)


_POSITIONAL = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD


def _slot(value: Any, places: Iterator[int]) -> Slot | NumberSlot | Static:
    if type(value) is TracedNumber:
        return NumberSlot(value.index)
    if not isinstance(value, (Symbol, ArrayValue, ScalarValue)):
        return Static(value)
    return Slot(next(places))


# -- arguments and results


class Arguments:
    """The arguments of a traced function: inputs as symbols, or as symbolic arrays of a memory."""

    def __init__(self, graph: Graph, layouts: Sequence[ArgumentLayout] | None) -> None:
        self.graph = graph
        self.memory: TraceMemory | None = None
        if graph.rules.in_place and graph.rules.has_scalars:  # arrays are mutable, as in NumPy
            from graphir.numpy_api.arrays.array import memory_of

            self.memory = memory_of(graph)
            self.memory.runs_here = layouts is not None
        self._layouts = iter(layouts or ())
        self._cells: list[tuple[Cell, Symbol]] = []

    def entered(self, value: Any, path: str) -> Any:
        """Return the function's argument for a type; a value without a type is passed unchanged."""
        if isinstance(value, Static):
            return value.value
        type_ = None if type(value) is Varying else type_of(value)
        if type_ is None and type(value) is not Varying:
            return value
        name, graph = re.sub(r"\W", "_", path.partition("_")[2]), self.graph
        name = name if name.isidentifier() else f"_{name}"
        if type_ is None:
            state = graph.trace_state
            state.numbers = state.numbers or NumberTrace(graph)
            return state.numbers.argument(value.value, name)
        while name in graph.input_names:
            name += "_"
        if self.memory is None or type_.dtype.weak:
            return graph.input(type_, name=name)
        layout = next(self._layouts, IN_ORDER)
        if isinstance(value, np.generic):
            return self.memory.scalar(self.memory, graph.input(type_, name=name))
        array = self.memory.array(self._cell(type_, name, layout), layout.plain)
        array.is_argument = True
        if type_.rank:
            self.memory.reads_layouts(LayoutUse.STRIDES)
        return array

    def _cell(self, type_: TensorType, name: str, layout: ArgumentLayout) -> Cell:
        """Return the memory cell of an argument: a new input, or an earlier argument's cell."""
        assert self.memory is not None
        whole = layout.plain if layout.whole is None else layout.whole
        for cell, _ in self._cells:
            if layout.whole is not None and cell.buffer is whole:
                return cell
        if whole is not None:
            type_ = TensorType(type_.dtype, whole.shape)
        symbol = self.graph.input(type_, name=name)
        cell = Cell(self.memory, whole, symbol)
        self._cells.append((cell, symbol))
        self.memory.arguments.append(cell)
        return cell

    def axes_of_inputs(self) -> dict[int, tuple[int, ...]]:
        """Return the orders of axes in memory of the inputs that are not in row-major order."""
        axes_by_input: dict[int, tuple[int, ...]] = {}
        for cell, symbol in self._cells:
            strides = () if cell.buffer is None else cell.buffer.strides
            if len(strides) > 1 and min(strides) > 0:
                axes = axes_in_memory(strides)
                if axes != tuple(range(len(axes))):
                    axes_by_input[symbol.index] = axes
        return axes_by_input

    def written_arguments(self, outputs: list[Symbol]) -> list[tuple[int, int]]:
        """Return the arguments that the function wrote to; append their new values to `outputs`."""
        writes: list[tuple[int, int]] = []
        for cell, symbol in self._cells:
            if cell.symbol is not None and cell.symbol is not symbol:
                writes.append((symbol.index, len(outputs)))
                outputs.append(cell.symbol)
        return writes

    def memory_of_results(
        self, tree: Any, result: Any
    ) -> tuple[list[ResultAlias], list[ResultLayout]]:
        """Return the aliases among the results, each at its slot of a tree, and their layouts."""
        aliases: list[ResultAlias] = []
        result_layouts: list[ResultLayout] = []
        slots: list[Any] = []
        mapped(lambda leaf, _: slots.append(leaf), tree, "")
        values: list[Any] = []
        mapped(lambda leaf, _: values.append(leaf), result, "")
        for slot, value in zip(slots, values, strict=True):
            if isinstance(value, ArrayValue) and type(slot) is Slot:
                inputs = [symbol.index for cell, symbol in self._cells if cell is value.cell]
                if inputs:
                    aliases.append(alias_of(value, slot.index, inputs[0]))
                elif may_differ(value) and value.layout is not None:
                    result_layouts.append(layout_of_result(value.plain, slot.index))
            elif type(value) is np.ndarray and type(slot) is Slot and self.memory is not None:
                flags = value.flags
                if not (flags.c_contiguous and flags.writeable):
                    result_layouts.append(layout_of_result(value, slot.index))
        return aliases, result_layouts


def _no_name(value: Any, path: str) -> None:
    """Raise GraphError for a dtype's name alone; called if no argument is an input."""
    if isinstance(value, str) and DTYPE_NAME.fullmatch(value):
        raise GraphError(
            f"argument {path.partition('_')[2]} is a str, which makes no input of the graph",
            got=repr(value),
            fix=f"write DType.{value} for a 0-d one, or ({value!r}, shape), shape a tuple or list",
        )


def _left(graph: Graph, value: Any, path: str, outputs: list[Symbol]) -> Slot | Static:
    if value is None:
        return Static(None)
    form = _form_of(value) if graph.rules.in_place and graph.rules.has_scalars else None
    if type(value) is TracedNumber:
        value = value.symbol()
    if isinstance(value, (ArrayValue, ScalarValue)):
        value = value.read()
    if not isinstance(value, Symbol):
        value = _constant(graph, value, path)
    outputs.append(value)
    return Slot(len(outputs) - 1, form)


def _form_of(value: Any) -> type | None:
    """Return the form of a result under the rules of NumPy, whose scalars are no arrays."""
    if isinstance(value, ScalarValue):
        return value.number_class or np.generic
    if isinstance(value, np.generic):
        return np.generic
    if type(value) is TracedNumber:
        value = value.trace.values[value.index]
    kind: Any = cast("object", type(value))
    return kind if kind in PYTHON_NUMBERS else None


def _constant(graph: Graph, value: Any, path: str) -> Symbol:
    if is_literal(value) or isinstance(value, np.generic):
        try:
            return graph.scalar(cast("Number", value))
        except PromotionError:
            if isinstance(value, np.generic):
                raise
            raise PromotionError(
                f"{path} is {value!r}, a number that has no dtype of its own under "
                f"{graph.rules.name!r}",
                fix=f"return np.{np.asarray(value).dtype}({value!r})",
            ) from None
    kind: Any = cast("object", type(value))
    if issubclass(kind, (np.matrix, np.ma.MaskedArray)):
        raise GraphError(
            f"{path} is a {kind.__name__}, and results are ndarrays", fix="return an ndarray"
        )
    if isinstance(value, np.ndarray) or is_foreign_array(kind):
        return graph.entering(value)
    raise GraphError(f"{path} is no symbol, array, number or None", got=repr(value))
