"""Draw writes of torch: methods in place, `out=`, augmented assignment, writes into views."""

from __future__ import annotations

from typing import Any

from .drawn_programs import Statement
from .jax_statements import split_table, substitute
from .torch_statements import Drawing

EXACT_METHODS = """X.add_(Y)|X.sub_(Y)|X.mul_(Y)|X.div_(Y)|X.floor_divide_(Y)|X.remainder_(Y)
X.fmod_(Y)|X.fill_(S)|X.zero_()|X.neg_()|X.abs_()|X.floor_()|X.round_()|X.trunc_()|X.relu_()
X.sign_()|X.ceil_()|X.clamp_(min=S)|X.clamp_(-1, 1)|X.clamp_max_(S)|X.masked_fill_(X > 0, S)
X.copy_(Y)|X.square_()|X.bitwise_and_(Y)|X.bitwise_or_(Y)|X.bitwise_xor_(Y)|X.logical_not_()
X.logical_and_(Y)|X.eq_(Y)|X.index_fill_(0, torch.tensor([0]), S)
X.scatter_(0, torch.tensor([0]), 2)|X.frac_()|X.div_(Y, rounding_mode='floor')
X.lt_(Y)|X.copysign_(Y)|X.reciprocal_()|F.relu(X, inplace=True)|X.clamp_(Y)|X.nan_to_num_()
X.bitwise_left_shift_(1)|X.index_add_(0, torch.tensor([0]), X[:1])|X.t_()|X.unsqueeze_(0)
X.tril_()|X.fill_diagonal_(S)|X.gt_(S)|X.ne_(Y)|X.logical_or_(Y)|X.set_(X)
F.hardtanh(X, inplace=True)|X.index_copy_(0, torch.tensor([1]), X[:1])
X.masked_fill_(X < 1, Y)|X.put_(torch.tensor([0]), X.flatten()[:1])|X.squeeze_()
torch.clamp_(X, 0, 1)|X.fmax(Y)"""
INEXACT_METHODS = """X.exp_()|X.sin_()|X.log_()|X.tanh_()|X.sigmoid_()|X.rsqrt_()|X.pow_(Y)
X.pow_(2)|X.add_(Y, alpha=S)|X.sub_(Y, alpha=S)|X.lerp_(Y, 0.3)|X.addcmul_(Y, Y)
X.addcmul_(X, Y, value=S)|X.addcdiv_(Y, X, value=0.5)|X.log1p_()|X.expm1_()|X.sqrt_()|X.atan2_(Y)
X.hypot_(Y)|X.erf_()|X.cos_()|F.silu(X, inplace=True)|F.leaky_relu(X, 0.1, True)
F.elu(X, inplace=True)|X.cumsum_(0)|X.xlogy_(Y)|X.cumprod_(0)|X.add_(Y, alpha=2)
X.sub_(Y, alpha=0.9)|X.float_power_(2)|torch.exp_(X)|X.exp2_()"""
ASSIGNMENTS = """X += Y|X -= Y|X *= Y|X /= Y|X //= Y|X %= Y|X &= Y|X \\|= Y|X ^= Y|X <<= 1
X[0] = Y|X[0] = S|X[1:] = S|X[1:] += S|X[..., 0] *= S|X[X > 0] = S|X[X > 1] = 0.9|X[:] = Y
X[-1] -= Y|X[torch.tensor([0])] = S|X[[0, 1]] = Y|X[0:2] *= 0.9|X[0, 1] = Y|X[...] = Y
X[:, 0] = S|X.T[0] = S|X.view(-1)[0] = Y|X[0].add_(S)|X[1:].mul_(S)|X.flatten()[0] = 3
X.diagonal().fill_(S)|X[None][0] += S|X.reshape(-1)[1:].zero_()|X[0].copy_(Y)
X.view(-1).add_(Y)|X[:1].clamp_(0, 0.3)|X.T.div_(S)|X[X == X.max()] = S|X[1:] = X[:-1].clone()
X[0], X[1] = X[1].clone(), X[0].clone()|X.data.add_(S)"""
OUT = """torch.add(X, Y, out=Z)|torch.mul(X, Y, out=Z)|torch.exp(X, out=Z)
torch.sub(X, Y, out=Z)|torch.div(X, Y, out=Z)|torch.sqrt(X, out=Z)|torch.clamp(X, 0, 1, out=Z)
torch.eq(X, Y, out=Z)|torch.pow(X, 2, out=Z)|torch.add(X, Y, alpha=2, out=Z)
torch.where(X > 0, X, Z, out=Z)|torch.floor(X, out=Z)|torch.sum(X, 0, out=Z)
torch.cat([X, X], out=Z)|torch.matmul(X, X, out=Z)|torch.maximum(X, Z, out=Z)
torch.abs(X, out=Z)|torch.neg(X, out=Z)|torch.amax(X, 0, out=Z)|torch.logical_not(X, out=Z)
torch.sigmoid(X, out=Z)|torch.bitwise_and(X, Y, out=Z)"""

ROUNDED = ("torch.exp", "torch.sqrt", "torch.sigmoid", "torch.pow")


def draw_write(drawing: Drawing) -> Statement | None:
    kind = drawing.choose({"exact": 8, "inexact": 5, "assignment": 8, "out": 2, "copy": 2})
    target = drawing.variable(lambda value: drawing.random.random() < 0.9 and value.dim() >= 0)
    if target is None:
        return None
    other, scalar = drawing.operand(), drawing.python_scalar()
    if kind == "copy":
        return _draw_write_to_copy(drawing, target, other)
    if kind == "out":
        return _draw_out(drawing, target, other)
    tables = {"exact": EXACT_METHODS, "inexact": INEXACT_METHODS, "assignment": ASSIGNMENTS}
    template = drawing.choose(split_table(tables[kind]))
    text = substitute(template, X=target, Y=other, S=scalar)
    tag = template.split("(")[0] if kind != "assignment" else template
    if kind == "inexact":
        text += f"\n~!{target}"
    return drawing.statement((target,), text, ("write", f"write {tag}"))


def _draw_write_to_copy(drawing: Drawing, source: str, other: str) -> Statement:
    """A fresh tensor that a method writes to: `v3 = x0.clone()`, then `v3.mul_(...)`."""
    name = drawing.fresh()
    template: Any = drawing.choose(split_table(EXACT_METHODS + "|" + INEXACT_METHODS))
    make = drawing.choose(
        [
            f"{source}.clone()",
            f"torch.zeros_like({source})",
            f"{source} * 1",
            f"torch.ones_like({source})",
            f"torch.full_like({source}, 2)",
        ]
    )
    write = substitute(template, X=name, Y=other, S=drawing.python_scalar())
    inexact = template in split_table(INEXACT_METHODS)
    text = f"{name} = {make}\n{write}" + (f"\n~!{name}" if inexact else "")
    tag = template.split("(")[0]
    return drawing.statement((name,), text, ("write", f"write {tag}"))


def _draw_out(drawing: Drawing, source: str, other: str) -> Statement:
    name = drawing.fresh()
    dtype = drawing.dtype_text()
    template = drawing.choose(split_table(OUT))
    make = drawing.choose(
        [
            f"torch.empty(0, dtype={dtype})",
            f"torch.zeros_like({source})",
            f"torch.zeros_like({source}, dtype={dtype})",
        ]
    )
    write = substitute(template, X=source, Y=other, Z=name)
    if "float64" in dtype and template.split("(")[0] in ROUNDED and "dtype" in make:
        return None  # of values of float32, which are off by more than an ulp of float64
    text = f"{name} = {make}\n{write}\n~!{name}"
    return drawing.statement((name,), text, ("write out", f"out {template.split('(')[0]}"))
