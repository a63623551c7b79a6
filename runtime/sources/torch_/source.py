"""`from_torch`: the graph of a PyTorch function or module, recorded as it runs.

A dispatch mode receives each ATen op with its operands before promotion, so that PyTorch's
implicit conversions are those of the rules "torch". The other conversions are ops of their own: the
user, autocast or a function of PyTorch made them. Writes to tensors become new values. Every symbol
has the dtype and shape of its tensor.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields, is_dataclass
from functools import partial
from typing import Any, cast

import numpy as np

from graphir import DType, Graph, GraphError, GraphirError, Origin, Symbol, ops, rules
from graphir.decorators import uncollected
from graphir.ir.liveness import live_mask
from graphir.location import ASSIGN, AUTOCAST, INTERMEDIATE
from graphir.ops.control import Callee
from graphir.ops.types import TupleType
from graphir.passes import dead_code
from graphir.runtime.optional import optional
from graphir.runtime.sources.draws import note_draws
from graphir.runtime.sources.folding import Folding
from graphir.runtime.sources.names import identifier
from graphir.runtime.sources.torch_.calls import BoundOp
from graphir.runtime.sources.torch_.decompositions import decomposition, functional_op, name_of
from graphir.runtime.sources.torch_.elementwise import vector_places
from graphir.runtime.sources.torch_.frames import PROMOTED, FunctionCall, TorchSites
from graphir.runtime.sources.torch_.functions import Replacements
from graphir.runtime.sources.torch_.rows import RowCall
from graphir.runtime.sources.torch_.scatters import ROWS
from graphir.runtime.sources.torch_.tensors import Tensors, array_of, dtype_of, type_of


@uncollected
def from_torch(function: Any, /, *args: Any, **keywords: Any) -> Graph:
    """Return the graph of a PyTorch function or module, recorded on arguments like these.

    The function runs once. The tensors among the arguments become inputs, named after the
    parameters. Those of modules follow, under their names there, as `fc_weight`; their values
    before the run are the graph's `defaults`.
    Outputs are the tensors of the result, in the order of torch.utils._pytree, or the tensors that
    the function writes to if it returns none. The rules are "torch". An op that has no row becomes
    the op `call`. A torch.export.ExportedProgram runs on its example inputs, and what torch.compile
    returns runs uncompiled. The notes of the graph name what it leaves out or varies: checks of
    values, writes to arguments and parameters that are no results, random ops. Raises GraphError
    where another value leaves the graph, as x.item() does.
    """
    torch = optional("torch", "torch", "from_torch")
    if torch.get_default_dtype() is not torch.float32:
        raise GraphError(
            "the rules 'torch' have the default dtype float32",
            got=str(torch.get_default_dtype()),
            fix="torch.set_default_dtype(torch.float32)",
        )
    compiled = (
        "_orig_mod" if isinstance(function, torch.nn.Module) else "_torchdynamo_orig_callable"
    )
    function = getattr(function, compiled, function)
    recording = TorchRecorder(torch, getattr(function, "__name__", type(function).__name__))
    if isinstance(function, torch.export.ExportedProgram):
        program: Any = function
        if not args and not keywords:
            args, keywords = program.example_inputs
        function = program.module()
        recording.sites.follow(function)
    args, keywords = recording.separate_inputs(args, keywords)
    recording.declare(_arguments(function, args, keywords), function)
    return recording.run(lambda: function(*args, **keywords), function)


def tensors_of(
    torch: Any, function: Any, args: Sequence[Any], keywords: Mapping[str, Any]
) -> list[Any]:
    """Return the tensors among arguments, in the order of the inputs of their graph."""
    if isinstance(function, torch.export.ExportedProgram) and not args and not keywords:
        args, keywords = function.example_inputs
    by_name = _arguments(function, args, keywords)
    lengths = _batch_sizes(torch, by_name)
    leaves = [leaf for _, leaf in paths(torch, by_name) if isinstance(leaf, torch.Tensor)]
    return [leaf for leaf in leaves if id(leaf) not in lengths]


def _batch_sizes(torch: Any, arguments: Any) -> set[int]:
    """Return the ids of the tensors that say how the packed sequences of arguments are packed."""
    packed = torch.nn.utils.rnn.PackedSequence

    def is_packed(value: Any) -> bool:
        return isinstance(value, packed)

    leaves = torch.utils._pytree.tree_leaves(arguments, is_leaf=is_packed)
    return {id(leaf.batch_sizes) for leaf in filter(is_packed, leaves)}


def paths(torch: Any, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a tree with their paths; the fields of a dataclass are a tree."""
    tree = torch.utils._pytree
    for path, leaf in tree.tree_flatten_with_path(value)[0]:
        if is_dataclass(leaf) and not isinstance(leaf, type):
            for field in fields(leaf):
                for rest, part in paths(torch, getattr(leaf, field.name)):
                    yield f"{tree.keystr(path)}.{field.name}{rest}", part
        else:
            yield tree.keystr(path), leaf


class TorchRecorder:
    """A run of a function whose ops become symbols. `torch` is the module."""

    def __init__(self, torch: Any, name: str) -> None:
        self.torch = torch
        self.graph = Graph(identifier(name), rules=rules("torch").of_release(torch.__version__))
        self.graph.library = "torch"
        self.sites = TorchSites(torch)
        self.tensors = Tensors(self.graph, self._unmet)
        self._names: dict[int, tuple[str, Any]] = {}  # parameters, by their ids
        self._mode: Any = None
        self._has_avx512 = torch.backends.cpu.get_cpu_capability() == "AVX512"
        self._outer: list[Any] = []  # the ops whose decompositions run
        self._notes: dict[str, None] = {}
        self._folding = Folding(torch.Tensor, partial(array_of, torch))
        self._entered: list[Any] = []
        self._folding.entered = self._entered
        self._failure: tuple[Any, GraphError | None] = None, None
        self._sized: list[tuple[Symbol, str]] = []  # calls whose sizes depend on values
        self._writes: dict[int, Any] = {}  # the arguments and parameters that ops have written to
        self._unwritten: dict[int, Any] = {}  # tensors of torch.empty, by their storages

    # -- inputs

    def declare(self, arguments: Mapping[str, Any], function: Any) -> None:
        """Add inputs for the tensors of arguments, then of modules: the function, and arguments."""
        modules: list[tuple[str, Any]] = [("", function)]
        lengths = _batch_sizes(self.torch, arguments)
        for path, leaf in paths(self.torch, arguments):
            name = path.removeprefix("['").replace("']", "", 1)
            if id(leaf) in lengths:
                self.tensors.add_outer(leaf, self._constant(leaf), name)
                text = f"the batch sizes of the packed sequence {name} are constants of the graph"
                self._notes[text] = None
            elif isinstance(leaf, self.torch.Tensor):
                self._input(leaf, name)
            elif isinstance(leaf, np.ndarray):
                text = f"the values of the NumPy array {name} are constants of the graph"
                self._notes[f"{text}; pass a torch.Tensor"] = None
            modules.append((f"{name}.", cast("Any", leaf)))
        for prefix, module in modules:
            if isinstance(module, self.torch.nn.Module):
                self.sites.add_modules(module)
                for name, tensor in (*module.named_parameters(), *module.named_buffers()):
                    self._check(tensor, name)
                    if self.tensors.is_new(tensor):  # not tied, nor a view of another
                        symbol = self._parameter_input(tensor, name, prefix)
                        self.tensors.add_outer(tensor, symbol, prefix + name)

    def separate_inputs(self, args: Any, keywords: Any) -> tuple[Any, Any]:
        """Return arguments of which no two share memory, but with parameters of modules."""
        leaves = [leaf for _, leaf in paths(self.torch, (args, keywords))]
        modules = [leaf for leaf in leaves if isinstance(leaf, self.torch.nn.Module)]
        parameters = {self.tensors.key(x) for module in modules for x in module.parameters()}
        keys = set[int]()

        def separate(tensor: Any) -> Any:
            type_of(tensor)
            key = self.tensors.key(tensor)
            if key in keys - parameters:  # so that the graph holds for values that differ
                return tensor.detach().clone().requires_grad_(tensor.requires_grad)
            keys.add(key)
            return tensor

        return _map(self.torch, separate, (args, keywords))

    def _name_parameters(self, module: Any) -> None:
        """Name the parameters of a module that the function has from elsewhere.

        Those that ops read become inputs.
        """
        for name, tensor in (*module.named_parameters(), *module.named_buffers()):
            self._names.setdefault(id(tensor), (name, tensor))

    def _check(self, tensor: Any, name: str) -> None:
        """Raise GraphError for a tensor without values of its own."""
        dispatch = cast("Any", type(tensor)).__torch_dispatch__
        lazy = isinstance(tensor, self.torch.nn.parameter.UninitializedTensorMixin)
        if lazy or dispatch is not self.torch.Tensor.__torch_dispatch__:
            raise GraphError(
                f"from_torch: {name} is a {type(tensor).__name__}, which holds no plain values",
                fix="run the lazy module once" if lazy else "pass a plain torch.Tensor",
            )

    def _input(self, tensor: Any, name: str) -> None:
        self._check(tensor, name)
        if self.tensors.is_new(tensor):  # not a tied parameter, or a view of one
            symbol = self.graph.input(type_of(tensor), name=self._free(name))
            self.tensors.add_outer(tensor, symbol, name)

    def _parameter_input(self, tensor: Any, name: str, prefix: str = "") -> Symbol:
        """Add an input whose default is the present value of a tensor, in its module's layer."""
        layer = name.rpartition(".")[0].replace(".", "/")
        with self.graph.at(self.sites.location(layer)):
            symbol = self.graph.input(type_of(tensor), name=self._free(prefix + name))
        self.graph.defaults[self.graph.input_names[-1]] = array_of(self.torch, tensor)
        return symbol

    def _free(self, name: str) -> str:
        """Return an identifier for a name that no input has."""
        text = identifier(name)
        return f"{text}_{len(self.graph.inputs)}" if text in self.graph.input_names else text

    def _unmet(self, tensor: Any) -> tuple[Symbol, str]:
        """Return the symbol of a tensor that no op has made and no argument has, and its name."""
        name, _ = self._names.get(id(tensor), ("", None))
        if name:
            return self._parameter_input(tensor, name), name
        return self._constant(tensor), "tensors from outside the function"

    def _note(self, text: str) -> None:
        """Note what the graph says of a line of the program otherwise than the line does."""
        self._notes[f"line {self.sites.location().line}: {text}"] = None

    def _constant(self, tensor: Any) -> Symbol:
        """Return the constant of a tensor's values."""
        type_, array = type_of(tensor), array_of(self.torch, tensor)
        self._entered.append(array)
        return self.graph.constant_of((type_.dtype, array))

    # -- the run

    def run(self, program: Callable[[], Any], function: Any) -> Graph:
        """Run a program, the call of a function, and return its graph."""
        base = self.torch.utils._python_dispatch.TorchDispatchMode
        functions = self.torch.overrides.TorchFunctionMode
        replacements = Replacements(
            self.torch, lambda tensor: _depends_on_inputs(self.tensors[self._plain(tensor)])
        )

        def dispatch(mode: Any, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            try:
                return self._dispatch(op, args, kwargs or {})
            except GraphirError as error:
                if self._outer:
                    raise
                raise error.at(self.sites.location(), f"torch.{op}") from None

        def watch(mode: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            with self.sites.calling(func, args, kwargs or {}):
                name = getattr(func, "__name__", "")
                other = replacements.of(name, args, kwargs or {})
                if other is not None:
                    return other()
                self._refuse_leaving(_values_read(func, args, kwargs or {}))
                if name == "lstm":
                    return self.sites.lstm(func, args)
                result = func(*args, **(kwargs or {}))
                if name in _MAKERS and args:
                    dtype = dtype_of(result.dtype).to_numpy()
                    self._folding.note_array(f"torch.{name}", self.sites.location(), args[0], dtype)
                return result

        members = {"__torch_dispatch__": dispatch, "supports_higher_order_operators": True}
        self._mode = type("Dispatch", (base,), members)()
        mode = type("Functions", (functions,), {"__torch_function__": watch})()
        with ExitStack() as stack:
            stack.enter_context(self.sites.layers(self._name_parameters))
            if "torch._dynamo" in sys.modules:  # what torch.compile compiled runs as written
                stack.enter_context(self.torch.compiler.set_stance("force_eager"))
            self.torch.clear_autocast_cache()  # casts of earlier runs, whose ops would not show
            stack.enter_context(self._mode)
            stack.enter_context(mode)
            stack.enter_context(note_draws(lambda text: self._notes.setdefault(text)))
            try:
                result = program()
            except RuntimeError as error:
                if error is self._failure[0] and self._failure[1] is not None:
                    raise self._failure[1] from error
                raise
        leaves = [x for _, x in paths(self.torch, result) if isinstance(x, self.torch.Tensor)]
        leaves = leaves or [*self._writes.values()]
        if not leaves:
            raise GraphError("the function returns no tensor, and writes to none", got=repr(result))
        last = self.graph.symbols[-1].location if self.graph.symbols else self.sites.location()
        try:
            self.graph.output(*[self._read(leaf) for leaf in leaves])
        except GraphirError as error:  # after the program: its last line that computes
            raise error.at(last, "return") from None
        outputs = {output.index for output in self.graph.outputs}
        hidden = [x for x in self._writes.values() if self.tensors[x].index not in outputs]
        if hidden:
            names = list(dict.fromkeys(map(self.tensors.outer_name, hidden)))
            more = f" and {len(names) - 3} others" if len(names) > 3 else ""
            text = f"the values written to {', '.join(names[:3])}{more} are no outputs of the graph"
            self._notes[f"{text}; return them to see their casts"] = None
        self._note_sizes()
        graph = dead_code(self.graph)
        graph.notes = [*self._notes]
        graph.unseen = self._folding.unseen(graph, function)
        return graph

    def _note_sizes(self) -> None:
        """Note the sizes that depend on values, of calls without users: no run checks them."""
        live = live_mask(self.graph, self.graph.outputs)
        for call, name in self._sized:
            if not live[call.index]:
                text = f"line {call.location.line}: the sizes of {name} depend on values"
                self._notes[f"{text}, and the graph holds where they are {call.type}"] = None

    def _dispatch(self, op: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Run an op, and add its symbols."""
        if isinstance(op, self.torch._ops.HigherOrderOperator):
            raise GraphError("control flow has no row", fix="use torch.where", op=f"{op}")
        with self.graph.at(self.sites.location()):
            targets = _targets(op, args, kwargs)
            if targets:
                return self._in_place(op, args, kwargs, targets)
            if any(x.is_meta for x in self._tensors((args, kwargs))):
                return op(*args, **kwargs)  # PyTorch's own question for a shape
            if name_of(op) == "lift_fresh":  # of torch.tensor, whose values no op has made
                self.tensors[args[0]] = self._constant(args[0])
            operands = self._operands(args, kwargs, op.is_view)
            if name_of(op) == "_pack_padded_sequence" and _depends_on_inputs(operands[0][1]):
                raise GraphError(
                    "the lengths of a packed sequence depend on the inputs, and decide what runs",
                    got=str(operands[0][1].type),
                    fix="pass them as a list, or as a tensor that the function has from outside",
                )
            try:
                result = op(*args, **kwargs)
            except RuntimeError as error:
                if re.search("dtype|scalar type|ScalarType", str(error)):
                    self._failure = error, self._unlike(op, operands)
                raise
            results = self._tensors(result)
            if name_of(op) in _EMPTY:
                self._unwritten[self.tensors.key(results[0])] = results[0]
            if results and not results[0].is_meta:
                symbols = self._symbols(op, operands, (args, kwargs), results)
                for tensor, symbol in zip(results, symbols, strict=True):
                    self.tensors[tensor] = symbol
            elif not results and name_of(op) in _READING:
                self._refuse_leaving(args)
        return result

    def _unlike(self, op: Any, operands: tuple[Any, Any]) -> GraphError | None:
        """Return the error of an op whose operands have several float dtypes; else None."""
        symbols = [x for x in self._leaves(operands) if isinstance(x, Symbol) and x.dtype.is_float]
        dtypes = sorted({x.dtype for x in symbols}, key=lambda dtype: dtype.bits)
        if len(dtypes) < 2:
            return None
        return GraphError(
            "PyTorch computes this op of operands of one dtype",
            got=", ".join(str(x.type) for x in symbols),
            fix=f"cast with .to(torch.{dtypes[0]}) or .to(torch.{dtypes[-1]})",
            op=f"torch.{name_of(op)}",
        ).at(self.sites.location(), f"torch.{name_of(op)}")

    def _in_place(
        self, op: Any, args: Sequence[Any], kwargs: Mapping[str, Any], targets: Sequence[Any]
    ) -> Any:
        """Run an op that writes to tensors: the op without writes, then casts to their dtypes."""
        for target in targets:
            self._unwritten.pop(self.tensors.key(target), None)
        operands = self._operands(args, kwargs)
        if self.torch.Tag.inplace_view in op.tags:
            op(*args, **kwargs)
            for target in targets:  # of another geometry, with the same values
                self.tensors[target] = self.tensors.view(target)
            return args[0]
        if name_of(op) == "copy_":
            self._write(op, targets, [self._copied_value(operands[0][1], targets[0].dtype)])
            return op(*args, **kwargs)
        pure, shapes = functional_op(self.torch, op), [x.shape for x in targets]
        # A reduction computes in the dtype of its `out`.
        inner = {} if pure is None else kwargs_of(pure, {"dtype": targets[0].dtype, **kwargs})
        results = [] if pure is None else self._tensors(pure(*args, **inner))
        if len(results) == len(targets):
            keywords = {**inner, **kwargs_of(pure, operands[1])}
            symbols = self._symbols(pure, (operands[0], keywords), (args, inner), results)
            if self._is_random(op, (args, kwargs)):  # a second draw would be another
                for target, value in zip(targets, results, strict=True):
                    target.copy_(value)
                result = targets[0] if op._schema.returns else None
            else:  # PyTorch itself says which results it stores
                result = op(*args, **kwargs)
        else:
            result = op(*args, **kwargs)
            others = [x for x in self._tensors(result) if all(x is not y for y in targets)]
            several = self._call(op, operands, (args, kwargs), [*others, *targets], targets)
            for tensor, symbol in zip(others, several, strict=False):
                self.tensors[tensor] = symbol
            symbols = several[len(others) :]
        for target, shape in zip(targets, shapes, strict=True):
            if target.shape != shape:  # an `out` of another size
                self.tensors.forget(target)
                self.tensors[target] = self._constant(target)
        self._write(op, targets, symbols)
        return result

    def _copied_value(self, value: Any, dtype: Any) -> Symbol:
        """Return the symbol of what `copy_` stores: a tensor, or a number in a dtype."""
        if isinstance(value, Symbol):
            return value
        wide = self.torch.float64 if isinstance(value, float) else None
        number = self.torch.tensor(value, dtype=wide).to(dtype)
        return self.graph.constant_of((dtype_of(dtype), array_of(self.torch, number)))

    def _write(self, op: Any, targets: Sequence[Any], symbols: Sequence[Symbol]) -> None:
        """Record that an op has written symbols to tensors, in whose dtypes it casts them."""
        for target, symbol in zip(targets, symbols, strict=True):
            value = self._cast(symbol, dtype_of(target.dtype), "value", name_of(op), ASSIGN)
            if value.shape != tuple(target.shape):
                value = self.graph.apply(ops.broadcast_to, (value,), {"shape": tuple(target.shape)})
            self.tensors.write(target, value)
            if self.tensors.outer_name(target):
                self._writes[id(target)] = target
            elif not target.untyped_storage().resizable() and _depends_on_inputs(value):
                self._note("NumPy shares the memory that is written; what it reads is constant")

    def _operands(self, args: Any, kwargs: Any, is_view: bool = False) -> tuple[Any, Any]:
        """Return the arguments of an op with symbols for tensors."""
        read = self.tensors.__getitem__ if is_view else self._read
        return _map(self.torch, read, (tuple(args), dict(kwargs)))

    def _read(self, tensor: Any) -> Symbol:
        """Return the symbol of a tensor; a constant if no op has written to it since torch.empty.

        Some functions of PyTorch write to its memory without an op, as pad_packed_sequence does.
        """
        if self._unwritten.pop(self.tensors.key(tensor), None) is not None:
            self.tensors.forget(tensor)
            self.tensors[tensor] = self._constant(tensor)
            self._note("what PyTorch has written to an empty tensor is constant")
        return self.tensors[tensor]

    def _plain(self, tensor: Any) -> Any:
        """Return the tensor that a transform of torch.func has wrapped."""
        functorch = self.torch._C._functorch
        while functorch.is_functorch_wrapped_tensor(tensor):
            tensor = functorch.get_unwrapped(tensor)
        return tensor

    def _tensors(self, value: Any) -> list[Any]:
        tensor = self.torch.Tensor
        return [x for x in self.torch.utils._pytree.tree_leaves(value) if isinstance(x, tensor)]

    def _symbols(
        self, op: Any, operands: tuple[Any, Any], real: tuple[Any, Any], results: Sequence[Any]
    ) -> Sequence[Symbol]:
        """Return the symbols of an op's results: by its row, its decomposition, or as a call."""
        before = len(self.graph.symbols)
        is_random = self._is_random(op, real)
        if not self._tensors(real) and any(_is_of_tensors(x) for x in op._schema.arguments):
            return [self._constant(result) for result in results]  # vmap gives numbers for tensors
        for way in () if is_random else (self._by_row, self._by_decomposition, self._as_view):
            try:
                symbols = way(op, operands, real, results)
                if symbols is not None:
                    return [self._conformed(op, *pair) for pair in zip(symbols, results)]  # noqa: B905 -- a row may leave out the last results
            except (GraphirError, NotImplementedError):
                pass  # the rules refuse the operands, or PyTorch's decomposition an op
            except (TypeError, RuntimeError, ValueError, IndexError) as error:
                if way == self._by_row:
                    self._note(f"the row of {op} failed ({error!r}), and another way stands for it")
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
        name = name_of(op)
        if name in ("_to_copy", "convert_element_type"):
            return self._conversion(args[0], real[0][0], results[0])
        row = ROWS.get(name)
        if row is None or op.namespace not in ("aten", "prims"):
            return None
        keywords = {key: value for key, value in kwargs.items() if key not in _IGNORED}
        call = RowCall(
            self.graph,
            (name, op._overloadname),
            [*map(type_of, results)],
            lambda x, to: self._cast(x, to, INTERMEDIATE, f"torch.{name}"),
            results,
            lambda wide: vector_places(
                results[0], self._tensors(real), 512 if wide and self._has_avx512 else 256
            ),
            lambda is_elementwise: (
                _has_onednn(self.torch, results[0].dtype)
                and all(
                    x.is_contiguous() and x.numel() > 1
                    for x in self._tensors(real)
                    if is_elementwise
                )
            ),
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
        function = decomposition(self.torch, op)
        if function is None or op in self._outer:
            return None
        self._outer.append(op)
        try:
            keeping = _restoring_values(op, real[0])
            with self.torch.no_grad(), self.torch._C._DisableAutocast(), keeping, self._mode:
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
        is_random = self._is_random(op, real)
        if is_random:
            self._note(f"{name_of(op)} is random: the values of the graph differ from run to run")
        symbols = [x for x in self._leaves(operands) if isinstance(x, Symbol)]
        function = BoundOp(self.torch, op, real, targets, results if is_random else None)
        attrs = {
            "callee": Callee(f"torch.{op}", function),
            "types": TupleType(map(type_of, results)),
        }
        call = self.graph.emit(ops.control.call, tuple(symbols), attrs)
        if self.torch.Tag.dynamic_output_shape in op.tags:
            self._sized.append((call, self._function_name(op)))
        return ops.control.parts(call)

    def _function_name(self, op: Any) -> str:
        """Return the name of the function that is called, or of the op."""
        return self.sites.function.name if self.sites.function else name_of(op)

    def _is_random(self, op: Any, real: tuple[Any, Any]) -> bool:
        has_generator = any(argument.name == "generator" for argument in op._schema.arguments)
        tagged = self.torch.Tag.nondeterministic_seeded in op.tags
        return (has_generator or tagged) and not _keeps_all(op, *real)

    def _leaves(self, value: Any) -> list[Any]:
        return self.torch.utils._pytree.tree_leaves(value)

    # -- conversions

    def _conversion(self, symbol: Any, source: Any, result: Any) -> Sequence[Symbol]:
        """Return the cast of `_to_copy`: of the user, of autocast, or of a function of PyTorch."""
        call, to = self.sites.function, dtype_of(result.dtype)
        symbol = self._real_part(symbol, to)
        if symbol.dtype is to:
            return [symbol]
        if self._outer:
            return [self._cast(symbol, to, INTERMEDIATE, f"torch.{name_of(self._outer[0])}")]
        if call is None or call.is_conversion:
            return [self.graph.emit(ops.cast, (symbol,), {"to": to})]
        if not call.autocast:
            return [self._cast(symbol, to, INTERMEDIATE, f"torch.{call.name}")]
        operand = self._parameter(call, source)
        lists = "promote" if call.name in PROMOTED else "fp32"
        lower = self.torch.get_autocast_dtype("cpu")
        lists = "lower_precision_fp" if result.dtype is lower else lists
        return [self._cast(symbol, to, operand, f"torch.{call.name}", f"{AUTOCAST}_{lists}")]

    def _parameter(self, call: FunctionCall, tensor: Any) -> str:
        """Return the parameter of a function for which a tensor was passed."""
        packet = getattr(self.torch.ops.aten, call.name, None)
        overloads = packet.overloads() if packet is not None else ()
        schema = getattr(packet, overloads[0])._schema.arguments if overloads else ()
        names = [argument.name for argument in schema] or call.parameters
        for i, value in enumerate(call.arguments[0]):
            if any(self.tensors.are_same(each, tensor) for each in self._tensors(value)):
                return names[i] if i < len(names) else f"argument {i + 1}"
        for name, value in call.arguments[1].items():
            if value is tensor:
                return name
        return INTERMEDIATE

    def _cast(
        self, symbol: Symbol, to: DType, operand: str, op: str, rule: str | None = None
    ) -> Symbol:
        """Return a symbol in another dtype, by a cast with an origin."""
        symbol = self._real_part(symbol, to)
        if symbol.dtype is to:
            return symbol
        cast_ = self.graph.emit(ops.cast, (symbol,), {"to": to})
        rule = rule or self.graph.rules.name
        cast_.source = (Origin(operand, op, cast_.location, rule, symbol.dtype, to),)
        return cast_

    def _real_part(self, symbol: Symbol, to: DType) -> Symbol:
        """Return the real part of complex numbers that become real, as PyTorch warns; else them."""
        if not symbol.dtype.is_complex or to.is_complex or to is DType.bool:
            return symbol
        self._note(f"PyTorch drops imaginary parts in {to}")
        return self.graph.emit(ops.real, (symbol,), {})

    def _conformed(self, op: Any, symbol: Symbol, tensor: Any) -> Symbol:
        """Return a result in the dtype of its tensor; GraphError for another shape."""
        type_ = type_of(tensor)
        if symbol.shape != type_.shape:
            raise GraphError(f"the row of {op} gives another shape", got=str(symbol.type))
        return self._cast(symbol, type_.dtype, "result", f"torch.{name_of(op)}")

    def _refuse_leaving(self, values: Sequence[Any]) -> None:
        """Raise GraphError if the value of a tensor that depends on inputs leaves the graph.

        A value that the program only checks or prints may leave it.
        """
        tensors = self._tensors(values) if values else ()
        symbols = [self.tensors[self._plain(x)] for x in tensors]
        symbols = [x for x in symbols if _depends_on_inputs(x)]
        if not symbols:
            return
        function = self.sites.function.name if self.sites.function else "item"
        use, reader = self.sites.unused(function in _TEXTS), self.sites.reader()
        if use:
            self._note(f"the graph leaves out the {use} of a value ({function})")
            return
        fix = _STAYING.get(function, "use torch.where, or pass the value as an argument")
        raise GraphError(
            "the value of a tensor leaves the graph, which holds for all values",
            reason=f"{reader} reads it" if reader else "",
            got=str(symbols[0].type),
            fix=_STAYING.get(reader.partition(":")[0], fix),
            op=function,
        ).at(self.sites.location(), function)


_TEXTS = frozenset(("__format__", "__repr__", "__str__"))

_STAYING = {
    **dict.fromkeys(_TEXTS, "leave the text out, or print x.shape and x.dtype"),
    **dict.fromkeys(("__index__", "__int__"), "pass the number as an argument"),
    **dict.fromkeys(
        ("numpy", "tolist", "__array__", "__dlpack__"), "compute with PyTorch's functions instead"
    ),
    **dict.fromkeys(("tensor", "as_tensor", "asarray", "new_tensor", "new"), "use torch.stack"),
    "one_hot": "pass num_classes",
    **dict.fromkeys(("clamp", "clip"), "pass both bounds as tensors, or both as numbers"),
    "tensor_split": "pass the indices as numbers",
    "torch/amp/grad_scaler.py": (
        "make the optimizer with fused=True, whose op itself decides whether to take the step",
        "call scaler.unscale_(optimizer), and take the step outside of the graph",
    ),
}
"""What to write in place of a function, or file, that takes a value out of the graph."""

_EMPTY = frozenset(
    ("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted")
)
"""The ops that make a tensor without values."""

_READING = frozenset(("_local_scalar_dense", "equal", "is_nonzero", "item", "allclose"))
"""The ops that read values."""

_NUMBERS = frozenset(("__float__", "__int__", "__index__", "__complex__"))

_LEAVING = frozenset(("numpy", "tolist", "__array__", "__dlpack__")) | _NUMBERS | _TEXTS
"""The methods of tensors that read values without an op, as torch.Tensor([x[0]]) does by float."""


def _values_read(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Sequence[Any]:
    """Return the arguments whose values a function of PyTorch reads without an op."""
    match getattr(function, "__name__", ""):
        case name if name in _LEAVING:
            return args[:1]
        case "tensor" | "as_tensor" | "asarray" | "new_tensor" | "new":
            return [x for x in (*args, *kwargs.values()) if isinstance(x, (list, tuple))]
        case "__getitem__" | "__setitem__" if isinstance(args[1], tuple):
            return [x for x in cast("tuple[Any, ...]", args[1]) if isinstance(x, list)]
        case "tensor_split":
            return (*args[1:], *kwargs.values())
        case _:
            return ()


_IGNORED = frozenset(
    ("layout", "device", "pin_memory", "memory_format", "non_blocking", "implicit", "generator")
)
"""The arguments of ops that change no values."""


_MAKERS = ("tensor", "as_tensor", "asarray", "scalar_tensor")
"""The constructors of torch that make a tensor of Python numbers, or of arrays."""


@contextmanager
def _restoring_values(op: Any, args: Sequence[Any]) -> Generator[None]:
    """Keep the values of tensors that an op has written to, and its decomposition writes again."""
    tensors = args[3:5] if name_of(op) == "native_batch_norm" else ()
    copies = [(x, x.clone()) for x in tensors if x is not None]
    yield
    for tensor, copy in copies:
        tensor.copy_(copy)


def _has_onednn(torch: Any, dtype: Any) -> bool:
    """Whether oneDNN computes functions of a dtype on this processor."""
    kinds = {torch.bfloat16: "bf16", torch.float16: "fp16"}
    if dtype not in kinds or not torch.backends.mkldnn.is_available():
        return torch.backends.mkldnn.is_available()
    return getattr(torch.ops.mkldnn, f"_is_mkldnn_{kinds[dtype]}_supported")()


def _is_of_tensors(argument: Any) -> bool:
    return str(argument.type).startswith(("Tensor", "List[Tensor"))


def kwargs_of(op: Any, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords that an op takes."""
    names = {argument.name for argument in op._schema.arguments}
    return {name: value for name, value in kwargs.items() if name in names}


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
    by_name = {**dict(zip(names, args, strict=False)), **kwargs}
    rate = by_name.get("dropout_p", by_name.get("p", by_name.get("dropout")))
    training = [by_name[name] for name in ("train", "training") if name in by_name]
    has_rate = "dropout" in name_of(op) or not {"dropout", "dropout_p"}.isdisjoint(names)
    return has_rate and (not rate or training == [False])


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
