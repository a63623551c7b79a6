"""Decompositions of ATen's ops in ops of ATen: PyTorch's own, and some that it lacks.

Sources of the latter: aten/src/ATen/native of PyTorch 2.13: FlashAttentionKernel.cpp,
GridSamplerKernel.cpp, FakeQuantPerTensorAffine.cpp, AmpGradScalerKernels.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, cast


def name_of(op: Any) -> str:
    """Return the name of an op without namespace and overload."""
    name = op._schema.name.partition("::")[2]
    return name[2:-2] if name.startswith("__") and name.endswith("__") else name


def decomposition(torch: Any, op: Any) -> Callable[..., Any] | None:
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
def functional_op(torch: Any, op: Any) -> Any:
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


def _each(torch: Any, name: str) -> Callable[..., Any]:
    """Return the function that runs a `_foreach_` op's op on the elements of its lists."""
    op = getattr(torch.ops.aten, name.removeprefix("_foreach_"))

    def run(first: Sequence[Any], *args: Any, **kwargs: Any) -> list[Any]:
        if len(args) > 2:  # addcmul and addcdiv, whose factor is a keyword
            args, kwargs = args[:2], {**kwargs, "value": args[2]}

        def at(i: int, value: Any) -> Any:
            return cast("Any", value)[i] if isinstance(value, (list, tuple)) else value

        return [
            op(x, *(at(i, y) for y in args), **{key: at(i, y) for key, y in kwargs.items()})
            for i, x in enumerate(first)
        ]

    return run


def _scores(torch: Any, q: Any, k: Any, is_causal: bool, mask: Any, scale: float | None) -> Any:
    """Return the scaled products of queries and keys, with a mask."""
    scores = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    if is_causal:
        future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(future, float("-inf"))
    return scores if mask is None else scores + mask


def _attention(
    torch: Any,
    query: Any,
    key: Any,
    value: Any,
    dropout_p: float = 0,
    is_causal: bool = False,
    *,
    attn_mask: Any = None,
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


def _wide(torch: Any, x: Any) -> Any:
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def _attention_backward(
    torch: Any,
    grad: Any,
    query: Any,
    key: Any,
    value: Any,
    out: Any,
    logsumexp: Any,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Any = None,
    scale: float | None = None,
) -> Any:
    g, q, k, v, o = (x.to(logsumexp.dtype) for x in (grad, query, key, value, out))
    scores = _scores(torch, q, k, is_causal, attn_mask, scale)
    weights = (scores - logsumexp.unsqueeze(-1)).exp()
    inner = weights * (g @ v.mT - (g * o).sum(-1, keepdim=True))
    inner = inner * (q.shape[-1] ** -0.5 if scale is None else scale)
    gradients = inner @ k, inner.mT @ q, weights.mT @ g
    return tuple(x.to(query.dtype) for x in gradients)


def _fake_quantize(torch: Any, x: Any, scale: Any, zero_point: Any, low: int, high: int) -> Any:
    """Rounding to steps between limits, and where the steps are within the limits."""
    steps = (x * (1.0 / scale)).round() + zero_point
    within = torch.logical_and(steps >= low, steps <= high)
    return (steps.clamp(low, high) - zero_point) * scale, within


def _grid_sampler(torch: Any, x: Any, grid: Any, mode: int, padding: int, corners: bool) -> Any:
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
    result: Any = None
    for down in (0, 1):
        for right in (0, 1):
            weight = (rests if right else spans)[0] * (rests if down else spans)[1]
            corner = first + torch.tensor([right, down], dtype=grid.dtype)
            term = read(corner) * weight.unsqueeze(1)
            result = term if result is None else result + term
    return result


def _unscale(torch: Any, grads: Sequence[Any], found_inf: Any, inv_scale: Any) -> Any:
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
