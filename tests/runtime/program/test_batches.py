"""Programs over batches of matrices: products that run in parts have `interpret`'s bits."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest

from graphir import Graph, Symbol, ops
from graphir.runtime import Program, interpret, jit
from graphir.runtime.native.float_products import FloatProduct, float_products
from graphir.runtime.program.batches import BatchStep
from graphir.runtime.program.cost_model import COST
from graphir.runtime.program.steps import CallStep
from graphir.semantics import matrix_products as products
from tests.support.evaluator import same
from tests.support.native_runs import TIERS, needs_llvmlite
from tests.support.tables import every, quick

NATIVE = TIERS


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of few small matrices; threads and fusion over rows for any work."""
    monkeypatch.setattr(COST, "BATCH", 1 << 13)
    for name in ("SECOND_THREAD", "NATIVE_SECOND_THREAD"):
        monkeypatch.setattr(COST, name, 0)
    monkeypatch.setattr(COST, "CACHE", 1 << 10)
    monkeypatch.setattr(COST, "NATIVE_WINDOWS", 1)  # no wavefronts


def is_view(step: Any) -> bool:
    return isinstance(step, CallStep) and step.symbol.op is ops.permute


def batch_steps(program: Program, *inputs: Any) -> list[BatchStep]:
    program(*inputs)
    (plan,) = program.plans
    return [step for step in plan.fused if isinstance(step, BatchStep)]


class Drawn:
    """A drawn program over a batch: products, elementwise ops, reductions, views, broadcasts."""

    def __init__(self, seed: int) -> None:
        draw = self.draw = random.Random(seed)
        self.random = np.random.default_rng(seed)
        self.lead = draw.choice([(6,), (5,), (2, 3), (3, 1, 2), (1, 4)])
        self.sizes = draw.sample([1, 2, 3, 8, 16, 17, 24, 33, 40], 3)
        self.dtype = draw.choice(["float32", "float32", "float64", "float16", "bfloat16"])
        self.graph = Graph("drawn", rules="jax")
        self.inputs: list[np.ndarray] = []
        self.values = [self._input(draw.random() < 0.8) for _ in range(draw.randint(2, 4))]
        self.values.append(self._product(self.values[0]))
        for _ in range(draw.randint(3, 9)):
            self._step()
        outputs = [self.values[-1], draw.choice(self.values[-4:])]
        self.graph.output(*dict.fromkeys(outputs))

    def _input(self, whole: bool, columns: int = 0, rows: int = 0) -> Symbol:
        draw = self.draw
        lead = self.lead if whole else tuple(draw.choice([1, n]) for n in self.lead)
        lead = lead if whole or draw.random() < 0.5 else ()
        shape = (*lead, rows or draw.choice(self.sizes), columns or draw.choice(self.sizes))
        symbol = self.graph.input(self.dtype, shape)
        kind, axes = draw.random(), [*range(len(shape))]
        if kind < 0.2:
            draw.shuffle(axes)
        elif kind < 0.4:
            axes[-2:] = axes[:-3:-1]
        array = self.random.normal(size=[shape[k] for k in axes])
        array[self.random.random(array.shape) < 0.01] = -0.0
        if draw.random() < 0.1:
            array[self.random.random(array.shape) < 0.01] = np.inf
        array = array.astype(symbol.dtype.storage).transpose(np.argsort(axes))
        self.inputs.append(array[..., ::-1] if draw.random() < 0.1 else array)
        return symbol

    def _product(self, x: Symbol) -> Symbol:
        others = [y for y in self.values if y.shape[-2:] and y.shape[-2] == x.shape[-1]]
        if others and self.draw.random() < 0.7:
            return ops.matmul(x, self.draw.choice(others))
        y = self._input(self.draw.random() < 0.7, rows=x.shape[-1])
        return ops.matmul(x, y)

    def _step(self) -> None:
        draw, x = self.draw, self.draw.choice(self.values[-3:])
        kind = draw.random()
        rank = x.rank
        if kind < 0.05:
            vector = self.graph.input(self.dtype, x.shape[-1:])
            array = self.random.normal(size=vector.shape)
            self.inputs.append(array.astype(vector.dtype.storage))
            self.values.append(x - ops.unsqueeze(ops.matmul(x, vector), rank - 1))
        elif kind < 0.25:
            self.values.append(self._product(x))
        elif kind < 0.4:
            swapped = ops.permute(x, (*range(rank - 2), rank - 1, rank - 2))
            self.values.append(swapped)
        elif kind < 0.55:
            self.values.append(draw.choice([ops.exp, ops.tanh, ops.negative, ops.relu])(x))
        elif kind < 0.75:
            reduce = draw.choice([ops.max, ops.sum, ops.mean])
            keepdims = draw.random() < 0.5
            row = reduce(x, axis=rank - 1, keepdims=keepdims)
            row = row if keepdims else ops.unsqueeze(row, rank - 1)
            self.values.append(draw.choice([ops.subtract, ops.divide])(x, row))
        else:
            others = [y for y in self.values if y.shape == x.shape]
            bias = self._input(False, columns=x.shape[-1], rows=draw.choice([1, x.shape[-2]]))
            self.values.append(
                draw.choice([ops.add, ops.multiply])(x, draw.choice([*others, bias]))
            )


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("native", NATIVE)
def test_drawn_programs_have_the_bits_of_the_interpreter(native: Any) -> None:
    fused = members = 0
    for seed in range(80):
        drawn = Drawn(seed)
        meant = interpret(drawn.graph, *drawn.inputs)
        program = Program(drawn.graph, native=native, threads=1 + seed % 2)
        steps = batch_steps(program, *drawn.inputs)
        fused += bool(steps)
        members += sum(len(step.members) for step in steps)
        results = program(*drawn.inputs)
        both = [x if isinstance(x, tuple) else (x,) for x in (results, meant)]
        assert all(map(same, *both)), seed
    assert (fused > 30 and members > 3 * fused) or native == "off"


def attention(heads: int, length: int, width: int) -> Graph:
    g = Graph("attention")
    q, k, v = [g.input("float32", (heads, length, width)) for _ in range(3)]
    scores = ops.matmul(q, ops.permute(k, (0, 2, 1))) * 0.125
    weights = ops.exp(scores - ops.max(scores, axis=2, keepdims=True))
    g.output(ops.matmul(weights / ops.sum(weights, axis=2, keepdims=True), v))
    return g


def normal(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    return [random.normal(size=shape).astype(np.float32) for shape in shapes]


@needs_llvmlite
@pytest.mark.usefixtures("small_parts")
def test_attention_is_one_step_whose_scores_stay_in_scratch_memory() -> None:
    inputs = normal(*[(7, 20, 16)] * 3)
    (step,) = batch_steps(Program(attention(7, 20, 16), threads=2), *inputs)
    assert len(step.members) == 5 and len(step.results) == 1 and step.threads == 2


@needs_llvmlite
@pytest.mark.usefixtures("small_parts")
def test_a_widening_cast_and_an_epilogue_run_a_matrix_at_a_time() -> None:
    g = Graph("layer", rules="jax")
    x, w, b = (
        g.input("bfloat16", (6, 40, 16)),
        g.input("bfloat16", (16, 24)),
        g.input("bfloat16", (24,)),
    )
    g.output(ops.relu(ops.matmul(x, w) + b))
    arrays = [
        a.astype(s.dtype.storage)
        for a, s in zip(normal(x.shape, w.shape, b.shape), g.inputs, strict=True)
    ]
    program = Program(g, threads=2)
    (step,) = batch_steps(program, *arrays)
    assert len(step.members) == 3
    assert same(program(*arrays), interpret(g, *arrays))


@needs_llvmlite
@pytest.mark.usefixtures("small_parts")
def test_products_with_a_vector_run_a_matrix_at_a_time() -> None:
    g = Graph("luma", rules="numpy")
    image, gains = g.input("uint8", (6, 40, 3)), g.input("float32", (3,))
    light = image.cast("float32") / 255.0
    luma = ops.matmul(light, gains)
    g.output(light / (1.0 + ops.unsqueeze(luma, 2)))
    arrays = [(normal((6, 40, 3))[0] * 50).astype(np.uint8), *normal((3,))]
    program = Program(g, threads=2, native="now")
    (step,) = batch_steps(program, *arrays)
    assert len(step.results) == 1 and step.lead == (6,)
    assert same(program(*arrays), interpret(g, *arrays))


@needs_llvmlite
@pytest.mark.usefixtures("small_parts")
def test_a_product_whose_matrices_a_batch_would_split_is_no_member() -> None:
    g = Graph("split", rules="numpy")
    x, y, z = [g.input("float32", shape) for shape in ((3, 40, 17, 16), (3, 40, 16, 17), (17, 5))]
    products = ops.matmul(x, y)
    g.output(products, ops.matmul(ops.sum(products, axis=3), z))
    arrays = normal(x.shape, y.shape, z.shape)
    program = Program(g, threads=2)
    batches_by_lead = {step.lead: step for step in batch_steps(program, *arrays)}
    assert len(batches_by_lead[3, 40].members) == 2
    assert all(map(same, program(*arrays), interpret(g, *arrays)))


@pytest.mark.parametrize("shape", quick([(40, 63, 65), (9, 256, 64), (3, 600, 40)], 3), ids=str)
def test_large_products_in_parts_have_the_bits_of_the_whole(shape: tuple[int, int, int]) -> None:
    def program(q: Any, k: Any, v: Any) -> Any:
        scores = q @ k.swapaxes(-1, -2) * np.float32(0.125)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return (weights @ v) / weights.sum(axis=-1, keepdims=True)

    inputs = normal(*[shape] * 3)
    both = [a.reshape(shape[1], shape[0], shape[2]).transpose(1, 0, 2) for a in inputs]
    for arrays in (inputs, both):
        compiled = jit(program, rules="numpy")
        for _ in range(2):
            assert same(compiled(*arrays), program(*arrays))


@pytest.mark.usefixtures("small_parts")
@every("shape", [(3, 50, 3), (5, 4, 40, 5)])
def test_a_vector_as_long_as_the_batch_stays_whole(shape: tuple[int, ...]) -> None:
    g = Graph("vector")
    x, vector = g.input("float32", shape), g.input("float32", shape[-1:])
    centred = x - ops.max(x, axis=-1, keepdims=True)
    g.output(centred + ops.unsqueeze(ops.matmul(centred, vector), len(shape) - 1))
    inputs = normal(shape, shape[-1:])
    for threads in (1, 2):
        assert same(Program(g, threads=threads)(*inputs), interpret(g, *inputs))


@needs_llvmlite
@pytest.mark.usefixtures("small_parts")
@every("dtype", ["uint8", "bool", "float16"])
def test_matrices_of_any_dtype_are_transposed_within_a_batch(dtype: str) -> None:
    g = Graph("transposed", rules="numpy")
    x = g.input("float32", (2, 3, 8, 16))
    y = ops.permute(x > 0 if dtype == "bool" else ops.cast(x, dtype), dims=(0, 1, 3, 2))
    g.output(ops.maximum(ops.matmul(x, ops.cast(y, "float32")) + 1, 0))
    (inputs,) = normal(x.shape)
    program = Program(g, threads=2)
    members = [member for step in batch_steps(program, np.abs(inputs)) for member in step.members]
    assert any(map(is_view, members))
    assert same(program(np.abs(inputs)), interpret(g, np.abs(inputs)))


@needs_llvmlite
@pytest.mark.usefixtures("small_parts")
def test_the_explanation_says_which_steps_run_on_the_same_matrices() -> None:
    text = Program(attention(7, 20, 16), threads=2).explain(*normal(*[(7, 20, 16)] * 3))
    assert "steps 1, 2, 3, 4, 5 run together on the same matrices" in text
    assert "of the batch [7] in machine code, 2 threads; 6 of their 7 results stay in" in text
    assert "BLAS" in text


LARGE = [
    ((8, 256, 64), (8, 64, 256)),
    ((3, 200, 100), (3, 100, 333)),
    ((2, 3, 128, 96), (3, 96, 130)),
    ((5, 1000, 784), (784, 128)),
    ((128, 333), (4, 333, 217)),
]
"""Shapes of batches for each of whose matrices OpenBLAS uses its threads."""


@pytest.mark.parametrize(
    "dtype", ["float32", pytest.param("float64", marks=pytest.mark.exhaustive)]
)
@pytest.mark.parametrize("shapes", quick(LARGE, 5), ids=str)
def test_large_matrices_of_a_batch_each_by_one_thread(
    shapes: Any, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHIR_NATIVE", "1")
    x, y = [array.astype(dtype) for array in normal(*shapes)]
    multiply = jit(lambda x, y: x @ y, rules="numpy")
    for left, right in itertools.product((x, _by_columns(x)), (y, _by_columns(y))):
        assert same(multiply(left, right), left @ right)
    assert same(multiply(x[..., ::2], y[..., ::2, :]), x[..., ::2] @ y[..., ::2, :])


def _by_columns(x: np.ndarray) -> np.ndarray:
    """Return the array with matrices whose columns are contiguous."""
    return x.swapaxes(-1, -2).copy().swapaxes(-1, -2)


MATRICES = [
    *((512, 300, 176), (256, 512, 512), (300, 784, 128), (700, 1000, 96), (515, 900, 129)),
    *((16, 1024, 1024), (33, 700, 513), (2, 2048, 3000)),
]
"""Rows, terms and columns of matrices whose rows or columns threads share; 784 are two blocks."""


@needs_llvmlite
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("sizes", MATRICES, ids=str)
def test_parts_of_a_large_matrix_each_by_one_thread(
    sizes: tuple[int, int, int], dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPHIR_NATIVE", "1")
    rows, terms, columns = sizes
    x, y = [array.astype(dtype) for array in normal((rows, terms), (terms, columns))]
    multiply = jit(lambda x, y: np.tanh(x @ y) + 1, rules="numpy")
    for left, right in itertools.product((x, _by_columns(x)), (y, _by_columns(y))):
        assert same(multiply(left, right), np.tanh(left @ right) + 1)


@needs_llvmlite
@pytest.mark.skipif(not products.blas_function("sgemm_nn"), reason="NumPy has another BLAS")
def test_threads_of_blas_cut_terms_in_other_blocks() -> None:
    x, y = [array.astype("float32") for array in normal((320, 784), (784, 128))]
    kind = FloatProduct(x.dtype, x.shape, y.shape, x.strides, y.strides, 2)
    job = float_products(True).compiled(kind)
    if job is None:
        pytest.skip("this processor has blocks of an unknown size")
    result = np.empty((320, 128), x.dtype)
    job.run([each.ctypes.data for each in (x, y, result)])
    assert same(result, x @ y)


@needs_llvmlite
@pytest.mark.skipif(not products.blas_function("sgemm_nt"), reason="NumPy has another BLAS")
def test_attention_has_no_threads_of_blas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPHIR_NATIVE", "1")
    queries, keys = normal((8, 256, 64), (8, 256, 64))
    score = jit(lambda x, y: x @ y.swapaxes(-1, -2), rules="numpy")
    score(queries, keys)
    entries = float_products(True).kernels | float_products(False).kernels
    kinds = [each for each in entries if each[1:3] == ((8, 256, 64), (8, 64, 256))]
    assert kinds
    if not any(map(entries.get, kinds)):
        pytest.skip("on this processor one thread of BLAS has other bits than several")
