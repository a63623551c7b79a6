"""The table of what jit and record make of NumPy's functions, and the page made of it.

    python -m tests.numpy_reference.table

writes tests/golden/numpy_reference.json and docs/numpy.md anew, in some minutes, and prints each
call whose value is not NumPy's and that `known` does not list.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from tests.numpy_reference.arguments import Call
from tests.numpy_reference.calls import KEYWORDS, MIXED, base_calls, calls, targets, uncalled
from tests.numpy_reference.known import DEVIATES
from tests.numpy_reference.outcomes import (
    FRONT_ENDS,
    PLAINLY,
    RAISES,
    REFUSED,
    RUNS,
    WRONG,
    Outcome,
)

ROOT = Path(__file__).resolve().parent.parent.parent
FILE = ROOT / "tests" / "golden" / "numpy_reference.json"
PAGE = ROOT / "docs" / "numpy.md"
BAD = (WRONG, RAISES)
Outcomes: TypeAlias = dict[Call, Outcome]
"""What one front end makes of calls."""


def main() -> None:
    """Write the table and the page; print what is wrong and not listed."""
    rows: dict[str, Any] = {}
    for path in targets():
        rows[path] = {}
        for name, outcome in FRONT_ENDS.items():
            results = [(call, outcome(call)) for call in calls(path)]
            rows[path][name] = row(path, results)
            for call, result in unlisted(name, path, results):
                print(f"{name}: {result.word}: {call}: {result.detail}")
    table = {"numpy": np.__version__, "uncalled": uncalled(), "functions": rows}
    FILE.write_text(json.dumps(table, indent=0) + "\n", encoding="utf-8")
    PAGE.write_text(page(table), encoding="utf-8")


def word(results: Iterable[tuple[Call, Outcome]]) -> str:
    """The best that became of some calls."""
    words = {outcome.word for _, outcome in results}
    return next((each for each in (RUNS, PLAINLY, REFUSED) if each in words), REFUSED)


def row(path: str, results: list[tuple[Call, Outcome]]) -> list[Any]:
    """What became of required arguments alone, and what is refused beside them."""
    bases = {str(call) for call in base_calls(path)}
    plain = [(call, outcome) for call, outcome in results if str(call) in bases]
    listed: list[str] = []
    if word(plain) != REFUSED:
        names = {name for call, _ in results for name in call.kwargs if len(call.kwargs) == 1}
        for name in sorted(names):
            alone = [(c, o) for c, o in results if list(c.kwargs) == [name] and c.form == KEYWORDS]
            if alone and all(outcome.word == REFUSED for _, outcome in alone):
                listed.append(f"{name}=")
        mixed = [(call, outcome) for call, outcome in results if call.form == MIXED]
        if mixed and all(outcome.word == REFUSED for _, outcome in mixed):
            listed.append("lists or scalars")
    return [word(plain), listed]


def unlisted(
    front_end: str, path: str, results: Iterable[tuple[Call, Outcome]]
) -> Iterator[tuple[Call, Outcome]]:
    """The results that are wrong and stand in no list."""
    if path not in DEVIATES[front_end]:
        yield from ((call, outcome) for call, outcome in results if outcome.word in BAD)


# -- the page

_TITLES = {
    "np": "numpy",
    "np.linalg": "numpy.linalg",
    "np.fft": "numpy.fft",
    "ndarray": "Methods and attributes of ndarray",
    "operator": "Operators and conversions",
}


def page(table: dict[str, Any]) -> str:
    """The text of docs/numpy.md."""
    uncalled_names = ", ".join(f"`{name}`" for name in table["uncalled"])
    text = _INTRODUCTION.format(version=table["numpy"], uncalled=uncalled_names)
    for prefix, title in _TITLES.items():
        text += f"\n## {title}\n\n| name | jit | record |\n|---|---|---|\n"
        for path, columns in table["functions"].items():
            if path.rpartition(".")[0] == prefix and path not in table["uncalled"]:
                cells = " | ".join(_cell(path, name, *columns[name]) for name in FRONT_ENDS)
                text += f"| `{path.rpartition('.')[2]}` | {cells} |\n"
    return text


def _cell(path: str, front_end: str, status: str, without: list[str]) -> str:
    text = status
    if without:
        text += " without " + ", ".join(f"`{name}`" if "=" in name else name for name in without)
    if path in DEVIATES[front_end]:
        text += f"; differs: {DEVIATES[front_end][path]}"
    return text


_INTRODUCTION = """\
# NumPy's functions under jit and record

What [`jit`](functions.md) and [`record`](recording.md) make of each public function of NumPy
{version}, each method of ndarray and each operator. A test calls them all with arrays by position,
with each keyword, and with lists, numbers and 0-d arrays, and compares dtype, shape and bits of the
result, and the arguments after the call, with NumPy's. The calls are generated from signatures
(`tests/numpy_reference/`); `python -m tests.numpy_reference.table` writes this page.

- *runs*: the call becomes ops of the graph, or types alone answer it.
- *runs plainly*: under `record`, the graph takes the result as given, or a note names what it did
  not see; under `jit`, compiled code runs as one opaque step of the graph.
- *refused*: an error gives the reason and the way round. *without* names keywords and operands that
  are refused though the rest runs.

No arguments are generated for functions of files and of a few objects that are no arrays:
{uncalled}.
"""


if __name__ == "__main__":
    main()
