"""Kernels of PyTorch: how they compute with halves beside scalars, and what they store in place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from graphir.passes import cast_report  # noqa: E402
from graphir.runtime import from_torch, interpret  # noqa: E402
from graphir.runtime.sources.torch_.tensors import array_of  # noqa: E402

# -- halves beside scalars


def _every_half(dtype: Any) -> Any:
    return torch.arange(1 << 16, dtype=torch.int32).to(torch.int16).view(dtype)


_SCALAR_FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "x + s": lambda x, s: x + s,
    "x - s": lambda x, s: x - s,
    "s - x": lambda x, s: s - x,
    "x * s": lambda x, s: x * s,
    "s * x": lambda x, s: s * x,
    "x / s": lambda x, s: x / s,
    "s / x": lambda x, s: s / x,
    "x // s": lambda x, s: x // s,
    "s // x": lambda x, s: s // x,
    "x < s": lambda x, s: x < s,
    "trunc": lambda x, s: torch.div(x, s, rounding_mode="trunc"),
    "x * 0-d": lambda x, s: x * torch.tensor(s),
    "0-d * x": lambda x, s: torch.tensor(s) * x,
    "x / 0-d": lambda x, s: x / torch.tensor(s),
    "0-d / x": lambda x, s: torch.tensor(s) / x,
    "x // 0-d": lambda x, s: x // torch.tensor(s),
    "add alpha": lambda x, s: torch.add(x, x.flip(0), alpha=s),
    "sub alpha": lambda x, s: torch.sub(x, x.flip(0), alpha=s),
    "addcmul": lambda x, s: torch.addcmul(x, x.flip(0), x.roll(7), value=s),
    "addcdiv": lambda x, s: torch.addcdiv(x, x.flip(0), x.roll(7), value=s),
    "rsub alpha": lambda x, s: torch.rsub(x, x.flip(0), alpha=s),
    "lerp of tensors": lambda x, s: torch.lerp(x, x.flip(0), x.roll(7) * s),
    "lerp": lambda x, s: torch.lerp(x, x.flip(0), s),
    "clamp": lambda x, s: x.clamp(-abs(s), abs(s)),
    "clamp to 0": lambda x, s: x.clamp(min=0).clamp(max=s) + x.clamp(max=0),
    "hardshrink": lambda x, s: torch.nn.functional.hardshrink(x, abs(s)),
    "softshrink": lambda x, s: torch.nn.functional.softshrink(x, abs(s)),
    "leaky_relu": lambda x, s: torch.nn.functional.leaky_relu(x, s),
    "masked_fill": lambda x, s: x.masked_fill(x > 0, s),
    "in place": lambda x, s: x.clone().mul_(s).div_(3),
}
_HALF_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "x ** 3": lambda x: x**3,
    "x ** -2": lambda x: x**-2,
    "rsqrt": torch.rsqrt,
    "x // y": lambda x: x // x.roll(777),
    "x % y": lambda x: x % x.roll(3),  # a quotient beyond float32 is NaN in vectors alone
    "trunc": lambda x: torch.div(x, x.roll(777), rounding_mode="trunc"),
    "sgn": torch.sgn,
    "x ** 0": lambda x: x**0,
    "x ** -0.5": lambda x: x**-0.5,
    "relu": torch.relu,
    "relu6": torch.nn.functional.relu6,
    "round": lambda x: torch.round(x, decimals=1) + torch.round(x, decimals=-1),
    "erf": torch.erf,
    "entr": torch.special.entr,
    "xlog1py": lambda x: torch.special.xlog1py(x, x.roll(777)),
    "sigmoid": torch.sigmoid,
    "silu": torch.nn.functional.silu,
    "gelu": torch.nn.functional.gelu,
    "gelu, tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
    "mse_loss": lambda x: torch.nn.functional.mse_loss(x, x.roll(777), reduction="none"),
    "huber_loss": lambda x: torch.nn.functional.huber_loss(x, x.roll(7), "none", 0.7),
    "smooth_l1_loss": lambda x: torch.nn.functional.smooth_l1_loss(
        x, x.roll(7), reduction="none", beta=0.7
    ),
}
_NEARLY = {"gelu, tanh": 30, "xlog1py": 4, "entr": 4, "gelu": 450, "silu": 2}
"""The elements of 65,536 that may differ, of functions that float32 rounds otherwise: by an ulp,
those of gelu by 6, as 1 + erf cancels. PyTorch's erf has other bits in vectors of AVX-512 (402
elements) than in those of AVX2 (at most 30)."""


def _differing(function: Callable[[Any], Any], x: Any) -> int:
    """Return the number of elements whose bits differ from PyTorch's; NaNs are alike."""
    value = interpret(from_torch(function, x), array_of(torch, x))
    right = array_of(torch, function(x))
    assert value.dtype == right.dtype
    if right.dtype == bool:
        return int((value != right).sum())
    wide, other = value.astype("float32"), right.astype("float32")
    same = (wide == other) & (np.signbit(wide) == np.signbit(other))
    return int((~same & ~(np.isnan(wide) & np.isnan(other))).sum())


STEPS = [29, pytest.param(1, marks=pytest.mark.exhaustive)]
"""Every which case or value a test takes."""


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.filterwarnings("ignore")
def test_halves_beside_scalars_have_the_bits_of_torch(dtype: Any, step: int) -> None:
    """PyTorch's kernels keep some scalars in float32, and round others to the half."""
    x = _every_half(dtype)[::step].contiguous()
    wrong = {
        (name, number): count
        for name, function in _SCALAR_FUNCTIONS.items()
        for number in (0.9, 3, -1.7)
        if (count := _differing(lambda x, f=function, s=number: f(x, s), x))
    }
    wrong |= {
        name: count
        for name, function in _HALF_FUNCTIONS.items()
        if (count := _differing(function, x)) > _NEARLY.get(name, 0)
    }
    assert not wrong


_FLOAT_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add alpha": lambda x, y: torch.add(x, y, alpha=0.9),
    "sub alpha": lambda x, y: torch.sub(x, y, alpha=-1.7),
    "rsub alpha": lambda x, y: torch.rsub(x, y, alpha=0.3),
    "in place": lambda x, y: x.clone().add_(y, alpha=0.9).addcmul_(x, y, value=0.1),
    "addcmul": lambda x, y: torch.addcmul(x, y, x, value=0.9) + torch.addcmul(x, y, y),
    "addcdiv": lambda x, y: torch.addcdiv(x, y, x, value=0.9),
    "lerp": lambda x, y: torch.lerp(x, y, 0.3) + torch.lerp(x, y, 0.9),
    "lerp of tensors": lambda x, y: torch.lerp(x, y, x),
    "x ** 3": lambda x, y: x**3,
    "x ** -1": lambda x, y: x**-1,
    "x ** -2": lambda x, y: x**-2,
    "x ** 0": lambda x, y: x**0,
    "round": lambda x, y: torch.round(x, decimals=2),
    "relu": lambda x, y: torch.relu(x) + torch.nn.functional.relu6(y),
    "softshrink": lambda x, y: torch.nn.functional.softshrink(x, 0.3),
    "maximum of zeros": lambda x, y: torch.maximum(x.sign() * 0.0, y.sign() * 0.0),
    "minimum": lambda x, y: torch.minimum(x.sign() * 0.0, y) + torch.minimum(x, y),
}
_FUSED = ("add alpha", "sub alpha", "rsub alpha", "in place", "addcmul", "lerp", "lerp of tensors")
"""The functions of which float64 has no wider dtype for a product."""


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_products_and_sums_of_floats_have_the_bits_of_torch(dtype: Any) -> None:
    """PyTorch fuses the products of `alpha`, addcmul and lerp, and multiplies some powers out."""
    generator = torch.Generator().manual_seed(5)
    x, y = torch.randn(2, 5000, generator=generator, dtype=torch.float64) * 3
    x[:4] = torch.tensor([-0.0, float("nan"), float("inf"), 0.0])
    wrong: dict[str, int] = {}
    for name, function in _FLOAT_FUNCTIONS.items():
        if dtype is torch.float64 and name in _FUSED:
            continue
        for strided in (False, True):
            stack = torch.stack([x, y], -1 if strided else 0).to(dtype)
            pair = stack.unbind(-1 if strided else 0)
            value = interpret(from_torch(function, *pair), *(array_of(torch, z) for z in pair))
            right = array_of(torch, function(*pair))
            bits = f"u{right.itemsize}"
            same = (value.view(bits) == right.view(bits)) | (np.isnan(value) & np.isnan(right))
            if not same.all():
                wrong[f"{name}, strided={strided}"] = int((~same).sum())
    assert not wrong


_PRODUCTS: dict[str, Callable[..., Any]] = {
    "linear": lambda x, w, b: torch.nn.functional.linear(x[0], w[0, 0].T, b),
    "addmm": lambda x, w, b: torch.addmm(b, x[0], w[0, 0], beta=0.7, alpha=1.3),
    "addmv": lambda x, w, b: torch.addmv(b, w[0, 0], x[0, 0]),
    "baddbmm": lambda x, w, b: torch.baddbmm(b, x, w[0, :1].expand(3, 8, 8)),
    "conv1d": lambda x, w, b: torch.nn.functional.conv1d(x.mT, w[0].permute(2, 1, 0), b),
    "conv_transpose1d": lambda x, w, b: torch.nn.functional.conv_transpose1d(
        x.mT, w[0].permute(1, 2, 0), b, stride=2
    ),
    "layer_norm": lambda x, w, b: torch.nn.functional.layer_norm(x, (8,), w[0, 0, 0], b),
    "layer_norm of equal elements": lambda x, w, b: torch.nn.functional.layer_norm(
        x[..., :1].expand(3, 5, 8), (8,)
    ),
    "attention": lambda x, w, b: torch.nn.functional.scaled_dot_product_attention(x, x, x),
    "cells": lambda x, w, b: torch.lstm_cell(
        x[0], (x[1, :, :2], x[1, :, 2:4]), w[0, 0].T, w[0, 1, :2].T.contiguous(), b, b
    )[0],
}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_products_and_norms_of_halves_are_rounded_as_torch_rounds_them(dtype: Any) -> None:
    """With their sums, once; the overlap of a transposed convolution is added as halves."""
    generator = torch.Generator().manual_seed(6)
    x, w, b = (
        torch.randn(*shape, generator=generator).to(dtype)
        for shape in ((3, 5, 8), (1, 3, 8, 8), (8,))
    )
    wrong = {}
    for name, function in _PRODUCTS.items():
        value = interpret(from_torch(function, x, w, b), *(array_of(torch, z) for z in (x, w, b)))
        right = array_of(torch, function(x, w, b))
        share = (value != right).mean()
        if value.dtype != right.dtype or share > 0.02:  # sums in another order
            wrong[name] = share
    assert not wrong


def test_attention_that_masks_all_keys_is_zero() -> None:
    x = torch.randn(1, 3, 4)
    mask = torch.tensor([[True, True, True], [False, False, False], [True, False, True]])
    for dtype in (torch.float32, torch.bfloat16):
        y = x.to(dtype)
        function = lambda y: torch.nn.functional.scaled_dot_product_attention(  # noqa: E731
            y, y, y, attn_mask=mask
        )
        value = interpret(from_torch(function, y), array_of(torch, y))
        assert (value[0, 1] == 0).all()
        np.testing.assert_allclose(value.astype(float), function(y).double(), atol=1e-2)


def test_powers_of_integers_below_one_are_zero() -> None:
    numbers = torch.tensor([-3, -2, -1, 0, 1, 2, 3])
    for dtype in (torch.int8, torch.int32, torch.int64):
        x, y = (z.flatten().to(dtype) for z in torch.meshgrid(numbers, numbers, indexing="ij"))
        for function in (torch.pow, lambda x, y: 2**y, lambda x, y: x.clone().pow_(y)):
            value = interpret(from_torch(function, x, y), array_of(torch, x), array_of(torch, y))
            np.testing.assert_array_equal(value, function(x, y).numpy())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_group_norms_of_equal_elements_leave_the_roundings_of_torch(dtype: Any) -> None:
    generator = torch.Generator().manual_seed(7)
    x = torch.randn(3, 1, 1, generator=generator).expand(3, 4, 5).contiguous().to(dtype)
    weight, bias = torch.randn(2, 4, generator=generator).to(dtype)
    for settings in ((None, None), (weight, None), (None, bias), (weight, bias)):
        function = lambda x, s=settings: torch.nn.functional.group_norm(x, 2, *s)  # noqa: E731
        value, right = interpret(from_torch(function, x), array_of(torch, x)), function(x)
        np.testing.assert_array_equal(value, array_of(torch, right))


_COMPLEX_POWERS: dict[str, Callable[..., Any]] = {
    "x ** y": torch.pow,
    "in place": lambda x, y: x.clone().pow_(y),
    "a real exponent": lambda x, y: x ** y.real.contiguous(),
    "0 ** y": lambda x, y: 0**y + 1j**y,
    "1 ** y": lambda x, y: 1**y,
    "numbers": lambda x, y: torch.stack([x**n for n in (0, 1, 2, 3, 4, -1, -2, 0.5, -0.5, 1j)]),
    "reciprocal": lambda x, y: torch.stack([x.reciprocal(), x.rsqrt(), 1 / x, y / x]),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128])
def test_complex_powers_have_the_infinities_and_nans_of_torch(dtype: Any) -> None:
    numbers = [0, 1, -1, 2, -0.5, 1j, -1 + 1j, torch.inf, -torch.inf, torch.nan]
    points = torch.tensor([*map(complex, numbers), complex(0, torch.inf)], dtype=dtype)
    x, y = (z.flatten() for z in torch.meshgrid(points, points, indexing="ij"))
    for name, function in _COMPLEX_POWERS.items():
        value = interpret(from_torch(function, x, y), x.numpy(), y.numpy())
        right = function(x, y).numpy()
        for part, other in ((value.real, right.real), (value.imag, right.imag)):
            np.testing.assert_allclose(part, other, 1e-4, 1e-4, err_msg=name)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_kernels_that_round_by_place(dtype: Any) -> None:
    """The elements that fill no two vectors run in a second loop, which rounds more often."""
    wide = torch.linspace(-3, 3, 14 * 50).to(dtype)
    layouts = {
        "short": wide[:20],
        "with a tail": wide[:100],
        "strided": wide[::2],
        "permuted": wide.reshape(14, 50).T,
        "cut": wide.reshape(14, 50)[:, :40],
        "0-d": wide[100],
    }
    functions: dict[str, Callable[[Any], Any]] = {
        "alpha": lambda x: torch.add(x, x, alpha=0.9),
        "alpha of a wider number": lambda x: torch.sub(x, torch.tensor(-0.7), alpha=0.9),
        "alpha of integers": lambda x: torch.add(x, (x * 9).long(), alpha=0.9),
        "rsqrt": lambda x: torch.rsqrt(x.abs()),
        "softshrink": lambda x: torch.nn.functional.softshrink(x, 0.3),
    }
    wrong = {
        (name, layout): count
        for name, function in functions.items()
        for layout, x in layouts.items()
        if (count := _differing(function, x))
    }
    assert not wrong


def test_a_scalar_beside_a_half_loses_nothing_that_torch_keeps() -> None:
    graph = from_torch(lambda x: x * 0.9 / torch.tensor(0.3), torch.ones(3, dtype=torch.bfloat16))
    losses = [(row.kind, str(row.target)) for row in cast_report(graph) if not row.exact]
    assert losses == [("literal", "float32")]  # of 0.9, as in PyTorch


def test_a_multiple_of_another_dtype_is_computed_in_that_of_the_result() -> None:
    x, y = torch.full((3,), 0.5), torch.tensor([100, 1, -100], dtype=torch.int8)
    graph = from_torch(lambda x, y: torch.add(x, y, alpha=2), x, y)
    assert interpret(graph, array_of(torch, x), array_of(torch, y)).tolist() == [200.5, 2.5, -199.5]


# -- results in place


def _in_place_cases() -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
    dtypes = (torch.bool, torch.uint8, torch.int64, torch.bfloat16, torch.float32, torch.complex64)
    names = "add_ sub_ mul_ div_ floor_divide_ remainder_ pow_ sqrt_ exp_ neg_ abs_ clamp_ eq_ lt_"
    names += " addcmul_ addcdiv_ lerp_ fill_ masked_fill_ copy_ bitwise_and_ logical_not_ square_"
    names += " reciprocal_ sigmoid_ floor_ hypot_ atan2_ copysign_ xlogy_ relu_ zero_"
    shapes = torch.tensor([2, 1, 3])
    others = (0.5, 2, True, shapes, shapes * 1.5, torch.tensor(1.5))
    arguments = [(), *((x,) for x in others), (shapes, shapes), (shapes * 1.5, shapes * 1.5)]
    for dtype in dtypes:
        x = shapes.to(dtype)
        for name in names.split():
            for args in arguments:
                yield f"{dtype} {name}", lambda x, *a, n=name: getattr(x.clone(), n)(*a), (x, *args)
        for name in ("add", "mul", "div", "sqrt", "floor_divide"):
            for more in [(0.5,), (2,), ()]:
                out = shapes.to(dtype)
                yield (
                    f"{name} out={dtype}",
                    lambda x, *a, n=name, out=out: getattr(torch, n)(x, *a, out=out.clone()),
                    (shapes, *more),
                )


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.filterwarnings("ignore")
def test_results_in_place_are_those_of_torch(step: int) -> None:
    """PyTorch itself says which results an op stores; `n.add_(0.5)` of integers ran before."""
    wrong, stored, refused = list[str](), 0, 0
    for name, function, args in [*_in_place_cases()][:: max(step // 4, 1)]:
        try:
            right = function(*args)
        except (RuntimeError, TypeError, NotImplementedError):
            refused += 1
            with pytest.raises((RuntimeError, TypeError, NotImplementedError)):
                from_torch(function, *args)
            continue
        tensors = [array_of(torch, x) for x in args if isinstance(x, torch.Tensor)]
        value, right = interpret(from_torch(function, *args), *tensors), array_of(torch, right)
        alike = np.allclose(value.astype(complex), right.astype(complex), 1e-5, equal_nan=True)
        stored += 1
        if value.dtype != right.dtype or not alike:
            wrong.append(f"{name} of {args[1:]}: {value} is not {right}")
    assert not wrong
    assert min(stored, refused) > 400 // step, (stored, refused)
