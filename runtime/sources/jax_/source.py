"""`from_jax`: the graph of a jaxpr, with JAX's implicit conversions left to the rules.

A conversion that the user did not write is removed where the op that reads it gives the same dtypes
without it: `implicit_cast` puts it back, with its reason. Other conversions of JAX's own functions
stay as implicit casts that name the function. Every symbol has the dtype and the shape of its
variable in the jaxpr.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, wraps
from types import FrameType
from typing import Any, NamedTuple, TypeAlias, cast

import numpy as np

from graphir.decorators import uncollected
from graphir.import_names import optional
from graphir.location import INTERMEDIATE, Location
from graphir.ops.control import Callee
from graphir.ops.types import TupleType
from graphir.public import (
    DType,
    Graph,
    GraphError,
    Op,
    PromotionRules,
    Symbol,
    TensorType,
    ops,
    rules,
)
from graphir.runtime.error_notes import ProgramValues, is_about_dtypes, leaves_of, note_error
from graphir.runtime.sources.folding import Folding, note_draws
from graphir.runtime.sources.jax_.abstract_values import (
    AbstractValue,
    EquationsBehind,
    Jax,
    Jaxpr,
    JaxprEquation,
    Variable,
    array_type,
    has_explicit_dtypes,
    has_keys,
    is_float0,
)
from graphir.runtime.sources.jax_.bound_primitive import BoundPrimitive
from graphir.runtime.sources.jax_.frames import EquationSite, Sites
from graphir.runtime.sources.jax_.gather_scatter import ROWS
from graphir.runtime.sources.jax_.lax_rows import INLINED, MOVING, PROMOTING, Equation
from graphir.runtime.sources.jax_.loops import LOOPS, JittedCalls, RefusedLoop, refused_loop
from graphir.runtime.sources.op_rows import Row, trial


@uncollected
def from_jax(function: Callable[..., Any], /, *args: Any, **keywords: Any) -> Graph:
    """Return the graph of a JAX function for arguments like these, under the rules of JAX.

    The arguments are arrays, jax.ShapeDtypeStructs, Python scalars, and pytrees of these. Inputs
    have the names of the parameters; outputs are the leaves of the result, in the order of
    jax.tree.leaves. The rules are "jax" with 64 bits and "jax_x32" without, as jax.config says, of
    the installed release, such as `jax@0.12`; if jax_explicit_x64_dtypes is "allow", they are
    "jax", and no dtype is weak. A note counts the
    values of arguments that JAX changes as it cuts 64 bits to 32. A primitive that has no op, or a
    parameter that its row does not know, becomes the op `call`. Leaves that are no arrays of
    numbers, such as texts and float0, are no outputs, as a note says; typed PRNG keys are given as
    jax.random.key_data.
    Raises GraphError for a primitive that JAX cannot compute either.
    Raises GraphError for a loop that JAX refuses since its carry changes its dtype, with
    the op that changes it, and the other errors of jax.make_jaxpr.
    """
    jax = optional("jax", "jax", "from_jax")
    name = getattr(function, "__name__", "traced")
    omitted: list[str] = []
    folding = Folding(jax.Array, partial(_concrete, jax))
    with note_draws(omitted.append), folding.watched(_makers(jax)):
        jaxpr = _traced(jax, _arrays_of(jax, function, omitted), args, keywords)
    graph = Graph(name, rules=_rules(jax))
    values = [
        Value(graph.input(array_type(variable.aval), name=name))
        for name, variable in zip(_input_names(jaxpr), jaxpr.jaxpr.invars, strict=True)
    ]
    importer = Importer(graph, Sites(jax), jax, folding)
    graph.output(*importer.closed(jaxpr, values, None))
    cut = _cut_arguments(jax, jaxpr, jax.tree.leaves((args, keywords)), graph.input_names)
    notes = [*cut, *omitted, *importer.skipped, *importer.calls.notes(graph)]
    graph.describe(library="jax", notes=notes, unseen=folding.unseen(graph, function))
    return graph


def _makers(jax: Jax) -> list[tuple[Any, Any, str]]:
    """Return the constructors of JAX that make an array of Python numbers (see Folding.watched)."""
    names: list[tuple[Any, Any, str]] = [
        (jax.numpy, name, f"jnp.{name}") for name in ("array", "asarray")
    ]
    tracing: Any = sys.modules.get("jax._src.interpreters.partial_eval")
    rules = getattr(tracing, "const_fold_rules", {})
    if (conversion := jax.lax.convert_element_type_p) in rules:  # of numbers among operands
        names.append((rules, conversion, ""))
    return [*names, (type(jax.numpy.int32), "__call__", "a scalar type of jnp")]


def _concrete(jax: Jax, array: Any) -> Any:
    """Return the values of an array of JAX; None for a tracer and for keys."""
    if isinstance(array, jax.core.Tracer) or jax.dtypes.issubdtype(
        array.dtype, jax.dtypes.extended
    ):
        return None
    return np.asarray(array)


def _rules(jax: Jax) -> PromotionRules:
    """Return the rules of JAX's release and its present settings."""
    wide = jax.config.jax_enable_x64 or has_explicit_dtypes(jax)
    return rules("jax" if wide else "jax_x32").of_release(jax.__version__)


def _cut_arguments(
    jax: Jax, jaxpr: Jaxpr, leaves: Sequence[Any], names: Sequence[str]
) -> Iterator[str]:
    """Yield a sentence for each array of 64 bits of which JAX changes values as it makes it 32."""
    variables = jaxpr.jaxpr.invars
    for leaf, variable, name in zip(leaves, variables, names, strict=len(leaves) == len(variables)):
        if not isinstance(leaf, (np.ndarray, np.generic)) or has_keys(variable.aval):
            continue
        before: np.ndarray[Any, Any] = np.asarray(cast("Any", leaf))
        to: np.dtype[Any] = np.dtype(variable.aval.dtype)
        if before.dtype == to or before.dtype.kind not in "iufc":
            continue
        with np.errstate(all="ignore"):
            after: np.ndarray[Any, Any] = before.astype(to)
            changes = (after != before) & ~((after != after) & (before != before))
        if changes.any():
            first = np.argmax(changes)
            value, other = before.flat[first].item(), after.flat[first].item()
            yield (
                f"JAX makes the {before.dtype} argument {name} {to}, which changes {changes.sum()} "
                f"of {changes.size} values ({value!r} becomes {other!r}); to keep them write "
                'jax.config.update("jax_enable_x64", True)'
            )


def _traced(
    jax: Jax, function: Callable[..., Any], args: Sequence[Any], keywords: Mapping[str, Any]
) -> Any:
    """Return the jaxpr of a function; GraphError for a loop whose carry changes its dtype."""
    trace = jax.make_jaxpr(function)
    try:
        return trace(*args, **keywords)
    except Exception as error:
        again: Exception | None = None
        if is_about_dtypes(error):  # JAX traces no values
            again = _with_frames(jax, lambda: trace(*args, **keywords))
            again = again if (type(again), str(again)) == (type(error), str(error)) else None
        loop = None if again is None else refused_loop(again)
        if loop is not None:
            raise _refusal(jax, loop, function.__name__) from again
        note_error(error, _TracedValues(jax), again)
        raise


def _with_frames(jax: Jax, program: Callable[[], Any]) -> Exception | None:
    """Return the exception of a program with the frames that JAX hides; None if it raises none."""
    filtering = jax.config.jax_traceback_filtering
    jax.config.update("jax_traceback_filtering", "off")
    try:
        program()
    except Exception as error:
        return error
    finally:
        jax.config.update("jax_traceback_filtering", filtering)
    return None


class _BodyResult(NamedTuple):
    """A result of a function that JAX has traced alone, such as a branch of a condition."""

    jaxpr: Any
    number: int

    @property
    def dtype(self) -> Any:
        """The dtype of the result."""
        return self.jaxpr.out_avals[self.number].dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        return self.jaxpr.out_avals[self.number].shape


class _TracedValues(ProgramValues):
    """The values of a program that JAX traces. `jax` is the module."""

    def __init__(self, jax: Jax) -> None:
        self._jax = jax

    def is_traced(self, value: Any) -> bool:
        """Whether JAX knows the equation that makes a value."""
        return isinstance(value, _BodyResult) or self._tracer(value) is not None

    def _tracer(self, value: Any) -> Any:
        """Return the tracer of an equation below those of derivatives and maps; None of none."""
        tracer = self._jax.core.Tracer
        while isinstance(value, tracer) and not hasattr(value, "parent"):
            recipe = getattr(value, "recipe", None)  # of the linear part of a derivative
            if hasattr(recipe, "in_tracers"):
                break
            value = getattr(value, "primal", getattr(value if recipe is None else recipe, "val", 0))
        return value if isinstance(value, tracer) else None

    def symbols(self, values: Sequence[Any]) -> list[Symbol]:
        """Return the symbols of values in the graph of the equations behind them."""
        graph = Graph("partial", rules=_rules(self._jax))
        importer = Importer(graph, Sites(self._jax), self._jax)
        tracers = [x for x in values if not isinstance(x, _BodyResult)]
        behind = EquationsBehind(self._tracer).jaxpr(tracers)
        inputs = [Value(graph.input(array_type(x.aval))) for x in behind.invars]
        with graph.at(Location.at("", 0)):  # of numbers, which no equation makes
            found = iter(importer.closed(behind, inputs, None))
        results: dict[int, list[Symbol]] = {}
        symbols: list[Symbol] = []
        for value in values:
            if not isinstance(value, _BodyResult):
                symbols.append(next(found))
                continue
            jaxpr = value.jaxpr
            if id(jaxpr) not in results:
                given = [Value(graph.input(array_type(x.aval))) for x in jaxpr.jaxpr.invars]
                results[id(jaxpr)] = importer.closed(jaxpr, given, None)
            symbols.append(results[id(jaxpr)][value.number])
        return symbols

    def argument(self, symbol: Symbol) -> str:
        """Return "": the graph behind tracers has no names."""
        return ""

    def results(self, frame: FrameType) -> Iterator[tuple[str, Any]]:
        """Yield the results of functions that JAX has traced alone, such as branches.

        Of functions with as many results, these are those of unlike dtypes, if there are any.
        """
        jaxprs = {
            id(x): x
            for _, x in leaves_of(dict(frame.f_locals))
            if hasattr(x, "out_avals") and hasattr(x, "jaxpr")
        }
        counts = {len(x.out_avals) for x in jaxprs.values()}
        places = range(min(counts, default=0))
        unlike = [i for i in places if len({x.out_avals[i].dtype for x in jaxprs.values()}) > 1]
        for i in (len(counts) == 1 and unlike) or places:
            for jaxpr in jaxprs.values():
                yield f"result {i} of {_name(jaxpr)}", _BodyResult(jaxpr, i)


def _arrays_of(
    jax: Jax, function: Callable[..., Any], omitted: list[str]
) -> Callable[..., list[Any]]:
    """Return a function that returns the leaves of another one's result that are arrays.

    Each call puts a sentence about each other leaf into `omitted`.
    """

    @wraps(function)
    def arrays(*args: Any, **keywords: Any) -> list[Any]:
        omitted.clear()
        leaves: list[Any] = []
        for path, leaf in jax.tree_util.tree_leaves_with_path(function(*args, **keywords)):
            dtype = getattr(leaf, "dtype", None)
            is_array = isinstance(leaf, types) or hasattr(leaf, "__jax_array__")
            if is_array and dtype != jax.dtypes.float0:
                leaves.append(leaf)
            else:
                what = "float0" if is_array else type(leaf).__name__
                omitted.append(f"result{jax.tree_util.keystr(path)} is no output: it is {what}")
        return leaves

    types = jax.Array, np.ndarray, np.generic, bool, int, float, complex
    return arrays


def _refusal(jax: Jax, loop: RefusedLoop, name: str) -> GraphError:
    """Return the error for a loop whose carry changes its dtype, with the op that changes it."""
    graph = Graph(name, rules=_rules(jax))
    sites = Sites(jax)
    site = sites.of_frames(loop.frames)
    is_tracer = [isinstance(x, jax.core.Tracer) for x in loop.constants]
    variables = loop.body.jaxpr.invars
    with graph.at(site.location):
        operands = [
            ClosedConstant(loop.constants[i])
            if i < len(is_tracer) and not is_tracer[i]
            else Value(graph.input(array_type(variable.aval)))
            for i, variable in enumerate(variables)
        ]
        graph.output(*Importer(graph, sites, jax).closed(loop.body, operands, site))
    return loop.refusal(graph, [x.symbol for x in operands], site.location)


class PendingCast(NamedTuple):
    """A conversion of JAX's own that has no symbol yet: its result's type, and its site."""

    type: TensorType
    site: EquationSite


class Value(NamedTuple):
    """The value of a variable: a symbol, and the conversion of it that is pending, if any."""

    symbol: Symbol
    cast: PendingCast | None = None


class ClosedConstant:
    """An array that a jaxpr closes over: a constant at the line that first uses it."""

    def __init__(self, array: Any) -> None:
        self.array = array
        self.symbol: Symbol | None = None


class Importer:
    """Adds the equations of jaxprs to a graph. `jax` is the module."""

    def __init__(
        self, graph: Graph, sites: Sites, jax: Jax, folding: Folding | None = None
    ) -> None:
        self.graph, self.sites, self.jax, self.folding = graph, sites, jax, folding
        self._literal: type = optional("jax.extend.core", "jax", "from_jax").Literal
        self._site: EquationSite | None = None
        self.calls = JittedCalls()
        self.skipped: list[str] = []

    def closed(
        self, jaxpr: Jaxpr, values: Iterable[Operand], outer: EquationSite | None
    ) -> list[Symbol]:
        """Return the symbols of a jaxpr's results for the values of its inputs."""
        return [self._symbol(value) for value in self._inlined(jaxpr, values, outer)]

    def _inlined(
        self, jaxpr: Jaxpr, values: Iterable[Operand], outer: EquationSite | None
    ) -> list[Value]:
        constants: Sequence[Any] = getattr(jaxpr, "consts", ())
        block: Jaxpr = getattr(jaxpr, "jaxpr", jaxpr)
        environment: dict[Any, Operand] = dict(zip(block.invars, values, strict=True))
        for variable, constant in zip(block.constvars, constants, strict=True):
            environment[variable] = ClosedConstant(constant)
        needed, within = _needed(block), self.sites.traced_function(block)
        for equation, is_needed in zip(block.eqns, needed, strict=True):
            site = self.sites.of(equation, outer, within)
            if is_needed:
                self._equation(equation, environment, site)
            elif equation.effects:
                line = f"line {site.location.line}"
                self.skipped.append(f"{equation.primitive.name} of {line} is left out of the graph")
        return [self._value(variable, environment) for variable in block.outvars]

    # -- values

    def _operand(self, variable: Variable, environment: Mapping[Any, Operand]) -> Operand:
        if not isinstance(variable, self._literal):
            return environment[variable]
        type_ = array_type(variable.aval)
        if type_.dtype.weak:
            return Value(self.graph.scalar(np.asarray(variable.val).item()))
        return Value(self._constant(variable.val, type_.dtype))

    def _value(self, variable: Variable, environment: Mapping[Any, Operand]) -> Value:
        operand = self._operand(variable, environment)
        if isinstance(operand, Value):
            return operand
        if operand.symbol is None:
            operand.symbol = self._constant(operand.array)
        return Value(operand.symbol)

    def _constant(self, value: Any, dtype: DType | None = None) -> Symbol:
        value = self.jax.random.key_data(value) if has_keys(value) else value
        value = np.zeros(value.shape, bool) if is_float0(value) else value
        array = np.asarray(value, None if dtype is None else dtype.storage)
        dtype, graph = dtype or DType.from_numpy(array.dtype), self.graph
        place = None if self._site is None else self._site.location.place[:2]
        made = None if self.folding is None else self.folding.made(array, place)
        if made is None:
            return graph.constant_of((dtype, array))
        with graph.at(made.location):
            if made.is_number:
                attrs = {"dtype": dtype, "value": array, "literal": made.before.item()}
                attrs = graph.infer(ops.constant, (), attrs).attrs
                return graph.append(ops.constant, (), attrs, TensorType(dtype), made.location)
            source = _held(graph.rules, made.before)
            if source is None or source.exact_in(dtype):
                return graph.constant_of((dtype, array))
            held = graph.constant_of((source, made.before.astype(source.storage)))
            return graph.emit(ops.cast, (held,), {"to": dtype})

    def _symbol(self, value: Value) -> Symbol:
        """Return the symbol of a value, with its conversion as a cast."""
        symbol, pending = value
        if pending is None:
            return symbol
        with self.graph.at(pending.site.location):
            return self._cast(symbol, pending.type.dtype, pending.site)

    def _cast(self, symbol: Symbol, to: DType, site: EquationSite) -> Symbol:
        """Return a cast: explicit if the site is a conversion that the user wrote."""
        if _drops_imaginary(symbol.dtype, to):
            self.skipped.append(f"line {site.location.line}: JAX drops imaginary parts in {to}")
            symbol = self.graph.emit(ops.real, (symbol,), {})
            if symbol.dtype is to:
                return symbol
        if site.is_conversion:
            return self.graph.emit(ops.cast, (symbol,), {"to": to})
        operand, op = (INTERMEDIATE, site.function) if "." in site.function else ("x", "cast")
        return self.graph.cast_for(symbol, to, operand, op)

    # -- equations

    def _equation(
        self, equation: JaxprEquation, environment: dict[Any, Operand], site: EquationSite
    ) -> None:
        name, params = equation.primitive.name, equation.params
        self._site = site
        with self.graph.at(site.location):
            jaxpr = params.get(INLINED.get(name, ""))
            if name == "call_hi_primitive":
                jaxpr = self._expansion(equation)
            if _is_jaxpr(jaxpr):
                operands = [self._operand(variable, environment) for variable in equation.invars]
                if name in ("jit", "pjit") and not self.sites.traced_function(jaxpr.jaxpr):
                    operands = [
                        x if isinstance(x, ClosedConstant) else Value(self._symbol(x))
                        for x in operands
                    ]
                    self.calls.add(jaxpr, [x.symbol for x in operands], site.location)
                results = self._inlined(jaxpr, operands, site)
                environment.update(zip(equation.outvars, results, strict=True))
                return
            values = [self._value(variable, environment) for variable in equation.invars]
            if name == "convert_element_type":
                results = [self._conversion(values[0], array_type(equation.outvars[0].aval), site)]
            elif name in MOVING and (cast_ := values[0].cast) and cast_.site.place == site.place:
                symbol, type_ = values[0].symbol, array_type(equation.outvars[0].aval)
                (result,) = self._applied(equation, [Value(symbol)], [type_.cast(symbol.dtype)])
                results = [Value(result, cast_._replace(type=type_))]
            else:
                types = [array_type(variable.aval) for variable in equation.outvars]
                results = [Value(symbol) for symbol in self._applied(equation, values, types)]
        environment.update(zip(equation.outvars, results, strict=True))

    def _expansion(self, equation: JaxprEquation) -> Any:
        """Return the jaxpr of a primitive that JAX composes of others; None if it cannot."""
        jax, composed = self.jax, equation.params["_prim"]

        def expanded(*leaves: Any) -> Any:
            args = jax.tree.unflatten(composed.in_tree, leaves)
            return jax.tree.leaves(composed.expand(*args))

        avals = [variable.aval for variable in equation.invars]
        try:
            return jax.make_jaxpr(expanded)(*[_argument(jax, aval) for aval in avals])
        except Exception:  # of a stranger's class; JAX then says why as it computes the call
            return None

    def _conversion(self, value: Value, type_: TensorType, site: EquationSite) -> Value:
        """Return a conversion: pending if it is implicit, since the rules may imply it."""
        symbol = self._symbol(value)
        if symbol.type is type_:
            return Value(symbol)
        site = site._replace(is_conversion=self.sites.is_written(site))
        pending = Value(symbol, PendingCast(type_, site))
        return Value(self._symbol(pending)) if site.is_conversion else pending

    def _applied(
        self, equation: JaxprEquation, values: Sequence[Value], types: Sequence[TensorType]
    ) -> Sequence[Symbol]:
        """Return the results of a primitive, by its row or as a call."""
        name = equation.primitive.name
        assert self._site is not None
        place = self._site.place
        values = [  # the rules imply conversions of the function that has the op, and no others
            value
            if value.cast is None or value.cast.site.place == place
            else Value(self._symbol(value))
            for value in values
        ]
        row = ROWS.get(name)
        variables = (*equation.invars, *equation.outvars)
        has_key = any(has_keys(variable.aval) for variable in variables)
        if row is not None and (name in LOOPS or not has_key):
            call = Equation(self, name, types)
            if any(value.cast for value in values) and name in PROMOTING:
                results = self._by_row(row, call, equation.params, values, implies=True)
                if results is not None:
                    return results
            values = [Value(self._symbol(value)) for value in values]
            results = self._by_row(row, call, equation.params, values)
            if results is not None:
                return results
        return self._call_of(equation, [self._symbol(value) for value in values], types)

    def _by_row(
        self,
        row: Row,
        call: Equation,
        params: Mapping[str, Any],
        values: Sequence[Value],
        implies: bool = False,
    ) -> Sequence[Symbol] | None:
        """Return the results of a row; None where it does not cover an equation.

        If it `implies` conversions, the operands are the values before them. The answer is then
        None, too, where the rules convert an operand or type a result otherwise than JAX does.
        """
        types = cast("Sequence[TensorType]", call.types)
        with trial(self.graph) as attempt:  # the rules may refuse what only JAX promotes
            first = len(self.graph.symbols)
            symbols = ROWS.results(row, call, [value.symbol for value in values], params)
            if symbols is None:
                return None
            results = cast("Sequence[Symbol]", symbols)
            if not implies:
                return attempt.keep(self.conformed_all(results, types))
            if [x.type for x in results] == [*types] and self._are_implied(values, first):
                return attempt.keep(results)
        return None

    def _are_implied(self, values: Sequence[Value], first: int) -> bool:
        """Whether the symbols from `first` on demand the conversions that values have pending."""
        targets = {
            value.symbol.index: value.cast.type.dtype for value in values if value.cast is not None
        }
        for symbol in self.graph.symbols[first:]:
            demanded = self.graph.infer(symbol.op, symbol.args, symbol.attrs).operands
            for arg, dtype in zip(symbol.args, demanded, strict=True):
                if targets.get(arg.index, dtype) is not dtype:
                    return False
        return True

    def conformed(self, symbol: Symbol, type_: TensorType) -> Symbol:
        """Return a result in the dtype that the jaxpr has for it."""
        if symbol.type is type_:
            return symbol
        if symbol.shape != type_.shape:
            raise GraphError("the row has another shape than the jaxpr", got=str(symbol.type))
        assert self._site is not None
        return self._cast(symbol, type_.dtype, self._site._replace(is_conversion=False))

    def conformed_all(self, symbols: Sequence[Symbol], types: Sequence[TensorType]) -> list[Symbol]:
        """Return symbols in the dtypes that the jaxpr has for them."""
        return [self.conformed(*pair) for pair in zip(symbols, types, strict=True)]

    def _call_of(
        self, equation: JaxprEquation, args: Sequence[Symbol], types: Sequence[TensorType]
    ) -> Sequence[Symbol]:
        """Return the results of a primitive as those of a call of it."""
        function = BoundPrimitive(self.jax, equation)
        assert self._site is not None
        function.require_implementation(self._site.location)
        if not args and all(type(type_) is TensorType for type_ in types):
            return [self._constant(value) for value in self.jax.jit(function.run)()]
        attrs = {
            "callee": Callee(f"jax.{equation.primitive.name}", function),
            "types": TupleType(types),
            "parameters": _text(equation.params),
        }
        return self.control(ops.control.call, args, attrs)

    # -- control flow

    def body(
        self,
        jaxpr: Jaxpr,
        types: Iterable[TensorType],
        order: Sequence[int],
        results: Sequence[TensorType] = (),
        guard: tuple[Any, Sequence[int]] | None = None,
        is_test: bool = False,
    ) -> Graph:
        """Return the graph of a jaxpr, whose input i is the input `order[i]` of the graph.

        The first results of the graph have the types `results`, in which they enter it again. JAX
        lets a carry be weak on one side alone. `guard` is the condition of a mapped loop with the
        order of its inputs: it has an element for each row, and carries keep their rows where it
        is false.
        """
        graph = Graph(_name(jaxpr), rules=self.graph.rules, tf32=self.graph.tf32)
        importer, site = Importer(graph, self.sites, self.jax), self._site
        importer.skipped, importer._site = self.skipped, site
        assert site is not None
        with graph.at(site.location):
            inputs = [graph.input(type_) for type_ in types]

            def traced_results(jaxpr: Jaxpr, order: Sequence[int]) -> list[Symbol]:
                pairs = zip(order, jaxpr.jaxpr.invars, strict=True)
                values = [
                    Value(importer.conformed(inputs[place], array_type(variable.aval)))
                    for place, variable in pairs
                ]
                return importer.closed(jaxpr, values, site)

            outputs = traced_results(jaxpr, order)
            for i, type_ in enumerate(results):
                outputs[i] = importer.conformed(outputs[i], type_)
            if guard is not None:
                (is_running,) = traced_results(*guard)
                for i, type_ in enumerate(results):
                    shape = (*is_running.shape, *[1] * (type_.rank - is_running.rank))
                    rows = ops.reshape(is_running, shape=shape)
                    outputs[i] = ops.where(rows, outputs[i], inputs[i])
            if is_test and outputs[0].rank:
                outputs[0] = ops.any(outputs[0])  # a mapped loop runs until all rows are done
        graph.output(*outputs)
        return graph

    def control(self, op: Op, args: Sequence[Symbol], attrs: Mapping[str, Any]) -> Sequence[Symbol]:
        """Add an op that gives a tuple, and return its results."""
        return ops.control.parts(self.graph.emit(op, tuple(args), attrs))


Operand: TypeAlias = Value | ClosedConstant


def _name(jaxpr: Jaxpr) -> str:
    info = jaxpr.jaxpr.debug_info
    return (info.func_name if info is not None else "") or "body"


def _argument(jax: Jax, aval: AbstractValue) -> Any:
    """Return what stands for a value of this type among the arguments of make_jaxpr."""
    weak = getattr(aval, "weak_type", False)
    return jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=weak)


def _is_jaxpr(value: Any) -> bool:
    return hasattr(getattr(value, "jaxpr", value), "eqns")


def _needed(jaxpr: Jaxpr) -> list[bool]:
    """Return for each equation whether a result depends on it."""
    live = {id(variable) for variable in jaxpr.outvars}
    needed: list[bool] = []
    for equation in reversed(jaxpr.eqns):
        needed.append(any(id(variable) in live for variable in equation.outvars))
        if needed[-1]:
            live.update(id(variable) for variable in equation.invars)
    return needed[::-1]


def _text(params: Mapping[str, Any]) -> str:
    """Format the parameters of a primitive, shortened."""
    texts = (f"{name}={str(value)[:60]}" for name, value in params.items() if value is not None)
    return ", ".join(" ".join(text.split()) for text in texts)


def _input_names(jaxpr: Jaxpr) -> list[str]:
    """Return an identifier for each input, from its path among the arguments."""
    names: list[str] = []
    for i, path in enumerate(jaxpr.jaxpr.debug_info.arg_names or ()):
        name = re.sub(r"\W+", "_", path or "").strip("_")
        name = name if name.isidentifier() else f"x{i}"
        names.append(name if name not in names else f"{name}_{i}")
    return names


def _held(rules: PromotionRules, array: np.ndarray[Any, Any]) -> DType | None:
    """Return the dtype of rules in which a graph holds an array: its own, or one of 32 bits."""
    own = DType.from_numpy(array.dtype) if array.dtype.kind in "iufc" else None
    narrow = {DType.float64: DType.float32, DType.complex128: DType.complex64}
    return next((x for x in (own, narrow.get(own)) if x and rules.has(x)), None) if own else None


def _drops_imaginary(source: DType, target: DType) -> bool:
    """Whether JAX converts complex numbers by their real parts."""
    return source.is_complex and not target.is_complex and target is not DType.bool
