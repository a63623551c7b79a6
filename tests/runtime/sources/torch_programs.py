"""Functions and modules of PyTorch for from_torch, with arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional
torch.manual_seed(0)

X = torch.randn(4, 5)
Y = torch.rand(4, 5) + 0.5
N = torch.randint(-5, 9, (4, 5))
B = torch.randn(4, 5).bfloat16()
H = torch.randn(4, 5).half()
C = torch.randn(4, 5, dtype=torch.complex64)
S = torch.tensor(2.5, dtype=torch.float64)
I = torch.tensor([0, 3, 1])  # noqa: E741
IMAGE = torch.randn(2, 3, 8, 8)

UNARY = """
    abs neg exp expm1 exp2 log1p sin cos tan atan sinh cosh tanh asinh sigmoid relu floor ceil trunc
    round sign square isnan isfinite isinf nan_to_num sum mean var std amax amin argmax argmin any
    all cumsum0 cumprod0 sort0 argsort0 median0 logsumexp0 softmax0 log_softmax0 flip0 ravel t tril
    triu diagonal diag norm count_nonzero logical_not rsqrt sqrt erf reciprocal prod
    zeros_like ones_like std_mean var_mean frac deg2rad
"""
ACTIVATIONS = """
    elu celu selu gelu silu mish softplus softsign hardtanh hardswish hardsigmoid leaky_relu relu6
    logsigmoid tanhshrink softshrink normalize
"""
BINARY = """
    add sub mul div floor_divide remainder fmod maximum minimum atan2 hypot eq lt ge logical_and
    where0 pow lerp0 copysign isclose xlogy
"""
PAIRS = {
    "f32, f64 0-d": (X, S),
    "f32, i64": (X, N),
    "bf16, f32": (B, Y),
    "f16, bf16": (H, B),
    "f32, 2": (X, 2),
    "i64, 2.5": (N, 2.5),
    "f16, f32 0-d": (H, torch.tensor(1.5)),
}


def in_place(x: Any, h: Any) -> Any:
    y = x.clone()
    view = y[1:3]
    view += h[1:3]
    y[0, ::2] = 7
    y.T[2].mul_(2)
    y[:, 1] = h[:, 0]
    return y, view * 2, y.view(-1)[3:9]


def optimiser(w: Any, x: Any) -> Any:
    p = w.detach().clone().requires_grad_()
    with torch.enable_grad():
        loss = ((x @ p) ** 2).mean()
        loss.backward()
    with torch.no_grad():
        p.sub_(p.grad, alpha=0.1)
    return loss.detach(), p.detach()


OTHERS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "writes to views": (in_place, (X, H)),
    "an optimiser step": (optimiser, (X.T.contiguous(), Y)),
    "where": (lambda x, n: torch.where(x > 0, x, n), (X, N)),
    "where of a number": (lambda h: torch.where(h > 0, h, 2.5), (H,)),
    "index": (lambda x: x[1:3, ::2], (X,)),
    "index by a tensor": (lambda x, i: x[i], (X, I)),
    "index by two tensors": (lambda x, i: x[i, i], (X, I)),
    "index of a column": (lambda x, i: x[:, i], (X, I)),
    "index by a mask": (lambda x: x[x > 0].sum(), (X,)),
    "gather": (lambda x, n: x.gather(1, n.abs() % 4), (X, N)),
    "gather of a part": (lambda x, n: x.gather(1, n[:2, :2].abs() % 4), (X, N)),
    "scatter": (lambda x: x.scatter(1, torch.arange(5).expand(4, 5).flip(1), 2.0), (X,)),
    "index_put": (lambda x, i: x.index_put((i,), x[0]), (X, I)),
    "masked_fill": (lambda x: x.masked_fill(x > 0, float("-inf")), (H,)),
    "cat": (lambda x, n: torch.cat([x, n]), (X, N)),
    "stack": (lambda x, h: torch.stack([x, h.float()], 1), (X, H)),
    "split": (lambda x: x.split(2, 1), (X,)),
    "chunk": (lambda x: x.chunk(2), (X,)),
    "unbind": (lambda x: x.unbind(1), (X,)),
    "pad": (lambda x: F.pad(x, (1, 2, 0, 1), value=3), (X,)),
    "roll": (lambda x: x.roll(2, 1), (X,)),
    "repeat": (lambda x: x.repeat(2, 1, 3), (X,)),
    "expand": (lambda x: x[:, None].expand(4, 3, 5) * 2, (X,)),
    "clamp": (lambda x: x.clamp(-1, 0.5), (X,)),
    "clamp of ints": (lambda n: n.clamp(min=0), (N,)),
    "matmul": (lambda x, y: x @ y.T, (X, Y)),
    "matmul of bfloat16": (lambda b: b @ b.T, (B,)),
    "einsum": (lambda x, y: torch.einsum("ij,kj->ik", x, y), (X, Y)),
    "bmm": (lambda x: torch.bmm(x[None], x.T[None]), (X,)),
    "addmm": (lambda x, y: torch.addmm(x[:, :4], x, y.T, beta=0.5, alpha=2), (X, Y)),
    "linear": (lambda x, y: F.linear(x, y), (X, Y)),
    "topk": (lambda x: x.topk(2), (X,)),
    "max along an axis": (lambda x: x.max(1), (X,)),
    "sum in float64": (lambda x: x.sum(0, dtype=torch.float64), (X,)),
    "softmax in float32": (lambda h: h.softmax(-1, dtype=torch.float32), (H,)),
    "arange": (lambda x: torch.arange(5) * x + torch.arange(0, 1, 0.2), (X,)),
    "linspace": (lambda x: torch.linspace(0, 1, 5) * x, (X,)),
    "full_like": (lambda x: torch.full_like(x, 3) + torch.eye(4, 5), (X,)),
    "casts": (lambda x: x.to(torch.bfloat16).double().half().int(), (X,)),
    "complex": (lambda c: (c * c.conj() + c.real).abs(), (C,)),
    "view_as_real": (lambda c: torch.view_as_real(c) * 2, (C,)),
    "layer_norm": (lambda x, y: F.layer_norm(x, (5,), y[0], y[1]), (X, Y)),
    "layer_norm of bfloat16": (lambda x, y: F.layer_norm(x, (5,), y[0], y[1]), (B, Y)),
    "layer_norm of two axes": (lambda x: F.layer_norm(x, (4, 5)), (X,)),
    "cross_entropy": (lambda x, n: F.cross_entropy(x, n[:, 0].abs() % 5), (X, N)),
    "mse_loss": (F.mse_loss, (X, Y)),
    "binary_cross_entropy_with_logits": (F.binary_cross_entropy_with_logits, (X, Y)),
    "smooth_l1_loss": (F.smooth_l1_loss, (X, Y)),
    "embedding": (lambda x, i: F.embedding(i, x), (X, I)),
    "attention": (
        lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True),
        (torch.randn(1, 2, 4, 8),),
    ),
    "conv2d": (lambda x: F.conv2d(x, torch.ones(4, 3, 3, 3), padding=1, stride=2), (IMAGE,)),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), (IMAGE,)),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 3, 2, 1), (IMAGE,)),
    "adaptive_avg_pool2d": (lambda x: F.adaptive_avg_pool2d(x, 1), (IMAGE,)),
    "group_norm": (lambda x: F.group_norm(x, 3), (IMAGE,)),
    "interpolate": (lambda x: F.interpolate(x, scale_factor=2), (IMAGE,)),
    "foreach": (lambda x, y: torch._foreach_add([x, y], [y, x], alpha=2), (X, Y)),
    "item of a constant": (lambda x: x * torch.tensor(3.0).item(), (X,)),
    "masked softmax": (
        lambda x: (x + torch.triu(torch.full((4, 5), float("-inf")), 1)).softmax(-1),
        (X,),
    ),
    "logical operators": (lambda x, y: ((x > 0) & ~(y > 1)) | (x == y), (X, Y)),
    "shifts": (lambda n: (n << 2) ^ (n >> 1), (N,)),
    "floor of ints": (lambda n: torch.div(n, 3, rounding_mode="trunc"), (N,)),
    "cumsum of ints": (lambda n: n.int().cumsum(0), (N,)),
    "sum of bools": (lambda x: (x > 0).sum(), (X,)),
    "mean of bfloat16": (lambda b: b.mean(), (B,)),
    "addcmul": (lambda x, y: torch.addcmul(x, x, y, value=0.5), (X, Y)),
    "baddbmm": (lambda x: torch.baddbmm(x[None, :, :4], x[None], x.T[None]), (X,)),
}


def _call(name: str, library: Any) -> Callable[..., Any]:
    function = getattr(library, name.removesuffix("0"))
    if name in ("where0", "lerp0"):
        return {
            "where0": lambda x, y: torch.where(x > 0, x, y),
            "lerp0": lambda x, y: x.lerp(x, 0.3) + y,
        }[name]
    if name == "flip0":
        return lambda x: x.flip(0)
    return (lambda x: function(x, -1)) if name.endswith("0") else function


def _runs(function: Callable[..., Any], args: tuple[Any, ...]) -> bool:
    """Whether PyTorch has a kernel for the arguments."""
    try:
        function(*args)
    except (RuntimeError, TypeError, NotImplementedError):
        return False
    return True


_CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    **{
        f"{name} of {x.dtype}": (_call(name, torch), (x,))
        for name in UNARY.split()
        for x in (X, N, B)
    },
    **{
        f"{name} of {x.dtype}": (_call(name, F), (x,))
        for name in ACTIVATIONS.split()
        for x in (X, B)
    },
    **{
        f"{name} of {key}": (_call(name, torch), pair)
        for name in BINARY.split()
        for key, pair in PAIRS.items()
    },
}
FUNCTIONS = {name: case for name, case in _CASES.items() if _runs(*case)} | OTHERS


class Block(nn.Module):
    """A block of a transformer, before whose parts stand norms."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).chunk(3, -1)
        shape = batch, length, self.heads, width // self.heads
        q, k, v = (y.view(shape).transpose(1, 2) for y in (q, k, v))
        scores = (q @ k.transpose(-2, -1)) / shape[-1] ** 0.5
        mask = torch.ones(length, length, dtype=torch.bool).tril()
        weights = scores.masked_fill(~mask, float("-inf")).softmax(-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Residual(nn.Module):
    """A residual block of convolutions and batch norms."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)

    def forward(self, x: Any) -> Any:
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        return F.relu(x + self.bn2(self.conv2(y)))


class ResNet(nn.Module):
    """A small ResNet."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.blocks = nn.Sequential(Residual(8), Residual(8))
        self.head = nn.Linear(8, 5)

    def forward(self, x: Any) -> Any:
        x = F.max_pool2d(self.blocks(self.stem(x)), 2)
        return self.head(F.adaptive_avg_pool2d(x, 1).flatten(1))


class Recurrent(nn.Module):
    """An LSTM over embeddings."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(20, 6)
        self.lstm = nn.LSTM(6, 7, batch_first=True)

    def forward(self, tokens: Any) -> Any:
        output, (h, c) = self.lstm(self.embedding(tokens))
        return output.mean(1), h, c


MODULES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "MLP": (nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3)), (X,)),
    "deep MLP": (
        nn.Sequential(*[nn.Sequential(nn.Linear(5, 5), nn.GELU(), nn.LayerNorm(5))] * 3),
        (X,),
    ),
    "transformer block": (Block(8, 2), (torch.randn(2, 6, 8),)),
    "ResNet": (ResNet().eval(), (IMAGE,)),
    "LSTM": (Recurrent(), (torch.randint(0, 20, (2, 4)),)),
    "GRU": (nn.GRU(5, 6), (X,)),
    "RNN": (nn.RNN(5, 6), (X,)),
    "LSTM cell": (nn.LSTMCell(5, 6), (X,)),
    "batch norm": (nn.BatchNorm1d(5).eval(), (X,)),
    "batch norm in training": (nn.BatchNorm1d(5), (X,)),
    "embedding": (nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 2)), (N.abs() % 9,)),
    "attention": (
        nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True),
        (X[None, :, :4].repeat(1, 1, 2),),
    ),
    "bilinear": (nn.Bilinear(5, 5, 3), (X, Y)),
    "conv1d": (nn.Sequential(nn.Conv1d(4, 6, 3, groups=2), nn.SiLU(), nn.Flatten(0)), (X,)),
    "group norm": (nn.Sequential(nn.GroupNorm(3, 3), nn.Conv2d(3, 4, 1)), (IMAGE,)),
    "upsampling": (nn.Sequential(nn.Conv2d(3, 4, 3), nn.Upsample(scale_factor=2)), (IMAGE,)),
}
