"""Score what `graphir audit SCRIPT.py` prints in a terminal of 80 columns, for everyday scripts.

`python -m tests.unseen_bugs.scripts everyday20` prints for each script the lines of its output, and
whether the first three name an accepted line, or, of a clean one, whether they accuse any. The
set was committed with its answers before the first run.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import sys
import tempfile
import termios
from pathlib import Path

FOLDER = Path(__file__).parent
LINES, COLUMNS = 50, 80


def printed(script: Path) -> tuple[int, list[str]]:
    """Return the status of an audit of a script, and the lines that a terminal shows of it."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    command = [sys.executable, "-m", "graphir", "audit", script.name]
    environment = os.environ | {
        "NO_COLOR": "1",
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": str(FOLDER.parents[1]),
    }
    with tempfile.TemporaryFile() as noise:
        process = subprocess.Popen(
            command, cwd=script.parent, env=environment, stdout=theirs, stderr=noise
        )
        os.close(theirs)
        text = b""
        try:
            while part := os.read(ours, 65536):
                text += part
        except OSError:  # the process closed its end
            pass
        os.close(ours)
        return process.wait(), text.decode().replace("\r", "").rstrip("\n").split("\n")


def numbers_of(script: Path, texts: list[str]) -> set[int]:
    """Return the numbers of the accepted lines of a script."""
    source = script.read_text().split("\n")
    return {i for i, line in enumerate(source, 1) if line.strip() in texts}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("set")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    folder = FOLDER / options.set
    answers = json.loads((folder / "answers.json").read_text())
    named = quiet = short = whole = count = 0
    for name, answer in answers.items():
        if options.only not in name:
            continue
        count += 1
        script = folder / "scripts" / name
        status, lines = printed(script)
        found = {int(x) for line in lines[:3] for x in re.findall(r"\bline (\d+)", line)}
        is_fault = answer["kind"] != "clean"
        is_accused = any("because line" in x or x.startswith("  write") for x in lines)
        right = status == 0 and not is_accused
        if is_fault:
            right = bool(found & numbers_of(script, answer["lines"]))
        named += is_fault and right
        quiet += not is_fault and right
        short += len(lines) <= 24
        table = [x for x in lines if re.match(r"\S*\.py\S*\s{2,}", x)]
        cut = [x for x in table if not re.match(r"\S*\.py:\d+", x)]
        whole += not cut
        verdict = "right" if right else "WRONG"
        print(f"{name:24} {verdict} status {status} lines {len(lines)} cut {len(cut)}: {lines[0]}")
    print(
        f"{count} scripts: {named} named, {quiet} quiet, {short} short, {whole} with whole places"
    )


if __name__ == "__main__":
    main()
