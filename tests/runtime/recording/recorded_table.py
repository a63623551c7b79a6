"""The table of recorded programs: of each how many operations it has, and which silent casts.

    python -m tests.runtime.recording.recorded_table

writes tests/golden/recorded.json anew, where every library is installed.
"""

from __future__ import annotations

import copy
import importlib
import json
import warnings

from passes import implicit_cast
from runtime import record
from tests import GOLDEN
from tests.runtime.recording.recorded_libraries import LIBRARIES, PATHS, call_of
from tests.support.recorded_programs import PROGRAMS

FILE = GOLDEN / "recorded.json"


def row(recording):
    """What the table says of one recording: its operations, and its casts but those of literals."""
    graph = implicit_cast(recording.graph)
    origins = [one for symbol in graph for one in symbol.origins if not one.source.weak]
    changes = sorted({f"{one.source} -> {one.target}" for one in origins})
    computed = sum(symbol.op.kind != "creation" for symbol in recording.graph)
    return {"operations": computed, "uses of casts": len(origins), "casts": changes}


def recorded(function, args, keywords=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return record(function, *copy.deepcopy(args), **copy.deepcopy(keywords or {}))


def versions():
    return {name: importlib.import_module(name).__version__ for name in LIBRARIES}


def main():
    """Write the table."""
    own = {one.__name__: row(recorded(one, args)) for one, args in PROGRAMS.items()}
    theirs = {
        f"{library}.{path}": row(recorded(*call_of(library, path))) for library, path in PATHS
    }
    table = {"versions": versions(), "programs": own, "libraries": theirs}
    FILE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
