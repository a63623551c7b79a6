"""`from_torch`: the graph of a PyTorch function or module, recorded as it runs.

A dispatch mode receives each ATen op with its operands before promotion, so that PyTorch's
implicit conversions are those of the rules "torch". The other conversions are ops of their own: the
user, autocast or a function of PyTorch made them. Writes to tensors become new values. Every symbol
has the dtype and shape of its tensor.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import fields, is_dataclass
from functools import partial
from types import FrameType
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from graphir.decorators import uncollected
from graphir.import_names import optional
from graphir.ir.liveness import live_mask
from graphir.location import ASSIGN, Location
from graphir.passes import dead_code
from graphir.public import Graph, GraphError, GraphirError, Symbol, ops, rules
from graphir.runtime.audit.audit import audit
from graphir.runtime.error_notes import MOST_AUDITED, ProgramValues, grave_losses, noting_errors
from graphir.runtime.sources.folding import Folding, note_draws
from graphir.runtime.sources.op_rows import identifier
from graphir.runtime.sources.torch_.aten_rows import AtenRun
from graphir.runtime.sources.torch_.decompositions import Replacements, functional_op, name_of
from graphir.runtime.sources.torch_.frames import TorchSites
from graphir.runtime.sources.torch_.op_symbols import OpSymbols, is_random
from graphir.runtime.sources.torch_.tensors import (
    Arguments,
    AtenOp,
    Function,
    Module,
    Tensor,
    Tensors,
    Torch,
    array_of,
    dtype_of,
    tensors_in,
    type_of,
)
from graphir.runtime.user_code import MakingLine, made_by_class


@uncollected
def from_torch(function: Function, /, *args: Any, **keywords: Any) -> Graph:
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
        program: Function = function
        if not args and not keywords:
            args, keywords = program.example_inputs
        function = program.module()
        recording.sites.follow(function)
    args, keywords = recording.separate_inputs(args, keywords)
    recording.declare(_arguments(function, args, keywords), function)
    return recording.run(lambda: function(*args, **keywords), function)


def tensors_of(
    torch: Torch, function: Function, args: Sequence[Any], keywords: Mapping[str, Any]
) -> list[Any]:
    """Return the tensors among arguments, in the order of the inputs of their graph."""
    if isinstance(function, torch.export.ExportedProgram) and not args and not keywords:
        args, keywords = function.example_inputs
    by_name = _arguments(function, args, keywords)
    lengths = _batch_sizes(torch, by_name)
    leaves = [leaf for _, leaf in paths(torch, by_name) if isinstance(leaf, torch.Tensor)]
    return [leaf for leaf in leaves if id(leaf) not in lengths]


def _batch_sizes(torch: Torch, arguments: Any) -> set[int]:
    """Return the ids of the tensors that say how the packed sequences of arguments are packed."""
    packed = torch.nn.utils.rnn.PackedSequence

    def is_packed(value: Tensor) -> bool:
        return isinstance(value, packed)

    leaves = torch.utils._pytree.tree_leaves(arguments, is_leaf=is_packed)
    return {id(leaf.batch_sizes) for leaf in filter(is_packed, leaves)}


def paths(torch: Torch, value: Tensor) -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a tree with their paths; the fields of a dataclass are a tree."""
    tree = torch.utils._pytree
    for path, leaf in tree.tree_flatten_with_path(value)[0]:
        if is_dataclass(leaf) and not isinstance(leaf, type):
            for field in fields(leaf):
                for rest, part in paths(torch, getattr(leaf, field.name)):
                    yield f"{tree.keystr(path)}.{field.name}{rest}", part
        else:
            yield tree.keystr(path), leaf


class _TensorValues(ProgramValues):
    """The tensors of a program that a recording has met. `torch` is the module."""

    def __init__(self, torch: Torch, recorder: TorchRecorder, program: Function) -> None:
        self._torch, self._tensors, self._program = torch, recorder.tensors, program
        self._recorder = recorder

    def is_traced(self, value: Any) -> bool:
        """Whether the recording has met a tensor."""
        return isinstance(value, self._torch.Tensor) and not self._tensors.is_new(value)

    def symbols(self, values: Sequence[Any]) -> list[Symbol]:
        """Return the symbols of the tensors."""
        return [self._tensors[x] for x in values]

    def name(self, value: Any) -> str:
        """Return the name of a tensor from outside, such as a parameter."""
        is_whole = self._tensors[value].op is ops.input  # and no view of it
        return self._tensors.outer_name(value) if is_whole else ""

    def made(self, symbol: Symbol) -> MakingLine | None:
        """Return the line of the user's module that makes a parameter, a buffer or a part of it."""
        owner: Any = self._program
        line: MakingLine | None = None
        if not isinstance(owner, self._torch.nn.Module):
            return None
        tensors = (*owner.named_parameters(), *owner.named_buffers())
        path = next((name for name, x in tensors if self._tensors[x] is symbol), "")
        for part in path.split("."):
            line = made_by_class(owner.__class__, part) or line
            owner = getattr(owner, part, None)
        return line

    def losses(
        self,
        values: Mapping[str, Any],
        conditions: Sequence[Location],
        frames: Sequence[FrameType],
    ) -> list[str]:
        """Return the sentences of an audit of the graph so far, whose results are values.

        Returns none if the program wrote to its arguments, whose first values are gone.
        """
        inputs = self._recorder.input_values()
        graph = self._recorder.graph.with_outputs([self._tensors[x] for x in values.values()])
        if inputs is None or sum(live_mask(graph, graph.outputs)) > MOST_AUDITED:
            return []
        return grave_losses(audit(graph, **cast("Any", inputs)), [*values])


class TorchRecorder:
    """A run of a function whose ops become symbols. `torch` is the module."""

    def __init__(self, torch: Torch, name: str) -> None:
        self.torch = torch
        self.graph = Graph(identifier(name), rules=rules("torch").of_release(torch.__version__))
        self.graph.describe(library="torch")
        self.sites = TorchSites(torch)
        self.tensors = Tensors(self.graph, self._unmet)
        self._defaults: dict[str, NDArray[Any]] = {}
        self._arguments: dict[str, Any] = {}  # the tensors among the arguments, by names of inputs
        self._names: dict[int, tuple[str, Any]] = {}  # parameters, by their ids
        self.ops = OpSymbols(torch, self.graph, self.sites, self.tensors, self._note)
        self._notes: dict[str, None] = {}
        self._folding = Folding(torch.Tensor, partial(array_of, torch))
        self._folding.entered = self.ops.entered
        self._writes: dict[int, Any] = {}  # the arguments and parameters that ops have written to
        self._unwritten: dict[int, Any] = {}  # tensors of torch.empty, by their storages

    # -- inputs

    def declare(self, arguments: Mapping[str, Any], function: Function) -> None:
        """Add inputs for the tensors of arguments, then of modules: the function, and arguments."""
        modules: list[tuple[str, Any]] = [("", function)]
        lengths = _batch_sizes(self.torch, arguments)
        for path, leaf in paths(self.torch, arguments):
            name = path.removeprefix("['").replace("']", "", 1)
            if id(leaf) in lengths:
                self.tensors.add_outer(leaf, self.ops.constant(leaf), name)
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

    def separate_inputs(self, args: Sequence[Any], keywords: Mapping[str, Any]) -> tuple[Any, Any]:
        """Return arguments of which no two share memory, but with parameters of modules."""
        leaves = [leaf for _, leaf in paths(self.torch, (args, keywords))]
        modules = [leaf for leaf in leaves if isinstance(leaf, self.torch.nn.Module)]
        parameters = {self.tensors.key(x) for module in modules for x in module.parameters()}
        keys = set[int]()

        def separate(tensor: Tensor) -> Any:
            type_of(tensor)
            key = self.tensors.key(tensor)
            if key in keys - parameters:  # so that the graph holds for values that differ
                return tensor.detach().clone().requires_grad_(tensor.requires_grad)
            keys.add(key)
            return tensor

        return _map(self.torch, separate, (args, keywords))

    def _name_parameters(self, module: Module) -> None:
        """Name the parameters of a module that the function has from elsewhere.

        Those that ops read become inputs.
        """
        for name, tensor in (*module.named_parameters(), *module.named_buffers()):
            self._names.setdefault(id(tensor), (name, tensor))

    def _check(self, tensor: Tensor, name: str) -> None:
        """Raise GraphError for a tensor without values of its own."""
        dispatch = cast("Any", type(tensor)).__torch_dispatch__
        lazy = isinstance(tensor, self.torch.nn.parameter.UninitializedTensorMixin)
        if lazy or dispatch is not self.torch.Tensor.__torch_dispatch__:
            raise GraphError(
                f"from_torch: {name} is a {type(tensor).__name__}, which holds no plain values",
                fix="run the lazy module once" if lazy else "pass a plain torch.Tensor",
            )

    def _input(self, tensor: Tensor, name: str) -> None:
        self._check(tensor, name)
        if self.tensors.is_new(tensor):  # not a tied parameter, or a view of one
            symbol = self.graph.input(type_of(tensor), name=self._free(name))
            self._arguments[self.graph.input_names[-1]] = tensor
            self.tensors.add_outer(tensor, symbol, name)

    def input_values(self) -> dict[str, NDArray[Any]] | None:
        """Return the values of the inputs by name; None if the program wrote to any."""
        if self._writes:
            return None
        arguments = {name: array_of(self.torch, x) for name, x in self._arguments.items()}
        return {**arguments, **self._defaults}

    def _parameter_input(self, tensor: Tensor, name: str, prefix: str = "") -> Symbol:
        """Add an input whose default is the present value of a tensor, in its module's layer."""
        layer = name.rpartition(".")[0].replace(".", "/")
        with self.graph.at(self.sites.location(layer)):
            symbol = self.graph.input(type_of(tensor), name=self._free(prefix + name))
        self._defaults[self.graph.input_names[-1]] = array_of(self.torch, tensor)
        return symbol

    def _free(self, name: str) -> str:
        """Return an identifier for a name that no input has."""
        text = identifier(name)
        return f"{text}_{len(self.graph.inputs)}" if text in self.graph.input_names else text

    def _unmet(self, tensor: Tensor) -> tuple[Symbol, str]:
        """Return the symbol of a tensor that no op has made and no argument has, and its name."""
        name, _ = self._names.get(id(tensor), ("", None))
        if name:
            return self._parameter_input(tensor, name), name
        return self.ops.constant(tensor), "tensors from outside the function"

    def _note(self, text: str) -> None:
        """Note what the graph says of a line of the program otherwise than the line does."""
        self._notes[f"line {self.sites.location().line}: {text}"] = None

    # -- the run

    def run(self, program: Callable[[], Any], function: Function) -> Graph:
        """Run a program, the call of a function, and return its graph."""
        self.ops.mode, mode = self._op_mode(), self._function_mode()
        with ExitStack() as stack:
            stack.enter_context(noting_errors(_TensorValues(self.torch, self, function)))
            stack.enter_context(self.sites.layers(self._name_parameters))
            if "torch._dynamo" in sys.modules:  # what torch.compile compiled runs as written
                stack.enter_context(self.torch.compiler.set_stance("force_eager"))
            self.torch.clear_autocast_cache()  # casts of earlier runs, whose ops would not show
            stack.enter_context(self.ops.mode)
            stack.enter_context(mode)
            stack.enter_context(note_draws(lambda text: self._notes.setdefault(text)))
            result = program()
        self._add_outputs(result)
        self._note_hidden_writes()
        self._note_sizes()
        graph = dead_code(self.graph)
        graph.describe(
            notes=[*self._notes],
            unseen=self._folding.unseen(graph, function),
            defaults=self._defaults,
        )
        return graph

    def _op_mode(self) -> Any:
        """Return the mode in which PyTorch passes each ATen op to `_dispatch`."""

        def dispatch(mode: Any, op: AtenOp, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            try:
                return self._dispatch(op, args, kwargs or {})
            except GraphirError as error:
                if self.ops.outer:
                    raise
                raise error.at(self.sites.location(), f"torch.{op}") from None

        base = self.torch.utils._python_dispatch.TorchDispatchMode
        members = {"__torch_dispatch__": dispatch, "supports_higher_order_operators": True}
        return type("Dispatch", (base,), members)()

    def _function_mode(self) -> Any:
        """Return the mode in which PyTorch passes its functions to `_call`, before their ops."""
        replacements = Replacements(
            self.torch, lambda tensor: _depends_on_inputs(self.tensors[self._plain(tensor)])
        )

        def watch(mode: Any, func: Function, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            with self.sites.calling(func, args, kwargs or {}):
                other = replacements.of(getattr(func, "__name__", ""), args, kwargs or {})
                return other() if other is not None else self._call(func, args, kwargs or {})

        base = self.torch.overrides.TorchFunctionMode
        return type("Functions", (base,), {"__torch_function__": watch})()

    def _call(self, func: Function, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Call a function of PyTorch, unless it takes the values of tensors out of the graph."""
        name = getattr(func, "__name__", "")
        self._refuse_leaving(_values_read(func, args, kwargs))
        if name == "lstm":
            return self.sites.lstm(func, args)
        result = func(*args, **kwargs)
        if name in _MAKERS and args:
            dtype = dtype_of(result.dtype).to_numpy()
            self._folding.note_array(f"torch.{name}", self.sites.location(), args[0], dtype)
        return result

    def _add_outputs(self, result: Any) -> None:
        """Add the tensors of the result of the program; if it has none, those that it wrote to."""
        leaves = [x for _, x in paths(self.torch, result) if isinstance(x, self.torch.Tensor)]
        leaves = leaves or [*self._writes.values()]
        if not leaves:
            raise GraphError("the function returns no tensor, and writes to none", got=repr(result))
        last = self.graph.symbols[-1].location if self.graph.symbols else self.sites.location()
        try:
            self.graph.output(*[self._read(leaf) for leaf in leaves])
        except GraphirError as error:  # after the program: its last line that computes
            raise error.at(last, "return") from None

    def _note_hidden_writes(self) -> None:
        """Note the arguments and parameters whose written values are no outputs."""
        outputs = {output.index for output in self.graph.outputs}
        hidden = [x for x in self._writes.values() if self.tensors[x].index not in outputs]
        if hidden:
            names = list(dict.fromkeys(map(self.tensors.outer_name, hidden)))
            more = f" and {len(names) - 3} others" if len(names) > 3 else ""
            text = f"the values written to {', '.join(names[:3])}{more} are no outputs of the graph"
            self._notes[f"{text}; return them to see their casts"] = None

    def _note_sizes(self) -> None:
        """Note the sizes that depend on values, of calls without users: no run checks them."""
        live = live_mask(self.graph, self.graph.outputs)
        for call, name in self.ops.sized:
            if not live[call.index]:
                text = f"line {call.location.line}: the sizes of {name} depend on values"
                self._notes[f"{text}, and the graph holds where they are {call.type}"] = None

    def _dispatch(self, op: AtenOp, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
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
                self.tensors[args[0]] = self.ops.constant(args[0])
            operands = self._operands(args, kwargs, op.is_view)
            if name_of(op) == "_pack_padded_sequence" and _depends_on_inputs(operands[0][1]):
                raise GraphError(
                    "the lengths of a packed sequence depend on the inputs, and decide what runs",
                    got=str(operands[0][1].type),
                    fix="pass them as a list, or as a tensor that the function has from outside",
                )
            result = op(*args, **kwargs)
            results = self._tensors(result)
            if name_of(op) in _EMPTY:
                self._unwritten[self.tensors.key(results[0])] = results[0]
            if results and not results[0].is_meta:
                run = AtenRun(self.torch, op, operands, (args, kwargs), results)
                symbols = self.ops.symbols(run)
                for tensor, symbol in zip(results, symbols, strict=True):
                    self.tensors[tensor] = symbol
            elif not results and name_of(op) in _READING:
                self._refuse_leaving(args)
        return result

    def _in_place(
        self, op: AtenOp, args: Sequence[Any], kwargs: Mapping[str, Any], targets: Sequence[Tensor]
    ) -> Any:
        """Run an op that writes to tensors, and record what it has written."""
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
        shapes = [x.shape for x in targets]
        write = op, operands, (args, kwargs), targets
        result, symbols = self._by_pure_op(*write) or self._by_call(*write)
        for target, shape in zip(targets, shapes, strict=True):
            if target.shape != shape:  # an `out` of another size
                self.tensors.forget(target)
                self.tensors[target] = self.ops.constant(target)
        self._write(op, targets, symbols)
        return result

    def _by_pure_op(
        self, op: AtenOp, operands: Arguments, real: Arguments, targets: Sequence[Tensor]
    ) -> tuple[Any, Sequence[Symbol]] | None:
        """Run an op that writes, and return its result, and what it writes as symbols.

        The symbols are those of the op that returns these values; None where PyTorch has no such
        op. A reduction computes in the dtype of its `out`.
        """
        pure, (args, kwargs) = functional_op(self.torch, op), real
        if pure is None:
            return None
        inner = kwargs_of(pure, {"dtype": targets[0].dtype, **kwargs})
        results = self._tensors(pure(*args, **inner))
        if len(results) != len(targets):
            return None
        keywords = {**inner, **kwargs_of(pure, operands[1])}
        run = AtenRun(self.torch, pure, (operands[0], keywords), (args, inner), results)
        symbols = self.ops.symbols(run)
        if not is_random(self.torch, op, real):  # PyTorch itself says which results it stores
            return op(*args, **kwargs), symbols
        for target, value in zip(targets, results, strict=True):  # a second draw would be another
            target.copy_(value)
        return (targets[0] if op._schema.returns else None), symbols

    def _by_call(
        self, op: AtenOp, operands: Arguments, real: Arguments, targets: Sequence[Tensor]
    ) -> tuple[Any, Sequence[Symbol]]:
        """Run an op that writes, and return its result, and what it writes as results of a call."""
        result = op(*real[0], **real[1])
        others = [x for x in self._tensors(result) if all(x is not y for y in targets)]
        run = AtenRun(self.torch, op, operands, real, [*others, *targets])
        symbols = self.ops.call(run, targets)
        for tensor, symbol in zip(others, symbols, strict=False):
            self.tensors[tensor] = symbol
        return result, symbols[len(others) :]

    def _copied_value(self, value: Tensor, dtype: Any) -> Symbol:
        """Return the symbol of what `copy_` stores: a tensor, or a number in a dtype."""
        if isinstance(value, Symbol):
            return value
        wide = self.torch.float64 if isinstance(value, float) else None
        number = self.torch.tensor(value, dtype=wide).to(dtype)
        return self.graph.constant_of((dtype_of(dtype), array_of(self.torch, number)))

    def _write(self, op: AtenOp, targets: Sequence[Any], symbols: Sequence[Symbol]) -> None:
        """Record that an op has written symbols to tensors, in whose dtypes it casts them."""
        for target, symbol in zip(targets, symbols, strict=True):
            value = self.ops.cast(symbol, dtype_of(target.dtype), "value", name_of(op), ASSIGN)
            if value.shape != tuple(target.shape):
                value = self.graph.apply(ops.broadcast_to, (value,), {"shape": tuple(target.shape)})
            self.tensors.write(target, value)
            if self.tensors.outer_name(target):
                self._writes[id(target)] = target
            elif not target.untyped_storage().resizable() and _depends_on_inputs(value):
                self._note("NumPy shares the memory that is written; what it reads is constant")

    def _operands(self, args: Sequence[Any], kwargs: Any, is_view: bool = False) -> tuple[Any, Any]:
        """Return the arguments of an op with symbols for tensors."""
        read = self.tensors.__getitem__ if is_view else self._read
        return _map(self.torch, read, (tuple(args), dict(kwargs)))

    def _read(self, tensor: Tensor) -> Symbol:
        """Return the symbol of a tensor; a constant if no op has written to it since torch.empty.

        Some functions of PyTorch write to its memory without an op, as pad_packed_sequence does.
        """
        if self._unwritten.pop(self.tensors.key(tensor), None) is not None:
            self.tensors.forget(tensor)
            self.tensors[tensor] = self.ops.constant(tensor)
            self._note("what PyTorch has written to an empty tensor is constant")
        return self.tensors[tensor]

    def _plain(self, tensor: Tensor) -> Any:
        """Return the tensor that a transform of torch.func has wrapped."""
        functorch = self.torch._C._functorch
        while functorch.is_functorch_wrapped_tensor(tensor):
            tensor = functorch.get_unwrapped(tensor)
        return tensor

    def _tensors(self, value: Tensor) -> list[Any]:
        return tensors_in(self.torch, value)

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
        by_function = _FIXES.get(function, "use torch.where, or pass the value as an argument")
        raise GraphError(
            "the value of a tensor leaves the graph, which holds for all values",
            reason=f"{reader} reads it" if reader else "",
            got=str(symbols[0].type),
            fix=_FIXES_OF_READERS.get(reader.partition(":")[0], by_function),
            op=function,
        ).at(self.sites.location(), function)


_TEXTS = frozenset(("__format__", "__repr__", "__str__"))

_FIXES = {
    **dict.fromkeys(_TEXTS, "leave the text out, or print x.shape and x.dtype"),
    **dict.fromkeys(("__index__", "__int__"), "pass the number as an argument"),
    **dict.fromkeys(
        ("numpy", "tolist", "__array__", "__dlpack__"), "compute with PyTorch's functions instead"
    ),
    **dict.fromkeys(("tensor", "as_tensor", "asarray", "new_tensor", "new"), "use torch.stack"),
    "one_hot": "pass num_classes",
    **dict.fromkeys(("clamp", "clip"), "pass both bounds as tensors, or both as numbers"),
    "tensor_split": "pass the indices as numbers",
}
"""What to write in place of a function that takes a value out of the graph."""

_FIXES_OF_READERS = {
    "torch/amp/grad_scaler.py": (
        "make the optimizer with fused=True, whose op itself decides whether to take the step",
        "call scaler.unscale_(optimizer), and take the step outside of the graph",
    ),
}
"""What to write in place of a call of an installed package, by the file that reads the value."""

_EMPTY = frozenset(
    ("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted")
)
"""The ops that make a tensor without values."""

_READING = frozenset(("_local_scalar_dense", "equal", "is_nonzero", "item", "allclose"))
"""The ops that read values."""

_NUMBERS = frozenset(("__float__", "__int__", "__index__", "__complex__"))

_LEAVING = frozenset(("numpy", "tolist", "__array__", "__dlpack__")) | _NUMBERS | _TEXTS
"""The methods of tensors that read values without an op, as torch.Tensor([x[0]]) does by float."""


def _values_read(
    function: Function, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Sequence[Any]:
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


_MAKERS = ("tensor", "as_tensor", "asarray", "scalar_tensor")
"""The constructors of torch that make a tensor of Python numbers, or of arrays."""


def kwargs_of(op: AtenOp, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords that an op takes."""
    names = {argument.name for argument in op._schema.arguments}
    return {name: value for name, value in kwargs.items() if name in names}


def _targets(op: AtenOp, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """Return the tensors that an op writes to."""
    targets: list[Any] = []
    for i, argument in enumerate(op._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[i] if i < len(args) else kwargs.get(argument.name)
            targets += () if value is None else value if isinstance(value, list) else [value]
    return targets


def _map(torch: Torch, function: Callable[[Any], Any], value: Tensor) -> Any:
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


def _arguments(
    function: Function, args: Sequence[Any], keywords: Mapping[str, Any]
) -> dict[str, Any]:
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
