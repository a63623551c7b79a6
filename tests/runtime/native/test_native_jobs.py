"""Programs of large steps are one call of machine code, with the bits of the interpreter.

Products, phases, wavefronts, batches and regions are jobs of a sequence, which threads share.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from graphir.numpy_api.trace import trace
from graphir.runtime import Program, interpret
from tests.support.evaluator import same
from tests.support.native_runs import needs_llvmlite, needs_sums
from tests.support.tables import every

pytestmark = [needs_llvmlite, needs_sums]

Function = Callable[..., Any]


def layers(x: Any, v: Any, w: Any) -> Any:
    hidden = np.tanh(x @ v + 1)
    return hidden * 0.5 + np.maximum(hidden @ w, 0)


def normalized(x: Any, y: Any) -> Any:
    centred = x - x.mean(axis=-1, keepdims=True)
    rows = centred / np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + 1)
    return rows * y, (rows + y).max(axis=-1)


def blurred(x: Any) -> Any:
    for _ in range(3):
        x = 0.25 * (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:])
    return x


def updated(x: Any) -> Any:
    x = x.copy()
    for _ in range(3):
        x[1:-1, 1:-1] += 0.1 * (x[:-2, 1:-1] + x[2:, 1:-1] - 2 * x[1:-1, 1:-1])
    return x


def toned(image: Any, gains: Any) -> Any:
    light = image.astype(np.float32) / 255
    return np.sqrt(light / (1 + (light @ gains)[..., None]))


def mixed(x: Any, y: Any) -> Any:
    """Three large values of other sizes, one of which two steps read."""
    weights = np.exp(x - x.max(axis=-1, keepdims=True))
    doubled = (weights + y)[:, ::2]
    return doubled.sum(axis=-1), np.tanh(doubled * 0.5), weights[3]


def losses(x: Any, y: Any) -> Any:
    """Rows that threads cut: several reductions of one region."""
    spread = np.square(x - y)
    return np.sqrt(spread.mean()), spread.max(), (x * y).sum(), np.log1p(np.abs(x)).mean()


def arrays(*shapes: tuple[int, ...], dtype: Any = np.float32) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    return [random.normal(size=shape).astype(dtype) for shape in shapes]


IMAGE = np.arange(300 * 500 * 3, dtype=np.uint8).reshape(300, 500, 3)
PROGRAMS: dict[str, tuple[Function, Sequence[np.ndarray]]] = {
    "layers": (layers, arrays((512, 256), (256, 144), (144, 144))),
    "layers of doubles": (layers, arrays((512, 256), (256, 144), (144, 144), dtype=float)),
    "normalized": (normalized, arrays((900, 700), (700,))),
    "blurred": (blurred, arrays((600, 500))),
    "updated": (updated, arrays((600, 500))),
    "toned": (
        toned,
        [IMAGE, *arrays((3,))],
    ),
    "mixed": (mixed, arrays((800, 900), (900,))),
    "losses": (losses, arrays((2, 300_001), (2, 300_001))),
    "losses of doubles": (losses, arrays((2, 200_001), (2, 200_001), dtype=float)),
}


def outputs(value: Any) -> Sequence[Any]:
    return value if isinstance(value, tuple) else (value,)


def program_of(name: str, threads: int = 2) -> tuple[Program, Sequence[np.ndarray], Sequence[Any]]:
    """Return a program, its inputs and its outputs by the interpreter."""
    function, given = PROGRAMS[name]
    graph = trace(function, *given, rules="numpy").graph
    return Program(graph, threads=threads, native="now"), given, outputs(interpret(graph, *given))


@every("threads", [1, 2, 3])
@every("name", PROGRAMS)
def test_one_call_has_the_bits_of_the_interpreter(name: str, threads: int) -> None:
    program, given, wanted = program_of(name, threads)
    for _ in range(4):  # every other call goes backward
        assert all(map(same, outputs(program(*given)), wanted))
    if name not in ("mixed", "toned") or threads > 1:
        assert program.machine_code, name


def test_explain_says_that_all_steps_are_one_call() -> None:
    program, given, _ = program_of("layers")
    told = "all steps are one call of machine code"
    assert told not in program.explain(*given)
    program(*given)
    assert told in program.explain(*given)


@every("name", PROGRAMS)
def test_threads_of_python_call_one_program(name: str) -> None:
    program, given, wanted = program_of(name)
    program(*given)
    with ThreadPoolExecutor(4) as pool:
        for results in pool.map(lambda _: outputs(program(*given)), range(24)):
            assert all(map(same, results, wanted))


@every("name", PROGRAMS)
def test_results_go_into_out(name: str) -> None:
    program, given, wanted = program_of(name)
    program(*given)
    out = tuple([np.empty_like(x) for x in wanted])
    assert all(map(same, outputs(program(*given, out=out if len(out) > 1 else out[0])), wanted))
    assert all(map(same, out, wanted))


@every("name", PROGRAMS)
def test_inputs_of_other_layouts(name: str) -> None:
    program, given, wanted = program_of(name)
    program(*given)
    other = [np.asfortranarray(x) for x in given]
    graph = program.graph
    assert all(map(same, outputs(program(*other)), outputs(interpret(graph, *other))))
    assert all(map(same, outputs(program(*given)), wanted))


def test_results_share_no_memory_with_later_calls() -> None:
    program, given, wanted = program_of("normalized")
    kept = [outputs(program(*given)) for _ in range(6)]
    program(*[-x for x in given])
    assert all(same(x, y) for results in kept for x, y in zip(results, wanted, strict=True))


LONG_ROWS: dict[str, tuple[Function, str]] = {
    "sum": (lambda x: x.sum(), "fdlbB?"),
    "mean": (lambda x: (x + x).mean(), "fd"),
    "largest": (lambda x: (-x).max(axis=-1), "fdlb"),
    "least": (lambda x: x.min(axis=-1), "fdlbB"),
    "product": (lambda x: (x | 1).prod(), "lb"),
    "any": (lambda x: (x > 9).any(), "fdlb"),
    "all": (lambda x: (x < 9).all(axis=-1), "fdlb"),
    "place": (lambda x: (x.argmax(axis=-1), x.sum(axis=-1)), "fd"),
}


@every(("name", "code"), [(name, code) for name, (_, codes) in LONG_ROWS.items() for code in codes])
@every("shape", [(1_000_003,), (3, 400_009)])
def test_long_rows_have_the_bits_of_the_interpreter(
    name: str, code: str, shape: tuple[int, ...]
) -> None:
    function = LONG_ROWS[name][0]
    for special in (False, True):
        x = np.random.default_rng(1).normal(size=shape) * 3
        if special and code in "fd":
            x = np.copysign(0.0, x)
            x[..., -1], x[0] = -0.0, np.nan if len(shape) > 1 else 0.0
        x = x.astype(code)
        graph = trace(function, x, rules="numpy").graph
        program, meant = Program(graph, threads=2, native="now"), outputs(interpret(graph, x))
        for _ in range(3):
            assert all(map(same, outputs(program(x)), meant))


def test_reductions_of_everything_are_one_call() -> None:
    x = arrays((1_000_003,))[0]
    for function in (lambda x: x.sum(), lambda x: np.sqrt((x * x).mean()), lambda x: x.max() - x):
        program = Program(trace(function, x, rules="numpy").graph, threads=2, native="now")
        for _ in range(3):
            program(x)
        assert program.machine_code


_FORKED = """
import os, numpy as np
from tests.runtime.native.test_native_jobs import outputs, program_of, same
program, given, wanted = program_of("layers")
program(*given)
child = os.fork()
assert all(map(same, outputs(program(*given)), wanted))
if child:
    assert os.waitpid(child, 0)[1] == 0
else:
    os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_child_of_a_fork_runs_jobs() -> None:
    subprocess.run([sys.executable, "-W", "ignore", "-c", _FORKED], check=True, timeout=100)
