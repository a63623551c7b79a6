"""jit against NumPy on programs drawn anew: python -m tests.runtime.jit.fuzz_jit --programs 10000.

Each program is called some times, and what it reads changes in between. Each call gives NumPy's
value or a GraphirError; the first that does not ends it, with the seed that draws it again.
"""

from __future__ import annotations

import argparse
import copy
import random
import sys
import warnings
from collections import Counter
from typing import Any

import numpy as np

from graphir import GraphirError
from graphir.runtime import jit
from tests.runtime.jit.jit_programs import argument, array, function_of, module, program, run_change


def outcome(call: Any, args: list[Any]) -> Any:
    """What a call gives: arrays, or the error that it raises."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            result = call(*args)
            return [np.array(one) for one in (result if type(result) is tuple else (result,))]
        except Exception as error:
            return error


def difference(ours: Any, theirs: Any) -> str:
    """What is wrong with our outcome; empty where it is NumPy's value or a refusal."""
    if isinstance(ours, GraphirError):
        return ""
    if isinstance(theirs, Exception):
        same = isinstance(ours, Exception) and isinstance(ours, type(theirs))
        return "" if same else f"{ours!r} where NumPy raises {theirs!r}"
    if isinstance(ours, Exception):
        return f"raises {ours!r}, which is no GraphirError, where NumPy gives {theirs}"
    if len(ours) != len(theirs):
        return f"{ours} where NumPy gives {theirs}"
    for one, other in zip(ours, theirs, strict=True):
        if (one.dtype, one.shape) != (other.dtype, other.shape) or not close(one, other):
            return f"{one!r} where NumPy gives {other!r}"
    return ""


def close(one: Any, other: Any) -> bool:
    """Whether arrays are equal, up to the order in which floats are summed."""
    if one.dtype.kind not in "fc":
        return bool(np.array_equal(one, other))
    with np.errstate(all="ignore"):
        if np.array_equal(one, other, equal_nan=True):
            return True
        finite = np.abs(other[np.isfinite(other)]).astype("f8")
        bound = 64 * float(np.finfo(one.dtype).eps)
        limit = bound * float(finite.max(initial=1))
        return bool(np.allclose(one, other, rtol=bound, atol=limit, equal_nan=True))


def check(seed: int) -> tuple[str, Counter[str]]:
    """What is wrong with the program of a seed, and how its calls went."""
    pick, count = random.Random(seed), Counter[str]()
    drawn = program(pick)
    start = pick.randrange(2**32)
    worlds = [module(random.Random(start)) for _ in range(2)]
    plain, jitted = (function_of(drawn, names) for names in worlds)
    jitted = jit(jitted)
    kinds = [list(one) for one in drawn.arguments]
    for step, changes in enumerate([[], *drawn.changes]):
        for names in worlds:
            for at, change in enumerate(changes):
                names["pick"] = random.Random(start + 97 * step + at)
                run_change(change, names)
        if step and pick.random() < 0.2:  # another signature
            kinds[0][1] = pick.choice(["f4", "i1", "f8"])
        values = [array(pick, dtype, shape) for _, dtype, shape in kinds]
        given = [
            argument(kind[0], copy.deepcopy(one)) for kind, one in zip(kinds, values, strict=True)
        ]
        same = [
            one if isinstance(one, (int, float)) else np.array(np.asarray(one))
            if kind[0] != "lends" else value.copy()
            for kind, one, value in zip(kinds, given, values, strict=True)
        ]  # fmt: skip
        for names in worlds:
            names["pick"] = random.Random(start + step)
        theirs, ours = outcome(plain, same), outcome(jitted, given)
        wrong = difference(ours, theirs)
        refused = isinstance(ours, GraphirError)
        count["refused" if refused else "raises" if isinstance(ours, Exception) else "equal"] += 1
        if wrong:
            return f"{drawn.source}\n{kinds}\ncall {step} after {changes}: {wrong}", count
        if refused and drawn.writes:
            break  # the modules may differ from here on
    return "", count


def main() -> int:
    """Draw and check programs; status 1 at the first that is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--all", action="store_true", help="go on after what is wrong")
    options = parser.parse_args()
    total, wrong = Counter[str](), 0
    for seed in range(options.seed, options.seed + options.programs):
        found, count = check(seed)
        total += count
        if found:
            wrong += 1
            print(f"--seed {seed} --programs 1\n{found}\n", file=sys.stderr)
            if not options.all:
                return 1
    calls = ", ".join(f"{number} {name}" for name, number in total.most_common())
    print(f"{options.programs} programs from seed {options.seed}: {wrong} wrong; calls: {calls}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
