"""Long work: its progress on a terminal, and the partial reports that Ctrl-C leaves."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from graphir.hints import Array
from graphir.runtime import progress, record
from graphir.runtime.progress import Progress, long_work, stage

ROOT = Path(__file__).parents[2]
PROGRAM = """\
import os, signal
import numpy as np

class Cart:
    def __init__(self):
        self.way = np.float32(655360) * np.ones(3, np.float32)

    def drive(self, speed=0.025):
        for step in range(60):
            self.way = self.way + np.float32(speed)
            if step == STOP:
                os.kill(os.getpid(), signal.SIGINT)

cart = Cart()
if __name__ == "__main__":
    cart.drive()
    print(cart.way.sum())
"""
INTERRUPTED_AUDIT = """\
import os, signal, sys
from graphir.runtime.audit.losses import LossySteps
from graphir.runtime.cli.main import main
finish, count = LossySteps.finish, iter(range(10**6))

def finish_or_stop(self, item):
    finish(self, item)
    if next(count) == 40:
        os.kill(os.getpid(), signal.SIGINT)

LossySteps.finish = finish_or_stop
sys.exit(main(sys.argv[1:]))
"""


def ran(*argv: str, cwd: Path) -> tuple[int, str, str]:
    """Run Python in a child process; return its status and what it printed."""
    process = subprocess.run(
        [sys.executable, *argv], cwd=cwd, capture_output=True, text=True, timeout=120,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "NO_COLOR": "1"},
    )  # fmt: skip
    return process.returncode, process.stdout, process.stderr


@pytest.mark.parametrize(
    ("command", "program", "name"),
    [
        ("audit", "carts.py", "carts"),
        ("casts", "carts.py:cart.drive --input 0.025", "drive"),
    ],
)
def test_an_interrupted_program_has_a_report_of_its_steps_so_far(
    command: str, program: str, name: str, tmp_path: Path
) -> None:
    (tmp_path / "carts.py").write_text(PROGRAM.replace("STOP", "50"))
    status, out, err = ran("-m", "graphir", command, *program.split(), cwd=tmp_path)
    assert status == 130
    assert f"graphir: interrupted: {name} runs: " in err and "at carts.py:10" in err
    assert "what comes after was not seen" in err and "Traceback" not in err
    assert f"not recorded: {name} at carts.py:10" in out
    if command == "audit":
        assert "absorption" in out
        assert "self.way: float32, 3 of 3 differ" in out


def test_an_interrupted_audit_has_what_it_measured(tmp_path: Path) -> None:
    (tmp_path / "carts.py").write_text(PROGRAM.replace("STOP", "-1"))
    argv = ("-c", INTERRUPTED_AUDIT, "audit", "carts.py", "--format", "json")
    status, out, err = ran(*argv, cwd=tmp_path)
    assert status == 130
    assert "steps are measured; the others and the errors of results were not measured" in err
    report = json.loads(out)
    assert report["outputs"] == []
    assert any(x["kind"] == "absorption" for x in report["losses"])


def test_a_call_of_the_library_raises_at_ctrl_c() -> None:
    def stops(x: Array) -> None:
        _ = x + np.float32(1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        record(stops, np.ones(3))
    with long_work(io.StringIO()) as work:
        recording = record(stops, np.ones(3))
    assert len(work.interrupted) == 1 and len(recording.notes) == 1


def test_a_terminal_shows_the_innermost_stage_and_is_left_blank(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(progress, "AFTER", 0.01)
    monkeypatch.setattr(progress, "EVERY", 0.01)
    shown, terminal = "graphir: 3 of 9 steps", Terminal()
    outer, inner = (lambda: Progress("outer", "")), (lambda: Progress("3 of 9 steps", ""))
    with long_work(terminal), stage(outer), stage(inner):
        end = time.monotonic() + 10
        while shown not in terminal.getvalue() and time.monotonic() < end:
            time.sleep(0.01)
    assert f"\r{shown}\r" in terminal.getvalue()
    assert terminal.getvalue().endswith(f"\r{' ' * len(shown)}\r")
    with long_work(quiet := io.StringIO()):
        time.sleep(0.05)
    assert not quiet.getvalue()
