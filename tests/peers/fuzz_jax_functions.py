"""Compare `from_jax` with JAX on random functions.

    python -m tests.peers.fuzz_jax_functions --programs 5000 --seed 1 --out rows.jsonl

Each function is source text in a namespace of its own: ops of jnp, lax and jax.nn with scalars of
Python, of NumPy and arrays of 0 dimensions, casts, loops with weak and strong carries, derivatives,
keys, with 64 bits off, on, and off with jax_explicit_x64_dtypes="allow". JAX runs it under jax.jit;
where the graph's values differ, also op by op, and under jax.disable_jit(), where loops and JAX's
own functions run op by op too: XLA contracts products and sums of one compiled function. The
graph's results have JAX's dtypes and shapes. Each element has the bits of one of the three runs
where only exact ops lead to it (+ - * / % casts, comparisons, integers, selections); else it is off
by at most 4 ulps and 4 times the spread that 6 runs have whose inexact ops are moved by 4 ulps (1
ulp of float16 and bfloat16). Or so are the graph's values where the processor flushes subnormal
numbers to zero, as XLA has it do. A refusal is a `GraphirError`. Where JAX refuses a function, so
does `from_jax`, by any exception. The graph is given the arrays that JAX makes of the arguments:
without 64 bits, JAX cuts them before the function runs.

`--front-end none` only runs JAX; `--front-end jit` compares jax.jit with the run op by op: both
check the fuzzer.
"""

from __future__ import annotations

import ctypes
import platform
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax._src.lax.lax import _convert_element_type

from .drawn_programs import Outcome, Program, compare_outputs, load_program
from .jax_statements import draw_program, set_mode
from .program_batches import run_command_line

FRONT_ENDS = ("graphir", "none", "jit")
NOISY_RUNS = 6


class Noise:
    """Move the elements of inexact values by some ulps; the seed is an argument of the trace."""

    def __init__(self) -> None:
        self.seed: Any = None
        self.site = 0

    def __call__(self, x: Any) -> Any:
        return self._move(x, absolute=False)

    def wide(self, x: Any) -> Any:
        return self._move(x, absolute=True)

    def _move(self, x: Any, absolute: bool) -> Any:
        if isinstance(x, (list, tuple)):
            return type(x)(self._move(one, absolute) for one in x)
        if not hasattr(x, "dtype") or not jnp.issubdtype(x.dtype, jnp.inexact):
            return x
        self.site += 1
        eps = float(jnp.finfo(x.dtype).eps)
        phase = np.arange(int(np.prod(x.shape)), dtype="float32").reshape(x.shape) * 12.9898
        signs = jnp.sign(jnp.sin(phase + self.seed * np.float32(78.233 + 0.37 * self.site)))
        weak = getattr(x, "weak_type", False)
        step = _convert_element_type(
            (4 if eps < 1e-4 else 1) * eps * signs, x.dtype, weak_type=weak
        )
        if jnp.iscomplexobj(x):
            return x + (jnp.abs(x) + int(absolute)).astype(x.dtype) * step * (0.6 + 0.8j)
        moved = x * (step + 1)
        other = jnp.sign(jnp.cos(phase * 1.7 + self.seed * np.float32(31.41 * self.site)))
        return moved + abs(step) * other.astype(x.dtype) if absolute else moved


def leaves(value: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(value)]


def _noisy_runs(program: Program, path: str) -> list[list[np.ndarray]]:
    """Results with inexact values moved; none if JAX does not take the noise there."""
    noise = Noise()
    namespace = load_program(program, path, noise=noise, wide=noise.wide)

    def run(seed: Any, arguments: Any) -> Any:
        noise.seed, noise.site = seed, 0
        return namespace["f"](*arguments)

    try:
        compiled = jax.jit(run)
        arguments = namespace["arguments"]()
        return [leaves(compiled(np.float32(seed), arguments)) for seed in range(1, NOISY_RUNS + 1)]
    except Exception:
        return []


def _run_front_end(program: Program, namespace: dict[str, Any]) -> list[np.ndarray] | Outcome:
    """The results of graphir, or the outcome of its exception."""
    from graphir import GraphirError
    from graphir.runtime import from_jax, interpret

    stage = "from_jax"
    try:
        arguments = namespace["arguments"]()
        graph = from_jax(namespace["f"], *arguments)
        stage = "interpret"
        return leaves(interpret(graph, *map(_as_jax_has_it, arguments)))
    except GraphirError as error:
        return Outcome("refused", f"{stage}: {type(error).__name__}", str(error))
    except Exception as error:
        if program.refusal:
            return Outcome("refused", f"{stage}: {type(error).__name__}", str(error))
        return Outcome("crashed", f"{stage}: {type(error).__name__}", str(error))


def _as_jax_has_it(argument: Any) -> Any:
    """The array of NumPy that JAX makes of an argument before the function runs; numbers as are."""
    is_array = isinstance(argument, (np.ndarray, np.generic, jax.Array))
    return np.asarray(jnp.asarray(argument)) if is_array else argument


def _run_op_by_op(namespace: dict[str, Any], like: list[np.ndarray]) -> list[list[np.ndarray]]:
    """Results without jax.jit, and in jax.disable_jit(), of the types of those of jax.jit.

    A run is left out where JAX refuses a value that it takes in a trace, and a result where a
    number becomes an array in a trace alone: `2 ** jnp.uint8(7)`.
    """
    runs: list[list[np.ndarray]] = []
    for context in (nullcontext(), jax.disable_jit()):
        try:
            with context:
                run = leaves(namespace["f"](*map(jnp.asarray, namespace["arguments"]())))
        except Exception:  # JAX refuses a value here that it takes in a trace
            continue
        pairs = zip(run, like, strict=True)
        runs.append([x if (x.dtype, x.shape) == (y.dtype, y.shape) else y for x, y in pairs])
    return runs


@contextmanager
def flushed_subnormals() -> Iterator[None]:
    """Have the processor take subnormal numbers for zero, as XLA does (x86-64 with glibc)."""
    flags = 0x8040  # flush to zero, denormals are zero
    before = (ctypes.c_uint32 * 8)()  # fenv_t, whose last word is MXCSR
    library = ctypes.CDLL(None)
    library.fegetenv(before)
    library.fesetenv((ctypes.c_uint32 * 8)(*before[:7], before[7] | flags))
    try:
        yield
    finally:
        library.fesetenv(before)


def run_program(program: Program, front_end: str, folder: str) -> Outcome:
    """Compare a program's results in one front end with those of JAX."""
    warnings.simplefilter("ignore")
    set_mode(program.mode)
    path = str(Path(folder, f"program_{program.seed}.py"))
    namespace = load_program(program, path)
    try:
        compiled = leaves(jax.jit(namespace["f"])(*namespace["arguments"]()))
    except Exception as error:
        if not program.refusal:
            return Outcome("invalid", f"JAX refuses: {type(error).__name__}", str(error))
        if front_end != "graphir":
            return Outcome("equal")
        value = _run_front_end(program, namespace)
        refused = isinstance(value, Outcome)
        return Outcome("equal") if refused else Outcome("differ", "runs where JAX refuses")
    if program.refusal:
        return Outcome("invalid", "JAX runs a program that it refused")
    if front_end == "none":
        return Outcome("equal")
    value = compiled if front_end == "jit" else _run_front_end(program, namespace)
    if isinstance(value, Outcome):
        return value
    noisy_runs = cache(lambda: _noisy_runs(program, path.replace(".py", "_noisy.py")))
    outcome = Outcome("differ")
    if front_end == "graphir":
        outcome = compare_outputs(program, value, [compiled], noisy_runs)
    if outcome.status == "differ" and not outcome.kind.startswith(("dtype", "shape", "number")):
        references = [*_run_op_by_op(namespace, compiled), compiled]
        references = references[:1] if front_end == "jit" else references
        outcome = compare_outputs(program, value, references, noisy_runs)
        if outcome.status == "differ" and platform.machine() == "x86_64":
            with flushed_subnormals():
                value = _run_front_end(program, namespace)
            if not isinstance(value, Outcome):
                flushed = compare_outputs(program, value, references, noisy_runs)
                return flushed if flushed.status == "equal" else outcome
    return outcome


def main() -> int:
    return run_command_line(
        "tests.peers.fuzz_jax_functions", __doc__ or "", draw_program, run_program, FRONT_ENDS
    )


if __name__ == "__main__":
    sys.exit(main())
