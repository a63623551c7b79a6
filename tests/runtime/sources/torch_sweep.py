"""A sweep of from_torch: functions and methods of torch, by dtypes and kinds of operands.

Run as a program for the whole: `python -m tests.runtime.sources.torch_sweep [name ...]`. Each case
is recorded. The dtypes and shapes of FakeTensor must be those of its graph at every op, its values
PyTorch's in bounds, and no row may fail.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from graphir import ops  # noqa: E402
from graphir.passes import lower  # noqa: E402
from graphir.runtime import from_torch, interpret  # noqa: E402
from graphir.runtime.sources.torch_.op_symbols import OpSymbols  # noqa: E402
from graphir.runtime.sources.torch_.tensors import array_of  # noqa: E402

nn, F = torch.nn, torch.nn.functional
tree = torch.utils._pytree

DTYPES = {
    "bool": torch.bool,
    "u8": torch.uint8,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "c64": torch.complex64,
}
FLOATS = ("f16", "bf16", "f32", "f64")


def tensor(name: str, shape: tuple[int, ...], seed: int = 0) -> Any:
    """Return a tensor of small values."""
    rng, dtype = np.random.default_rng(seed + len(shape)), DTYPES[name]
    if dtype is torch.bool:
        return torch.from_numpy(rng.integers(0, 2, shape).astype(bool))
    if dtype.is_complex:
        return torch.from_numpy(
            np.asarray(rng.normal(size=shape) + 1j * rng.normal(size=shape))
        ).to(dtype)
    if dtype.is_floating_point:
        return torch.from_numpy(np.asarray(rng.normal(size=shape))).to(dtype)
    low = 0 if dtype is torch.uint8 else -4
    return torch.from_numpy(np.asarray(rng.integers(low, 9, shape))).to(dtype)


_UNARY = """
    abs absolute neg negative positive exp exp2 expm1 log log2 log10 log1p sqrt rsqrt square
    reciprocal sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh sinc sigmoid logit relu
    floor ceil trunc round sign sgn frac erf erfc erfinv lgamma digamma i0 deg2rad rad2deg isnan
    isinf isfinite isposinf isneginf isreal nan_to_num logical_not bitwise_not angle real conj
    sum prod mean var std amax amin max min any all argmax argmin median norm count_nonzero
    std_mean var_mean aminmax ravel t flatten tril triu diagonal diag trace fliplr flipud rot90
    zeros_like ones_like clone numel signbit relu nanmean nansum cov corrcoef unique
    logdet inverse pinverse matrix_exp histc
"""
_WITH_AXIS = """
    sum prod mean var std amax amin any all argmax argmin cumsum cumprod cummax cummin sort argsort
    softmax log_softmax logsumexp max min median norm unbind flip diff nansum nanmean count_nonzero
    logcumsumexp std_mean var_mean aminmax mode unsqueeze
"""
_BINARY = """
    add sub mul div true_divide floor_divide remainder fmod pow float_power maximum minimum fmax
    fmin atan2 arctan2 hypot copysign nextafter eq ne lt le gt ge isclose logical_and logical_or
    logical_xor bitwise_and bitwise_or bitwise_xor bitwise_left_shift bitwise_right_shift logaddexp
    logaddexp2 xlogy heaviside ldexp gcd lcm dist equal_shape rsub outer kron cross complex polar
"""
_FUNCTIONS = """
    relu relu6 elu celu selu gelu silu mish softplus softsign hardtanh hardswish hardsigmoid
    leaky_relu logsigmoid tanhshrink softshrink hardshrink threshold2 glu normalize gumbel0 softmin
    rrelu
"""


def _of_torch(name: str) -> Callable[..., Any]:
    return lambda *args: getattr(torch, name)(*args)


_SQUARE = ("logdet", "inverse", "matrix_exp", "trace")


class Case(NamedTuple):
    """A function with arguments."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]


def cases() -> Iterator[Case]:
    """Yield all cases."""
    for key in DTYPES:
        x, s = tensor(key, (3, 4)), tensor(key, ())
        for name in dict.fromkeys(_UNARY.split()):
            yield Case(
                f"{name} of {key}",
                _of_torch(name),
                (tensor(key, (3, 3)) if name in _SQUARE else x,),
            )
            if key in ("i64", "f32", "bf16"):
                yield Case(f"{name} of {key} 0-d", _of_torch(name), (s,))
        for name in dict.fromkeys(_WITH_AXIS.split()):
            for axis in (0, -1):
                arg = (axis,) if name == "flip" else axis
                function = partial(lambda f, a, x: f(x, a), _of_torch(name), arg)
                yield Case(f"{name} along {axis} of {key}", function, (x,))
    for key in (*FLOATS, "i64"):
        for name in _FUNCTIONS.split():
            if hasattr(F, name):
                yield Case(f"F.{name} of {key}", getattr(F, name), (tensor(key, (3, 4)),))
    yield from _binary()
    from tests.runtime.sources import torch_calls

    for name, function, args in torch_calls.calls():
        yield Case(name, function, args)


def _binary() -> Iterator[Case]:
    for name in _BINARY.split():
        if not hasattr(torch, name):
            continue
        function = _of_torch(name)
        for i, a in enumerate(DTYPES):
            x = tensor(a, (3, 4))
            for j, b in enumerate(DTYPES):
                if a == b or (i + j) % 3 == 0:
                    yield Case(f"{name} of {a}, {b}", function, (x, tensor(b, (4,), 1)))
                if (i + j) % 3 == 1:
                    yield Case(f"{name} of {a}, {b} 0-d", function, (x, tensor(b, (), 1)))
            for number in (True, 3, 2.5, np.float32(1.5), np.int64(2)):
                text = f"{type(number).__name__} {number}"
                yield Case(f"{name} of {a}, {text}", lambda x, f=function, n=number: f(x, n), (x,))


class Outcome(NamedTuple):
    """What the sweep says of a case: problems, and the number of symbols and calls."""

    problems: list[str]
    symbols: int
    calls: list[str]


class _Log(TorchDispatchMode):
    """The ops of a run, and the types of their results."""

    def __init__(self) -> None:
        super().__init__()
        self.results: list[tuple[str, list[tuple[Any, ...]]]] = []

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = op(*args, **(kwargs or {}))
        self.results.append((str(op), _types(result)))
        return result


def _types(value: Any) -> list[tuple[Any, ...]]:
    tensors = [x for x in tree.tree_leaves(value) if isinstance(x, torch.Tensor)]
    return [(x.dtype, tuple(x.shape)) for x in tensors]


def fake_results(function: Any, args: Any) -> list[tuple[str, list[tuple[Any, ...]]]] | None:
    """Return the ops of a run on FakeTensors with their results' types; None if it fails there."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    fakes = tree.tree_map_only(torch.Tensor, mode.from_tensor, args)
    log = _Log()
    try:
        with mode, log:
            function(*fakes)
    except Exception:
        return None
    return log.results


@contextmanager
def recorded() -> Iterator[list[tuple[str, list[tuple[Any, ...]], list[Any]]]]:
    """Record each op that from_torch gives symbols: its name, results' types and symbols' types."""
    log: list[tuple[str, list[tuple[Any, ...]], list[Any]]] = []
    before = OpSymbols.symbols

    def symbols(self: OpSymbols, run: Any) -> Any:
        values = before(self, run)
        if not self.outer:
            log.append((str(run.op), _types(run.results), [x.type for x in values]))
        return values

    OpSymbols.symbols = symbols
    try:
        yield log
    finally:
        OpSymbols.symbols = before


BOUNDS = {1: 0, 2: 3e-2, 4: 2e-4, 8: 2e-4, 16: 1e-4}


def _leaves(value: Any) -> list[Any]:
    return [array_of(torch, x) for x in tree.tree_leaves(value) if isinstance(x, torch.Tensor)]


def differences(value: Any, right: Any, bound: float | None = None) -> str:
    """Return how a value differs from PyTorch's; "" in bounds."""
    if (value.dtype, value.shape) != (right.dtype, right.shape):
        return f"{value.dtype}{value.shape}, not {right.dtype}{right.shape}"
    if right.dtype.kind in "bui":
        return "" if np.array_equal(value, right) else f"{value} is not {right}"
    wide: Any = np.complex128 if right.dtype.kind == "c" else np.float64
    limit = BOUNDS[right.dtype.itemsize] if bound is None else bound
    value, right = value.astype(wide), right.astype(wide)
    scale = np.abs(right[np.isfinite(right)]).max(initial=1) if bound else 1
    alike = np.allclose(value, right, rtol=limit, atol=limit * scale, equal_nan=True)
    return "" if alike else f"{value} is not {right}"


def outcome(case: Case, bound: float | None = None) -> Outcome | None:
    """Return the outcome of a case; None if PyTorch refuses it."""
    try:
        expected = _leaves(case.function(*tree.tree_map_only(torch.Tensor, torch.clone, case.args)))
    except (RuntimeError, TypeError, NotImplementedError, ValueError, IndexError, AttributeError):
        return None
    if not expected:
        return None
    problems: list[str] = []
    args = tree.tree_map_only(torch.Tensor, torch.clone, case.args)
    try:
        with recorded() as log:
            graph = from_torch(case.function, *args)
        values = interpret(graph.verify(), *_leaves(case.args))
        low = interpret(lower(graph), *_leaves(case.args))
    except Exception as error:
        return Outcome([f"{type(error).__name__}: {str(error)[:300]}"], 1, [])
    problems += graph.notes
    several, lowered = (x if isinstance(x, tuple) else (x,) for x in (values, low))
    for value, other, right in zip(several, lowered, expected, strict=True):
        problems += [text for v in (value, other) if (text := differences(v, right, bound))][:1]
    fakes = fake_results(case.function, case.args)
    if fakes is not None:
        names = [name for name, _ in fakes]
        ours = [(name, types) for name, types, _ in log]
        if [name for name, _ in ours] == names and ours != fakes:
            problems += [
                f"FakeTensor: {x} is not {y}" for x, y in zip(ours, fakes, strict=True) if x != y
            ]
    for symbol in graph.symbols:
        implied = [x for x in symbol.origins if x.kind != "legalization"]
        if any(origin.operand == "result" for origin in implied):
            problems.append(f"inferred {symbol.origins[0].source}, not {symbol.dtype}: {symbol}")
    calls = [x.attrs["callee"].name for x in graph.symbols if x.op is ops.control.call]
    return Outcome(problems, len(graph.symbols), calls)


def main(words: list[str]) -> None:
    """Run the cases whose names contain the words, and print the problems."""
    warnings.filterwarnings("ignore")
    count, symbols, calls, failed = 0, 0, Counter[str](), 0
    names: set[str] = set()
    for case in cases():
        if words and not any(word in case.name for word in words):
            continue
        result = outcome(case)
        if result is None:
            continue
        count, symbols = count + 1, symbols + result.symbols
        names.add(case.name.partition(" ")[0])
        calls.update(result.calls)
        failed += bool(result.problems)
        if result.problems:
            print(f"{case.name}: {' | '.join(x[:250] for x in result.problems[:3])}")
    total = sum(calls.values())
    print(f"{count} cases of {len(names)} functions, {failed} with problems")
    print(f"{total} calls of {symbols} symbols: {dict(calls)}")


if __name__ == "__main__":
    main(sys.argv[1:])
