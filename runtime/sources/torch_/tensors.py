"""The symbols of tensors: views share a storage, and a write to one changes the others.

A tensor is identified by its storage and its geometry there, since autograd may wrap the same
values anew. A storage has a base, the first tensor that was met there. A write to a tensor becomes
an update of the base; a view that was computed before the write is read from the base again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from graphir.promotion.torch import TORCH_LATTICE
from graphir.public import DType, Graph, GraphError, Symbol, TensorType, ops

Torch: TypeAlias = Any
"""The module torch, of which the project's own environment has no types."""

Tensor: TypeAlias = Any
"""A torch.Tensor."""

Module: TypeAlias = Any
"""A torch.nn.Module."""

Function: TypeAlias = Any
"""What PyTorch calls: a function, a module, or a torch.export.ExportedProgram."""

AtenOp: TypeAlias = Any
"""An overload of an op of ATen, a torch._ops.OpOverload."""

Arguments: TypeAlias = "tuple[Sequence[Any], Mapping[str, Any]]"
"""The arguments of a call by position, and by name."""

Geometry: TypeAlias = "tuple[Any, ...]"


def tensors_in(torch: Torch, tree: Any) -> list[Tensor]:
    """Return the tensors in a tree, in order."""
    leaves = torch.utils._pytree.tree_leaves(tree)
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def symbols_in(torch: Torch, tree: Any) -> list[Symbol]:
    """Return the symbols in a tree, in order."""
    return [leaf for leaf in torch.utils._pytree.tree_leaves(tree) if isinstance(leaf, Symbol)]


def dtype_of(dtype: Any) -> DType:
    """Return the dtype for a torch.dtype; GraphError for dtypes that graphir does not have."""
    name = str(dtype).removeprefix("torch.")
    if name not in _DTYPES:
        raise GraphError(f"graphir has no dtype {name} of PyTorch", fix="use a wider dtype")
    return DType(name)


_DTYPES = frozenset(map(str, TORCH_LATTICE))


def type_of(tensor: Tensor) -> TensorType:
    """Return the type of a tensor; GraphError for a tensor without an array of values."""
    kinds = [kind for kind in ("quantized", "meta", "nested") if getattr(tensor, f"is_{kind}")]
    kind = (*kinds, str(tensor.layout).removeprefix("torch."))[0]
    if kind != "strided":
        raise GraphError(
            f"from_torch: a {kind} tensor has no array of values",
            got=str(tensor.dtype),
            fix="pass a dense torch.Tensor, as x.to_dense() or x.dequantize() gives",
        )
    return TensorType(dtype_of(tensor.dtype), tuple(tensor.shape))


def array_of(torch: Torch, tensor: Tensor) -> Any:
    """Return a copy of a tensor's values as an array; bfloat16 and float8 as in ml_dtypes."""
    storage, plain = dtype_of(tensor.dtype).storage, tensor.detach().resolve_conj().resolve_neg()
    plain = plain.cpu().clone(memory_format=torch.contiguous_format)  # numpy() pins its storage
    if np.dtype(storage).kind == "V" or storage.name.startswith(("bfloat", "float8")):
        words = torch.uint16 if plain.element_size() == 2 else torch.uint8
        return plain.view(words).numpy().view(storage)
    return plain.numpy()


def tensor_of(torch: Torch, array: Any) -> Any:
    """Return a tensor with a copy of an array's values."""
    whole = np.array(array, order="C")
    if not whole.size:  # whose strides NumPy sets to 0
        return torch.empty(whole.shape, dtype=getattr(torch, whole.dtype.name))
    if whole.dtype.name.startswith(("bfloat", "float8")):
        words = np.uint16 if whole.dtype.itemsize == 2 else np.uint8
        return torch.from_numpy(whole.view(words)).view(getattr(torch, whole.dtype.name))
    return torch.from_numpy(whole)


class Tensors:
    """The symbols of the tensors that a recording has met.

    `unmet` adds the symbol of a tensor that no recorded op has made, and names the tensor.
    """

    def __init__(self, graph: Graph, unmet: Callable[[Any], tuple[Symbol, str]]) -> None:
        self._graph, self._unmet = graph, unmet
        self._storages: dict[int, _Storage] = {}
        self._outer: dict[int, str] = {}

    def __getitem__(self, tensor: Tensor) -> Symbol:
        """Return the symbol of a tensor's present value."""
        if self.is_new(tensor):
            self.add_outer(tensor, *self._unmet(tensor))
        storage = self._storages[self.key(tensor)]
        symbol = storage.views.get(_geometry(tensor))
        live = symbol is not None and self._is_live(symbol)
        return symbol if symbol is not None and live else storage.read(self._graph, tensor)

    def is_new(self, tensor: Tensor) -> bool:
        """Whether a tensor has no element of the tensors that the recording has met.

        Such are the rows of one tensor that the program has from outside, and never writes to.
        """
        storage = self._live_storage(tensor)
        return storage is None or storage.is_apart(tensor)

    def add_outer(self, tensor: Tensor, symbol: Symbol, name: str) -> None:
        """Record the symbol and the name of a tensor that the program has from outside."""
        self[tensor] = symbol
        self._storages[self.key(tensor)].outer.append(_geometry(tensor))
        self._outer[self.key(tensor)] = name

    def outer_name(self, tensor: Tensor) -> str:
        """Return the name of the tensor from outside that has a tensor's storage; "" for none."""
        return self._outer.get(self.key(tensor), "")

    def view(self, tensor: Tensor) -> Symbol:
        """Return the symbol of a new view; GraphError for a storage that was not met."""
        storage = self._live_storage(tensor)
        if storage is None:
            raise GraphError("a view of a tensor without symbol", got=str(type_of(tensor)))
        return storage.read(self._graph, tensor)

    def __setitem__(self, tensor: Tensor, symbol: Symbol) -> None:
        """Record the symbol of a tensor that an op has made."""
        storage = self._live_storage(tensor)
        if storage is None:
            storage = self._storages[self.key(tensor)] = _Storage(tensor)
            storage.base_symbol = symbol
        storage.views[_geometry(tensor)] = symbol

    @staticmethod
    def key(tensor: Tensor) -> int:
        """Return the identity of a tensor's storage."""
        return tensor.untyped_storage()._cdata

    def forget(self, tensor: Tensor) -> None:
        """Drop what is recorded of a tensor's storage."""
        self._storages.pop(self.key(tensor), None)

    @staticmethod
    def are_same(x: Tensor, y: Tensor) -> bool:
        """Whether two tensors are the same values of a storage."""
        return Tensors.key(x) == Tensors.key(y) and _geometry(x) == _geometry(y)

    def _live_storage(self, tensor: Tensor) -> _Storage | None:
        storage = self._storages.get(self.key(tensor))
        return storage if storage is not None and self._is_live(storage.base_symbol) else None

    def _is_live(self, symbol: Symbol) -> bool:
        """Whether a symbol is in the graph: those of a decomposition that failed are not."""
        symbols = self._graph.symbols
        return symbol.index < len(symbols) and symbols[symbol.index] is symbol

    def write(self, tensor: Tensor, symbol: Symbol) -> None:
        """Record that an op has written a symbol's value to a tensor."""
        self._storages[self.key(tensor)].write(self._graph, tensor, symbol)


class _Storage:
    """A storage: its base, and the symbols of views that no write has made stale."""

    def __init__(self, tensor: Tensor) -> None:
        self._storage = tensor.untyped_storage()  # so that its address is not given to another
        self._base, self._shape, self._dtype = _geometry(tensor), tuple(tensor.shape), tensor.dtype
        self.base_symbol: Any = None
        self.views: dict[Geometry, Symbol] = {}
        self.outer: list[Geometry] = []  # of the tensors from outside
        self._is_written = False

    def is_apart(self, tensor: Tensor) -> bool:
        """Whether a tensor has no element of the base, or of the tensors from outside.

        The answer is False for another dtype, and once an op has written to the storage.
        """
        if self._is_written or tensor.dtype is not self._dtype or _geometry(tensor) in self.views:
            return False
        size = self._storage.nbytes() // tensor.element_size()
        elements = [_grid(size, *x[1:4]).ravel() for x in (self._base, *self.outer)]
        return not np.isin(_grid(size, *_geometry(tensor)[1:4]), np.concatenate(elements)).any()

    def read(self, graph: Graph, tensor: Tensor) -> Symbol:
        """Return the symbol of a view, taken from the base."""
        places, whole = self._places(tensor), self.base_symbol
        if self._is_whole(places):
            symbol = graph.apply(ops.reshape, (whole,), {"shape": tuple(tensor.shape)})
        else:
            flat = graph.apply(ops.reshape, (whole,), {"shape": (prod(self._shape),)})
            symbol = graph.apply(ops.gather, (flat, _constant(graph, places)), {"axis": 0})
        self.views[_geometry(tensor)] = symbol
        return symbol

    def write(self, graph: Graph, tensor: Tensor, symbol: Symbol) -> None:
        """Update the base, and forget the views."""
        self._is_written = True
        if _geometry(tensor) == self._base:
            self.base_symbol = symbol
        else:
            places, whole = self._places(tensor), self.base_symbol
            if self._is_whole(places):
                self.base_symbol = graph.apply(ops.reshape, (symbol,), {"shape": self._shape})
            else:
                if np.unique(places).size < places.size:
                    raise GraphError(
                        "elements of a tensor that is written to share memory",
                        got=str(type_of(tensor)),
                        fix="write to x.clone()",
                    )
                args = whole, symbol, _constant(graph, places)
                self.base_symbol = graph.apply(ops.index_update, args, {"axis": None})
        self.views = {self._base: self.base_symbol, _geometry(tensor): symbol}

    def _is_whole(self, places: NDArray[Any]) -> bool:
        size = prod(self._shape)
        return places.size == size and bool((places.ravel() == np.arange(size)).all())

    def _places(self, tensor: Tensor) -> Any:
        """Return the places of a view's elements in the base, flattened; GraphError if outside."""
        _, shape, strides, offset, *_ = self._base
        if tensor.dtype is self._dtype and not (tensor.is_conj() or tensor.is_neg()):
            size = self._storage.nbytes() // tensor.element_size()
            within = np.full(size, -1)
            base = _grid(size, shape, strides, offset)
            within[base.ravel()] = np.arange(base.size)
            sizes = tuple(tensor.shape), tensor.stride(), tensor.storage_offset()
            places = within[_grid(size, *sizes)]
            if (places >= 0).all():
                return places
        raise GraphError(
            "a tensor shares memory with one that was written to, in another dtype or beyond it",
            got=str(type_of(tensor)),
            fix="write x.clone() before the first write",
        )


def _grid(size: int, shape: Sequence[int], strides: Sequence[int], offset: int) -> Any:
    places = np.arange(size)[offset:]
    return np.lib.stride_tricks.as_strided(places, shape, [8 * s for s in strides]).copy()


def _constant(graph: Graph, places: NDArray[Any]) -> Symbol:
    return graph.constant_of((DType.int64, np.array(places, np.int64, order="C")))


def _geometry(tensor: Tensor) -> Geometry:
    return (
        *(tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.storage_offset()),
        *(tensor.is_conj(), tensor.is_neg()),
    )
