"""Draw functions of torch as source text: ops, scalars of each kind, casts, views, reductions.

A statement is drawn by running it, so that torch says the dtype and shape of its result and refuses
what is not valid; `torch_writes` has the writes, and `torch_layers` loops, modules and derivatives.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from .drawn_programs import (
    Program,
    Statement,
    draw_number,
    render_marks,
    split_table,
    substitute,
)

HEADER = """import numpy as np
import torch
import torch.nn.functional as F"""
MODES = ("no_grad", "no_grad", "grad")
NARROW = (torch.float16, torch.bfloat16)
DTYPES = {
    "float32": 12, "float16": 8, "bfloat16": 9, "float64": 4, "int64": 6, "int32": 4, "int16": 2,
    "int8": 3, "uint8": 3, "bool": 5, "complex64": 2, "complex128": 1, "uint16": 0.3,
}  # fmt: skip
EXACT_UNARY = """-X|+X|abs(X)|torch.sign(X)|torch.floor(X)|torch.ceil(X)|torch.round(X)
torch.trunc(X)|torch.frac(X)|torch.square(X)|X * X|X + X|torch.conj(X).resolve_conj()
torch.real(X)|torch.isnan(X)|torch.isfinite(X)|torch.isinf(X)|torch.logical_not(X)|~X
torch.reciprocal(X)|torch.signbit(torch.nan_to_num(X))|torch.nan_to_num(X)
torch.nan_to_num(X, nan=0.3)
F.relu(X)|F.relu6(X)|F.hardtanh(X)|X.sgn()|torch.relu(X)|torch.positive(X)
F.threshold(X, 0.1, 0.7)|X.clone()|X.contiguous()|torch.isposinf(X)
torch.bitwise_not(X)|X.neg()|F.hardtanh(X, -0.9, 0.9)|torch.frexp(X)[0]|torch.frexp(X)[1]
F.hardshrink(X, 0.3)|torch.clamp(X, min=S)|torch.clamp(X, max=S)|X.clamp(-1, 1)
torch.clamp(X, -0.9, 0.9)|torch.clip(X, 0.1)|torch.round(X, decimals=1)
F.dropout(X, 0.5, False)|X.abs()|torch.positive(X)|torch.fix(X)|X.isnan()|X.logical_not()
torch.fliplr(X)"""
INEXACT_UNARY = """torch.sin(X)|torch.cos(X)|torch.exp(X)|torch.exp2(X)|torch.expm1(X)
torch.log(X)|torch.log2(X)|torch.log10(X)|torch.log1p(X)|torch.rsqrt(X)|torch.tanh(X)
torch.sinh(X)|torch.cosh(X)|torch.atan(X)|torch.asinh(X)|torch.erf(X)|torch.sigmoid(X)
F.softsign(X)|torch.sinc(X)|X ** 0.5|torch.deg2rad(X)|torch.rad2deg(X)|X ** -1|X ** 3|X ** 2
torch.pow(X, 1.5)|F.hardsigmoid(X)|X.exp()|F.hardswish(X)|F.leaky_relu(X)|F.leaky_relu(X, 0.3)
torch.pow(0.9, X)|2 ** X|1.1 ** X|0.9 / X|F.softshrink(X, 0.3)|F.rrelu(X)|X.sigmoid()
torch.sqrt(X)|torch.log(X + 2)|torch.angle(X)|X ** 2.0|X ** S"""
WIDE_UNARY = """torch.tan(X)|torch.asin(X)|torch.acos(X)|torch.acosh(X)|torch.atanh(X)
torch.erfc(X)|torch.erfinv(X)|torch.lgamma(X)|torch.digamma(X)|F.softplus(X)|F.silu(X)
F.gelu(X)|F.mish(X)|F.gelu(X, approximate='tanh')|F.elu(X)|F.elu(X, 0.7)|F.selu(X)|F.celu(X)
F.logsigmoid(X)|F.tanhshrink(X)|torch.logit(X, 0.1)|torch.special.entr(X)|torch.i0(X)
F.softplus(X, 0.9)"""
EXACT_BINARY = """X + Y|X - Y|X * Y|X / Y|X // Y|X % Y|X < Y|X <= Y|X > Y|X >= Y|X == Y|X != Y
X & Y|X \\| Y|X ^ Y|X << Y|X >> Y|torch.maximum(X, Y)|torch.minimum(X, Y)|torch.fmax(X, Y)
torch.eq(X, Y)|torch.remainder(X, Y)|torch.fmod(X, Y)|torch.floor_divide(X, Y)
torch.true_divide(X, Y)|torch.add(X, Y)|torch.sub(X, Y)|torch.mul(X, Y)|torch.div(X, Y)
torch.copysign(X, Y)|X.add(Y)|torch.div(X, Y, rounding_mode='floor')
torch.div(X, Y, rounding_mode='trunc')|torch.rsub(X, Y)|torch.nextafter(X, Y)
torch.logical_and(X, Y)|torch.logical_xor(X, Y)|torch.heaviside(X, Y)|X.mul(Y)|torch.gcd(X, Y)
torch.lcm(X, Y)|torch.bitwise_and(X, Y)|torch.bitwise_left_shift(X, Y)|X.sub(Y)
torch.where(X > Y, X, Y)|torch.where(X > 0, X, Y)|torch.where(X > 0, Y, X)
torch.where(X > 0, Y, S)|torch.where(X != 0, S, Y)|torch.clamp(X, Y)
torch.clamp(X, min=Y, max=Y)|torch.le(X, Y)|X.div(Y)|torch.isclose(X, Y)|torch.fmin(X, Y)
torch.ne(X, Y)|X.masked_fill(X > 0, Y)|torch.complex(X, Y)|torch.outer(X, Y)|X.eq(Y)|X.lt(Y)
X.where(X > 0, Y)|torch.clamp_min(X, Y)|F.prelu(X, Y)|torch.bitwise_right_shift(X, Y)
torch.gt(X, S)|X.__radd__(Y)|X.__rsub__(Y)|X.__rtruediv__(Y)"""
INEXACT_BINARY = """X ** Y|torch.pow(X, Y)|torch.atan2(X, Y)|torch.hypot(X, Y)
torch.float_power(X, Y)|torch.add(X, Y, alpha=S)|torch.sub(X, Y, alpha=S)|torch.lerp(X, Y, S)
torch.lerp(X, Y, X)|torch.addcmul(X, X, Y)|torch.addcmul(X, Y, Y, value=S)
torch.addcdiv(X, Y, X, value=S)|X.pow(Y)|torch.xlogy(X, Y)|torch.ldexp(X, Y)
torch.add(X, Y, alpha=2)|torch.rsub(X, Y, alpha=S)|torch.addcdiv(X, X, Y)|X.add(Y, alpha=0.9)
torch.special.xlog1py(X, Y)|X.float_power(2)"""
WIDE_BINARY = """torch.logaddexp(X, Y)|torch.logaddexp2(X, Y)"""
PRODUCTS = """torch.dot(X, Y)|torch.matmul(X, Y)|X @ Y|torch.mm(X, Y)|torch.inner(X, Y)
torch.vdot(X, Y)|torch.mv(X, Y)|torch.einsum('ij,kj->ik', X, Y)|torch.addmm(X, X, Y)
torch.linalg.cross(X, Y)|torch.addmm(X, X, Y, beta=S, alpha=0.9)|torch.addmv(X[0], X, Y)
torch.kron(X, Y)|F.linear(X, Y)|torch.tensordot(X, Y, 1)
torch.baddbmm(X[None], X[None], Y[None], beta=0.9)|torch.cdist(X, Y)
torch.bmm(X[None], Y[None])|F.mse_loss(X, Y)|F.l1_loss(X, Y)|F.smooth_l1_loss(X, Y)|X @ X.T
F.huber_loss(X, Y)|F.binary_cross_entropy_with_logits(X, Y)|F.cosine_similarity(X, Y, 0)
F.cross_entropy(X, Y)|F.kl_div(X, Y)|torch.addr(X, X[0], Y[0])|torch.dist(X, Y)
F.nll_loss(X, Y)"""
EXACT_REDUCTIONS = """X.amax(A)|X.amin(A)|X.max()|X.min()|torch.max(X, A).values|torch.any(X)
torch.min(X, A).indices|X.argmax(A)|X.argmin()|torch.all(X, A)|torch.count_nonzero(X)|X.any(A)
torch.sort(X).values|torch.argsort(X, stable=True)|torch.topk(X, 2).values|torch.median(X)
torch.cummax(X, A).values|torch.amax(X, A, keepdim=True)|torch.aminmax(X).max|torch.diff(X)
torch.sort(X, descending=True).values|torch.kthvalue(X, 1).values|X.max(A).indices|X.any()
X.all()|torch.bincount(X)|torch.unique(X)|torch.searchsorted(X, X)
torch.bucketize(X, X.flatten()[:1])"""
INEXACT_REDUCTIONS = """X.sum()|X.sum(A)|X.mean()|X.mean(A)|X.prod()|torch.prod(X, A)
torch.cumsum(X, A)|torch.cumprod(X, A)|X.sum(A, keepdim=True)|X.sum(dtype=D)|X.mean(dtype=D)
torch.sum(X, A, dtype=D)|torch.nansum(X)|torch.nanmean(X)|torch.trace(X)
torch.cumsum(X, A, dtype=D)|torch.prod(X, dtype=D)|torch.softmax(X, A)
torch.softmax(X, A, dtype=D)|torch.norm(X)|torch.linalg.norm(X)|X.norm(dim=A)
torch.linalg.vector_norm(X, dtype=D)|torch.einsum('ij->j', X)|F.normalize(X, dim=A)
F.softmin(X, A)|X.mean(A, keepdim=True)|torch.quantile(X, 0.3)|torch.norm(X, 1)
torch.linalg.norm(X, ord=1)"""
WIDE_REDUCTIONS = """X.var()|X.std(A)|torch.logsumexp(X, A)|torch.log_softmax(X, A)
torch.var(X, A)|torch.log_softmax(X, A, dtype=D)|torch.std(X, A, correction=0)
F.layer_norm(X, X.shape[-1:])|torch.logcumsumexp(X, A)|torch.std_mean(X)[0]|torch.cov(X)
F.rms_norm(X, X.shape[-1:])|F.layer_norm(X, X.shape[-1:], X[0], X[-1])
F.group_norm(X[None], 1)|F.batch_norm(X, None, None, training=True)"""
SHAPES = """X[0]|X[-1]|X[1:]|X[None]|X[..., 0]|X[:, None]|X[[0, -1]]|X.T|X.ravel()
X.reshape(-1)|X.view(-1)|X.view(-1, 1)|X.expand(2, 3)|torch.stack([X, X])|X.unsqueeze(0)
X.squeeze()|torch.flip(X, (0,))|torch.roll(X, 1)|X.repeat(2, 1)|torch.tile(X, (2,))
X.repeat_interleave(2)|F.pad(X, (1, 1))|X[:, 1:]|F.pad(X, (1, 0), value=3)|torch.tril(X)
torch.diag(X)|torch.zeros_like(X)|torch.full_like(X, 2)|torch.ones_like(X, dtype=D)
torch.full_like(X, S, dtype=D)|X.new_zeros(3)|X.new_tensor([1, 2])|X.new_full((2,), 3)
torch.atleast_2d(X)|torch.movedim(X, 0, -1)|torch.take(X, torch.tensor([1]))|X.narrow(0, 1, 2)
X.diagonal()|X.permute(1, 0)|X.transpose(0, -1)|X.chunk(2)[0]|X.unbind()[0]|X[0:2]
X.split(1)[0]|X.select(0, 1)|X.flatten()|X.detach()|X[torch.tensor([0, 0])]|X[torch.tensor(1)]
torch.cat([X, X])|X.index_select(0, torch.tensor([0, 1]))|X.gather(-1, X.argsort(-1))|X[X > 0]
torch.take_along_dim(X, X.argsort(-1), -1)|F.one_hot(X, 10)|torch.nonzero(X)
X.masked_select(X > 0)|X.scatter(0, torch.tensor([0]), 2)
X.index_fill(0, torch.tensor([0]), 3)|X.view_as(X)|X[::2]
X.index_add(0, torch.tensor([0]), X[:1])|torch.triu(X)|X.unfold(0, 2, 1)|X.swapaxes(0, -1)
X.mT|X.expand_as(X)|torch.broadcast_to(X, (2, 3))|torch.meshgrid(X, X, indexing='ij')[0]
X.rot90()|X.real|X.size(0) * X|X.shape[0] + X
X.numel() / X"""
TWO_SHAPES = """torch.cat([X, Y])|torch.stack([X, Y])|X[Y]|torch.take(X, Y)
X.index_select(0, Y)|X.type_as(Y)|X.gather(0, Y)|torch.where(Y, X, 0.0)|X.expand_as(Y)
X.masked_fill(Y, 2)|X[Y, 0]|X[..., Y]|X[Y > 0]|X.scatter_add(0, Y, X)|X.index_put((Y,), X[0])
torch.hstack([X, Y])|torch.bucketize(X, Y)|X[:, Y]|torch.searchsorted(X, Y)|F.embedding(Y, X)
torch.where(X, Y, Y + 1)"""
CREATIONS = """torch.arange(3)|torch.arange(3.0)|torch.arange(1, 7, 2, dtype=D)
torch.linspace(0, 1, 3)|torch.zeros(3)|torch.ones((2, 3), dtype=D)|torch.full((3,), 0.9)
torch.full((3,), 2)|torch.eye(3, dtype=D)|torch.tensor(S)|torch.tensor(S, dtype=D)
torch.tensor([1, 2, 3])|torch.tensor([0.5, 1, 2], dtype=D)|torch.tensor([True, False, True])
torch.as_tensor(0.9)|torch.scalar_tensor(2)|torch.tri(3)|torch.logspace(0, 1, 3)
torch.zeros(3, 2, dtype=D)|torch.tensor(0.9)"""
_TABLES = [
    (EXACT_UNARY, "", "unary", 16), (INEXACT_UNARY, "~(", "unary", 12),
    (WIDE_UNARY, "~~(", "unary", 7), (EXACT_BINARY, "", "binary", 34),
    (INEXACT_BINARY, "~(", "binary", 12), (WIDE_BINARY, "~~(", "binary", 1),
    (PRODUCTS, "~~(", "product", 5), (EXACT_REDUCTIONS, "", "reduction", 5),
    (INEXACT_REDUCTIONS, "~(", "reduction", 7), (WIDE_REDUCTIONS, "~~(", "reduction", 3),
    (SHAPES, "", "shape", 16), (TWO_SHAPES, "", "join", 6), (CREATIONS, "", "creation", 3),
]  # fmt: skip


class Drawing:
    """One function while it is drawn: its variables with their values, and its statements."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.variables: dict[str, Any] = {}
        self.statements: list[Statement] = []
        self.namespace: dict[str, Any] = {}
        exec(HEADER, self.namespace)
        self.namespace["self"] = type("Modules", (), {})()
        self.refusal = False

    def choose(self, entries: Any) -> Any:
        if isinstance(entries, dict):
            return self.random.choices(list(entries), list(entries.values()))[0]
        return self.random.choice(entries)

    def variable(self, accepts: Callable[[Any], bool] = lambda value: True) -> str | None:
        """A variable, a recent one more often, whose value is accepted."""
        names = [name for name, value in self.variables.items() if accepts(value)]
        if not names:
            return None
        return str(self.choose(names[-3:] if self.random.random() < 0.5 else names))

    def python_scalar(self) -> str:
        table = {"0.9": 8, "0.5": 3, "2": 6, "3": 4, "-1": 4, "2.0": 3, "-1.5": 3, "True": 2,
                 "0.1": 5, "7": 2, "0": 2, "1": 3, "100": 1, "1e-3": 2, "3.7": 2, "200": 1,
                 "(1 + 2j)": 1, "1e6": 1, "300": 1, "False": 1, "1 / 3": 2}  # fmt: skip
        return str(self.choose(table))

    def scalar(self) -> str:
        """A number of Python, rarely of NumPy, or a tensor of 0 dimensions."""
        number = self.choose(["0.9", "2", "3", "1.5", "1", "0.3", "7", "-0.7"])
        table = {
            self.python_scalar(): 14,
            f"torch.tensor({number})": 4,
            f"np.float64({number})": 0.7,
            f"torch.tensor({number}, dtype={self.dtype_text()})": 5,
        }
        return str(self.choose(table))

    def dtype_text(self) -> str:
        return f"torch.{self.choose(DTYPES)}"

    def operand(self) -> str:
        """A variable or, less often, a scalar."""
        name = self.variable()
        return self.scalar() if name is None or self.random.random() < 0.5 else name

    def fresh(self) -> str:
        return f"v{sum(len(one.names) for one in self.statements)}"

    def statement(
        self, names: tuple[str, ...], text: str, tags: tuple[str, ...], setup: str = ""
    ) -> Statement:
        words = set(re.findall(r"\b[vx]\d+\b", text))
        reads = tuple(sorted(words & self.variables.keys()))
        return Statement(names, text, reads, tags, setup=setup)

    def draw_from_table(self) -> Statement | None:
        rows = {row: row[3] for row in _TABLES}
        table, mark, tag, _ = self.choose(rows)
        template = self.choose(split_table(table))
        x, y = self.variable(), self.operand()
        if tag == "binary" and self.random.random() < 0.25:
            x, y = y, x  # a scalar on the left
        if x is None:
            return None
        axis = self.choose(["0", "-1", "0", "1"])
        inner = f"{mark}{x})~" if tag in ("reduction", "product") and mark else x
        other = f"{mark}{y})~" if tag == "product" else y
        scalar = self.python_scalar()
        text = substitute(template, X=inner, Y=other, A=axis, D=self.dtype_text(), S=scalar)
        name = self.fresh()
        call = template.split("(")[0] if "(" in template and template[0] in "tF" else template
        text = f"{mark}{text})~" if mark else text
        tags = (tag, f"{tag} {call}")
        return self.statement((name,), f"{name} = {text}", tags)

    def draw_cast(self) -> Statement | None:
        x, name, dtype = self.variable(), self.fresh(), self.dtype_text()
        method = self.choose(
            ["float", "half", "bfloat16", "double", "int", "long", "bool", "short"]
        )
        text = self.choose({
            f"{x}.to({dtype})": 6, f"{x}.{method}()": 5, f"{x}.type({dtype})": 1,
            f"{x}.to({dtype}, copy=True)": 1, f"{x}.to({self.variable()})": 1,
            f"{x}.type_as({self.variable()})": 1, f"{x}.view({dtype})": 1,
            f"torch.as_tensor({x}, dtype={dtype})": 0.5, f"{x}.to(dtype={dtype})": 1,
        })  # fmt: skip
        return self.statement((name,), f"{name} = {text}", ("cast",))

    def add(self, statement: Statement | None, keep_refused: float = 0.0) -> bool:
        """Run a statement; whether the function has it now."""
        if statement is None or self.refusal:
            return False
        saved = {name: value.clone() for name, value in self.variables.items()}
        scope = {**self.namespace, **self.variables}
        try:
            if statement.setup:
                torch.manual_seed(0)
                exec(statement.setup, scope)
            exec(render_marks(statement.text, noisy=False), scope)
            values = {name: scope[name] for name in statement.names}
        except Exception as error:
            if self.random.random() >= keep_refused or "result type" not in str(error):
                return False
            self.refusal = True
            self.statements.append(statement)
            return True
        if not all(_is_tensor(value) for value in values.values()) or not self._is_portable(
            statement, values, saved
        ):
            for name, value in saved.items():
                if not torch.equal(self.variables[name], value):
                    return self._give_up()
            return False
        self.statements.append(self._annotate(statement, values))
        self.variables.update(values)
        return True

    def _give_up(self) -> bool:
        """End the program where a dropped statement has written to a variable."""
        self.random = random.Random(0)
        self.ended = True
        return False

    ended = False

    def _is_portable(
        self, statement: Statement, values: dict[str, Any], saved: dict[str, Any]
    ) -> bool:
        """Whether no float out of an integer dtype's range becomes an integer."""
        whole = [value for value in values.values() if not value.is_floating_point()]
        whole = [value for value in whole if value.dtype != torch.bool and not value.is_complex()]
        if not whole:
            return True
        low = max(torch.iinfo(value.dtype).min for value in whole)
        high = min(torch.iinfo(value.dtype).max for value in whole)
        for name in statement.reads:
            read = saved[name]
            if read.is_complex():
                read = torch.view_as_real(read.resolve_conj())
            if read.is_floating_point() and read.numel():
                numbers = read.double()
                if not bool(((numbers > float(low) - 1) & (numbers < float(high))).all()):
                    return False
        return True

    def _annotate(self, statement: Statement, values: dict[str, Any]) -> Statement:
        """Say which memory the results share, and mark inexact dtypes; narrow ops are exact."""
        result = values[statement.names[-1]]
        text = statement.text
        is_quotient = "shape" in statement.tags and " / " in text
        is_loop = "loop" in statement.tags and result.is_complex()
        if is_loop or is_quotient or {"unary", "binary", "write"}.intersection(statement.tags):
            if result.dtype in NARROW:
                text = render_marks(text, noisy=False)
            elif result.is_complex() and not statement.inexact:
                target, equals, value = text.partition(" = ")
                single = equals and target[0] == "v" and "\n" not in text
                marked = f"{target} = ~({value})~" if single else f"{text}\n~!{statement.names[-1]}"
                return replace(self._share(statement, result), text=marked, loose=True)
        return replace(self._share(statement, result), text=text)

    def _share(self, statement: Statement, result: Any) -> Statement:
        memory = result.untyped_storage().data_ptr()
        for name, value in self.variables.items():
            if memory and value.untyped_storage().data_ptr() == memory:
                return replace(statement, alias=self._root(name))
        return statement

    def _root(self, name: str) -> str:
        for statement in self.statements:
            if name in statement.names and statement.alias not in ("", name):
                return statement.alias
        return name


def _is_tensor(value: Any) -> bool:
    if not isinstance(value, torch.Tensor) or value.layout != torch.strided:
        return False
    return value.numel() <= 300 and value.dim() <= 4 and f"{value.dtype}"[6:] in DTYPES


def draw_argument(drawing: Drawing) -> str:
    """Source text of an argument: a tensor of 0 to 2 dimensions."""
    rng = drawing.random
    dtype = str(drawing.choose(DTYPES))
    shapes = {
        (3,): 8,
        (2, 3): 7,
        (): 5,
        (4,): 2,
        (1, 3): 1,
        (3, 3): 3,
        (2, 1): 1,
        (0,): 0.2,
        (17,): 2,
    }
    shape = drawing.choose(shapes)
    values = np.array(
        [draw_number(rng, dtype, 0.04, 60000.0) for _ in range(int(np.prod(shape)))], object
    ).reshape(shape)
    text = repr(values.tolist()).replace("inf", "torch.inf").replace("nan", "torch.nan")
    if shape == (0,):
        text = "[]"
    return f"torch.tensor({text}, dtype=torch.{dtype})"


def draw_program(seed: int) -> Program:
    """The function or module of a seed; its mode says whether gradients are recorded."""
    from .torch_layers import draw_composite
    from .torch_writes import draw_write

    drawing = Drawing(seed)
    mode = drawing.choose(MODES)
    arguments = tuple(draw_argument(drawing) for _ in range(drawing.random.randint(1, 3)))
    values = [eval(text, dict(drawing.namespace)) for text in arguments]
    drawing.variables = {f"x{index}": value for index, value in enumerate(values)}
    length = drawing.random.randint(2, 8)
    with torch.set_grad_enabled(mode == "grad"):
        for _ in range(70):
            if len(drawing.statements) >= length or drawing.refusal or drawing.ended:
                break
            chance = drawing.random.random()
            if chance < 0.58:
                drawing.add(drawing.draw_from_table())
            elif chance < 0.67:
                drawing.add(drawing.draw_cast())
            elif chance < 0.85:
                drawing.add(draw_write(drawing), keep_refused=0.3)
            else:
                drawing.add(draw_composite(drawing))
    statements = tuple(drawing.statements)
    if drawing.refusal:
        outputs = statements[-1].names
    else:
        read = {name for one in statements for name in one.reads if name not in one.names}
        written = [name for one in statements for name in one.names]
        outputs = tuple(dict.fromkeys(name for name in written if name not in read))[-4:]
        outputs = outputs or tuple(written[-1:]) or ("x0",)
    return Program(seed, HEADER, arguments, statements, outputs, mode, drawing.refusal)
