"""The pages of documentation: their code blocks, what these print, and their links.

A fenced block is one of
- ```` ```python [FILE] [needs=PACKAGE,...] ````: code. All code of a page runs in one namespace, in
  an empty directory, from a file of that name;
- ```` ```console [needs=PACKAGE,...] ````: `$ graphir ...` lines, each with its output below it;
- ```` ```text ````: the output of the Python block above it;
- ```` ```text FILE ````, ```` ```json FILE ````: a file that later blocks of the page read;
- ```` ```diff FILE ````: lines of a file of the project, which tests/test_extend.py adds to a copy.

A Python block without a text block below it prints nothing. As a program, this module runs the
blocks that a JSON list on stdin describes, with a command in place of Python for the programs that
these start, and writes the output of each block as JSON.
"""

from __future__ import annotations

import contextlib
import io
import json
import linecache
import os
import re
import subprocess
import sys
import tempfile
import traceback
import warnings
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from tests.support import forks

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_FENCE = re.compile(r"^```(\S+) *([^\n]*)\n(.*?)^```$", re.M | re.S)


class Block(NamedTuple):
    """A fenced block: `line` is that of its first line, `output` what it must print."""

    page: Path
    line: int
    language: str
    file: str
    needs: tuple[str, ...]
    text: str
    output: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def missing(self) -> list[str]:
        """The optional packages that the block needs and that are not installed."""
        return [name for name in self.needs if find_spec(name) is None]


@cache
def blocks(page: Path) -> list[Block]:
    """The blocks of a page that run or that are files, in order."""
    listed: list[Block] = []
    text = page.read_text(encoding="utf-8")
    for fence in _FENCE.finditer(text):
        language, info, body = fence.groups()
        file = next((word for word in info.split() if "=" not in word), "")
        if language == "text" and not file:
            assert listed and listed[-1].language == "python", f"{page.name}: output of no code"
            assert not listed[-1].output, f"{page.name}:{listed[-1].line}: two outputs"
            listed[-1] = listed[-1]._replace(output=body)
            continue
        needs = tuple(re.findall(r"[^,=]+", info.partition("needs=")[2]))
        line = text.count("\n", 0, fence.start()) + 1
        output = body if language == "console" else ""
        listed.append(Block(page, line, language, file, needs, body, output))
    return listed


def links(page: Path) -> list[str]:
    """The targets of the links and pictures of a page that lead to other files or headings."""
    text = re.sub(r"`[^`\n]*`", "", _FENCE.sub("", page.read_text(encoding="utf-8")))
    targets = re.findall(r"\]\(([^)\s]+)\)|src=\"([^\"]+)\"", text)
    return [a or b for a, b in targets if not (a or b).startswith(("http:", "https:"))]


@cache
def outputs(page: Path) -> dict[int, str]:
    """What each block of a page prints, by its line; blocks that need more than there is are out.

    GRAPHIR_* variables do not reach the page: the output is that of a fresh environment.
    """
    described = [
        {"line": b.line, "language": b.language, "file": b.file, "text": b.text, "lax": b.needs}
        for b in blocks(page)
        if not b.missing and b.language != "diff"
    ]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("GRAPHIR", "PYTHON"))}
    environment |= {"PYTHONPATH": str(ROOT), "GRAPHIR_NATIVE_CACHE": "0", "NO_COLOR": "1"}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # which takes longer than tests of pages
    if not described:
        return {}
    # The frames of forks.py would count as the line of the user that made a module.
    python = sys.executable if any(b.needs for b in blocks(page)) else forks.executable()
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [forks.executable(), __file__, python],
            input=json.dumps(described),
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return {int(line): output for line, output in json.loads(done.stdout).items()}


def _run_python(block: dict[str, Any], names: dict[str, Any]) -> str:
    """Run code from its file; the output ends in the traceback of an exception that it raises."""
    file = block["file"] or f"block{block['line']}.py"
    Path(file).write_text(block["text"], encoding="utf-8")
    linecache.checkcache(file)
    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), warnings.catch_warnings():
        if not block["lax"]:  # other libraries may warn
            warnings.simplefilter("error")
        try:
            exec(compile(block["text"], file, "exec", dont_inherit=True), names)
        except BaseException:
            shown.write(traceback.format_exc())
    return shown.getvalue()


def _run_commands(text: str) -> str:
    """Run the `$ ` lines of a block; the lines with their outputs, stderr included."""
    shown = ""
    for command in re.findall(r"^\$ (.*(?:\\\n.*)*)$", text, re.M):
        shell = (
            f'python() {{ "{sys.executable}" "$@"; }}\ngraphir() {{ python -m graphir "$@"; }}\n'
        )
        done = subprocess.run(
            ["sh", "-c", f"{shell}{command}\n"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        shown += f"$ {command}\n{done.stdout}"
    return shown


def _main() -> None:
    sys.path.remove(str(Path(__file__).parent))  # no page sees the modules of tests by name
    sys.executable = sys.argv.pop()  # programs that a page runs
    names: dict[str, Any] = {"__name__": "__main__"}
    printed: dict[int, str] = {}
    for block in json.loads(sys.stdin.read()):
        if block["language"] == "python":
            printed[block["line"]] = _run_python(block, names)
        elif block["language"] == "console":
            printed[block["line"]] = _run_commands(block["text"])
        else:
            Path(block["file"]).write_text(block["text"], encoding="utf-8")
    json.dump(printed, sys.stdout)


if __name__ == "__main__":
    _main()
