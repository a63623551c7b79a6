"""Score the sentences of reports on public bugs that were committed before their first run.

`python -m tests.unseen_bugs.score round1` runs each program of a folder in a process of its own,
recorded or imported, and audits it on its inputs. A bug is named if one of the first three
sentences, or the error that refuses the program, has an accepted line (of ONNX: an accepted node).
A fix counts if it is offered with a grade; `--apply` writes its edits into a copy and runs the
folder's check.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("round")
    parser.add_argument("--apply", action="store_true")
    parser.add_argument("--one")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    folder = FOLDER / options.round
    if options.one:
        print(json.dumps(answer(folder / options.one)))
        return
    answers: dict[str, Any] = json.loads((folder / "answers.json").read_text())
    named = bugs = accused = clean = offered = working = 0
    for name, expected in answers.items():
        if options.only not in name:
            continue
        file = name if name.endswith(".py") else f"{name}.py"
        command = [sys.executable, "-W", "ignore", "-m", "tests.unseen_bugs.score"]
        run = subprocess.run(
            [*command, options.round, "--one", file], capture_output=True, text=True, timeout=600
        )
        last = run.stdout.strip().splitlines()[-1:] or ["{}"]
        try:
            found: dict[str, Any] = json.loads(last[0])
        except ValueError:
            found = {}
        if not found:
            error = run.stderr.strip()[-400:]
            found = {"sentences": [], "answers": [], "fixes": [], "error": error}
        if expected["kind"] == "clean":
            clean += 1
            accused += bool(found["answers"])
            verdict = "ACCUSED" if found["answers"] else "quiet"
        else:
            bugs += 1
            is_named = names(folder / file, found, expected)
            named += is_named
            verdict = "named" if is_named else "MISSED"
        print(f"{name}: {verdict}", flush=True)
        for text in [*found["sentences"][:3], *filter(None, [found.get("error")])]:
            print(f"    {text[:600]}")
        if found["fixes"]:
            offered += 1
            print(f"    fix: {found['fixes']}")
            if options.apply and expected["kind"] != "clean":
                works = applied(folder, file, found["fixes"])
                working += works
                print(f"    {'works' if works else 'FAILS'}")
    print(f"{named} of {bugs} named; {accused} of {clean} clean programs accused; ", end="")
    print(f"fixes offered {offered}, work {working}" if options.apply else f"fixes {offered}")


def names(path: Path, found: dict[str, Any], expected: dict[str, Any]) -> bool:
    """Whether one of the first sentences, or else the error, has an accepted line or node."""
    source = [line.strip() for line in path.read_text().splitlines()]
    accepted = [line.strip() for line in expected.get("lines", ())]
    lines = {i for i, line in enumerate(source, 1) if line in accepted}
    text = " ".join(found["sentences"][:3]) or found.get("error", "")
    numbers = {int(x) for x in re.findall(rf"(?:line |{path.name}:)(\d+)", text)}
    nodes = (rf"(?<!\w){re.escape(x)}(?!\w)" for x in expected.get("nodes", ()))
    return bool(lines & numbers) or any(re.search(node, text) for node in nodes)


def applied(folder: Path, file: str, fixes: list[Any]) -> bool:
    """Whether the program with the edits passes the folder's check."""
    lines = (folder / file).read_text().splitlines()
    for line, column, end_line, end_column, text in sorted(fixes, reverse=True):
        whole = lines[line - 1][: column - 1] + text + lines[end_line - 1][end_column - 1 :]
        lines[line - 1 : end_line] = [whole]
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch) / file
        copy.write_text("\n".join(lines))
        command = [sys.executable, "check.py", file, "--fixed-source", str(copy)]
        return not subprocess.run(command, cwd=folder, capture_output=True, timeout=600).returncode


def answer(path: Path) -> dict[str, Any]:
    """Return the sentences of a program's report, those of its audit first, and its fixes."""
    from graphir.errors import GraphirError

    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.insert(0, str(path.parent))
    spec.loader.exec_module(module)
    library = path.stem.partition("_")[0]
    result: dict[str, Any] = {"sentences": [], "answers": [], "fixes": [], "error": ""}
    if library == "clean":
        library = clean_library(module)
    try:
        report = audited(library, module)
    except GraphirError as error:
        result["error"] = " ".join(str(error).split())
        return result
    except Exception as error:  # of any library: what a user sees
        notes = " ".join(getattr(error, "__notes__", ()))
        result["error"] = f"{type(error).__name__}: {str(error)[:300]} {notes[:600]}"
        return result
    result["answers"] = list(map(str, report.answers))
    result["sentences"] = [text for text in report.sentences if " is random: " not in text]
    result["fixes"] = fixes(report, path)
    return result


def fixes(report: Any, path: Path) -> list[Any]:
    """Return the edits of all causes that have a grade: line, column, end, and the text."""
    from graphir.passes.analysis.explanations.edits import combined

    parts = [
        edit
        for cause in (*report.loss_causes, *report.dtype_causes)
        if cause.fix is not None and cause.fix.grade is not None
        for edit in cause.fix.parts
        if Path(edit.place.file).name == path.name
    ]
    return [(*x.place.place[1:], x.text) for x in combined(parts)]


def clean_library(module: Any) -> str:
    if not hasattr(module, "main"):
        return "onnx"
    names = {"torch": "torch", "jax": "jax", "jnp": "jax"}
    return next((library for name, library in names.items() if name in vars(module)), "numpy")


def audited(library: Any, module: Any) -> Any:
    """Return the audit of a program on its inputs, as the command line makes it."""
    from graphir.passes import cast_report
    from graphir.runtime import audit, from_onnx
    from graphir.runtime.sources.programs import import_program, record_program

    if library == "onnx":
        return audit(from_onnx(module.model()), **module.inputs())
    if library != "jax":
        return record_program(module.main, library, module.inputs(), {}).audit()
    graph, values = import_program(module.main, library, module.inputs(), {})
    try:
        return audit(graph, *values)
    except Exception as error:  # the casts remain
        print(f"no audit: {str(error)[:200]}", file=sys.stderr)
        return cast_report(graph)


if __name__ == "__main__":
    main()
