"""Ops of PyTorch without an op: calls that PyTorch computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphir.runtime.audit.library_calls import LibraryCall
from graphir.runtime.sources.torch_.tensors import AtenOp, Torch, array_of, tensor_of


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
