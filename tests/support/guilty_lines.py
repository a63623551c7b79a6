"""Programs with a marked guilty line: where the line is, and the program with another line."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

GUILTY = "# guilty"
"""Marks the expression at which a value widens, wraps or loses bits."""
BORN = "# born"
"""Marks the line that makes the wide operand, where that is another line."""


def marked_lines(source: str, mark: str = GUILTY) -> list[int]:
    """Line numbers, from 1, of the lines that end with the mark."""
    lines = enumerate(source.splitlines(), 1)
    return [number for number, line in lines if line.rstrip().endswith(mark)]


def repaired(module: ModuleType, fix: str, mark: str = GUILTY) -> ModuleType:
    """The module, executed again from its source with the one marked line replaced by `fix`."""
    path = Path(module.__file__ or "")
    lines = path.read_text(encoding="utf-8").splitlines()
    (number,) = marked_lines("\n".join(lines), mark)
    indentation = lines[number - 1][: -len(lines[number - 1].lstrip())]
    lines[number - 1] = "\n".join(indentation + line for line in fix.splitlines())
    copy = ModuleType(f"{module.__name__}_repaired")
    code = compile("\n".join(lines), f"{path}, repaired", "exec", dont_inherit=True)
    exec(code, copy.__dict__)
    return copy
