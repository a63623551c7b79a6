"""Values of tensors that leave the graph for Python and NumPy: which do, and what a run keeps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import CodeType
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from graphir.location import UnseenPart
from graphir.public import DType, Graph, GraphError, Location, Symbol, ops
from graphir.runtime.audit.opaque import OpaqueStep
from graphir.runtime.recording.leaving import AS_NUMBER, AS_TRUTH
from graphir.runtime.recording.sites import CallSites
from graphir.runtime.sources.torch_.frames import TorchSites
from graphir.runtime.sources.torch_.tensors import Function, Tensor

AS_ARRAY = "gives its values to Python or NumPy, by which the program may go on"


class LeftValues:
    """The values that left the graph of one run. `top` is the code that calls the program."""

    def __init__(self, top: CodeType) -> None:
        self._sites, self._last = CallSites(top), ()
        self.steps: list[OpaqueStep] = []
        """The reads by which the program may go on, with the symbols of their tensors."""
        self._rounds: dict[tuple[Any, ...], dict[Symbol, NDArray[Any]]] = {}
        """The first tensors of all reads, those of equal name and type as rounds of one value."""
        self.names: tuple[str, ...] = ()
        """The names of the outputs of a program that returns no tensor."""
        self.rounds: tuple[int, ...] = ()
        """The numbers of values that these outputs stack."""
        self.arrays: dict[int, tuple[Any, Symbol]] = {}
        """The arrays that tensors became, by id, with the symbols of the tensors."""

    def add_value(
        self, symbol: Symbol, tensor: Tensor, value: NDArray[Any], place: Location
    ) -> None:
        """Add a value that leaves the program, as an output of one that returns no tensor."""
        key = self._sites.name_of(tensor, place), value.dtype, value.shape
        self._rounds.setdefault(key, {})[symbol] = value

    def outputs(self, graph: Graph) -> list[tuple[Symbol, NDArray[Any]]]:
        """Return the values that left, as outputs of a graph, and set their names and rounds."""
        pairs: list[tuple[Symbol, NDArray[Any]]] = []
        for values in self._rounds.values():
            (symbol, *others), arrays = values, [*values.values()]
            if others:
                with graph.at(symbol.location):
                    symbol = graph.emit(ops.stack, tuple(values), {"axis": 0})
            pairs.append((symbol, np.stack(arrays) if others else arrays[0]))
        self.names = tuple(name for name, *_ in self._rounds)
        self.rounds = tuple(map(len, self._rounds.values()))
        return pairs

    def add(
        self,
        function: str,
        symbols: Sequence[Symbol],
        tensor: Tensor,
        value: NDArray[Any],
        sites: TorchSites,
    ) -> None:
        """Add a read of tensors by a function of PyTorch; `value` is that of the first, `tensor`.

        A float that is read is data of the run: an audit says that it has an error. If a bool or an
        integer would be another in wide arithmetic, all errors are unknown.
        """
        place = sites.location(), *(x.index for x in symbols)
        if place == self._last:  # a method, and the op that it calls
            return
        self._last = place
        self.add_value(symbols[0], tensor, value, place[0])
        if function in _MAKERS and not sites.reader() and self._sites.is_escape():
            return
        is_truth = function == "__bool__" or all(x.dtype is DType.bool for x in symbols)
        is_array, is_bool = function in ARRAYS, is_truth or function in _COMPARING
        step = OpaqueStep(
            function.strip("_"),
            sites.location(),
            AS_ARRAY if is_array else AS_TRUTH if is_bool else AS_NUMBER,
            operands=tuple(symbols),
            steers=True,
            exact=True,
            truth=is_truth and not is_array,
            keeps=not is_truth and any(x.dtype.is_inexact for x in symbols),
        )
        self.steps.append(step)

    @property
    def operands(self) -> list[Symbol]:
        """The symbols that the program read."""
        return [x for step in self.steps for x in step.operands or ()]

    def remap(self, twins: Iterator[Symbol]) -> None:
        """Replace the operands by their twins in another graph, in order."""
        mapping = {x.index: twin for x, twin in zip(self.operands, twins, strict=True)}
        self.steps = [step.remap(mapping) for step in self.steps]

    def parts(self) -> Iterator[UnseenPart]:
        """Yield the reads as parts of the program that the graph does not contain."""
        for step in self.steps:
            yield UnseenPart(step.what, step.location, step.reason, decides=True)


def leaving_error(function: str, symbol: Symbol, sites: TorchSites) -> GraphError:
    """Return the error of a value that leaves the graph by a function of PyTorch."""
    reader = sites.reader()
    fix = _FIXES.get(function, "use torch.where, or pass the value as an argument")
    fix = _FIXES_OF_READERS.get(reader.partition(":")[0], fix)
    fixes = (fix,) if isinstance(fix, str) else fix
    return GraphError(
        "the value of a tensor leaves the graph, which holds for all values",
        reason=f"{reader} reads it" if reader else "",
        got=str(symbol.type),
        fix=(*fixes, "record this run alone: graphir.runtime.record_torch(f, *args)"),
        op=function,
    ).at(sites.location(), function)


TEXTS = frozenset(("__format__", "__repr__", "__str__"))

_FIXES = {
    **dict.fromkeys(TEXTS, "leave the text out, or print x.shape and x.dtype"),
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

_NUMBERS = frozenset(("__float__", "__int__", "__index__", "__complex__"))

ARRAYS = frozenset(("numpy", "tolist", "__array__", "__dlpack__"))
"""The methods of tensors that give all values."""

_MAKERS = frozenset(("item", "tolist", "numpy", "__float__", "__int__", "__complex__")) | TEXTS
"""The methods of tensors by which a program makes values that may only leave it."""

_COMPARING = frozenset(("equal", "is_nonzero", "allclose"))
"""The functions of tensors that give a bool."""

_LEAVING = ARRAYS | _NUMBERS | TEXTS
"""The methods of tensors that read values without an op, as torch.Tensor([x[0]]) does by float."""


def values_read(
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


def depends_on_inputs(symbol: Symbol) -> bool:
    """Whether a value depends on inputs, or on what was drawn."""
    visited, pending = set[int](), [symbol]
    while pending:
        each = pending.pop()
        if each.op is ops.input or (each.op is ops.control.call and not each.args):
            return True
        if each.index not in visited:
            visited.add(each.index)
            pending += each.args
    return False
