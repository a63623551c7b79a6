"""Functions of PyTorch that read values in Python, computed by ops that a graph can hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast


class Replacements:
    """The functions that run in place of some of PyTorch's, while a program is recorded.

    `is_variable` says whether a tensor's value depends on the inputs of the graph.
    """

    def __init__(self, torch: Any, is_variable: Callable[[Any], bool]) -> None:
        self._torch, self._is_variable = torch, is_variable

    def of(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return a function without arguments to run instead; None to run PyTorch's."""
        if name == "__deepcopy__" and type(args[0]) is self._torch.Tensor:
            return lambda: self._copy(*args)
        if name in ("clamp", "clip"):
            return self._clamp_of(args, kwargs)
        if kwargs or len(args) < 2:
            return None
        if name == "__getitem__" and self._place(args[0], args[1]) is not None:
            return lambda: self._item(*args)
        if name == "__setitem__" and self._place(args[0], args[1]) is not None:
            return lambda: self._set_item(*args)
        if name in ("select", "narrow") and self._is_index(args[2]):
            x, axis, start = args[:3]
            before = (slice(None),) * (axis % x.dim())
            if name == "select":
                return lambda: self._item(x, (*before, start))
            places = self._torch.arange(args[3])
            return lambda: x[(*before, start + places)]
        return None

    def _clamp_of(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return a clamp between a number and a tensor, of which PyTorch makes a number, too.

        As numbers, the bounds count by their categories.
        """
        torch, by_name = (
            self._torch,
            {**dict(zip(("x", "min", "max"), args, strict=False)), **kwargs},
        )
        if by_name.keys() != {"x", "min", "max"}:
            return None
        x, *bounds = (by_name[name] for name in ("x", "min", "max"))
        tensors = [bound for bound in bounds if isinstance(bound, torch.Tensor)]
        is_mixed = len(tensors) == 1 and all(bound is not None for bound in bounds)
        if not is_mixed or not self._is_variable(tensors[0]):
            return None
        if tensors[0].dim() or any(bound.dtype.is_complex for bound in tensors):
            return None
        is_float = (
            any(isinstance(bound, float) for bound in bounds) or tensors[0].dtype.is_floating_point
        )
        to = torch.result_type(x, 1.0 if is_float else 1)
        return lambda: torch.clamp(x.to(to), *(torch.as_tensor(bound).to(to) for bound in bounds))

    def _copy(self, tensor: Any, memo: dict[int, Any]) -> Any:
        """Return a deep copy: a clone, whose storage PyTorch would copy without an op."""
        if id(tensor) not in memo:
            memo[id(tensor)] = tensor.detach().clone().requires_grad_(tensor.requires_grad)
        return memo[id(tensor)]

    def _is_index(self, value: Any) -> bool:
        """Whether a value is a tensor of one integer that depends on inputs, taken for an int."""
        torch = self._torch
        if not isinstance(value, torch.Tensor) or value.dim():
            return False
        is_integer = value.dtype not in (torch.bool, torch.uint8) and not value.dtype.is_complex
        return is_integer and not value.dtype.is_floating_point and self._is_variable(value)

    def _place(self, x: Any, index: Any) -> tuple[int, int] | None:
        """Return the place among the indices, and the axis, of the first index that is a tensor."""
        indices = _indices(index)
        widths = [self._width(each) for each in indices]
        axis = 0
        for place, each in enumerate(indices):
            if each is Ellipsis:
                axis += x.dim() - sum(widths)
            elif self._is_index(each):
                return place, axis
            axis += widths[place]
        return None

    def _width(self, index: Any) -> int:
        """Return the number of axes that an index takes."""
        if index is None or index is Ellipsis or isinstance(index, bool):
            return 0
        is_mask = getattr(index, "dtype", None) in (self._torch.bool, self._torch.uint8)
        return index.dim() if is_mask else 1

    def _cut(self, x: Any, index: Any) -> tuple[Any, tuple[Any, ...]] | None:
        """Return indices that cut x to one place along an axis, and those that select in it."""
        where = self._place(x, index)
        if where is None:
            return None
        place, axis = where
        indices = _indices(index)
        whole = (slice(None),) * axis
        cut = (*whole, indices[place].long().reshape(1))
        return cut, (*indices[:place], 0, *indices[place + 1 :])

    def _item(self, x: Any, index: Any) -> Any:
        cut = self._cut(x, index)
        return x[index] if cut is None else self._item(x[cut[0]], cut[1])

    def _set_item(self, x: Any, index: Any, value: Any) -> None:
        cut = self._cut(x, index)
        if cut is None:
            x[index] = value
            return
        part = x[cut[0]]
        self._set_item(part, cut[1], value)
        x[cut[0]] = part


def _indices(index: Any) -> tuple[Any, ...]:
    return cast("tuple[Any, ...]", index) if isinstance(index, tuple) else (index,)
