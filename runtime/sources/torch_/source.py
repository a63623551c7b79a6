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
from graphir.public import DType, Graph, GraphError, GraphirError, Symbol, ops, rules
from graphir.runtime.audit.audit import audit
from graphir.runtime.audit.opaque import RecordedFacts
from graphir.runtime.error_notes import MOST_AUDITED, ProgramValues, grave_losses, noting_errors
from graphir.runtime.recording.captured import slots
from graphir.runtime.recording.recording import Recording
from graphir.runtime.sources.folding import Folding, note_draws
from graphir.runtime.sources.op_rows import identifier
from graphir.runtime.sources.torch_.aten_rows import AtenRun
from graphir.runtime.sources.torch_.decompositions import Replacements, functional_op, name_of
from graphir.runtime.sources.torch_.frames import TorchSites
from graphir.runtime.sources.torch_.leaving_values import (
    TEXTS,
    LeftValues,
    depends_on_inputs,
    leaving_error,
    values_read,
)
from graphir.runtime.sources.torch_.op_symbols import OpSymbols, is_random, written_by
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
    where another value leaves the graph, as x.item() does: see `record_torch`.
    """
    return _recorder(function, args, keywords).graph


def record_torch(function: Function, /, *args: Any, **keywords: Any) -> Recording:
    """Run a PyTorch function or module, and record the graph of this run, as `record` does.

    The graph is that of `from_torch`, but values of tensors may leave it for Python and NumPy, as
    by `int(t)`, `if t > 0` and `t.numpy()`: it holds where these are as in this run. Each such
    place is a part of the program that was not seen, and an audit says whether the value has an
    error there. Tensors that are made of the values again, as by torch.from_numpy, are constants.
    """
    recorder = _recorder(function, args, keywords, one_run=True)
    return recorder.recording()


@uncollected
def _recorder(
    function: Function, args: Sequence[Any], keywords: Mapping[str, Any], one_run: bool = False
) -> TorchRecorder:
    """Return the recorder of a finished run of a function."""
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
    name = getattr(function, "__name__", type(function).__name__)
    recording = TorchRecorder(torch, name, one_run)
    if isinstance(function, torch.export.ExportedProgram):
        program: Function = function
        if not args and not keywords:
            args, keywords = program.example_inputs
        function = program.module()
        recording.sites.follow(function)
    args, keywords = recording.separate_inputs(args, keywords)
    recording.declare(_arguments(function, args, keywords), function)
    recording.run(lambda: function(*args, **keywords), function)
    return recording


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
    """A run of a function whose ops become symbols. `torch` is the module.

    Of `one_run`, values may leave the graph.
    """

    def __init__(self, torch: Torch, name: str, one_run: bool = False) -> None:
        self.torch = torch
        self._one_run, self._result = one_run, None
        self._values: dict[str, NDArray[Any]] = {}  # of arguments, by the names of inputs
        self._left = LeftValues(self.run.__code__)
        self._shared: dict[int, tuple[Any, Any]] = {}  # with NumPy, and the last known values
        self._outputs: list[Any] = []
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
        for slot in slots(function, kinds=(self.torch.nn.Module,)):
            if isinstance(slot.value, self.torch.nn.Module):  # and no tuple of arrays
                self._name_parameters(slot.value)

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
            if self._one_run:
                self._values[self.graph.input_names[-1]] = array_of(self.torch, tensor)
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

    def run(self, program: Callable[[], Any], function: Function) -> None:
        """Run a program, the call of a function, and finish its graph."""
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
            self._result = program()
        self._add_outputs(self._result)
        self._note_hidden_writes()
        self._note_sizes()
        outputs = self.graph.outputs
        self.graph.set_interface(outputs=(*outputs, *self._left.operands))  # which stay live
        self.graph = dead_code(self.graph)
        twins = iter(self.graph.outputs[len(outputs) :])
        self.graph.set_interface(outputs=self.graph.outputs[: len(outputs)])
        self._left.remap(twins)
        self.graph.describe(
            notes=[*self._notes],
            unseen=[*self._left.parts(), *self._folding.unseen(self.graph, function)],
            defaults=self._defaults,
        )

    def recording(self) -> Recording:
        """Return the recording of the finished run."""
        graph, values = self.graph, {**self._defaults, **self._values}
        pairs = zip(graph.input_names, graph.inputs, strict=True)
        arguments = tuple(symbol for name, symbol in pairs if name in self._values)
        return Recording(
            self._result,
            graph,
            tuple(values[name] for name in graph.input_names),
            tuple(_map(self.torch, partial(array_of, self.torch), self._outputs)),
            (),
            RecordedFacts(tuple(self._left.steps), arguments=arguments),
            self._left.names or tuple(f"output{place}" for place in range(len(graph.outputs))),
            self._left.rounds,
        )

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
            self.torch, lambda tensor: depends_on_inputs(self.tensors[self._plain(tensor)])
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
        self._take_out(values_read(func, args, kwargs))
        if name == "lstm":
            return self.sites.lstm(func, args)
        result = func(*args, **kwargs)
        if name in ("numpy", "__array__"):
            self._left.arrays[id(result)] = result, self.tensors[self._plain(args[0])]
            self._share(args[0])
        if name in _MAKERS and args:
            dtype = dtype_of(result.dtype).to_numpy()
            self._folding.note_array(f"torch.{name}", self.sites.location(), args[0], dtype)
        return result

    def _add_outputs(self, result: Any) -> None:
        """Add the tensors of the result of the program; if it has none, those that it wrote to."""
        last = self.graph.symbols[-1].location if self.graph.symbols else self.sites.location()
        leaves = [x for _, x in paths(self.torch, result)]
        self._follow_numpy(leaves)
        try:
            pairs = [pair for x in leaves for pair in self._output(x)]
            pairs = pairs or [pair for x in self._writes.values() for pair in self._output(x)]
            pairs = pairs or self._left.outputs(self.graph)
            self._outputs = [value for _, value in pairs]
            self.graph.output(*[symbol for symbol, _ in pairs])
        except GraphirError as error:  # after the program: its last line that computes
            raise error.at(last, "return") from None
        if not pairs:
            raise GraphError("the function returns no tensor, and writes to none", got=repr(result))

    def _output(self, leaf: Tensor) -> list[tuple[Symbol, Any]]:
        """Return the symbol and the value of a leaf of the result; none of what has no symbol."""
        if isinstance(leaf, self.torch.Tensor):
            return [(self._read(leaf), leaf)]
        array, symbol = self._left.arrays.get(id(leaf), (None, None))
        return [] if symbol is None else [(symbol, np.array(array))]

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
            targets = written_by(op, args, kwargs)
            self._follow_numpy((args, kwargs))
            if targets:
                result = self._in_place(op, args, kwargs, targets)
                for key in self._shared.keys() & set(map(self.tensors.key, targets)):
                    self._share(self._shared[key][0])
                return result
            if any(x.is_meta for x in self._tensors((args, kwargs))):
                return op(*args, **kwargs)  # PyTorch's own question for a shape
            if name_of(op) == "lift_fresh":  # of torch.tensor, whose values no op has made
                self.tensors[args[0]] = self._made(args[0])
                self._share(args[0])
            operands = self._operands(args, kwargs, op.is_view)
            if name_of(op) == "_pack_padded_sequence" and depends_on_inputs(operands[0][1]):
                self._take_out_lengths(args[1], operands[0][1])
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
                self._take_out(args)
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

    def _made(self, tensor: Tensor) -> Symbol:
        """Return the symbol of a new tensor; of a number that it rounds, that of the store."""
        call = self.sites.function
        number = call.arguments[0][2] if call is not None and call.name == "__setitem__" else None
        if not isinstance(number, float) or tensor.numel() != 1 or tensor.item() == number:
            return self.ops.constant(tensor)
        symbol = self.graph.constant_of((DType.weak_float, np.asarray(number)), number)
        return self.ops.cast(symbol, dtype_of(tensor.dtype), "value", "copy_", ASSIGN)

    def _share(self, tensor: Tensor) -> None:
        """Keep the values of a tensor that may share its memory with an array of NumPy."""
        if not tensor.untyped_storage().resizable():
            self._shared[self.tensors.key(tensor)] = tensor, array_of(self.torch, tensor)

    def _follow_numpy(self, values: Tensor) -> None:
        """Take in what NumPy has written to memory that it shares with tensors among values."""
        keys = {self.tensors.key(x) for x in self._tensors(values)} if self._shared else ()
        for tensor, before in [self._shared[key] for key in keys if key in self._shared]:
            if array_of(self.torch, tensor).tobytes() != before.tobytes():
                self.tensors.write(tensor, self.ops.constant(tensor))
                self._share(tensor)
                self._note("what NumPy has written to the memory of a tensor is constant")

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
            elif not target.untyped_storage().resizable() and depends_on_inputs(value):
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

    def _take_out_lengths(self, tensor: Tensor, lengths: Symbol) -> None:
        """Let the lengths of a packed sequence leave the graph of one run; else GraphError."""
        if not self._one_run:
            raise GraphError(
                "the lengths of a packed sequence depend on the inputs, and decide what runs",
                got=str(lengths.type),
                fix="pass them as a list, or as a tensor that the function has from outside",
            )
        self._take_out((tensor,))

    def _plain(self, tensor: Tensor) -> Any:
        """Return the tensor that a transform of torch.func has wrapped."""
        functorch = self.torch._C._functorch
        while functorch.is_functorch_wrapped_tensor(tensor):
            tensor = functorch.get_unwrapped(tensor)
        return tensor

    def _tensors(self, value: Tensor) -> list[Any]:
        return tensors_in(self.torch, value)

    def _take_out(self, values: Sequence[Any]) -> None:
        """Let the values of tensors that depend on inputs leave the graph, or raise GraphError.

        A value that the program only checks or prints may leave any graph; others leave the graph
        of one run.
        """
        tensors = self._tensors(values) if values else ()
        is_script = self._one_run and not self.graph.inputs  # whose constants are its data
        left = {self.tensors[self._plain(x)]: x for x in tensors}
        symbols = [x for x in left if depends_on_inputs(x) or (is_script and x.args)]
        if not symbols:
            return
        function = self.sites.function.name if self.sites.function else "item"
        use = self.sites.unused(function in TEXTS)
        if use and not is_script:
            self._note(f"the graph leaves out the {use} of a value ({function})")
            return
        if not use and (not self._one_run or self.ops.outer):
            raise leaving_error(function, symbols[0], self.sites)
        tensor = left[symbols[0]]
        value = array_of(self.torch, self._plain(tensor))
        if use:
            self._left.add_value(symbols[0], tensor, value, self.sites.location())
        else:
            self._left.add(function, symbols, tensor, value, self.sites)


_EMPTY = frozenset(
    ("empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted")
)
"""The ops that make a tensor without values."""

_READING = frozenset(("_local_scalar_dense", "equal", "is_nonzero", "item", "allclose"))
"""The ops that read values."""

_MAKERS = ("tensor", "as_tensor", "asarray", "scalar_tensor")
"""The constructors of torch that make a tensor of Python numbers, or of arrays."""


def kwargs_of(op: AtenOp, kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keywords that an op takes."""
    names = {argument.name for argument in op._schema.arguments}
    return {name: value for name, value in kwargs.items() if name in names}


def _map(torch: Torch, function: Callable[[Any], Any], value: Tensor) -> Any:
    return torch.utils._pytree.tree_map_only(torch.Tensor, function, value)


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
