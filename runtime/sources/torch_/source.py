"""`from_torch`: the graph of a PyTorch function or module, recorded as it runs.

A dispatch mode receives each ATen op with its operands before promotion, so that PyTorch's
implicit conversions are those of the rules "torch". The other conversions are ops of their own: the
user, autocast or a function of PyTorch made them. Writes to tensors become new values. Every symbol
has the dtype and shape of its tensor.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, cast

from graphir import DType, Graph, GraphError, GraphirError, Origin, Symbol, ops
from graphir.gc_pause import uncollected
from graphir.location import ASSIGN, AUTOCAST, CALLERS, INTERMEDIATE
from graphir.ops.control import Callee
from graphir.ops.types import TupleType
from passes import dead_code
from runtime.optional import optional
from runtime.sources.torch_.frames import FunctionCall, TorchSites
from runtime.sources.torch_.rows import RowCall
from runtime.sources.torch_.tensors import Tensors, array_of, dtype_of, tensor_of, type_of
from runtime.sources.torch_.windows import ROWS

CALLERS.add(__name__)  # so that inputs have the location of the user's line


@uncollected
def from_torch(function: Any, /, *args: Any, **keywords: Any) -> Graph:
    """Return the graph of a PyTorch function or module, recorded on arguments like these.

    The function runs once. The tensors among the arguments become inputs, named after the
    parameters. Those of modules follow, under their names there, as `fc_weight`; their values
    before the run are the graph's `defaults`.
    Outputs are the tensors of the result, in the order of torch.utils._pytree, or the tensors that
    the function writes to if it returns none. The rules are "torch". An op that has no row becomes
    the op `call`. A torch.export.ExportedProgram runs on its example inputs. Raises GraphError
    where a value leaves the graph, as x.item() does.
    """
    torch = optional("torch", "torch", "from_torch")
    if torch.get_default_dtype() is not torch.float32:
        raise GraphError(
            "the rules 'torch' have the default dtype float32",
            got=str(torch.get_default_dtype()),
            fix="torch.set_default_dtype(torch.float32)",
        )
    recording = TorchRecorder(torch, getattr(function, "__name__", type(function).__name__))
    if isinstance(function, torch.export.ExportedProgram):
        program: Any = function
        if not args and not keywords:
            args, keywords = program.example_inputs
        function = program.module()
        recording.sites.follow(function)
    by_name = _arguments(function, args, keywords)
    recording.declare(by_name, function)
    return recording.run(lambda: function(*args, **keywords))


def tensors_of(
    torch: Any, function: Any, args: Sequence[Any], keywords: Mapping[str, Any]
) -> list[Any]:
    """Return the tensors among arguments, in the order of the inputs of their graph."""
    if isinstance(function, torch.export.ExportedProgram) and not args and not keywords:
        args, keywords = function.example_inputs
    by_name = _arguments(function, args, keywords)
    leaves = torch.utils._pytree.tree_leaves([*by_name.values()])
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


class TorchRecorder:
    """A run of a function whose ops become symbols. `torch` is the module."""

    def __init__(self, torch: Any, name: str) -> None:
        self.torch = torch
        self.graph = Graph(_identifier(name), rules="torch")
        self.graph.library = "torch"
        self.sites = TorchSites(torch)
        self.tensors = Tensors(self.graph, self._unmet)
        self._names: dict[int, tuple[str, Any]] = {}  # parameters, by their ids
        self._mode: Any = None
        self._outer: list[Any] = []  # the ops whose decompositions run
        self._mutated: dict[int, Any] = {}  # the tensors that ops have written to

    # -- inputs

    def declare(self, arguments: Mapping[str, Any], function: Any) -> None:
        """Add inputs for the tensors of arguments, then of modules: the function, and arguments."""
        tree, modules = self.torch.utils._pytree, [("", function)]
        for name, value in arguments.items():
            for path, leaf in tree.tree_flatten_with_path(value)[0]:
                if isinstance(leaf, self.torch.Tensor):
                    self._input(leaf, f"{name}{tree.keystr(path)}")
                modules.append((f"{name}.", leaf))
        for prefix, module in modules:
            if isinstance(module, self.torch.nn.Module):
                self.sites.add_modules(module)
                for name, tensor in (*module.named_parameters(), *module.named_buffers()):
                    if tensor not in self.tensors:
                        self.tensors[tensor] = self._parameter_input(tensor, name, prefix)

    def _name_parameters(self, module: Any) -> None:
        """Name the parameters of a module that the function has from elsewhere.

        Those that ops read become inputs.
        """
        for name, tensor in (*module.named_parameters(), *module.named_buffers()):
            self._names.setdefault(id(tensor), (name, tensor))

    def _input(self, tensor: Any, name: str) -> None:
        self.tensors[tensor] = self.graph.input(type_of(tensor), name=self._free(name))

    def _parameter_input(self, tensor: Any, name: str, prefix: str = "") -> Symbol:
        """Add an input whose default is the present value of a tensor, in its module's layer."""
        layer = name.rpartition(".")[0].replace(".", "/")
        with self.graph.at(self.sites.location(layer)):
            symbol = self.graph.input(type_of(tensor), name=self._free(prefix + name))
        self.graph.defaults[self.graph.input_names[-1]] = array_of(self.torch, tensor)
        return symbol

    def _free(self, name: str) -> str:
        """Return an identifier for a name that no input has."""
        text = _identifier(name)
        return f"{text}_{len(self.graph.inputs)}" if text in self.graph.input_names else text

    def _unmet(self, tensor: Any) -> Symbol:
        """Return the symbol of a tensor that no op has made and no argument has."""
        name, _ = self._names.get(id(tensor), ("", None))
        if name:
            return self._parameter_input(tensor, name)
        return self._constant(tensor)

    def _constant(self, tensor: Any) -> Symbol:
        """Return the constant of a tensor's values."""
        return self.graph.constant_of((dtype_of(tensor.dtype), array_of(self.torch, tensor)))

    # -- the run

    def run(self, program: Callable[[], Any]) -> Graph:
        """Run a program, and return its graph."""
        base = self.torch.utils._python_dispatch.TorchDispatchMode
        functions = self.torch.overrides.TorchFunctionMode

        def dispatch(mode: Any, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return self._dispatch(op, args, kwargs or {})

        def function(mode: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            with self.sites.calling(func, args, kwargs or {}):
                if getattr(func, "__name__", "") in _LEAVING:
                    self._refuse_leaving(func.__name__, args[:1])
                return func(*args, **(kwargs or {}))

        self._mode = type("Dispatch", (base,), {"__torch_dispatch__": dispatch})()
        mode = type("Functions", (functions,), {"__torch_function__": function})()
        with ExitStack() as stack:
            stack.enter_context(self.sites.layers(self._name_parameters))
            stack.enter_context(self._mode)
            stack.enter_context(mode)
            result = program()
        leaves = self._tensors(result) or [*self._mutated.values()]
        if not leaves:
            raise GraphError("the function returns no tensor, and writes to none", got=repr(result))
        self.graph.output(*[self.tensors[leaf] for leaf in leaves])
        return dead_code(self.graph)

    def _dispatch(self, op: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Run an op, and add its symbols."""
        with self.graph.at(self.sites.location()):
            targets = _targets(op, args, kwargs)
            if targets:
                return self._in_place(op, args, kwargs, targets)
            operands = self._operands(args, kwargs)
            result = op(*args, **kwargs)
            results = self._tensors(result)
            if results:
                symbols = self._symbols(op, operands, (args, kwargs), results)
                for tensor, symbol in zip(results, symbols, strict=True):
                    self.tensors[tensor] = symbol
            else:
                self._refuse_leaving(_name(op), args)
        return result

    def _in_place(
        self, op: Any, args: Sequence[Any], kwargs: Mapping[str, Any], targets: Sequence[Any]
    ) -> Any:
        """Run an op that writes to tensors: the op without writes, then casts to their dtypes."""
        operands = self._operands(args, kwargs)
        pure = getattr(self.torch.ops.aten, _name(op).removesuffix("_"), None)
        pure = getattr(pure, op._overloadname, None)
        results: list[Any] = []
        if pure is not None and pure is not op and not _targets(pure, args, kwargs):
            results = self._tensors(pure(*args, **kwargs))
        if len(results) == len(targets):
            symbols = self._symbols(pure, operands, (args, kwargs), results)
            result = op(*args, **kwargs)
        else:
            result = op(*args, **kwargs)
            results = self._tensors(result)
            if any(all(each is not target for target in targets) for each in results):
                raise GraphError(f"{op} writes to tensors and returns others", fix="use x.clone()")
            symbols = self._call(op, operands, (args, kwargs), targets, targets)
        for target, symbol in zip(targets, symbols, strict=True):
            value = self._cast(symbol, dtype_of(target.dtype), "value", _name(op), ASSIGN)
            if value.shape != tuple(target.shape):
                value = self.graph.apply(ops.broadcast_to, (value,), {"shape": tuple(target.shape)})
            self.tensors.write(target, value)
            if not self._outer:
                self._mutated[id(target)] = target
        return result

    def _operands(self, args: Any, kwargs: Any) -> tuple[Any, Any]:
        """Return the arguments of an op with symbols for tensors."""
        return _map(self.torch, self.tensors.__getitem__, (tuple(args), dict(kwargs)))

    def _tensors(self, value: Any) -> list[Any]:
        tensor = self.torch.Tensor
        return [x for x in self.torch.utils._pytree.tree_leaves(value) if isinstance(x, tensor)]

    def _symbols(
        self, op: Any, operands: tuple[Any, Any], real: tuple[Any, Any], results: Sequence[Any]
    ) -> Sequence[Symbol]:
        """Return the symbols of an op's results: by its row, its decomposition, or as a call."""
        before = len(self.graph.symbols)
        is_random = self.torch.Tag.nondeterministic_seeded in op.tags and not _keeps_all(op, *real)
        for way in () if is_random else (self._by_row, self._by_decomposition, self._as_view):
            try:
                symbols = way(op, operands, real, results)
                if symbols is not None:
                    return [self._conformed(op, *pair) for pair in zip(symbols, results)]  # noqa: B905 -- a row may leave out the last results
            except (GraphirError, TypeError, RuntimeError, ValueError, NotImplementedError):
                pass  # the rules refuse, or the row does not cover the arguments
            del self.graph.symbols[before:]
        if not is_random and not self._tensors(real):
            return [self._constant(result) for result in results]
        if self._outer:
            raise GraphError(f"{op} has no row")
        return self._call(op, operands, real, results)

    def _by_row(
        self, op: Any, operands: tuple[Any, Any], real: tuple[Any, Any], results: Sequence[Any]
    ) -> Sequence[Symbol] | None:
        args, kwargs = operands
        name = _name(op)
        if name in ("_to_copy", "convert_element_type"):
            return self._conversion(args[0], real[0][0], results[0])
        row = ROWS.get(name)
        if row is None:
            return None
        keywords = {key: value for key, value in kwargs.items() if key not in _IGNORED}
        call = RowCall(
            self.graph,
            op._overloadname,
            [*map(type_of, results)],
            lambda x, to: self._cast(x, to, INTERMEDIATE, f"torch.{name}"),
        )
        result = row(call, *args, **keywords)
        if result is None:
            return None
        several = isinstance(result, (list, tuple))
        symbols: list[Symbol] = [*cast("Any", result)] if several else [result]
        return symbols if len(symbols) == len(results) else None

    def _by_decomposition(
        self, op: Any, operands: tuple[Any, Any], real: tuple[Any, Any], results: Sequence[Any]
    ) -> Sequence[Symbol] | None:
        """Return the symbols of PyTorch's own decomposition, if rows cover all its ops."""
        table = self.torch._decomp.decomposition_table
        name = _name(op)
        function = _each(self.torch, name) if name.startswith("_foreach_") else table.get(op)
        kernels = self.torch._C._dispatch_has_kernel_for_dispatch_key
        if function is None and kernels(op.name(), "CompositeImplicitAutograd"):
            function = op.decompose
        if function is None or op in self._outer:
            return None
        self._outer.append(op)
        try:
            with self.torch.no_grad(), self._mode:
                values = self._tensors(function(*real[0], **real[1]))
        finally:
            self._outer.pop()
        return [self.tensors[value] for value in values]

    def _as_view(
        self, op: Any, operands: tuple[Any, Any], real: tuple[Any, Any], results: Sequence[Any]
    ) -> Sequence[Symbol] | None:
        return [self.tensors.view(result) for result in results] if op.is_view else None

    def _call(
        self,
        op: Any,
        operands: tuple[Any, Any],
        real: tuple[Any, Any],
        results: Sequence[Any],
        targets: Sequence[Any] = (),
    ) -> Sequence[Symbol]:
        """Return the results of an op as those of a call of it."""
        symbols = [x for x in self._leaves(operands) if isinstance(x, Symbol)]
        attrs = {
            "callee": Callee(f"torch.{op}", _Bound(self.torch, op, real, targets)),
            "types": TupleType(map(type_of, results)),
        }
        return ops.control.parts(self.graph.emit(ops.control.call, tuple(symbols), attrs))

    def _leaves(self, value: Any) -> list[Any]:
        return self.torch.utils._pytree.tree_leaves(value)

    # -- conversions

    def _conversion(self, symbol: Any, source: Any, result: Any) -> Sequence[Symbol]:
        """Return the cast of `_to_copy`: of the user, of autocast, or of a function of PyTorch."""
        call, to = self.sites.function, dtype_of(result.dtype)
        if self._outer:
            return [self._cast(symbol, to, INTERMEDIATE, f"torch.{_name(self._outer[0])}")]
        if call is None or call.is_conversion:
            return [self.graph.emit(ops.cast, (symbol,), {"to": to})]
        if not call.autocast:
            return [self._cast(symbol, to, INTERMEDIATE, f"torch.{call.name}")]
        operand = self._parameter(call, source)
        return [self._cast(symbol, to, operand, f"torch.{call.name}", AUTOCAST)]

    def _parameter(self, call: FunctionCall, tensor: Any) -> str:
        """Return the parameter of a function for which a tensor was passed."""
        packet = getattr(self.torch.ops.aten, call.name, None)
        overloads = packet.overloads() if packet is not None else ()
        schema = getattr(packet, overloads[0])._schema.arguments if overloads else ()
        for i, value in enumerate(call.arguments[0]):
            if any(self.tensors.are_same(each, tensor) for each in self._tensors(value)):
                return schema[i].name if i < len(schema) else f"argument {i + 1}"
        for name, value in call.arguments[1].items():
            if value is tensor:
                return name
        return INTERMEDIATE

    def _cast(
        self, symbol: Symbol, to: DType, operand: str, op: str, rule: str | None = None
    ) -> Symbol:
        """Return a symbol in another dtype, by a cast with an origin."""
        if symbol.dtype is to:
            return symbol
        cast_ = self.graph.emit(ops.cast, (symbol,), {"to": to})
        rule = rule or self.graph.rules.name
        cast_.source = (Origin(operand, op, cast_.location, rule, symbol.dtype, to),)
        return cast_

    def _conformed(self, op: Any, symbol: Symbol, tensor: Any) -> Symbol:
        """Return a result in the dtype of its tensor; GraphError for another shape."""
        type_ = type_of(tensor)
        if symbol.shape != type_.shape:
            raise GraphError(f"the row of {op} gives another shape", got=str(symbol.type))
        return self._cast(symbol, type_.dtype, "result", f"torch.{_name(op)}")

    def _refuse_leaving(self, name: str, args: Sequence[Any]) -> None:
        """Raise GraphError if the value of a tensor that depends on inputs leaves the graph."""
        for tensor in self._tensors(args):
            symbol = self.tensors[tensor]
            if name in _VALUES and _depends_on_inputs(symbol):
                raise GraphError(
                    f"{name}: the value of a tensor leaves the graph, which holds for all values",
                    got=str(symbol.type),
                    fix="use torch.where, or pass the value as an argument",
                    op=name,
                ).at(self.sites.location(), name)


_LEAVING = frozenset(("numpy", "tolist", "__array__"))
"""The functions of PyTorch that read values without an op."""

_VALUES = _LEAVING | {"_local_scalar_dense", "equal", "is_nonzero", "item", "allclose"}

_IGNORED = frozenset(
    ("layout", "device", "pin_memory", "memory_format", "non_blocking", "implicit", "generator")
)
"""The arguments of ops that change no values."""


class _Bound:
    """An op with its other arguments, as a function of arrays.

    The results are those of the op, or the values of the tensors that it writes to.
    """

    def __init__(self, torch: Any, op: Any, real: tuple[Any, Any], targets: Sequence[Any]) -> None:
        self._torch, self._op = torch, op
        leaves, self._tree = torch.utils._pytree.tree_flatten(real)
        tensors = [x for x in leaves if isinstance(x, torch.Tensor)]
        self._targets = [next(i for i, x in enumerate(tensors) if x is y) for y in targets]
        self._leaves = [_TENSOR if isinstance(x, torch.Tensor) else x for x in leaves]

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        tensors = [tensor_of(self._torch, array) for array in arrays]
        values = iter(tensors)
        leaves = [next(values) if leaf is _TENSOR else leaf for leaf in self._leaves]
        tree = self._torch.utils._pytree
        args, kwargs = tree.tree_unflatten(leaves, self._tree)
        with self._torch.no_grad():
            result = self._op(*args, **kwargs)
        if self._targets:
            result = [tensors[i] for i in self._targets]
        results = [x for x in tree.tree_leaves(result) if isinstance(x, self._torch.Tensor)]
        return tuple([array_of(self._torch, x) for x in results])


_TENSOR = object()


def _each(torch: Any, name: str) -> Callable[..., Any]:
    """Return the function that runs a `_foreach_` op's op on the elements of its lists."""
    op = getattr(torch.ops.aten, name.removeprefix("_foreach_"))

    def run(first: Sequence[Any], *args: Any, **kwargs: Any) -> list[Any]:
        def at(i: int, value: Any) -> Any:
            return cast("Any", value)[i] if isinstance(value, (list, tuple)) else value

        return [
            op(x, *(at(i, y) for y in args), **{key: at(i, y) for key, y in kwargs.items()})
            for i, x in enumerate(first)
        ]

    return run


def _targets(op: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """Return the tensors that an op writes to."""
    targets: list[Any] = []
    for i, argument in enumerate(op._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[i] if i < len(args) else kwargs.get(argument.name)
            targets += () if value is None else value if isinstance(value, list) else [value]
    return targets


def _keeps_all(op: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether an op with dropout drops nothing."""
    names = [argument.name for argument in op._schema.arguments]
    if "dropout_p" not in names:
        return False
    place = names.index("dropout_p")
    return not (args[place] if place < len(args) else kwargs.get("dropout_p"))


def _name(op: Any) -> str:
    """Return the name of an op without namespace and overload."""
    name = op._schema.name.partition("::")[2]
    return name[2:-2] if name.startswith("__") and name.endswith("__") else name


def _map(torch: Any, function: Callable[[Any], Any], value: Any) -> Any:
    return torch.utils._pytree.tree_map_only(torch.Tensor, function, value)


def _depends_on_inputs(symbol: Symbol) -> bool:
    visited, pending = set[int](), [symbol]
    while pending:
        each = pending.pop()
        if each.op is ops.input or (each.op is ops.control.call and not each.args):
            return True
        if each.index not in visited:
            visited.add(each.index)
            pending += each.args
    return False


def _identifier(text: str) -> str:
    name = re.sub(r"\W+", "_", text).strip("_")
    return name if name.isidentifier() else f"x_{name}"


def _arguments(function: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments by the names of parameters; those of `*args` by their places."""
    try:
        bound = inspect.signature(getattr(function, "forward", function)).bind(*args, **keywords)
    except (TypeError, ValueError):
        return {**{f"x{i}": value for i, value in enumerate(args)}, **keywords}
    by_name: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        kind = bound.signature.parameters[name].kind
        by_name.update(value if kind is inspect.Parameter.VAR_KEYWORD else {name: value})
    return by_name
