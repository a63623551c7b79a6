"""Hashes of the results of drawn programs, to compare two states of the code bit by bit.

    python -m tests.result_hashes --write FILE
    python -m tests.result_hashes --check FILE --count 2000

A kind of programs is drawn from fixed seeds and runs through the public names of graphir. A hash
covers types, dtypes, shapes, orders of memory and bits of all results (all NaN are one), arguments
after the call, the text of graphs without source locations, and the classes of errors. The file has
two hashes for each 100 programs: one of the drawn programs, one of what they gave. So a generator
that has changed is told from a result that has changed. `--check` names the first hundred that
differs; `--list` prints a line for each program, for `diff` with the lines of another checkout.

Sums, products and functions of floats depend on the instructions of the processor and on the
release of NumPy. The file names both, and is not compared where they differ.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import random
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from graphir import Graph, GraphirError, trace
from graphir.passes import lower
from graphir.runtime import Program, array_api, interpret, jit, record
from tests.runtime import view_programs
from tests.runtime.function_programs.arguments import evaluate_arguments
from tests.runtime.function_programs.drawing import call_program, draw_program
from tests.runtime.function_programs.programs import Program as FunctionProgram
from tests.runtime.function_programs.programs import unload
from tests.runtime.jit import jit_programs
from tests.runtime.program.drawn_programs import SPACE, Drawn
from tests.runtime.program.drawn_statements import BROAD, KINDS, UPDATING
from tests.support.drawn_expressions import MACHINE_DTYPES, Expressions
from tests.support.scaled_thresholds import scaled

BLOCK = 100
SETTINGS = {
    "GRAPHIR_NATIVE_CACHE": "0",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "PYTHONHASHSEED": "0",
}
"""Of the environment, so that a run depends on neither caches nor the number of processors."""

_PLACES = re.compile(r' loc\(.*|"[^"]*":\d+:\d+( to [\d:]+)?')


class Digest:
    """A hash of values, in order."""

    def __init__(self) -> None:
        self._hash = blake2b(digest_size=8)
        self.end = "value"

    def add(self, *values: Any) -> None:
        """Add arrays, numbers, errors, graphs, texts, or containers of these."""
        arrays: Any = (np.ndarray, np.generic)
        containers: Any = (tuple, list)
        mapping: Any = dict
        for value in values:
            if isinstance(value, BaseException):
                name = type(value).__name__
                self.end = "refused" if isinstance(value, GraphirError) else "raises"
                self._text(f"error {name}")
            elif isinstance(value, Graph):
                self._text(_PLACES.sub("", str(value)))
            elif isinstance(value, arrays):
                self._array(value)
            elif isinstance(value, mapping):
                self.add("dict", *value.items())
            elif isinstance(value, containers):
                self._text(f"{type(value).__name__} {len(value)}")
                self.add(*value)
            elif isinstance(value, str | bool | int | float | complex) or value is None:
                self._text(f"{type(value).__name__} {value!r}")
            else:
                self._text(type(value).__name__)

    def _text(self, text: str) -> None:
        self._hash.update(text.encode() + b"\n")

    def _array(self, value: np.ndarray | np.generic) -> None:
        array = np.asarray(value)
        order = array.flags.c_contiguous, array.flags.f_contiguous
        self._text(f"{type(value).__name__} {array.dtype} {array.shape} {order}")
        if array.dtype.hasobject:
            return
        array = np.array(array, order="C")
        is_float = array.dtype.kind in "fcV" and array.dtype.names is None
        if is_float and (nan := array != array).any():
            array[nan] = np.nan
        self._hash.update(array.tobytes())

    def hex(self) -> str:
        """Return the hash as text."""
        return self._hash.hexdigest()


def outcome(call: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    """Return the result of a call, or its error."""
    try:
        return call(*args, **keywords)
    except Exception as error:
        return error


class Outcome(NamedTuple):
    """The hash of a drawn program, the hash of what it gave, and how it ended."""

    drawn: str
    results: str
    end: str


# -- the kinds


def planner(seed: int, drawn: Digest, results: Digest) -> None:
    """Interpreter, passes and planner with NumPy alone."""
    if seed % 2:
        expressions = Expressions(seed)
        drawn.add(expressions.source, expressions.rules, expressions.arrays)
        _planned(expressions.build(), expressions.arrays, results, Random(seed), "off")
    else:
        statements = Drawn(seed, (KINDS, UPDATING, BROAD)[seed // 2 % 3])
        drawn.add(statements.source, statements.arrays)
        graph = outcome(_traced, statements.source, statements.arrays)
        if isinstance(graph, Graph):
            _planned(graph, statements.arrays, results, statements.pick, "off")
        else:
            results.add(graph)


def native(seed: int, drawn: Digest, results: Digest) -> None:
    """Machine code for all regions, with the thresholds of the cost model divided by 512."""
    if seed % 2:
        expressions = Expressions(seed, ["explicit", "numpy", "jax", "torch"], MACHINE_DTYPES, 4)
        drawn.add(expressions.source, expressions.rules, expressions.arrays)
        graph: Any = expressions.build()
        arrays: Sequence[Any] = expressions.arrays
    else:
        statements = Drawn(seed, (KINDS, UPDATING, BROAD)[seed // 2 % 3])
        arrays = statements.small() if seed // 2 % 4 else statements.arrays
        drawn.add(statements.source, arrays)
        graph = outcome(_traced, statements.source, arrays)
        if not isinstance(graph, Graph):
            results.add(graph)
            return
    with scaled(512):
        _planned(graph, arrays, results, Random(seed), "now")


def _traced(source: str, arrays: Sequence[Any]) -> Graph:
    space = dict(SPACE)
    exec(compile(source, "drawn.py", "exec"), space)
    return trace(space["f"], *arrays, rules="numpy").graph


def _planned(graph: Graph, arrays: Sequence[Any], results: Digest, pick: Random, tier: Any) -> None:
    """Run a graph in a Program twice; with NumPy alone, by the interpreter too."""
    if tier == "off":
        results.add(graph, outcome(lower, graph), outcome(interpret, graph, *arrays))
    block, threads = pick.choice([None, None, 7, 100]), pick.choice([1, 2]) if tier == "now" else 1
    program = outcome(Program, graph, native=tier, threads=threads, block=block)
    for _ in range(2):
        results.add(program if isinstance(program, Exception) else outcome(program, *arrays))


def views(seed: int, drawn: Digest, results: Digest) -> None:
    """Programs of views and writes under jit, record and the Array API, a third each."""
    pick, front_end = Random(seed), ("jit", "record", "array_api")[seed % 3]
    is_standard = front_end == "array_api"
    args = (view_programs.plain_arguments if is_standard else view_programs.arguments)(pick)
    grammar = view_programs.STANDARD if is_standard else view_programs.NUMPY
    source = view_programs.program(pick, view_programs.copied(args), grammar)
    drawn.add(source, args)
    module = array_api if is_standard else np
    names: dict[str, Any] = {"np": module, "xp": module, "__name__": "user"}
    exec(compile(source, "drawn.py", "exec"), names)
    given = view_programs.copied(args)
    if front_end == "jit":
        function = jit(names["f"])
        results.add(outcome(function, *given), given[:2])
        again = view_programs.copied(args)
        results.add(outcome(function, *again), again[:2])
    elif front_end == "record":
        _recorded(names["f"], given, results)
    else:
        results.add(outcome(_standard, names["f"], given), given[:2])


def _standard(function: Any, args: Sequence[Any]) -> list[Any]:
    arrays = [array_api.asarray(array) for array in args[:3]]
    values = [np.asarray(result) for result in function(*arrays, args[3])]
    return [*values, *map(np.asarray, arrays)]


def _recorded(function: Any, args: Sequence[Any], results: Digest) -> None:
    """Record a call, and replay the graph in a Program."""
    recording = outcome(record, function, *args)
    if isinstance(recording, Exception):
        results.add(recording, args)
        return
    results.add(recording.result, args, recording.graph, len(recording.notes))
    results.add(recording.inputs, recording.outputs)
    if recording.outputs:
        program = outcome(Program, recording.graph, threads=1, native="off")
        is_refused = isinstance(program, Exception)
        results.add(program if is_refused else outcome(program, *recording.inputs))


def jitted(seed: int, drawn: Digest, results: Digest) -> None:
    """Functions under jit: of what their module has, which changes between calls; and of arrays."""
    if seed % 2:
        program = draw_program(seed)
        drawn.add(program.text())
        _called(program, results)
    else:
        _guarded(seed, drawn, results)


def _called(program: FunctionProgram, results: Digest) -> None:
    """Make all calls of a program under jit."""
    namespace = program.load()
    try:
        function = jit(namespace["program"])
        for call in program.calls:
            for change in call.changes:
                exec(change, namespace)
            values = evaluate_arguments(call.arguments, namespace)
            results.add(outcome(call_program, function, call, values), values)
    finally:
        unload(namespace)


def _guarded(seed: int, drawn: Digest, results: Digest) -> None:
    """Call a function again and again while what it reads changes."""
    pick = Random(seed)
    with patch.object(jit_programs, "LIBRARIES", []):
        program = jit_programs.program(pick)
    drawn.add(program.source, program.arguments, program.changes)
    names = jit_programs.module(Random(seed))
    function = jit(jit_programs.function_of(program, names))
    for step, changes in enumerate([[], *program.changes]):
        for at, change in enumerate(changes):
            names["pick"] = Random(seed + 97 * step + at)
            jit_programs.run_change(change, names)
        values = [jit_programs.array(pick, dtype, shape) for _, dtype, shape in program.arguments]
        given = [
            jit_programs.argument(kind[0], value)
            for kind, value in zip(program.arguments, values, strict=True)
        ]
        names["pick"] = Random(seed + step)
        results.add(outcome(function, *given), values)


def recordings(seed: int, drawn: Digest, results: Digest) -> None:
    """Recordings of functions and of updates, with replays."""
    if seed % 2:
        program = draw_program(seed)
        drawn.add(program.text())
        namespace = program.load()
        try:
            call = program.calls[0]
            values = evaluate_arguments(call.arguments, namespace)
            _recorded(namespace["program"], tuple(values.values()), results)
        finally:
            unload(namespace)
    else:
        statements = Drawn(seed, (UPDATING, KINDS)[seed // 2 % 2])
        drawn.add(statements.source, statements.arrays)
        space = dict(SPACE)
        exec(compile(statements.source, "drawn.py", "exec"), space)
        _recorded(space["f"], statements.arrays, results)


KIND_NAMES: dict[str, Callable[[int, Digest, Digest], None]] = {
    "planner": planner,
    "views": views,
    "jit": jitted,
    "recordings": recordings,
    "native": native,
}


# -- runs and files


def run(kind: str, seed: int) -> Outcome:
    """Draw the program of a seed, run it, and return its hashes."""
    drawn, results = Digest(), Digest()
    random.seed(seed)
    np.random.seed(seed)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        KIND_NAMES[kind](seed, drawn, results)
    return Outcome(drawn.hex(), results.hex(), results.end)


def blocks(kind: str, first: int, count: int, ends: Counter[str]) -> Iterator[str]:
    """Yield the two hashes of each hundred programs, as text."""
    for start in range(first, first + count, BLOCK):
        both = Digest(), Digest()
        for seed in range(start, start + BLOCK):
            end = run(kind, seed)
            both[0].add(end.drawn)
            both[1].add(end.results)
            ends[end.end] += 1
        yield f"{both[0].hex()} {both[1].hex()}"


def environment() -> dict[str, Any]:
    """Return all that may change the bits of floats besides the code of this project."""
    info: Any = np.show_config(mode="dicts")
    packages: dict[str, str] = {}
    for name in ("numpy", "ml_dtypes", "llvmlite"):
        try:
            packages[name] = version(name)
        except PackageNotFoundError:
            packages[name] = "none"
    return {
        "machine": platform.machine(),
        "instructions": info["SIMD Extensions"]["found"],
        "processor": _processor(),
        "python": ".".join(platform.python_version_tuple()[:2]),
        **packages,
    }


def _processor() -> str:
    """Return the model of the processor, by which BLAS chooses its kernels."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(": ")[1] for line in lines if line.startswith("model name")), "")


def check(path: Path, kinds: Sequence[str], first: int, count: int) -> int:
    """Compare with a file; return 0 if all hashes agree, 1 if not, 2 if it cannot be."""
    content = json.loads(path.read_text())
    if content["environment"] != environment():
        for name, value in environment().items():
            if (other := content["environment"].get(name)) != value:
                print(f"not compared: the file is of {name} {other}, this run of {value}")
        return 2
    status = 0
    for kind in kinds:
        begin, ends = time.process_time(), Counter[str]()
        wanted = content["kinds"][kind][first // BLOCK : (first + count) // BLOCK]
        for place, hashes in enumerate(blocks(kind, first, len(wanted) * BLOCK, ends)):
            if hashes != wanted[place]:
                seed = first + place * BLOCK
                is_drawn = hashes.split()[0] == wanted[place].split()[0]
                what = "results differ" if is_drawn else "other programs are drawn"
                again = f"--kind {kind} --first {seed} --count {BLOCK} --list"
                print(f"{kind} {seed}-{seed + BLOCK - 1}: {what}; {again} in both checkouts")
                status = 1
                break
        else:
            seconds = time.process_time() - begin
            print(f"{kind}: {len(wanted) * BLOCK} programs agree, {dict(ends)}, {seconds:.0f} s")
    return status


def write(path: Path, kinds: Sequence[str], count: int) -> None:
    """Write the hashes of some kinds to a file, from the first that it has not, up to `count`."""
    content: dict[str, Any] = {"environment": environment(), "block": BLOCK, "kinds": {}}
    if path.exists():
        before = json.loads(path.read_text())
        if before["environment"] == content["environment"]:
            content = before
    for kind in kinds:
        hashes = content["kinds"].setdefault(kind, [])
        begin, ends, first = time.process_time(), Counter[str](), len(hashes) * BLOCK
        for block in blocks(kind, first, count - first, ends):
            hashes.append(block)
            path.write_text(json.dumps(content, indent=1) + "\n")
        seconds = time.process_time() - begin
        print(f"{kind}: {count - first} more programs, {dict(ends)}, {seconds:.0f} s")


def main() -> int:
    """Draw, run and hash; status 1 if a hash differs, 2 if the file cannot be compared."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kind", action="append", choices=list(KIND_NAMES), help="else all")
    parser.add_argument("--first", type=int, default=0, help=f"first seed, a multiple of {BLOCK}")
    parser.add_argument("--count", type=int, default=20_000, help=f"a multiple of {BLOCK}")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", type=Path, metavar="FILE")
    action.add_argument("--check", type=Path, metavar="FILE")
    action.add_argument("--list", action="store_true", help="print a line for each program")
    options = parser.parse_args()
    if any(os.environ.get(name) != value for name, value in SETTINGS.items()):
        os.execve(sys.executable, sys.orig_argv, os.environ | SETTINGS)
    gc.collect()
    gc.freeze()  # each run of the garbage collector would walk all modules
    if options.first % BLOCK or options.count % BLOCK:
        parser.error(f"--first and --count are multiples of {BLOCK}")
    kinds = options.kind or [*KIND_NAMES]
    if options.check:
        return check(options.check, kinds, options.first, options.count)
    if options.write:
        write(options.write, kinds, options.count)
        return 0
    for kind in kinds:
        for seed in range(options.first, options.first + options.count):
            print(kind, seed, *run(kind, seed))
    return 0


if __name__ == "__main__":
    sys.exit(main())
