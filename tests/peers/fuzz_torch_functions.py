"""Compare `from_torch` with torch on random functions and modules.

    python -m tests.peers.fuzz_torch_functions --programs 5000 --seed 1 --out rows.jsonl

Each function is source text in a namespace of its own: ops with scalars of Python and tensors of 0
dimensions, casts, views, writes in place, `out=`, writes into views, reductions, indices, loops,
regions of autocast, derivatives, small modules. The graph's results have torch's dtypes and
shapes. Each element has torch's bits where only exact ops lead to it, and elementwise ops whose
result is float16 or bfloat16; else it is off by at most 4 ulps and 4 times the spread that 6 runs
have whose inexact values (products, convolutions, norms, sums, functions in float32 and float64,
complex numbers) are moved by 4 ulps (1 ulp of float16 and bfloat16). A refusal is a `GraphirError`.
Where torch refuses a write, so does `from_torch`, by any exception. Floats out of an integer
dtype's range, whose cast depends on the machine, are not drawn.

`--front-end none` only runs torch; `--front-end again` compares two runs: both check the fuzzer.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import torch

from .drawn_programs import Outcome, Program, compare_outputs, load_program
from .program_batches import run_command_line
from .torch_statements import NARROW, draw_program

FRONT_ENDS = ("graphir", "none", "again")
NOISY_RUNS = 6


class Noise:
    """Move the elements of inexact values by some ulps, with signs drawn from a seed."""

    def __init__(self, seed: int):
        self.generator = torch.Generator().manual_seed(seed)

    def _step(self, x: torch.Tensor) -> torch.Tensor:
        real = x.real.dtype if x.is_complex() else x.dtype
        signs = torch.randint(0, 2, x.shape, generator=self.generator) * 2 - 1
        return signs.to(real) * torch.finfo(real).eps * (1 if real in NARROW else 4)

    def move(self, x: Any, absolute: bool = False) -> Any:
        if isinstance(x, (list, tuple)):
            return type(x)(self.move(one, absolute) for one in x)
        if not isinstance(x, torch.Tensor) or not (x.is_floating_point() or x.is_complex()):
            return x
        step = self._step(x)
        if x.is_complex():
            return x + (x.abs() + int(absolute)) * step * (0.6 + 0.8j)
        moved = x * (step + 1)
        return moved + step if absolute else moved

    def wide(self, x: Any) -> Any:
        return self.move(x, absolute=True)

    def write(self, x: Any) -> None:
        if isinstance(x, torch.Tensor) and (x.is_floating_point() or x.is_complex()):
            with torch.no_grad():
                x.data.copy_(self.move(x.data))


def to_numpy(tensor: torch.Tensor) -> np.ndarray:
    tensor = tensor.detach().resolve_conj().resolve_neg().contiguous().clone()
    if tensor.dtype == torch.bfloat16:
        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def leaves(value: Any) -> list[np.ndarray]:
    if isinstance(value, (list, tuple)):
        return [leaf for one in value for leaf in leaves(one)]
    return [to_numpy(value) if isinstance(value, torch.Tensor) else np.asarray(value)]


def run_torch(program: Program, path: str, **names: Any) -> list[np.ndarray]:
    """Results of torch, with fresh modules and arguments."""
    namespace = load_program(program, path, **names)
    with torch.set_grad_enabled(program.mode == "grad"):
        return leaves(namespace["f"](*namespace["arguments"]()))


def _noisy_runs(program: Program, path: str) -> list[list[np.ndarray]]:
    runs = []
    for seed in range(NOISY_RUNS):
        noise = Noise(seed)
        names = {"noise": noise.move, "wide": noise.wide, "noise_": noise.write}
        try:
            runs.append(run_torch(program, path, **names))
        except Exception:
            continue
    return runs


def _run_front_end(program: Program, path: str) -> list[np.ndarray] | Outcome:
    """The results of graphir, or the outcome of its exception."""
    from graphir import GraphirError
    from graphir.runtime import from_torch, interpret

    stage = "from_torch"
    namespace = load_program(program, path)
    try:
        with torch.set_grad_enabled(program.mode == "grad"):
            graph = from_torch(namespace["f"], *namespace["arguments"]())
        stage = "interpret"
        return leaves(interpret(graph, *map(to_numpy, namespace["arguments"]())))
    except GraphirError as error:
        return Outcome("refused", f"{stage}: {type(error).__name__}", str(error))
    except Exception as error:
        status = "refused" if program.refusal else "crashed"
        return Outcome(status, f"{stage}: {type(error).__name__}", str(error))


def run_program(program: Program, front_end: str, folder: str) -> Outcome:
    """Compare a program's results in one front end with those of torch."""
    warnings.simplefilter("ignore")
    path = str(Path(folder, f"program_{program.seed}.py"))
    try:
        wanted = run_torch(program, path)
    except Exception as error:
        if not program.refusal:
            return Outcome("invalid", f"torch refuses: {type(error).__name__}", str(error))
        if front_end != "graphir":
            return Outcome("equal")
        refused = isinstance(_run_front_end(program, path), Outcome)
        return Outcome("equal") if refused else Outcome("differ", "runs where torch refuses")
    if program.refusal:
        return Outcome("invalid", "torch runs a program that it refused")
    if front_end == "none":
        return Outcome("equal")
    value = run_torch(program, path) if front_end == "again" else _run_front_end(program, path)
    if isinstance(value, Outcome):
        return value
    noisy_path = path.replace(".py", "_noisy.py")
    return compare_outputs(program, value, [wanted], lambda: _noisy_runs(program, noisy_path))


def main() -> int:
    torch.set_num_threads(1)
    return run_command_line(
        "tests.peers.fuzz_torch_functions", __doc__ or "", draw_program, run_program, FRONT_ENDS
    )


if __name__ == "__main__":
    sys.exit(main())
