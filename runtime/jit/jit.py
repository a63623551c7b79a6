"""`jit`: trace a Python function of arrays once for each signature, and run it as a Program.

The cache maps the key of a signature to the traces of that signature. Two mechanisms choose among
these traces: guards compare the outside state that a trace loaded, and specialization compares the
questions that the function asked of Python numbers. Calls with flat arguments have a fast path.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial, reduce, update_wrapper
from itertools import pairwise
from threading import Lock, get_ident
from types import FrameType, MethodType
from typing import Any, Concatenate, Generic, ParamSpec, SupportsIndex, TypeVar, cast, overload

import numpy as np

from graphir.decorators import uncollected
from graphir.hints import Functions
from graphir.ir.literals import literal_array
from graphir.ir.symbol import Symbol
from graphir.location import user_location
from graphir.numpy_api.argument_trees import Slot
from graphir.numpy_api.arrays.memory import LayoutUse
from graphir.numpy_api.trace import Trace, trace_into
from graphir.numpy_api.traced_layouts import ArgumentLayout
from graphir.numpy_api.traced_numbers import NumberTrace, Values
from graphir.promotion import RulesLike, rules_in_force
from graphir.promotion import rules as rules_named
from graphir.promotion.registry import default
from graphir.public import DType, Graph, GraphError, PromotionRules, ops
from graphir.runtime.error_notes import SymbolValues, noting_errors
from graphir.runtime.jit.guards import Guards, Variants
from graphir.runtime.jit.layouts import (
    USUAL,
    MemoryGroup,
    argument_layouts,
    layout_key,
    memory_groups,
    strides_key,
)
from graphir.runtime.jit.signatures import (
    NUMBERS,
    ArgumentTypes,
    Fixed,
    Reader,
    Statics,
    as_input,
    entry,
    flat_key,
    identity_key,
    is_plain,
    types_of,
    unhashable,
)
from graphir.runtime.jit.specialization import NumberCalls, Places, Specializations
from graphir.runtime.jit.watch import WATCHING, WatchedGraph, same_graph, unwatched
from graphir.runtime.program import Program
from graphir.runtime.program.rewrites.axis_orders import Axes, in_memory_order, inverse
from graphir.semantics.library_calls import HandledError, NumPyCall

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")

_NUMPY = rules_named("numpy")
_PLAIN_KEY = 3
"""The number of parts of a signature without layouts: rules, positional, named arguments."""
KEPT_SIGNATURES = 128
"""The most signatures in the cache of one function; the oldest signature is evicted first."""


@overload
def jit(
    function: Callable[P, R],
    *,
    rules: RulesLike | None = None,
    static: str | Sequence[str] = (),
    functions: Functions = "numpy",
) -> Jitted[P, R]: ...
@overload
def jit(
    function: None = None,
    *,
    rules: RulesLike | None = None,
    static: str | Sequence[str] = (),
    functions: Functions = "numpy",
) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...
def jit(
    function: Callable[P, R] | None = None,
    *,
    rules: RulesLike | None = None,
    static: str | Sequence[str] = (),
    functions: Functions = "numpy",
) -> Jitted[P, R] | Callable[[Callable[P, R]], Jitted[P, R]]:
    """Compile a function of arrays: `@jit` or `@jit(rules="jax")`.

    The function takes arrays, numbers and other values, in nested tuples, lists and dicts. jit
    traces the function once for each signature and runs the trace as a Program. The signature
    consists of the dtypes and shapes of arrays, the types of int, float and complex arguments, and
    all other values (bools and strings too), which must be hashable. Arrays of other libraries
    enter as by np.asarray(x).

    Python numbers compute as in Python. Beside an array they are literals, so that the rules
    "numpy" refuse 300 beside an int8. The signature does not include their values, but the trace
    depends on what the function learns of them: whether they fit, how they compare, and which
    values it needs (`range(k)`, `x[:k]`, `f"{k}"`). jit traces the function again for new answers.
    Under rules with weak arrays (`jax`, ...) Python numbers are weak 0-d inputs. Under value-based
    rules (`max`, `numpy_legacy`, ...) they are literals, and jit traces the function for each
    value. The function receives the parameters named in `static` unchanged, numbers included; their
    values, which must be hashable, are part of the signature.

    `rules` names the rule set. Without it, the rules of an enclosing `with rules(...)` or of
    set_default_rules hold, else "numpy": arrays promote as in NumPy. `functions` is the setting of
    the graph: NumPy's functions of floats, or "rounded" ones.

    At every call, guards compare the outside state that the traced code loaded with its present
    state, and jit traces the function again after a change. The guards cover globals, closure
    cells, and attributes of these and of arguments to a depth of two; scalars and strings compare
    by value, other objects by identity. They also cover the elements of lists, dicts and sets
    reached in this way, and the code and defaults of called functions. A function that reaches an
    iterator, a file or a queue from outside is traced at every call. Arrays reached in this way are
    inputs, read at every call. A trace freezes deeper state, computed attribute names, containers
    of more than 1000 elements, clocks and environment variables.

    A call returns the structure that the function returns, with arrays for symbols. Under NumPy's
    rules it has NumPy scalars and Python numbers where the function returns them, under others
    arrays. A call on symbols runs the function itself. Raises GraphError if the trace draws random
    numbers or writes to an outside array, and the errors of Program. Threads may call the function
    concurrently; threads that meet a new signature at the same time may each trace the function.
    """
    if function is None:
        return partial(Jitted, rules=rules, static=static, functions=functions)
    return Jitted(function, rules, static, functions)


class Jitted(Generic[P, R]):
    """A jitted function; `traced` and `program` return the trace and Program for arguments."""

    __wrapped__: Callable[P, R]

    def __init__(
        self,
        function: Callable[P, R],
        rules: RulesLike | None = None,
        static: str | Sequence[str] = (),
        functions: Functions = "numpy",
    ) -> None:
        update_wrapper(self, function)
        self._static = static
        self._functions: Functions = functions
        self._statics = Statics(function, static) if static else None
        # None: the rules in force at the call
        self._rules = None if rules is None else rules_named(rules)
        self._cache: dict[Any, Variants | Specializations] = {}
        self._quick: dict[Any, Callable[..., Any]] = {}
        self._direct: Callable[..., Any] | None = None
        self._lock = Lock()
        self._traced: list[ArgumentTypes] = []
        self._layout_use = LayoutUse.NONE  # what signatures have beside the arguments' types

    def __call__(self, /, *args: P.args, **keywords: P.kwargs) -> R:
        """Run the function's Program for these arguments; trace the function if necessary."""
        try:
            direct = self._direct
            if direct is not None and not keywords and not WATCHING:
                result = direct(*args)
                if result is not None:
                    return result
            places: Any = args
            names: Any = keywords
            if self._statics:
                places, names = self._statics.marked(places, names)
            if not names and not WATCHING:
                quick = self._quick.get(flat_key(self._rules or rules_in_force(_NUMPY), places))
                if quick is not None:
                    return quick(*places)
            entry = self._lookup_or_compile(places, names)
            if entry is not None:
                return unwatched(entry[0].run, entry[1])
        except HandledError:
            pass
        return self.__wrapped__(*args, **keywords)

    @overload
    def __get__(self, instance: None, owner: type | None = None) -> Jitted[P, R]: ...
    @overload
    def __get__(
        self: Jitted[Concatenate[Any, Q], R], instance: object, owner: type | None = None
    ) -> Callable[Q, R]: ...
    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        """Pickle by name, as a function, where the name leads here; else the function wrapped.

        What is unpickled traces again, at its calls.
        """
        name = _pickled_name(self)
        return name or (Jitted, (self.__wrapped__, self._rules, self._static, self._functions))

    def __repr__(self) -> str:
        return f"<jit of {self.__wrapped__.__qualname__}, {self.signature_count} signatures>"

    @property
    def signature_count(self) -> int:
        """The number of signatures with traces in the cache; at most KEPT_SIGNATURES."""
        return len(self._cache)

    @property
    def retraces(self) -> list[str]:
        """A sentence for each argument whose dtype alone made the function be traced again."""
        calls = pairwise(self._traced)
        return list(dict.fromkeys(text for x, y in calls for text in x.differences(y)))

    def traced(self, *args: P.args, **keywords: P.kwargs) -> Trace:
        """Return the trace that a call with these arguments runs; GraphError among symbols."""
        return self._require_compiled(args, keywords).trace

    def program(self, *args: P.args, **keywords: P.kwargs) -> Program:
        """Return the Program that a call with these arguments runs; GraphError among symbols."""
        return self._require_compiled(args, keywords).whole_program

    def _require_compiled(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> CompiledTrace:
        if self._statics:
            args, keywords = self._statics.marked(args, keywords)
        entry = self._lookup_or_compile(args, keywords)
        if entry is None:
            raise GraphError(
                "a call on symbols adds to their graph and has no Program", fix="call it on arrays"
            )
        return entry[0]

    def _lookup_or_compile(
        self, args: Sequence[Any], keywords: Mapping[str, Any]
    ) -> tuple[CompiledTrace, list[Any]] | None:
        """Return the compiled trace of a call and the Program's inputs; None for symbols."""
        rules = self._rules or rules_in_force(_NUMPY)
        reader = Reader(entry(rules))
        key: Any = rules, reader.read(tuple(args)), reader.read(dict(keywords))
        if reader.symbols:
            return None
        use = self._layout_use
        groups = _groups(use, reader.inputs)
        if use:
            key = *key, _layout_key(use, reader, groups)
        try:
            node = self._cache.get(key)
        except TypeError:
            raise unhashable(self.__wrapped__.__qualname__, key) from None
        values = list(reader.numbers)
        variants = node.find(values) if isinstance(node, Specializations) else node
        is_nested = get_ident() in WATCHING  # the outer trace must see this function's loads
        leaf = variants.holding() if variants and not is_nested else None
        if leaf is None:
            layouts = argument_layouts(reader.inputs, reader.sources, groups)
            leaf = self._compile_trace(rules, args, keywords, variants or (), layouts)
            with self._lock:
                self._layout_use = max(self._layout_use, leaf.trace.layout_use)
            if self._layout_use > use:  # by this trace, or by one on another thread
                if _groups(self._layout_use, reader.inputs):
                    if leaf.guards.consumes:
                        raise GraphError(
                            "arguments share memory, which takes a second trace, but the first one "
                            "has taken from an iterator, a file or a queue",
                            fix="pass copies, or values in place of the iterator",
                        )
                    return self._lookup_or_compile(args, keywords)
                key = *key[:_PLAIN_KEY], _layout_key(self._layout_use, reader, groups)
            values = leaf.trace.numbers.values if leaf.trace.numbers else []
            if not is_nested:
                self._keep(key, leaf, args, keywords)
                types = ArgumentTypes(self.__wrapped__, args, keywords, user_location())
                self._traced = [*self._traced, types][-KEPT_SIGNATURES:]
        inputs = reader.inputs
        if groups:
            inputs = _of_groups(inputs, groups)
        return leaf, leaf.fed(inputs, values)

    @uncollected  # the trace must not see finalizers and callbacks of the garbage collector
    def _compile_trace(
        self,
        rules: PromotionRules,
        args: Sequence[Any],
        keywords: Mapping[str, Any],
        variants: Iterable[CompiledTrace],
        layouts: Sequence[ArgumentLayout],
    ) -> CompiledTrace:
        """Trace the function and compile its Program; share the Program of an equal graph."""
        way = entry(rules)
        types, by_name = types_of(tuple(args), way), types_of(dict(keywords), way)
        graph = WatchedGraph(self.__wrapped__, rules, self._functions)
        with noting_errors(SymbolValues()):
            trace_result = trace_into(self.__wrapped__, types, by_name, graph, layouts)
        captures, guards = graph.finish()
        if not guards.lasting:
            _check_handled(graph)
        trace_result = trace_result._replace(captured=captures)
        for variant in variants:
            same = identity_key(variant.trace.outputs_tree) == identity_key(
                trace_result.outputs_tree
            )
            same &= variant.trace.writes == trace_result.writes
            same &= variant.trace.layouts == trace_result.layouts
            if same and same_graph(variant.trace.graph, graph):
                return CompiledTrace(trace_result, variant.program, guards, variant.in_memory_order)
        ordered = in_memory_order(graph, trace_result.input_axes, trace_result.output_axes)
        program = unwatched(Program, ordered or graph)
        return CompiledTrace(trace_result, program, guards, ordered is not None)

    def _keep(
        self,
        key: tuple[Any, ...],
        compiled: CompiledTrace,
        args: Sequence[Any],
        keywords: Mapping[str, Any],
    ) -> None:
        """Store a compiled trace under its signature, and install its fast path."""
        numbers = compiled.trace.numbers
        with self._lock:
            if len(key) == _PLAIN_KEY and self._layout_use:
                return  # another thread has found that layouts belong to the key
            node = self._cache.setdefault(key, Specializations() if numbers else Variants())
            is_usual = len(key) == _PLAIN_KEY or key[-1] is None
            if is_usual and not keywords and all(map(compiled.is_input, args)):
                self._quick[flat_key(key[0], args)] = self._quick_call(node, compiled, args)
                if compiled.is_direct and all(map(_is_direct, args)):
                    self._direct = self._direct_call(compiled)
            for table in (self._cache, self._quick):
                while len(table) > KEPT_SIGNATURES:
                    del table[next(iter(table))]
        if isinstance(node, Specializations):
            node = node.add(cast("NumberTrace", numbers), Variants())
        node.put(compiled)

    def _quick_call(
        self, node: Variants | Specializations, compiled: CompiledTrace, args: Sequence[Any]
    ) -> _QuickCall:
        """Return the fast path of a signature without nested structures."""
        quick = _QuickCall(USUAL[compiled.trace.layout_use], self._slowly)
        quick.call = compiled.without_statics if self._statics else compiled.quick
        if isinstance(node, Variants):
            if compiled.guards:
                quick.call = partial(self._call_guarded, quick, compiled.guards, quick.call)
            return quick
        places = Places(
            [place for place, arg in enumerate(args) if is_plain(arg)],
            [place for place, arg in enumerate(args) if type(arg) in NUMBERS],
            len(args),
        )
        quick.call = NumberCalls(node, places, self._slowly, partial(setattr, quick, "call"))
        return quick

    def _direct_call(self, compiled: CompiledTrace) -> Callable[..., Any]:
        """Return the function that the next calls try first, without a signature.

        It returns None for arguments of another signature, and if a guard does not hold.
        """
        condition = "True" if self._rules else "default() is rules"
        names: dict[str, Any] = {"default": default, "rules": default()}
        names["lie_usually"] = USUAL[compiled.trace.layout_use]
        fits = "True" if compiled.trace.layout_use is LayoutUse.NONE else "lie_usually(args)"
        return compiled.guards.direct(compiled.program, condition, names, fits, compiled.finish)

    def _call_guarded(
        self, quick: _QuickCall, guards: Guards, run: Callable[..., Any], *args: Any
    ) -> Any:
        """Run the first call after a trace; compile its guards into the fast path."""
        quick.call = guards.guarding(run, self._slowly, len(args))
        return quick.call(*args)

    def _slowly(self, *args: Any) -> Any:
        leaf, inputs = cast("tuple[CompiledTrace, list[Any]]", self._lookup_or_compile(args, {}))
        return leaf.run(inputs)


class _QuickCall:
    """The fast path of a signature: `call` if the arguments lie in the usual layout."""

    __slots__ = ("_lie_usually", "_slowly", "call")
    call: Callable[..., Any]

    def __init__(
        self, lie_usually: Callable[[Sequence[Any]], bool], slowly: Callable[..., Any]
    ) -> None:
        self._lie_usually, self._slowly = lie_usually, slowly

    def __call__(self, *args: Any) -> Any:
        """Return the results for arguments."""
        return (self.call if self._lie_usually(args) else self._slowly)(*args)


class CompiledTrace:
    """A trace with its Program and guards, and the conversions of inputs and results."""

    def __init__(
        self, trace: Trace, program: Program, guards: Guards, in_memory_order: bool
    ) -> None:
        """`in_memory_order` says that the Program takes and gives arrays as they lie in memory."""
        self.trace, self.program, self.guards = trace, program, guards
        self.in_memory_order = in_memory_order
        numbers, graph = trace.numbers, trace.graph
        self.feeds = [] if numbers is None else [(f.at, f.storage(graph), f) for f in numbers.feeds]
        self._numbers = [
            (place, trace.graph.concrete_dtype(symbol.dtype))
            for place, symbol in enumerate(trace.graph.inputs)
            if symbol.dtype.weak and not trace.numbers
        ]
        self._axes: tuple[Mapping[int, Axes], Mapping[int, Axes]] = (
            trace.input_axes,
            trace.output_axes,
        )
        if not in_memory_order:
            self._axes = {}, {}
        laid_out = {*self._axes[1], *[layout.output for layout in trace.layouts]}
        outputs = enumerate(program.graph.outputs)
        self._row_major = [i for i, x in outputs if _may_be_view(x) and i not in laid_out]
        """The outputs that the Program may return as views in another order than NumPy's."""
        rearranged = trace.writes or trace.aliases or trace.layouts or any(self._axes)
        rearranged = rearranged or self._row_major
        self.finish = None if rearranged else _finish(trace)
        """The expression of the results, if these are the Program's `outputs`, in their order."""
        plain = self.finish is not None
        self.results: Callable[..., Any] = program if plain else self._call_structured
        if plain and self.finish != "outputs":
            finish = eval(f"lambda outputs: {self.finish}")
            self.results = lambda *args: finish(program(*args))
        converts = trace.captured or numbers or self._numbers
        self.is_direct = plain and not converts
        """Whether the arguments are the Program's inputs, and its outputs the results."""
        if trace.captured:
            self.results = partial(self._with_captured, self.results)
        self.quick: Callable[..., Any] = self._converting if self._numbers else self.results

    @cached_property
    def whole_program(self) -> Program:
        """The Program of the trace's graph, for arrays in the program's order of axes."""
        same = self.program.graph is self.trace.graph or not any(self._axes)
        return self.program if same else unwatched(Program, self.trace.graph)

    def is_input(self, value: Any) -> bool:
        """Whether an argument suits the fast path: a plain array, a scalar, or static."""
        kind: Any = cast("object", type(value))
        if issubclass(kind, np.generic):
            return self.trace.numbers is None
        weak = bool(self._numbers or self.trace.numbers)
        return is_plain(value) or kind is Fixed or (weak and kind in NUMBERS)

    def fed(self, inputs: list[Any], values: Values) -> list[Any]:
        """Append the inputs that derive from Python numbers to `inputs`, and return the list."""
        for index, storage, feed in self.feeds:
            inputs.append(
                feed.array(values) if storage is None else np.array(values[index], storage)
            )
        return inputs

    def run(self, inputs: Sequence[Any]) -> Any:
        """Return the results for inputs; weak inputs are Python numbers."""
        return self.quick(*inputs)

    def without_statics(self, *args: Any) -> Any:
        """Return the results for arguments, without the static arguments, which are no inputs."""
        return self.quick(*[arg for arg in args if type(arg) is not Fixed])

    def _converting(self, *inputs: Any) -> Any:
        arrays = list(inputs)
        for place, dtype in self._numbers:
            arrays[place] = _number(arrays[place], dtype)
        return self.results(*arrays)

    def _with_captured(self, results: Callable[..., Any], *inputs: Any) -> Any:
        """Insert the captured arrays, with their present values, and return the results."""
        arrays = list(inputs)
        for place, array in self.trace.captured:
            arrays.insert(place, as_input(array))
        return results(*arrays)

    def _call_structured(self, *inputs: Any) -> Any:
        of_inputs, of_outputs = self._axes
        arrays = list(inputs)
        for place, axes in of_inputs.items():
            arrays[place] = inputs[place].transpose(inverse(axes))
        result: Any = self.program(*arrays)
        values = cast("list[Any]", [*result] if isinstance(result, tuple) else [result])
        for place, axes in of_outputs.items():
            values[place] = values[place].transpose(axes)
        for place in self._row_major:
            values[place] = np.ascontiguousarray(values[place])
        for place, at in self.trace.writes:
            np.copyto(inputs[place], values[at], "no")
        for alias in self.trace.aliases:
            values[alias.output] = alias.of(inputs[alias.input], values[alias.output].dtype)
        for layout in self.trace.layouts:
            values[layout.output] = layout.laid_out(values[layout.output])
        return self.trace.outputs(tuple(values))


def _may_be_view(output: Symbol) -> bool:
    """Whether an output of several axes is a permutation, or the cast of one to its own dtype."""
    while output.op is ops.cast and output.dtype is output.args[0].dtype:
        output = output.args[0]
    return output.rank > 1 and output.op in (ops.permute, ops.transpose)


def _finish(trace: Trace) -> str | None:
    """Return the expression of the results of `outputs`, or None if they have another structure."""
    tree, count = trace.outputs_tree, len(trace.graph.outputs)
    if type(tree) is Slot:
        return _in_form(tree, "outputs") if count == 1 else None
    if type(tree) is not tuple or len(tree) != count or count < 2:  # pyright: ignore
        return None
    slots = cast("tuple[Any, ...]", tree)
    if any(type(slot) is not Slot or slot.index != place for place, slot in enumerate(slots)):
        return None
    if all(slot.form is None for slot in slots):
        return "outputs"
    return f"({', '.join(_in_form(slot, f'outputs[{slot.index}]') for slot in slots)})"


def _in_form(slot: Slot, output: str) -> str:
    if slot.form is None:
        return output
    return f"{output}[()]" if slot.form is np.generic else f"{output}.item()"


def _groups(use: LayoutUse, inputs: Sequence[Any]) -> list[MemoryGroup]:
    """Return the arguments that share memory, if a function depends on it."""
    return memory_groups(inputs) if use is LayoutUse.ALL else []


def _layout_key(use: LayoutUse, reader: Reader, groups: Sequence[MemoryGroup]) -> Any:
    if use is LayoutUse.ALL:
        return layout_key(reader.inputs, reader.sources, groups)
    return strides_key(reader.inputs)


def _check_handled(graph: Graph) -> None:
    """Raise GraphError for a call whose error the function handles, if it cannot run twice."""
    for symbol in graph.symbols:
        function = symbol.attrs["callee"].function if symbol.op is ops.control.call else None
        if isinstance(function, NumPyCall) and function.is_handled:
            raise GraphError(
                "the function handles an error of values here, and changes state that it reads",
                fix="handle the error outside of the function",
                location=symbol.location,
                op=symbol.attrs["callee"].name,
            )


def _of_groups(inputs: Sequence[Any], groups: Sequence[MemoryGroup]) -> list[Any]:
    """Replace the inputs of each memory group by its whole array, at the first input's place."""
    arrays = dict(enumerate(inputs))
    for memory, places in groups:
        if memory is None:
            continue
        arrays[places[0]] = memory
        for place in places[1:]:
            del arrays[place]
    return list(arrays.values())


def _is_direct(value: Any) -> bool:
    """Whether machine code can take an argument: a plain array, or a scalar of NumPy."""
    return is_plain(value) or isinstance(value, np.generic)


def _number(value: Any, dtype: DType) -> Any:
    try:
        return np.array(value, dtype.storage)
    except OverflowError:
        return literal_array(value, dtype)[1]  # raises the error that names the misfit


def _pickled_name(jitted: Jitted[..., Any]) -> str:
    """Return the qualified name by which pickle finds a jitted function, or "" if none leads there.

    `cloudpickle`, with which joblib and dask send functions, carries the functions of the module
    `__main__` by value, since the `__main__` of a worker is another. It calls this function from
    the method of its pickler, by way of __reduce_ex__; so no name of `__main__` serves it.
    """
    module, name = getattr(jitted, "__module__", ""), getattr(jitted, "__qualname__", "")
    leads = reduce(_member, name.split("."), sys.modules.get(module)) is jitted
    frame: Any = sys._getframe(2)  # pyright: ignore[reportPrivateUsage]
    return name if leads and not (module == "__main__" and _is_cloudpickle(frame)) else ""


def _member(owner: Any, name: str) -> Any:
    return getattr(owner, name, None)


def _is_cloudpickle(frame: FrameType) -> bool:
    """Answer whether a frame is that of a method of cloudpickle's pickler, vendored or not."""
    kinds: Any = type(frame.f_locals.get("self")).__mro__
    return any("cloudpickle" in kind.__module__.split(".") for kind in kinds)
