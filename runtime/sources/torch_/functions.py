"""Functions of PyTorch that read values in Python, computed by ops that a graph can hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
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
        if name == "bilinear" and self._torch.is_autocast_enabled("cpu"):
            return lambda: self._bilinear(*args)
        if name in _MULTIPLES:
            return self._multiple_of(name, args, kwargs)
        if kwargs or len(args) < 2:
            return None
        if name in ("__getitem__", "__setitem__") and self._place(args[0], args[1]) is not None:
            return partial(self._item if name == "__getitem__" else self._set_item, *args)
        if name in ("select", "narrow") and self._is_index(args[2]):
            x, axis, start = args[:3]
            before = (slice(None),) * (axis % x.dim())
            if name == "select":
                return lambda: self._item(x, (*before, start))
            places = self._torch.arange(args[3])
            return lambda: x[(*before, start + places)]
        return None

    def _multiple_of(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return a sum with a multiple by a tensor, of which PyTorch makes a number."""
        torch = self._torch
        number: Any = kwargs.get("alpha")
        if not self._is_number(number) or not isinstance(args[0], torch.Tensor):
            return None
        x, y = args if len(args) == 2 else (args[0], kwargs["other"])

        def run() -> Any:
            to = torch.result_type(x, y)
            category = torch.result_type(number, False)
            plain = 1.0 if category.is_floating_point else category.is_complex * 1j or 1
            empty = torch.empty(0, dtype=to)
            torch.add(empty, empty, alpha=True if category is torch.bool else plain)  # may refuse
            wide = [z.to(to) if isinstance(z, torch.Tensor) else z for z in (x, y)]
            first, second = reversed(wide) if name == "rsub" else wide
            factor = number.to(to) if name.startswith("add") else -number.to(to)
            if to.is_floating_point and isinstance(second, torch.Tensor):
                result = torch.addcmul(torch.as_tensor(first).to(to), second, factor)
            else:
                result = first + second * factor
            return x.copy_(result) if name.endswith("_") else result

        return run

    def _is_number(self, value: Any) -> bool:
        """Whether a value is a tensor without axes that depends on inputs, taken for a number."""
        is_tensor = isinstance(value, self._torch.Tensor)
        return is_tensor and not value.dim() and self._is_variable(value)

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

    def _bilinear(self, x: Any, y: Any, weight: Any, bias: Any = None) -> Any:
        """A bilinear form under autocast: its op's own products are not seen by a dispatch mode."""
        torch = self._torch
        rows, columns = x.reshape(-1, x.shape[-1]), y.reshape(-1, y.shape[-1], 1)
        half = torch.matmul(rows, weight).unsqueeze(-2)
        result = torch.matmul(half, columns).squeeze(-1).squeeze(-1).T.contiguous()
        result = result.to(weight.dtype).reshape(*x.shape[:-1], -1)
        return result if bias is None else result + bias

    def _copy(self, tensor: Any, memo: dict[int, Any]) -> Any:
        """Return a deep copy: a clone, whose storage PyTorch would copy without an op."""
        if id(tensor) not in memo:
            memo[id(tensor)] = tensor.detach().clone().requires_grad_(tensor.requires_grad)
        return memo[id(tensor)]

    def _is_index(self, value: Any) -> bool:
        """Whether a value is a tensor of one integer that depends on inputs, taken for an int."""
        return self._is_number(value) and not self._is_mask(value) and not value.is_floating_point()

    def _is_mask(self, value: Any) -> bool:
        return getattr(value, "dtype", None) in (self._torch.bool, self._torch.uint8)

    def _is_limit(self, value: Any) -> bool:
        """Whether a value is a slice between limits of which one depends on inputs."""
        if not isinstance(value, slice):
            return False
        limits = cast("slice[Any, Any, Any]", value)
        return self._is_index(limits.start) or self._is_index(limits.stop)

    def _place(self, x: Any, index: Any) -> tuple[int, int] | None:
        """Return the place among the indices, and the axis, of the first one to be replaced."""
        indices = _indices(index)
        widths = [self._width(each) for each in indices]
        axis = 0
        for place, each in enumerate(indices):
            if each is Ellipsis:
                axis += x.dim() - sum(widths)
            elif self._is_number(each) or self._is_limit(each):
                return place, axis
            axis += widths[place]
        return None

    def _width(self, index: Any) -> int:
        """Return the number of axes that an index takes."""
        if index is None or index is Ellipsis or isinstance(index, bool):
            return 0
        return index.dim() if self._is_mask(index) else 1

    def _item(self, x: Any, index: Any) -> Any:
        step = self._step(x, index)
        if step is None:
            return x[index]
        part, cut, rest = step
        return self._item(part if cut is None else part[cut], rest)

    def _set_item(self, x: Any, index: Any, value: Any) -> None:
        step = self._step(x, index)
        if step is None:
            x[index] = value
            return
        part, cut, rest = step
        if cut is None:
            self._set_item(part, rest, value)
            return
        piece = part[cut]
        self._set_item(piece, rest, value)
        part[cut] = piece

    def _step(self, x: Any, index: Any) -> tuple[Any, Any, tuple[Any, ...]] | None:
        """Return a view of x, a cut of it or None, and the indices that remain.

        An integer cuts x to one place along an axis, limits cut it by a mask, and a mask without
        axes masks a new axis.
        """
        where = self._place(x, index)
        if where is None:
            return None
        place, axis = where
        indices = _indices(index)
        before, first, after = indices[:place], indices[place], indices[place + 1 :]
        whole = (slice(None),) * axis
        if isinstance(first, slice):
            limits = cast("slice[Any, Any, Any]", first)
            return x, (*whole, self._within(x.shape[axis], limits)), (*before, slice(None), *after)
        if self._is_mask(first):
            return x.unsqueeze(axis), None, (*before, first.reshape(1).bool(), *after)
        return x, (*whole, first.long().reshape(1)), (*before, 0, *after)

    def _within(self, size: int, limits: slice[Any, Any, Any]) -> Any:
        """Return the mask of a slice along an axis."""
        places = self._torch.arange(size)

        def limit(value: Any, default: int) -> Any:
            if value is None:
                return default
            tensor = self._torch.as_tensor(value).long()
            return self._torch.where(tensor < 0, tensor + size, tensor).clamp(0, size)

        start, stop = limit(limits.start, 0), limit(limits.stop, size)
        mask = (places >= start) & (places < stop)
        return mask if limits.step in (None, 1) else mask & ((places - start) % limits.step == 0)


_MULTIPLES = frozenset(("add", "sub", "subtract", "rsub", "add_", "sub_", "subtract_"))
"""The functions that take a factor `alpha`."""


def _indices(index: Any) -> tuple[Any, ...]:
    return cast("tuple[Any, ...]", index) if isinstance(index, tuple) else (index,)
