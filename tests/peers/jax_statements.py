"""Draw functions of JAX as source text: ops, scalars of each kind, casts, indices, reductions.

A statement is drawn while one trace is open, so that JAX says the dtype and shape of its result
and refuses what is not valid; `jax_transforms` has the loops and the transformations.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .drawn_programs import (
    Program,
    Statement,
    draw_number,
    render_marks,
    split_table,
    substitute,
)

HEADER = """import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import lax, nn, random"""
MODES = ("x32", "x64", "explicit")  # x64 off, on, and off with jax_explicit_x64_dtypes="allow"
DTYPES = {
    "float32": 12, "float16": 5, "bfloat16": 6, "float64": 4, "int32": 8, "int8": 3, "int16": 2,
    "int64": 3, "uint8": 4, "uint16": 1, "uint32": 3, "uint64": 1, "bool": 5, "complex64": 2,
    "complex128": 1,
}  # fmt: skip
EXACT_UNARY = """-X|+X|abs(X)|jnp.sign(X)|jnp.floor(X)|jnp.ceil(X)|jnp.rint(X)|jnp.trunc(X)
jnp.square(X)|X * X|X + X|jnp.conj(X)|jnp.real(X)|jnp.imag(X)|jnp.isnan(X)|jnp.isfinite(X)
jnp.isinf(X)|jnp.logical_not(X)|~X|jnp.reciprocal(X)|jnp.signbit(X)|jnp.nan_to_num(X)
jnp.round(X)|lax.neg(X)|lax.abs(X)|lax.sign(X)|lax.floor(X)|lax.ceil(X)|lax.round(X)
lax.square(X)|lax.is_finite(X)|lax.bitwise_not(X)|lax.population_count(X)|lax.clz(X)
nn.relu(X)|nn.relu6(X)|nn.hard_tanh(X)|jnp.positive(X)|jnp.bitwise_count(X)|jnp.fabs(X)
jnp.spacing(X)|jnp.invert(X)|lax.stop_gradient(X)|jnp.isposinf(X)|jnp.isneginf(X)
jnp.absolute(X)|X.conj()|jnp.round(X, 1)|lax.reduce_precision(X, 8, 7)|jnp.iscomplex(X)
jnp.frexp(X)[1]|jnp.modf(X)[1]|jnp.isreal(X)|lax.real(lax.complex(X, X))|jnp.fix(X)"""
INEXACT_UNARY = """jnp.sin(X)|jnp.cos(X)|jnp.exp(X)|jnp.exp2(X)|jnp.expm1(X)|jnp.log(X)
jnp.log2(X)|jnp.log10(X)|jnp.log1p(X)|jnp.sqrt(X)|lax.rsqrt(X)|jnp.cbrt(X)|jnp.tanh(X)
jnp.sinh(X)|jnp.cosh(X)|jnp.arctan(X)|jnp.arcsinh(X)|lax.exp(X)|lax.log1p(X)|lax.logistic(X)
lax.tanh(X)|lax.sqrt(X)|lax.erf(X)|nn.sigmoid(X)|nn.soft_sign(X)|jnp.sinc(X)|jnp.deg2rad(X)
jnp.radians(X)|jnp.degrees(X)|jnp.angle(X)|lax.integer_pow(X, 3)|lax.cbrt(X)|lax.expm1(X)
lax.sin(X)|lax.exp2(X)|X ** 0.5|X ** -1|nn.hard_sigmoid(X)|nn.hard_silu(X)|nn.relu6(X) / 6"""
WIDE_UNARY = """jnp.tan(X)|jnp.arcsin(X)|jnp.arccos(X)|jnp.arccosh(X)|jnp.arctanh(X)
lax.erfc(X)|lax.erf_inv(X)|lax.lgamma(X)|lax.digamma(X)|nn.softplus(X)|nn.silu(X)|nn.gelu(X)
nn.mish(X)|nn.gelu(X, approximate=False)|nn.elu(X)|nn.selu(X)|nn.celu(X)|nn.log_sigmoid(X)
nn.squareplus(X)|nn.leaky_relu(X)|nn.swish(X)|nn.sparse_plus(X)|jnp.i0(X)|nn.sparse_sigmoid(X)
nn.log1mexp(abs(X) + 1)|jax.scipy.special.xlog1py(X, X)|jax.scipy.special.entr(X)"""
EXACT_BINARY = """X + Y|X - Y|X * Y|X / Y|X // Y|X % Y|X < Y|X <= Y|X > Y|X >= Y|X == Y|X != Y
X & Y|X \\| Y|X ^ Y|X << Y|X >> Y|jnp.maximum(X, Y)|jnp.minimum(X, Y)|jnp.fmax(X, Y)
jnp.fmin(X, Y)|jnp.remainder(X, Y)|jnp.fmod(X, Y)|jnp.floor_divide(X, Y)|jnp.true_divide(X, Y)
jnp.add(X, Y)|jnp.subtract(X, Y)|jnp.multiply(X, Y)|jnp.copysign(X, Y)|jnp.nextafter(X, Y)
jnp.logical_and(X, Y)|jnp.logical_or(X, Y)|jnp.logical_xor(X, Y)|jnp.equal(X, Y)
jnp.heaviside(X, Y)|jnp.gcd(X, Y)|jnp.lcm(X, Y)|jnp.left_shift(X, Y)|jnp.right_shift(X, Y)
jnp.bitwise_and(X, Y)|jnp.bitwise_xor(X, Y)|lax.add(X, Y)|lax.sub(X, Y)|lax.mul(X, Y)
lax.div(X, Y)|lax.rem(X, Y)|lax.max(X, Y)|lax.min(X, Y)|lax.eq(X, Y)|lax.lt(X, Y)
lax.shift_left(X, Y)|lax.shift_right_logical(X, Y)|lax.shift_right_arithmetic(X, Y)
lax.bitwise_or(X, Y)|lax.nextafter(X, Y)|jnp.where(X > Y, X, Y)|jnp.where(X != 0, X, Y)
jnp.clip(X, None, Y)|jnp.clip(X, Y)|jnp.divmod(X, Y)[0]|jnp.divmod(X, Y)[1]|jnp.greater(X, Y)
jnp.select([X > 1, X < 0], [X, Y], Y)|lax.complex(X, Y)|jnp.where(Y, X, 0)|jnp.ldexp(X, Y)
jnp.array_equal(X, Y)|jnp.outer(X, Y)|jnp.kron(X, Y)|jnp.isclose(X, Y)|jnp.where(X, Y, 1.0)"""
INEXACT_BINARY = """X ** Y|jnp.power(X, Y)|jnp.arctan2(X, Y)|jnp.hypot(X, Y)|lax.pow(X, Y)
lax.atan2(X, Y)|jnp.float_power(X, Y)|X ** 2|X ** 3|2 ** X|2.0 ** X|jnp.sinc(X) * Y
jnp.interp(X, jnp.arange(4.0), jnp.array([1.0, 0.5, 2.0, 3.0])) + Y|jnp.polyval(Y, X)
X.at[..., 0].power(2)"""
WIDE_BINARY = """jnp.logaddexp(X, Y)|jnp.logaddexp2(X, Y)|jnp.dot(X, Y)|jnp.matmul(X, Y)|X @ Y
jnp.cross(X, Y)|jnp.vdot(X, Y)|jnp.inner(X, Y)|jnp.tensordot(X, Y, 1)|jnp.convolve(X, Y)
jnp.einsum('i,i->', X, Y)|jnp.einsum('ij,kj->ik', X, Y)|lax.dot(X, Y)"""
EXACT_REDUCTIONS = """jnp.max(X, A)|jnp.min(X, A)|jnp.argmax(X, A)|jnp.argmin(X, A)
jnp.any(X, A)|jnp.all(X, A)|jnp.count_nonzero(X, A)|jnp.sort(X)|jnp.argsort(X)|jnp.ptp(X, A)
X.max()|X.min()|lax.cummax(X)|lax.cummin(X)|jnp.median(X)|jnp.max(X, A, keepdims=True)
jnp.nanmax(X, A)|jnp.max(X, initial=0, where=X > 0)|lax.top_k(X, 2)[0]
lax.argmax(X, 0, jnp.int32)|jnp.unique(X, size=3)|jnp.diff(X)|jnp.searchsorted(X, X)
lax.sort(X)|lax.cumlogsumexp(X) > 1"""
INEXACT_REDUCTIONS = """jnp.sum(X, A)|jnp.mean(X, A)|jnp.prod(X, A)|jnp.cumsum(X, A)|X.sum()
X.mean()|jnp.cumprod(X, A)|jnp.sum(X, A, keepdims=True)|jnp.sum(X, A, dtype=D)
jnp.mean(X, dtype=D)|jnp.prod(X, A, dtype=D)|jnp.nansum(X, A)|jnp.nanmean(X)|jnp.trace(X)
jnp.sum(X, where=X > 0)|jnp.sum(X, initial=2.5)|jnp.average(X, A)|lax.cumsum(X)|lax.cumprod(X)
jnp.linalg.norm(X)|jnp.cumsum(X, dtype=D)|nn.softmax(X)
nn.softmax(X, where=X > 0, initial=0.0)|jnp.einsum('ij->j', X)|jnp.quantile(X, 0.3)
jnp.linalg.norm(X, axis=A)|lax.reduce(X, X.dtype.type(0), lax.add, (0,))"""
WIDE_REDUCTIONS = """jnp.var(X, A)|jnp.std(X, A)|nn.logsumexp(X, A)|nn.log_softmax(X)
nn.standardize(X)|jnp.std(X, ddof=1)|jnp.var(X, A, dtype=D)|jnp.cov(X)|lax.cumlogsumexp(X)"""
SHAPES = """X[0]|X[-1]|X[1:]|X[::-1]|X[None]|X[..., 0]|X[:, None]|X[jnp.array([0, -1])]|X.T
X.ravel()|X.reshape(-1)|X.reshape(-1, 1)|jnp.broadcast_to(X, (2, 3))|jnp.stack([X, X])
jnp.expand_dims(X, 0)|jnp.squeeze(X)|jnp.flip(X)|jnp.roll(X, 1)|jnp.tile(X, 2)
jnp.repeat(X, 2)|jnp.pad(X, 1)|jnp.pad(X, 1, constant_values=3)|jnp.tril(X)|jnp.diag(X)
jnp.zeros_like(X)|jnp.full_like(X, 2.7)|jnp.ones_like(X)|jnp.atleast_2d(X)
jnp.moveaxis(X, 0, -1)|jnp.take(X, 1)|jnp.take(X, jnp.array(1))
lax.dynamic_slice(X, (1,), (2,))|lax.dynamic_index_in_dim(X, 1)|lax.slice(X, (1,), (3,))
X.at[0].set(1)|X.at[0].add(0.5)|X.at[1:].multiply(2)|X.at[-1].max(1)
X.at[jnp.array([0, 0])].add(1)|X.at[0].get(mode='fill', fill_value=0)
jnp.take(X, 7, mode='clip')|jnp.take(X, 7, mode='fill')|X.at[9].set(3, mode='drop')
lax.rev(X, (0,))|lax.broadcast(X, (2,))|jnp.split(X, [1])[1]|jnp.meshgrid(X, X)[0]
jnp.vander(X, 2)|jnp.triu(X)|lax.expand_dims(X, (0,))|jnp.array([X, 1.5])|X[jnp.argsort(X)]
jnp.take_along_axis(X, jnp.argsort(X), -1)|jnp.nonzero(X, size=2)[0]|jnp.append(X, 1)
jnp.hstack([X, X])|lax.pad(X, X.dtype.type(1), [(1, 0, 0)])|X.at[0].divide(3)|nn.one_hot(X, 4)
nn.one_hot(X, 3, dtype=jnp.bfloat16)|jnp.bincount(X, length=4)|jnp.eye(3)[X % 3]
X.at[0].apply(jnp.negative)|jnp.insert(X, 1, 5)|jnp.delete(X, 0)"""
TWO_SHAPES = """jnp.concatenate([X, Y])|jnp.stack([X, Y])|jnp.where(X > 0, X, Y)
X.at[0].set(Y[0])|X.at[0].add(Y[0])|lax.dynamic_update_slice(X, Y[:1], (1,))
X.at[:2].set(Y[:2])|X[Y]|jnp.take(X, Y)|X.at[Y].add(1)|lax.dynamic_slice(X, (Y[0],), (2,))
lax.select(X > 0, X, Y)|jnp.array([X, Y])|lax.clamp(X, Y, Y)|jnp.clip(X, Y - 1, Y)
X.at[Y].set(2)|lax.dynamic_index_in_dim(X, Y[0])|jnp.hstack([X, Y])|jnp.digitize(X, Y)
jnp.searchsorted(X, Y)|jnp.choose(X % 2, [Y, Y + 1])"""
CREATIONS = """jnp.arange(3)|jnp.arange(3.0)|jnp.arange(1, 7, 2, dtype=D)
jnp.linspace(0, 1, 3)|jnp.zeros(3)|jnp.ones((2, 3), D)|jnp.full((3,), 0.9)|jnp.full(3, 2)
jnp.full((), S)|jnp.eye(3, dtype=D)|jnp.array(S)|jnp.asarray(S, D)|jnp.array([1, 2, 3])
jnp.array([0.5, 1, 2], D)|lax.iota(jnp.int32, 3)|jnp.array([True, False, True])
jnp.array(0.9, D)|jnp.logspace(0, 1, 3)|jnp.tri(3)"""


_TABLES = [
    (EXACT_UNARY, "", "unary", 20), (INEXACT_UNARY, "~(", "unary", 10),
    (WIDE_UNARY, "~~(", "unary", 6),
    (EXACT_BINARY, "", "binary", 34), (INEXACT_BINARY, "~(", "binary", 5),
    (WIDE_BINARY, "~~(", "binary", 3), (EXACT_REDUCTIONS, "", "reduction", 5),
    (INEXACT_REDUCTIONS, "~(", "reduction", 8), (WIDE_REDUCTIONS, "~~(", "reduction", 2),
    (SHAPES, "", "shape", 14), (TWO_SHAPES, "", "join", 7), (CREATIONS, "", "creation", 3),
]  # fmt: skip


class Drawing:
    """One function while it is drawn: its variables with their tracers, and its statements."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.variables: dict[str, Any] = {}
        self.statements: list[Statement] = []
        self.namespace: dict[str, Any] = {}
        exec(HEADER, self.namespace)
        self.namespace.update(noise=lambda x: x, wide=lambda x: x)
        self.refusal = False

    def choose(self, entries: Any) -> Any:
        if isinstance(entries, dict):
            return self.random.choices(list(entries), list(entries.values()))[0]
        return self.random.choice(entries)

    def variable(self, accepts: Callable[[Any], bool] = lambda value: True) -> str | None:
        """A variable, a recent one more often, whose tracer is accepted."""
        names = [name for name, value in self.variables.items() if accepts(value)]
        if not names:
            return None
        return self.choose(names[-3:] if self.random.random() < 0.5 else names)

    def python_scalar(self) -> str:
        table = {"0.9": 6, "0.5": 4, "2": 6, "3": 4, "-1": 4, "2.0": 3, "-1.5": 3, "True": 2,
                 "0.1": 3, "7": 2, "0": 2, "1": 3, "100": 1, "1e-3": 2, "3.7": 1, "200": 1,
                 "(1 + 2j)": 1, "1e6": 1, "300": 1, "False": 1}  # fmt: skip
        return str(self.choose(table))

    def scalar(self) -> str:
        """A number of Python, of NumPy, or an array of 0 dimensions."""
        number = self.choose(["0.9", "2", "3", "1.5", "1", "0.3", "7"])
        dtype = self.dtype()
        numpy = {"bfloat16": "ml_dtypes.bfloat16", "bool": "np.bool_"}.get(dtype, f"np.{dtype}")
        jax_type = f"jnp.{dtype}" if dtype != "bool" else "jnp.bool_"
        table = {self.python_scalar(): 12, f"{numpy}({number})": 6, f"{jax_type}({number})": 3,
                 f"jnp.array({number})": 2, f"jnp.asarray({number}, {jax_type})": 2,
                 f"np.array({number})": 1, f"np.float64({number})": 2}  # fmt: skip
        return str(self.choose(table))

    def dtype(self) -> str:
        return str(self.choose(DTYPES))

    def dtype_text(self) -> str:
        name = self.dtype()
        quoted = f"'{name}'"
        attribute = "jnp.bool_" if name == "bool" else f"jnp.{name}"
        kind = {"float": 3, "int": 3, "bool": 1, attribute: 24, quoted: 5}
        return str(self.choose(kind))

    def operand(self) -> str:
        """A variable or, less often, a scalar."""
        name = self.variable()
        return self.scalar() if name is None or self.random.random() < 0.45 else name

    def fresh(self) -> str:
        return f"v{sum(len(one.names) for one in self.statements)}"

    def draw_from_table(self) -> Statement | None:
        rows = {row: row[3] for row in _TABLES}
        table, mark, tag, _ = self.choose(rows)
        template = self.choose(split_table(table))
        x, y = self.variable(), self.operand()
        if tag == "binary" and self.random.random() < 0.3:
            x, y = y, x  # a scalar on the left
        if x is None:
            return None
        axis = self.choose(["None", "0", "-1", "1", "(0,)"])
        if mark and tag == "reduction":
            x = f"{mark}{x})~"
        text = substitute(template, X=x, Y=str(y), A=axis, D=self.dtype_text(), S=self.scalar())
        name = self.fresh()
        call = template.split("(")[0] if "(" in template and template[0] in "jln" else template
        text = f"{mark}{text})~" if mark else text
        return self.statement((name,), f"{name} = {text}", (tag, f"{tag} {call}"))

    def draw_cast(self) -> Statement | None:
        x, name, dtype = self.variable(), self.fresh(), self.dtype_text()
        if x is None:
            return None
        text = self.choose({
            f"{x}.astype({dtype})": 6, f"jnp.asarray({x}, dtype={dtype})": 1,
            f"lax.convert_element_type({x}, {dtype})": 2, f"jnp.array({x}, dtype={dtype})": 1,
            f"{x}.view({dtype})": 1, f"lax.bitcast_convert_type({x}, {dtype})": 1,
            f"jnp.{self.choose(['float32', 'int32', 'bfloat16', 'float16', 'uint8'])}({x})": 2,
            f"{x}.astype({self.variable()}.dtype)": 1,
        })  # fmt: skip
        return self.statement((name,), f"{name} = {text}", ("cast",))

    def statement(self, names: tuple[str, ...], text: str, tags: tuple[str, ...]) -> Statement:
        words = set(re.findall(r"\b[vx]\d+\b", text)) - set(names)
        return Statement(names, text, tuple(sorted(words & self.variables.keys())), tags)

    def add(self, statement: Statement | None, keep_refused: float = 0.0) -> bool:
        """Run a statement in the open trace; whether the function has it now."""
        if statement is None or self.refusal:
            return False
        scope = {**self.namespace, **self.variables}
        try:
            exec(render_marks(statement.text, noisy=False), scope)
            values = {name: scope[name] for name in statement.names}
            if not all(_is_array(value) for value in values.values()):
                return False
        except Exception:
            if self.random.random() >= keep_refused:
                return False
            self.refusal = True
            self.statements.append(statement)
            return True
        self.variables.update(values)
        self.statements.append(_mark_complex(statement, values))
        return True


def _mark_complex(statement: Statement, values: dict[str, Any]) -> Statement:
    """Complex arithmetic is inexact: XLA contracts products and sums of one op."""
    if statement.inexact or not any(value.dtype.kind == "c" for value in values.values()):
        return statement
    target, equals, text = statement.text.partition(" = ")
    if "\n" in statement.text or target != statement.names[0]:
        return replace(statement, loose=True)
    return replace(statement, text=f"{target}{equals}~({text})~")


def _is_array(value: Any) -> bool:
    if not isinstance(value, jax.Array) or jnp.issubdtype(value.dtype, jax.dtypes.extended):
        return False
    return value.size <= 200 and value.ndim <= 4 and value.dtype.itemsize >= 1


def draw_argument(drawing: Drawing, mode: str) -> str:
    """Source text of an argument: an array of NumPy or JAX, rarely a number of Python."""
    rng = drawing.random
    dtype = drawing.dtype()
    if "64" in dtype and dtype != "complex64" and mode == "x32" and rng.random() < 0.6:
        dtype = "float32"
    if rng.random() < 0.05:
        return str(drawing.choose(["3", "0.75", "True", "-2", "np.float32(1.25)", "np.int8(3)"]))
    shapes = {(3,): 8, (2, 3): 6, (): 5, (4,): 2, (1, 3): 1, (3, 3): 2, (2, 1): 1, (0,): 0.3}
    shape = drawing.choose(shapes)
    values = np.array(
        [draw_number(rng, dtype, 0.06, 70000.0) for _ in range(int(np.prod(shape)))], object
    ).reshape(shape)
    text = repr(values.tolist()).replace("inf", "np.inf").replace("nan", "np.nan")
    kind = {"bfloat16": "ml_dtypes.bfloat16", "bool": "np.bool_"}.get(dtype, f"np.{dtype}")
    source = f"np.array({text}, {kind})"
    if shape == (0,):
        source = f"np.zeros((0,), {kind})"
    return f"jnp.asarray({source})" if rng.random() < 0.3 else source


def draw_program(seed: int) -> Program:
    """The function of a seed; its mode is that of JAX's 64 bits."""
    from .jax_transforms import draw_transform

    drawing = Drawing(seed)
    mode = drawing.choose(MODES)
    set_mode(mode)
    arguments = tuple(draw_argument(drawing, mode) for _ in range(drawing.random.randint(1, 3)))
    scope = dict(drawing.namespace)
    values = [eval(text, scope) for text in arguments]
    length = drawing.random.randint(2, 8)
    drawn: list[str] = []

    def trace(*tracers: Any) -> Any:
        drawing.variables = {f"x{index}": value for index, value in enumerate(tracers)}
        for _ in range(60):
            if len(drawing.statements) >= length or drawing.refusal:
                break
            chance = drawing.random.random()
            if chance < 0.72:
                drawing.add(drawing.draw_from_table(), keep_refused=0.002)
            elif chance < 0.84:
                drawing.add(drawing.draw_cast())
            else:
                drawing.add(draw_transform(drawing), keep_refused=0.03)
        read = {name for one in drawing.statements for name in one.reads}
        drawn.extend(name for name in drawing.variables if name not in read and name[0] != "x")
        return jnp.zeros(())

    jax.eval_shape(trace, *values)
    if drawing.refusal:
        drawn[:] = list(drawing.statements[-1].names)
    outputs = tuple(drawn[-4:]) or ("x0",)
    return Program(
        seed, HEADER, arguments, tuple(drawing.statements), outputs, mode, drawing.refusal
    )


def set_mode(mode: str) -> None:
    jax.config.update("jax_enable_x64", mode == "x64")
    jax.config.update("jax_explicit_x64_dtypes", "allow" if mode == "explicit" else "warn")
