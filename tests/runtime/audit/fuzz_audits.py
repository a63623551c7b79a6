"""Audits of random NumPy programs against an oracle that shares no code with them.

    python -m tests.runtime.audit.fuzz_audits --first 0 --count 300 [--details]

`drawn_statements` draws the programs, and computes them on the exact values of `exact_values`,
whose docstring says what the reference is. Each program runs in NumPy first; the machine of the
program must have its bits, else the draw is no program. Then `record` and `audit` run it, and each
value that leaves is compared: the elements that the audit says to differ with those that do. A
value is

- *right*, or *unknown*, as the audit says;
- *few*: said to differ in fewer elements than it does, or no output, of a report that says of no
  step that it hides an error. None may be;
- *missing*: no output, and does not differ;
- *many*: said to differ in more;
- *decided*: said to differ in fewer, in a report that says *decided by values*: choices of indices
  that wide arithmetic would make otherwise keep the run's errors;
- *undefined*: the reference has none (masks that select other elements, the integer of NaN).

A *fault* is a contradiction inside of a report (see tests.support.report_checks).
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import os
import tempfile
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from graphir.runtime import record
from tests.runtime.audit.drawn_audits import Program
from tests.runtime.audit.drawn_statements import draw
from tests.runtime.audit.exact_values import Machine, Value, from_numpy, objects, same
from tests.support.report_checks import faults


class Verdict(NamedTuple):
    """What an audit says of a value that leaves, beside what is true."""

    verdict: str
    place: str
    told: int | None = None
    true: tuple[int, ...] = ()


def differing(real: Value, exact: Value) -> int:
    """How many elements of the program are not those of the reference."""
    pairs = zip(real.data.reshape(-1), exact.data.reshape(-1), strict=True)
    return sum(not same(x, y) for x, y in pairs)


def stacked(rounds: list[Value]) -> Value:
    """The rounds of a place, one after another."""
    if any(value.undefined for value in rounds):
        return Value("f8", objects([], (0,)), [True])
    elements = [x for value in rounds for x in value.data.reshape(-1)]
    return Value(rounds[0].dtype, objects(elements, (len(elements),)))


def module_of(program: Program, seed: int, folder: str) -> Any:
    """The program as a module, written to a file."""
    path = Path(folder) / f"drawn_{seed}.py"
    path.write_text(program.text(), encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.FOLDER = folder
    return module


def run_in_numpy(program: Program, module: Any) -> str:
    """Why the machine of the program does not have NumPy's bits; "" if it does."""
    arrays = [array.copy() for array in program.inputs.values()]
    try:
        results = module.program(*arrays)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    left = program.run(Machine(False))
    for name, result in zip(program.results, results, strict=True):
        (ours,), real = left["result", name], from_numpy(result)
        if ours.dtype != real.dtype or ours.data.shape != real.data.shape:
            return f"{name} is {real.dtype}{real.data.shape}"
        if differing(real, ours):
            return f"{name} has other elements"
    return ""


def verdicts(program: Program, report: Any) -> list[Verdict]:
    """Compare the outputs of a report with the values that leave."""
    machine = Machine(False)
    real = {key: stacked(rounds) for key, rounds in program.run(machine).items()}
    exact = [program.run(Machine(True, whole, machine)) for whole in (False, True)]
    exact = [{key: stacked(rounds) for key, rounds in left.items()} for left in exact]
    lines = program.text().splitlines()
    outputs = [
        (output, from_numpy(np.asarray(result).view(output.dtype)))
        for output, result in zip(report.outputs, report.results, strict=True)
    ]
    # Values of one dtype that a logger formats are one output.
    for key in [key for key in real if key[0] != "result" and key[1] == 1]:
        keys = [(key[0], 0), key]
        one, other = (real[x] for x in keys)
        whole = stacked([one, other])
        if one.dtype == other.dtype and _equal(outputs, whole, False):
            for left in (real, *exact):
                left[key[0], 2] = stacked([left.pop(x) for x in keys])
    found = []
    for key, value in real.items():
        place, marker = str(key), f"# @{key[0]}"
        if key[0] == "result":
            place = f"output{program.results.index(key[1])}"
        else:
            number = next(i for i, line in enumerate(lines, 1) if line.endswith(marker))
            place = f"in line {number}"
        is_number = key in program.numbers
        equal = _equal(outputs, value, is_number) or _equal(outputs, value, True)
        ends = (place, f"of {place[3:]}") if key[0] != "result" else ("\n",)
        here = [x for x in equal if x.name == place or x.name.endswith(ends)] or equal
        true = sorted({differing(value, x[key]) for x in exact if not x[key].undefined})
        found.append(_verdict(place, [x.differing for x in here], true, report))
    return found


def _equal(outputs: list[tuple[Any, Value]], value: Value, is_number: bool) -> list[Any]:
    """The outputs that have a value."""
    return [
        output
        for output, result in outputs
        if (result.dtype == value.dtype or is_number)
        and result.data.size == value.data.size
        and not differing(result, value)
    ]


def _verdict(place: str, told: list[int | None], true: list[int], report: Any) -> Verdict:
    """The best verdict of the outputs that may be a value."""
    if not true:
        known = next((x for x in told if x is not None), None)
        return Verdict("undefined", place, known)
    right = [x for x in told if x is not None and true[0] <= x <= true[-1]]
    if right:
        return Verdict("right", place, right[0], tuple(true))
    if None in told:
        return Verdict("unknown", place, None, tuple(true))
    more = [x for x in told if x is not None and x > true[-1]]
    if more:
        return Verdict("many", place, more[0], tuple(true))
    if not told:
        is_unknown = any(step.hides for step in report.unseen)
        verdict = "unknown" if is_unknown else "few" if true[0] else "missing"
        return Verdict(verdict, place, None, tuple(true))
    decided = any(step.decides for step in report.unseen)
    return Verdict("decided" if decided else "few", place, told[0], tuple(true))


class Outcome(NamedTuple):
    """What became of a seed."""

    program: Program
    skipped: str = ""
    crash: str = ""
    verdicts: tuple[Verdict, ...] = ()
    report: Any = None


def audited(seed: int) -> Outcome:
    """Draw, run, record and audit the program of a seed."""
    program = draw(seed)
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.redirect_stdout(io.StringIO()),
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
    ):
        warnings.simplefilter("ignore")
        module = module_of(program, seed, folder)
        reason = run_in_numpy(program, module)
        if reason:
            return Outcome(program, reason)
        try:
            arrays = [array.copy() for array in program.inputs.values()]
            report = record(module.program, *arrays).audit()
        except Exception:
            return Outcome(program, crash=traceback.format_exc())
        found = [*verdicts(program, report)]
        found += [Verdict("fault", fault) for fault in faults(report)]
        return Outcome(program, "", "", tuple(found), report)


def described(seed: int, outcome: Outcome, kinds: set[str]) -> str:
    """The program of a seed with its inputs and verdicts."""
    program = outcome.program
    text = program.text().split("def program", 1)[1]
    inputs = [f"{name}: {a.dtype} {a.tolist()}" for name, a in program.inputs.items()]
    said = [str(x) for x in outcome.verdicts if x.verdict in kinds]
    return "\n".join([f"--- seed {seed}", *said, *inputs, "def program" + text, outcome.crash])


def score(first: int, count: int, details: set[str] | None = None) -> Counter[str]:
    """Count the verdicts of a range of seeds."""
    totals: Counter[str] = Counter()
    for seed in range(first, first + count):
        outcome = audited(seed)
        if outcome.skipped:
            totals["not drawn"] += 1
            continue
        totals["programs"] += 1
        totals["crashes"] += bool(outcome.crash)
        totals.update(x.verdict for x in outcome.verdicts)
        totals["outputs"] += sum(x.verdict != "fault" for x in outcome.verdicts)
        kinds = {x.verdict for x in outcome.verdicts} | ({"crash"} if outcome.crash else set())
        if details and details & kinds:
            print(described(seed, outcome, details), flush=True)
    return totals


def main() -> None:
    """Print the score of a range of seeds."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--details", default="", help="verdicts to print programs of: few,many")
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    details = set(filter(None, arguments.details.split(",")))
    totals = score(arguments.first, arguments.count, details)
    print(", ".join(f"{name} {number}" for name, number in sorted(totals.items())))


if __name__ == "__main__":
    main()
