"""State that outlives a call: the caches, tables, locks and context variables of modules.

    python -m tests.support.process_state

writes the table of docs/state.md anew: it adds what the code has, with a bound where the code says
one, and keeps what the page says of the others. tests/test_state_page.py compares the two.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.support.packages import ROOT, SOURCES

PAGE = ROOT / "docs" / "state.md"
HEAD = "| state | owner | kind | bound | cleared |\n|---|---|---|---|---|\n"
UNKNOWN = "?"

LOCKS = frozenset(["Lock", "RLock", "Condition", "Event"])
TABLES = frozenset(["dict", "list", "set", "defaultdict", "OrderedDict", "Counter", "deque"])
WEAK = frozenset(["WeakKeyDictionary", "WeakValueDictionary", "WeakSet"])
_WRITES = r"(\[[^\n]*\] [-+|]?= |\.(setdefault|update|append|add|pop|clear|extend|insert)\()"


class State(NamedTuple):
    """A name of a module, or of a class of it, that holds state; the bound that the code says."""

    name: str
    file: str
    kind: str
    bound: str = UNKNOWN
    cleared: str = UNKNOWN


@cache
def states() -> tuple[State, ...]:
    """Return the state of all modules, by file."""
    return tuple(state for path in SOURCES for state in _of_module(path))


def _of_module(path: Path) -> Iterator[State]:
    text = path.read_text(encoding="utf-8")
    file = path.relative_to(ROOT).as_posix()
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _of_function(node, file)
        elif isinstance(node, ast.ClassDef) and any(_last(x) == "local" for x in node.bases):
            yield State(node.name, file, "thread-local", "each thread", "with its thread")
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            name = target.id if isinstance(target, ast.Name) else ""
            state = _of_value(name, node.value, file) if name else None
            if state is not None and (state.kind != "table" or name in _written_names()):
                yield state


def _of_function(node: ast.FunctionDef | ast.AsyncFunctionDef, file: str) -> Iterator[State]:
    parameters = [x.arg for x in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    for decorator in node.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        kind = _last(call.func if call else decorator)
        if kind in ("cache", "until_declared"):
            bound = f"one for each {', '.join(parameters)}" if parameters else "one"
            cleared = "never" if kind == "cache" else "by a dtype that is declared"
            yield State(node.name, file, "cache", bound, cleared)
        elif kind == "lru_cache":
            sizes = (
                [*call.args[:1], *(x.value for x in call.keywords if x.arg == "maxsize")]
                if call
                else []
            )
            size = ast.unparse(sizes[0]) if sizes else "128"
            yield State(node.name, file, "cache", f"{size} entries", "the oldest entry")
    for inner in ast.walk(node):
        if isinstance(inner, ast.Call) and _last(inner.func) in LOCKS and node.name == "__init__":
            yield State(
                f"a {_last(inner.func)} of each object",
                file,
                "lock",
                "each object",
                "with its object",
            )
            break


def _of_value(name: str, value: ast.expr, file: str) -> State | None:
    kind = _last(value.func) if isinstance(value, ast.Call) else ""
    is_empty = isinstance(value, (ast.Dict, ast.List)) and not (
        value.keys
        if isinstance(value, ast.Dict)
        else [x for x in value.elts if ast.unparse(x) != "None"]
    )
    if kind in LOCKS:
        return State(name, file, "lock", "one", "never")
    if kind == "local":
        return State(name, file, "thread-local", "each thread", "with its thread")
    if kind == "ContextVar":
        return State(name, file, "context variable", "each context", "with its block")
    if kind in WEAK:
        return State(name, file, "weak table", "objects that live", "with its object")
    if (
        is_empty
        or (kind in TABLES and isinstance(value, ast.Call) and not value.args)
        or kind == "defaultdict"
    ):
        return State(name, file, "table")
    return None


def _last(node: ast.expr) -> str:
    """Return the last name of a dotted or subscripted name."""
    if isinstance(node, ast.Subscript):
        return _last(node.value)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


@cache
def _written_names() -> frozenset[str]:
    """Return the names to which code writes elements; other empty tables are constants."""
    pattern = re.compile(rf"\b(\w+){_WRITES}")
    texts = (path.read_text(encoding="utf-8") for path in SOURCES)
    return frozenset(match[1] for text in texts for match in pattern.finditer(text))


def rows() -> dict[tuple[str, str], State]:
    """Return the rows of the page, by name and file."""
    text = PAGE.read_text(encoding="utf-8")
    cells = re.findall(r"^\| `(.*)` \| `(.*)` \| (.*) \| (.*) \| (.*) \|$", text, re.M)
    return {(row[0], row[1]): State(*row) for row in cells}


def table() -> str:
    """Return the table with all state of the code, as the page words what the code does not say."""
    known = rows()
    moved = {name: row for (name, _), row in known.items()}
    lines: list[str] = []
    for state in states():
        old = known.get((state.name, state.file)) or moved.get(state.name, state)
        if state.bound == UNKNOWN:
            state = state._replace(bound=old.bound, cleared=old.cleared)
        name, file, *cells = state
        lines.append(f"| `{name}` | `{file}` | {' | '.join(cells)} |")
    return HEAD + "\n".join(dict.fromkeys(lines)) + "\n"


if __name__ == "__main__":
    before, after = PAGE.read_text(encoding="utf-8").split(HEAD)
    rest = after[re.search(r"\A(\|.*\n)*", after).end() :]  # pyright: ignore
    PAGE.write_text(before + table() + rest, encoding="utf-8")
