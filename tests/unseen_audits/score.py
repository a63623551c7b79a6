"""Score audits of programs that were written, with their answers, before any of them was audited.

    python -m tests.unseen_audits.score [--details]

`programs/bugs` have one dtype bug each, `clean` none though they look like it, `ordinary` are
programs of about 100 lines. Their author had read no code here. `check_answers.py` verifies the
answers, by exact arithmetic. A bug counts as

- *line*: a sentence, or else the first row, names the line of the answer (or that of the fix);
- *silent*: all outputs have known errors, and none differs, though the answer has one that does;
- *known*: the outputs whose error is known, of all.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import io
import os
import re
import tempfile
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from graphir.passes import CastReport
from graphir.runtime import record
from tests.support.report_checks import faults

PROGRAMS = Path(__file__).parent / "programs"
NEAR = 1e-6
"""The relative error from which an answer counts a float as different."""


def module_of(path: Path) -> Any:
    """The module of a program."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def audited(path: Path) -> CastReport:
    """The report of the program in a file, run in a directory of its own."""
    module, here = module_of(path), Path.cwd()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.chdir(folder)
        try:
            with contextlib.redirect_stdout(io.StringIO()), np.errstate(all="ignore"):
                if hasattr(module, "main"):
                    return record(module.main).audit()
                return record(module.run, *module.make_inputs()).audit()
        finally:
            os.chdir(here)


def lines_named(report: CastReport) -> list[int]:
    """The lines that the sentences name, then that of the first row."""
    lines = [int(x) for text in report.sentences for x in re.findall(r"line (\d+)", text)]
    return lines + [site.row.location.line for site in report.sites][:1]


def _bug(path: Path, report: CastReport) -> tuple[bool, bool]:
    answer = module_of(path).ANSWER
    wanted = {answer["line"], answer.get("fix_line", answer["line"])}
    is_wrong = any(x["differ"] for x in answer["outputs"].values())
    known = [x for x in report.outputs if x.is_known]
    is_silent = (
        is_wrong and len(known) == len(report.outputs) and not any(x.differing for x in known)
    )
    return not wanted.isdisjoint(lines_named(report)), is_silent


def main() -> None:
    """Print the scores."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--details", action="store_true")
    parser.add_argument("--only", default="")
    arguments = parser.parse_args()
    for kind in ("bugs", "clean", "ordinary"):
        totals: Counter[str] = Counter()
        for path in sorted((PROGRAMS / kind).glob(f"{arguments.only}*.py")):
            totals["programs"] += 1
            try:
                report = audited(path)
            except Exception as error:
                totals["failed"] += 1
                print(f"{kind}/{path.stem}: {type(error).__name__}: {error}"[:300])
                continue
            known = [x for x in report.outputs if x.is_known]
            totals["outputs"] += len(report.outputs)
            totals["known"] += len(known)
            totals["faults"] += len(list(faults(report)))
            words = f"{len(known)} of {len(report.outputs)} outputs known"
            if kind == "bugs":
                has_line, is_silent = _bug(path, report)
                totals["line"] += has_line
                totals["silent"] += is_silent
                words += f"{', line' * has_line}{', SILENT' * is_silent}"
            if kind == "clean":
                wrong = [x for x in known if x.differing and (x.relative or 0) > NEAR]
                totals["false"] += bool(wrong)
                words += f"{', FALSE' * bool(wrong)}"
            print(f"{kind}/{path.stem}: {words}")
            if arguments.details:
                print(report)
        print(f"{kind}: {', '.join(f'{name} {count}' for name, count in totals.items())}")


if __name__ == "__main__":
    main()
