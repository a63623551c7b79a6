"""Front ends against NumPy on programs of views and writes: python -m tests.runtime.fuzz_views.

Results and arguments after a call are NumPy's, bit by bit, or the call is refused. Under `record`
the replays of the graph, by `interpret` and by a Program, have the recorded outputs.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import re
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from random import Random
from types import FunctionType
from typing import Any

import numpy as np

from graphir import GraphirError
from graphir.passes import lower
from graphir.runtime import Program, array_api, interpret, jit, record
from tests.runtime.view_programs import (
    NUMPY,
    STANDARD,
    Grammar,
    arguments,
    copied,
    differs,
    plain_arguments,
    program,
)

EQUAL, RAISES = "equal", "raises"


class DifferenceError(Exception):
    """A call whose results, arguments afterwards or replay are not NumPy's."""


def check(seed: int, front_end: str = "jit") -> tuple[str, str]:
    """What is wrong with the program of a seed, and how its calls went."""
    pick = Random(seed)
    standard = front_end == "array_api"
    args = plain_arguments(pick) if standard else arguments(pick)
    source = _drawn(pick, args, STANDARD if standard else NUMPY)
    plain = _function(source, np)
    calls = _CALLS[front_end](plain, source)
    for turn in range(3 if front_end == "jit" else 1):
        args = arguments(pick) if turn == 1 else args
        if _casts_beyond(plain, copied(args)):
            return "", "beyond the range of an integer"
        if _negates_neighbours(source, plain, args):
            return "", "NumPy negates other elements"
        try:
            kind = _compare(plain, calls, args)
        except DifferenceError as difference:
            return f"{source}\ncall {turn} with {args!r}\n{difference}", ""
        if kind != EQUAL and (turn == 0 or kind != RAISES):
            return "", kind
    return "", EQUAL


def _drawn(pick: Random, args: tuple[Any, ...], grammar: Grammar) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return program(pick, copied(args), grammar)


def _function(source: str, namespace: Any) -> FunctionType:
    names: dict[str, Any] = {"np": namespace, "xp": namespace, "__name__": "user"}
    exec(source, names)
    return names["f"]


def _compare(plain: Any, call: Any, args: tuple[Any, ...]) -> str:
    """Return how a call went; raise DifferenceError unless it is NumPy's, or refused."""
    mine, his = copied(args), copied(args)
    theirs, ours = outcome(plain, his), outcome(call, mine)
    raises = isinstance(theirs, Exception)
    if isinstance(ours, DifferenceError):
        raise ours
    if isinstance(ours, GraphirError):
        return RAISES if raises else f"refused: {str(ours).split(': ', 1)[-1][:90]}"
    if isinstance(ours, Exception):
        if type(ours) is type(theirs):
            return RAISES
        raise DifferenceError(f"raises {ours!r}, which is no GraphirError, where NumPy {theirs!r}")
    if raises:
        raise DifferenceError(f"gives {ours!r} where NumPy raises {theirs!r}")
    pairs = zip((*ours, *mine[:2]), (*theirs, *his[:2]), strict=True)
    if any(differs(a, b) for a, b in pairs):
        raise DifferenceError(f"gives {ours!r}, {mine!r}\nwhere NumPy gives {theirs!r}, {his!r}")
    return EQUAL


def outcome(call: Any, args: tuple[Any, ...]) -> Any:
    """The results of a call, or its error."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return call(*args)
        except Exception as error:
            return error


def _casts_beyond(call: Any, args: tuple[Any, ...]) -> bool:
    """Whether NumPy casts floats beyond the range of an integer, as each machine does otherwise."""
    with warnings.catch_warnings(record=True) as messages, np.errstate(all="warn"):
        warnings.simplefilter("always")
        with contextlib.suppress(Exception):
            call(*args)
        return any("in cast" in str(warning.message) for warning in messages)


def _negates_neighbours(source: str, plain: Any, args: tuple[Any, ...]) -> bool:
    """Whether np.negative(x, out=x) of a strided x has other values than -x.

    NumPy 2.4 with AVX-512 reads the neighbours of elements that lie 4 or 8 apart.
    """
    negated = re.sub(r"np.negative\((\w), out=\w\)", r"\1[...] = -\1", source)
    if negated == source:
        return False
    theirs, correct = (outcome(f, copied(args)) for f in (plain, _function(negated, np)))
    if isinstance(theirs, Exception) or isinstance(correct, Exception):
        return False
    return any(map(differs, theirs, correct))


# -- the calls of a program under each front end


def _jitted(plain: FunctionType, source: str) -> Callable[..., Any]:
    return jit(plain)


def _recorded(plain: FunctionType, source: str) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        recording = record(plain, *args)
        graph, inputs = recording.graph, recording.inputs
        machines: dict[str, Any] = {
            "interpret": partial(interpret, graph),
            "Program": Program(lower(graph), threads=1),
        }
        for name, machine in machines.items():
            replay = outcome(machine, inputs)
            if isinstance(replay, Exception):
                raise DifferenceError(f"{name} raises {replay!r} for\n{graph}")
            outputs = replay if len(recording.outputs) != 1 else [replay]
            for a, b in zip(outputs, recording.outputs, strict=True):
                if differs(a, b):
                    notes = "".join(f"\n{note}" for note in recording.notes)
                    recorded = f"{recording.outputs!r}\nof\n{graph}{notes}"
                    raise DifferenceError(
                        f"{name} replays {outputs!r}\nwhere it recorded {recorded}"
                    )
        return recording.result

    return call


def _standard(plain: FunctionType, source: str) -> Callable[..., Any]:
    function = _function(source, array_api)

    def call(*args: Any) -> Any:
        x, y, indices = (array_api.asarray(array) for array in args[:3])
        results = [np.asarray(result) for result in function(x, y, indices, args[3])]
        args[0][...], args[1][...] = np.asarray(x), np.asarray(y)
        return results

    return call


_CALLS = {"jit": _jitted, "record": _recorded, "array_api": _standard}


def main() -> int:
    """Draw and check programs; status 1 if any is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--front-end", choices=list(_CALLS), default="jit")
    parser.add_argument("--programs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--all", action="store_true", help="go on after what is wrong")
    options = parser.parse_args()
    count, total = Counter[str](), 0
    for seed in range(options.seed, options.seed + options.programs):
        wrong, kind = check(seed, options.front_end)
        count[kind or "wrong"] += 1
        if wrong:
            total += 1
            print(
                f"--front-end {options.front_end} --seed {seed} --programs 1\n{wrong}\n",
                file=sys.stderr,
            )
            if not options.all:
                return 1
    for kind, number in count.most_common(40):
        print(f"{number:6} {kind}")
    print(f"{options.programs} programs from seed {options.seed}: {total} wrong")
    return int(bool(total))


if __name__ == "__main__":
    sys.exit(main())
