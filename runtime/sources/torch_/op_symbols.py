"""The symbols of an op of ATen: by its row, PyTorch's decomposition, as a view, or as a call."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphir.location import AUTOCAST, INTERMEDIATE
from graphir.ops.control import Callee
from graphir.ops.types import TupleType
from graphir.public import DType, Graph, GraphError, Symbol, ops
from graphir.runtime.audit.library_calls import LibraryCall
from graphir.runtime.sources.op_rows import trial
from graphir.runtime.sources.torch_ import elementwise, scatter_rows, window_rows
from graphir.runtime.sources.torch_.aten_rows import ROWS, AtenCall, AtenRun
from graphir.runtime.sources.torch_.decompositions import decomposition, name_of
from graphir.runtime.sources.torch_.frames import PROMOTED, FunctionCall, TorchSites
from graphir.runtime.sources.torch_.tensors import (
    Arguments,
    AtenOp,
    Tensor,
    Tensors,
    Torch,
    array_of,
    dtype_of,
    symbols_in,
    tensor_of,
    tensors_in,
    type_of,
)

TABLES = elementwise, scatter_rows, window_rows
"""The modules that add rows to ROWS."""


class OpSymbols:
    """Adds the ops of a run of PyTorch to a graph.

    `outer` are the ops whose decompositions run, `entered` the values of tensors that are
    constants, and `sized` the calls whose sizes depend on values, with the names of their
    functions. `mode` is the dispatch mode of the run, which receives the ops of decompositions.
    """

    mode: Any = None

    def __init__(
        self,
        torch: Torch,
        graph: Graph,
        sites: TorchSites,
        tensors: Tensors,
        note: Callable[[str], None],
    ) -> None:
        self._torch, self._graph, self._sites = torch, graph, sites
        self._tensors, self._note = tensors, note
        self.outer: list[AtenOp] = []
        self.entered: list[Any] = []
        self.sized: list[tuple[Symbol, str]] = []

    def constant(self, tensor: Tensor) -> Symbol:
        """Return the constant of a tensor's values."""
        type_, array = type_of(tensor), array_of(self._torch, tensor)
        self.entered.append(array)
        return self._graph.constant_of((type_.dtype, array))

    def symbols(self, run: AtenRun) -> Sequence[Symbol]:
        """Return the symbols of an op's results: by its row, its decomposition, or as a call."""
        op, results, has_tensors = run.op, run.results, bool(run.tensors)
        draws = is_random(self._torch, op, run.real)
        if not has_tensors and any(_is_of_tensors(x) for x in op._schema.arguments):
            return [self.constant(result) for result in results]  # vmap gives numbers for tensors
        for way in () if draws else (self._by_row, self._by_decomposition, self._as_view):
            with trial(self._graph, partial(self._note_fault, way == self._by_row, op)) as attempt:
                symbols = way(run)
                if symbols is not None:  # a row may leave out the last results
                    pairs = zip(symbols, results, strict=False)
                    return attempt.keep([self._conformed(op, *pair) for pair in pairs])
        if not draws and not has_tensors:
            return [self.constant(result) for result in results]
        if self.outer:
            raise GraphError(f"{op} has no row")
        return self.call(run)

    def _note_fault(self, is_row: bool, op: AtenOp, error: Exception) -> None:
        if is_row:
            self._note(f"the row of {op} failed ({error!r}), and another way stands for it")

    def _by_row(self, run: AtenRun) -> Sequence[Symbol] | None:
        (args, keywords), name = run.operands, name_of(run.op)
        if name in ("_to_copy", "convert_element_type"):
            return self._conversion(args[0], run.real[0][0], run.results[0])
        row = ROWS.get(name)
        if row is None or run.op.namespace not in ("aten", "prims"):
            return None
        call = AtenCall(self._graph, run, lambda x, to, op: self.cast(x, to, INTERMEDIATE, op))
        symbols = ROWS.results(row, call, args, keywords)
        if symbols is None or len(symbols) != len(run.results):
            return None
        return [x for x in symbols if x is not None]

    def _by_decomposition(self, run: AtenRun) -> Sequence[Symbol] | None:
        """Return the symbols of PyTorch's own decomposition, if rows cover all its ops."""
        torch, op, (args, keywords) = self._torch, run.op, run.real
        function = decomposition(torch, op)
        if function is None or op in self.outer:
            return None
        self.outer.append(op)
        try:
            keeping = _restoring_values(op, args)
            with torch.no_grad(), torch._C._DisableAutocast(), keeping, self.mode:
                values = tensors_in(torch, function(*args, **keywords))
        finally:
            self.outer.pop()
        return [self._tensors[value] for value in values]

    def _as_view(self, run: AtenRun) -> Sequence[Symbol] | None:
        return [self._tensors.view(result) for result in run.results] if run.op.is_view else None

    def call(self, run: AtenRun, targets: Sequence[Tensor] = ()) -> Sequence[Symbol]:
        """Return the results of an op as those of a call of it. It writes to `targets`."""
        op, draws = run.op, is_random(self._torch, run.op, run.real)
        if draws:
            self._note(f"{name_of(op)} is random: the values of the graph differ from run to run")
        drew = run.results if draws else None
        attrs = {
            "callee": Callee(f"torch.{op}", BoundOp(self._torch, op, run.real, targets, drew)),
            "types": TupleType(map(type_of, run.results)),
        }
        operands = tuple(symbols_in(self._torch, run.operands))
        call = self._graph.emit(ops.control.call, operands, attrs)
        if self._torch.Tag.dynamic_output_shape in op.tags:
            function = self._sites.function
            self.sized.append((call, function.name if function else name_of(op)))
        return ops.control.parts(call)

    # -- conversions

    def _conversion(self, symbol: Symbol, source: Tensor, result: Tensor) -> Sequence[Symbol]:
        """Return the cast of `_to_copy`: of the user, of autocast, or of a function of PyTorch."""
        call, to = self._sites.function, dtype_of(result.dtype)
        symbol = self._real_part(symbol, to)
        if symbol.dtype is to:
            return [symbol]
        if self.outer:
            return [self.cast(symbol, to, INTERMEDIATE, f"torch.{name_of(self.outer[0])}")]
        if call is None or call.is_conversion:
            return [self._graph.emit(ops.cast, (symbol,), {"to": to})]
        if not call.autocast:
            return [self.cast(symbol, to, INTERMEDIATE, f"torch.{call.name}")]
        operand = self._parameter(call, source)
        lists = "promote" if call.name in PROMOTED else "fp32"
        lower = self._torch.get_autocast_dtype("cpu")
        lists = "lower_precision_fp" if result.dtype is lower else lists
        return [self.cast(symbol, to, operand, f"torch.{call.name}", f"{AUTOCAST}_{lists}")]

    def _parameter(self, call: FunctionCall, tensor: Tensor) -> str:
        """Return the parameter of a function for which a tensor was passed."""
        packet = getattr(self._torch.ops.aten, call.name, None)
        overloads = packet.overloads() if packet is not None else ()
        schema = getattr(packet, overloads[0])._schema.arguments if overloads else ()
        names = [argument.name for argument in schema] or call.parameters
        for i, value in enumerate(call.arguments[0]):
            if any(self._tensors.are_same(each, tensor) for each in tensors_in(self._torch, value)):
                return names[i] if i < len(names) else f"argument {i + 1}"
        for name, value in call.arguments[1].items():
            if value is tensor:
                return name
        return INTERMEDIATE

    def cast(
        self, symbol: Symbol, to: DType, operand: str, op: str, rule: str | None = None
    ) -> Symbol:
        """Return a symbol in another dtype, by a cast with an origin."""
        return self._graph.cast_for(self._real_part(symbol, to), to, operand, op, rule)

    def _real_part(self, symbol: Symbol, to: DType) -> Symbol:
        """Return the real part of complex numbers that become real, as PyTorch warns; else them."""
        if not symbol.dtype.is_complex or to.is_complex or to is DType.bool:
            return symbol
        self._note(f"PyTorch drops imaginary parts in {to}")
        return self._graph.emit(ops.real, (symbol,), {})

    def _conformed(self, op: AtenOp, symbol: Symbol, tensor: Tensor) -> Symbol:
        """Return a result in the dtype of its tensor; GraphError for another shape."""
        type_ = type_of(tensor)
        if symbol.shape != type_.shape:
            raise GraphError(f"the row of {op} gives another shape", got=str(symbol.type))
        return self.cast(symbol, type_.dtype, "result", f"torch.{name_of(op)}")


def written_by(op: AtenOp, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """Return the tensors that an op writes to."""
    targets: list[Any] = []
    for i, argument in enumerate(op._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[i] if i < len(args) else kwargs.get(argument.name)
            targets += () if value is None else value if isinstance(value, list) else [value]
    return targets


def is_random(torch: Torch, op: AtenOp, real: Arguments) -> bool:
    """Whether an op draws random values."""
    has_generator = any(argument.name == "generator" for argument in op._schema.arguments)
    tagged = torch.Tag.nondeterministic_seeded in op.tags
    return (has_generator or tagged) and not _keeps_all(op, *real)


def _keeps_all(op: AtenOp, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether an op with dropout drops nothing."""
    names = [argument.name for argument in op._schema.arguments]
    by_name = {**dict(zip(names, args, strict=False)), **kwargs}
    rate = by_name.get("dropout_p", by_name.get("p", by_name.get("dropout")))
    training = [by_name[name] for name in ("train", "training") if name in by_name]
    has_rate = "dropout" in name_of(op) or not {"dropout", "dropout_p"}.isdisjoint(names)
    return has_rate and (not rate or training == [False])


def _is_of_tensors(argument: Any) -> bool:
    return str(argument.type).startswith(("Tensor", "List[Tensor"))


@contextmanager
def _restoring_values(op: AtenOp, args: Sequence[Any]) -> Generator[None]:
    """Keep the values of tensors that an op has written to, and its decomposition writes again."""
    tensors = args[3:5] if name_of(op) == "native_batch_norm" else ()
    copies = [(x, x.clone()) for x in tensors if x is not None]
    yield
    for tensor, copy in copies:
        tensor.copy_(copy)


# -- ops of PyTorch without an op: calls that PyTorch computes


class BoundOp(LibraryCall):
    """An op with its other arguments, as a function of arrays.

    The results are those of the op that are new, and the values of the tensors that it writes to,
    `targets`. A random op has the results that it `drew` when the program was imported; an audit
    keeps them, as data of the run. In wide arithmetic, the op computes in float64.
    """

    def __init__(
        self,
        torch: Torch,
        op: AtenOp,
        real: tuple[Any, Any],
        targets: Sequence[Any],
        drew: Sequence[Any] | None = None,
    ) -> None:
        self._torch, self._op, self._is_random = torch, op, drew is not None
        if drew is not None:
            self.run_draws = tuple([array_of(torch, x) for x in drew])
        leaves, self._tree = torch.utils._pytree.tree_flatten(real)
        tensors = [x for x in leaves if isinstance(x, torch.Tensor)]
        self._targets = [next(i for i, x in enumerate(tensors) if x is y) for y in targets]
        self._dtypes = [x.dtype for x in tensors]
        self._leaves = [_TENSOR if isinstance(x, torch.Tensor) else x for x in leaves]

    def __call__(self, *arrays: NDArray[Any]) -> tuple[Any, ...]:
        """Return the results as NumPy arrays."""
        with self._torch.no_grad():
            results = self._run([tensor_of(self._torch, array) for array in arrays], self._leaves)
        return tuple([array_of(self._torch, x) for x in results])

    def _run(self, tensors: Sequence[Any], leaves: Sequence[Any]) -> list[Any]:
        values, tree = iter(tensors), self._torch.utils._pytree
        whole = [next(values) if leaf is _TENSOR else leaf for leaf in leaves]
        args, kwargs = tree.tree_unflatten(whole, self._tree)
        results = tree.tree_leaves(self._op(*args, **kwargs))
        targets = [tensors[i] for i in self._targets]
        results = [x for x in results if isinstance(x, self._torch.Tensor)]
        return [*(x for x in results if all(x is not y for y in targets)), *targets]

    # -- in wide arithmetic

    @property
    def _name(self) -> str:
        return self._op._schema.name.partition("::")[2].rstrip("_")

    @property
    def data_of(self) -> tuple[int, ...] | None:
        """The positions of the operands that tell a draw: none, or all of a draw of choices."""
        if not self._is_random:
            return None
        is_fill = self._op._schema.name.endswith("_") or self._name in _FILLS
        is_fill = is_fill or (self._name == "bernoulli" and self._op._overloadname == "p")
        if self._name in _CHOICES and not (is_fill and len(self._dtypes) == 1):
            return tuple(range(len(self._dtypes)))
        return () if self._name.endswith("_like") or is_fill or not self._dtypes else None

    @property
    def draws(self) -> bool:
        """Whether the op draws."""
        return self._is_random

    @property
    def keeps_order(self) -> bool:
        """Whether the results are an order and its places."""
        return self._name in _ORDERS

    def widened(self, operands: Sequence[Any]) -> Sequence[Any]:
        """Return the results of the op in float64."""
        if self._is_random:
            return super().widened(operands)
        with self._torch.no_grad():
            results = self._run(self._wide_tensors(operands), self._wide_leaves)
        return [array_of(self._torch, x) for x in results]

    def adjoints(self, operands: Sequence[Any], place: int, adjoint: Any) -> Sequence[Any] | None:
        """Return the adjoints of wide operands by autograd; None where it has no derivative."""
        torch = self._torch
        tensors = self._wide_tensors(operands)
        with torch.enable_grad():
            floats = [
                x.requires_grad_() for x in tensors if x.is_floating_point() or x.is_complex()
            ]
            try:
                result = self._run(tensors, self._wide_leaves)[place]
                seed = tensor_of(torch, np.conj(adjoint)).to(result.dtype)
                parts = torch.autograd.grad(result, floats, seed, allow_unused=True)
            except RuntimeError:  # of an op without derivative, or that writes to its operands
                return None
        rest = iter(parts)
        return [
            None
            if not x.requires_grad
            else np.zeros(array.shape)
            if (part := next(rest)) is None
            else np.conj(array_of(torch, part))
            for x, array in zip(tensors, operands, strict=True)
        ]

    @property
    def _has_floats(self) -> bool:
        return any(x.is_floating_point or x.is_complex for x in self._dtypes)

    def _wide_tensors(self, operands: Sequence[Any]) -> list[Any]:
        """Return wide operands as tensors; the integers beside floats keep their dtypes."""
        pairs = zip((tensor_of(self._torch, x) for x in operands), self._dtypes, strict=True)
        return [
            x if own.is_floating_point or own.is_complex or not self._has_floats else x.to(own)
            for x, own in pairs
        ]

    @property
    def _wide_leaves(self) -> Sequence[Any]:
        torch, has_floats = self._torch, self._has_floats

        def wide(leaf: Any) -> Any:
            if not isinstance(leaf, torch.dtype):
                return leaf
            if leaf.is_floating_point or leaf.is_complex:
                return torch.complex128 if leaf.is_complex else torch.float64
            return leaf if has_floats or leaf is torch.bool else torch.int64

        return [wide(leaf) for leaf in self._leaves]


_TENSOR = object()

_CHOICES = ("bernoulli", "binomial", "multinomial", "poisson")
"""The random ops whose operands are the parameters of choices."""
_FILLS = (
    "cauchy",
    "exponential",
    "geometric",
    "log_normal",
    "normal_functional",
    "random",
    "uniform",
)
"""The random ops whose first operand has the shape alone."""
_ORDERS = ("kthvalue", "median", "mode", "nanmedian", "sort", "topk", "cummax", "cummin")
