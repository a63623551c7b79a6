"""Ops and functions of PyTorch that others replace: decompositions, and functions that read values.

Decompositions compute ops of ATen by ops of ATen: PyTorch's own, and some that it lacks. Sources of
the latter: aten/src/ATen/native of PyTorch 2.13: FlashAttentionKernel.cpp, GridSamplerKernel.cpp,
FakeQuantPerTensorAffine.cpp, AmpGradScalerKernels.cpp. A replacement computes a function of PyTorch
that reads values in Python by ops that a graph can hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, cast

from graphir.runtime.sources.torch_.tensors import AtenOp, Tensor, Torch


def name_of(op: AtenOp) -> str:
    """Return the name of an op without namespace and overload."""
    name = op._schema.name.partition("::")[2]
    return name[2:-2] if name.startswith("__") and name.endswith("__") else name


def decomposition(torch: Torch, op: AtenOp) -> Callable[..., Any] | None:
    """Return a function that computes an op by others; None if there is none."""
    name = name_of(op)
    if name.startswith("_foreach_"):
        return _each(torch, name)
    if name in _OWN:
        return partial(_OWN[name], torch)
    function = torch._decomp.decomposition_table.get(op)
    kernels = torch._C._dispatch_has_kernel_for_dispatch_key
    if function is None and kernels(op.name(), "CompositeImplicitAutograd"):
        return op.decompose
    return function


@lru_cache(maxsize=4096)
def functional_op(torch: Torch, op: AtenOp) -> Any:
    """Return the overload that returns what an op writes to its arguments; None without one."""
    packet = getattr(torch.ops.aten, name_of(op).removesuffix("_"), None)
    arguments = [_facts(x) for x in op._schema.arguments if not x.is_out]
    for overload in packet.overloads() if packet is not None else ():
        candidate = getattr(packet, overload)
        schema = candidate._schema.arguments
        is_pure = not any(x.alias_info is not None and x.alias_info.is_write for x in schema)
        if is_pure and list(map(_facts, schema)) == arguments:
            return candidate
    return None


def _facts(argument: Any) -> tuple[str, str, bool]:
    return argument.name, str(argument.type), argument.has_default_value()


def _each(torch: Torch, name: str) -> Callable[..., Any]:
    """Return the function that runs a `_foreach_` op's op on the elements of its lists."""
    op = getattr(torch.ops.aten, name.removeprefix("_foreach_"))

    def run(first: Sequence[Any], *args: Any, **kwargs: Any) -> list[Any]:
        if len(args) > 2:  # addcmul and addcdiv, whose factor is a keyword
            args, kwargs = args[:2], {**kwargs, "value": args[2]}

        def at(i: int, value: Tensor) -> Any:
            return cast("Any", value)[i] if isinstance(value, (list, tuple)) else value

        return [
            op(x, *(at(i, y) for y in args), **{key: at(i, y) for key, y in kwargs.items()})
            for i, x in enumerate(first)
        ]

    return run


def _scores(
    torch: Torch, q: Tensor, k: Tensor, is_causal: bool, mask: Tensor, scale: float | None
) -> Any:
    """Return the scaled products of queries and keys, with a mask."""
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(future, float("-inf"))
    return scores if mask is None else scores + mask


def _attention(
    torch: Torch,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor = None,
    scale: float | None = None,
) -> Any:
    """Attention in float32 or float64, and the logarithm of the sum of exponentials.

    The weights are rounded to the dtype of the query before they are divided by their sum. A row
    that masks all keys is 0.
    """
    q, k, v = (x.to(_wide(torch, query)) for x in (query, key, value))
    scores = _scores(torch, q, k, is_causal, attn_mask, scale)
    top = scores.amax(-1, keepdim=True)
    weights = (scores - torch.where(top == float("-inf"), 0.0, top)).exp()
    total = weights.sum(-1, keepdim=True)
    result = weights.to(query.dtype).to(q.dtype) @ v / total
    return torch.where(total == 0, 0.0, result).to(query.dtype), scores.logsumexp(-1)


def _wide(torch: Torch, x: Tensor) -> Any:
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def _attention_backward(
    torch: Torch,
    grad: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Tensor = None,
    scale: float | None = None,
) -> Any:
    g, q, k, v, o = (x.to(logsumexp.dtype) for x in (grad, query, key, value, out))
    scores = _scores(torch, q, k, is_causal, attn_mask, scale)
    weights = (scores - logsumexp.unsqueeze(-1)).exp()
    inner = weights * (g @ v.mT - (g * o).sum(-1, keepdim=True))
    inner = inner * (q.shape[-1] ** -0.5 if scale is None else scale)
    gradients = inner @ k, inner.mT @ q, weights.mT @ g
    return tuple(x.to(query.dtype) for x in gradients)


def _fake_quantize(
    torch: Torch, x: Tensor, scale: Tensor, zero_point: Tensor, low: int, high: int
) -> Any:
    """Rounding to steps between limits, and where the steps are within the limits."""
    steps = (x * (1.0 / scale)).round() + zero_point
    within = torch.logical_and(steps >= low, steps <= high)
    return (steps.clamp(low, high) - zero_point) * scale, within


def _grid_sampler(
    torch: Torch, x: Tensor, grid: Tensor, mode: int, padding: int, corners: bool
) -> Any:
    """Samples of images: bilinear (mode 0), nearest (1) or, as PyTorch decomposes them, bicubic.

    PyTorch's decomposition multiplies elements that are not around a place by 0, which is NaN for
    some. Padding by the border or by reflection takes NaN for the first place.
    """
    if mode == 2:
        sample = torch._decomp.decomposition_table[torch.ops.aten.grid_sampler_2d.default]
        return sample(x, grid, mode, padding, corners)
    batch, channels, height, width = x.shape
    sizes = torch.tensor([width, height], dtype=grid.dtype)
    places = (grid + 1) / 2 * (sizes - 1) if corners else ((grid + 1) * sizes - 1) / 2
    if padding == 2:
        low, span = (0.0, sizes - 1) if corners else (-0.5, sizes)
        distance = (places - low).abs()
        rest, is_even = torch.fmod(distance, span), (distance / span).floor() % 2 == 0
        places = torch.where(is_even, rest, span - rest) + low
    if padding:
        places = torch.minimum(torch.where(places.isnan(), 0.0, places).clamp(min=0), sizes - 1)
    framed = torch.nn.functional.pad(x, (1, 1, 1, 1)).reshape(batch, channels, -1)

    def read(corner: Any) -> Any:
        is_inside = ((corner >= 0) & (corner < sizes)).all(-1)
        column, line = corner.unbind(-1)
        index = torch.where(is_inside, (line + 1) * (width + 2) + column + 1, 0.0).long()
        index = index.reshape(batch, 1, -1).expand(batch, channels, -1)
        return framed.gather(2, index).reshape(batch, channels, *grid.shape[1:3])

    if mode:
        return read(places.round())
    first = places.floor()
    spans, rests = (first + 1 - places).unbind(-1), (places - first).unbind(-1)
    result: Tensor = None
    for down in (0, 1):
        for right in (0, 1):
            weight = (rests if right else spans)[0] * (rests if down else spans)[1]
            corner = first + torch.tensor([right, down], dtype=grid.dtype)
            term = read(corner) * weight.unsqueeze(1)
            result = term if result is None else result + term
    return result


def _unscale(torch: Torch, grads: Sequence[Any], found_inf: Tensor, inv_scale: Tensor) -> Any:
    """Gradients divided by the scale of a GradScaler, and 1 if one of them is not finite."""
    finite = [torch.isfinite(x).all() for x in grads]
    flag = torch.where(torch.stack(finite).all(), found_inf, torch.ones_like(found_inf))
    return [x * inv_scale for x in grads], flag


_OWN: dict[str, Callable[..., Any]] = {
    "_scaled_dot_product_flash_attention_for_cpu": _attention,
    "_scaled_dot_product_flash_attention_for_cpu_backward": _attention_backward,
    "grid_sampler_2d": _grid_sampler,
    "_amp_foreach_non_finite_check_and_unscale": _unscale,
    "fake_quantize_per_tensor_affine_cachemask": _fake_quantize,
}


class Replacements:
    """The functions that run in place of some of PyTorch's, while a program is recorded.

    `is_variable` says whether a tensor's value depends on the inputs of the graph.
    """

    def __init__(self, torch: Torch, is_variable: Callable[[Any], bool]) -> None:
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

    def _is_number(self, value: Tensor) -> bool:
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

    def _bilinear(self, x: Tensor, y: Tensor, weight: Tensor, bias: Tensor = None) -> Any:
        """A bilinear form under autocast: its op's own products are not seen by a dispatch mode."""
        torch = self._torch
        rows, columns = x.reshape(-1, x.shape[-1]), y.reshape(-1, y.shape[-1], 1)
        half = torch.matmul(rows, weight).unsqueeze(-2)
        result = torch.matmul(half, columns).squeeze(-1).squeeze(-1).T.contiguous()
        result = result.to(weight.dtype).reshape(*x.shape[:-1], -1)
        return result if bias is None else result + bias

    def _copy(self, tensor: Tensor, memo: dict[int, Any]) -> Any:
        """Return a deep copy: a clone, whose storage PyTorch would copy without an op."""
        if id(tensor) not in memo:
            memo[id(tensor)] = tensor.detach().clone().requires_grad_(tensor.requires_grad)
        return memo[id(tensor)]

    def _is_index(self, value: Tensor) -> bool:
        """Whether a value is a tensor of one integer that depends on inputs, taken for an int."""
        return self._is_number(value) and not self._is_mask(value) and not value.is_floating_point()

    def _is_mask(self, value: Tensor) -> bool:
        return getattr(value, "dtype", None) in (self._torch.bool, self._torch.uint8)

    def _is_limit(self, value: Tensor) -> bool:
        """Whether a value is a slice between limits of which one depends on inputs."""
        if not isinstance(value, slice):
            return False
        limits = cast("slice[Any, Any, Any]", value)
        return self._is_index(limits.start) or self._is_index(limits.stop)

    def _place(self, x: Tensor, index: Any) -> tuple[int, int] | None:
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

    def _item(self, x: Tensor, index: Any) -> Any:
        step = self._step(x, index)
        if step is None:
            return x[index]
        part, cut, rest = step
        return self._item(part if cut is None else part[cut], rest)

    def _set_item(self, x: Tensor, index: Any, value: Tensor) -> None:
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

    def _step(self, x: Tensor, index: Any) -> tuple[Any, Any, tuple[Any, ...]] | None:
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

        def limit(value: Tensor, default: int) -> Any:
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
