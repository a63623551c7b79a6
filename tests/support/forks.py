"""Python programs in forks of a process that has imported the packages already.

A short program in an interpreter of its own spends nearly all of its time on imports. `executable`
is a command that takes the arguments of Python and runs the program in such a fork: with its own
directory, environment, streams and path of imports, as an interpreter of its own has them.
"""

from __future__ import annotations

import array
import atexit
import contextlib
import gc
import importlib
import json
import os
import runpy
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

_IMPORTED = (
    *("pytest", "numpy", "networkx", "graphir.numpy_api.trace", "graphir.pytest_plugin"),
    *("graphir.passes.reports.html", "graphir.runtime.cli.annotate_and_fix"),
    *("graphir.runtime.cli.rules_and_lattices", "graphir.runtime.jit.jit"),
    *("graphir.runtime.native", "graphir.runtime.testing.run"),
)


@cache
def executable() -> str:
    """The command. The process that forks starts at the first call, and ends with this process."""
    folder = tempfile.mkdtemp()
    script = Path(folder, "python")
    words = shlex.join([sys.executable, "-IS", __file__, f"{folder}/socket"])
    script.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    script.chmod(0o700)
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("GRAPHIR", "PYTHON"))}
    environment |= {"PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{folder}/socket")
        listener.listen()
        number = listener.fileno()
        command = [sys.executable, __file__, str(number)]
        process = subprocess.Popen(command, env=environment, pass_fds=[number])

    def end() -> None:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)

    atexit.register(end)
    return str(script)


def _ask(address: str, arguments: Sequence[str]) -> int:
    """Have a program run in a fork, on the streams of this process; its status."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        message = json.dumps([arguments, os.getcwd(), dict(os.environ)]).encode()
        files = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))]
        connection.sendmsg([len(message).to_bytes(8, "little")], files)
        connection.sendall(message)
        return int(connection.makefile().read() or 1)


def _serve(listener: socket.socket) -> None:
    """Fork for each program that is asked for; return in the forks that run one."""
    for name in _IMPORTED:
        importlib.import_module(name)
    gc.freeze()
    while True:
        connection, _ = listener.accept()
        if not os.fork():
            break
        connection.close()
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
    listener.close()
    size, files, _, _ = socket.recv_fds(connection, 8, 3)
    with connection.makefile("rb") as stream:
        arguments, folder, environment = json.loads(stream.read(int.from_bytes(size, "little")))
    if child := os.fork():
        _, status = os.waitpid(child, 0)
        connection.sendall(str(os.waitstatus_to_exitcode(status)).encode())
        os._exit(0)
    connection.close()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    _run(arguments)


def _run(arguments: Sequence[str]) -> None:
    """Run a program as `python ARGUMENTS` does: `-m MODULE ...`, `-c CODE ...` or `FILE ...`."""
    sys.path[:1] = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    sys.dont_write_bytecode = "PYTHONDONTWRITEBYTECODE" in os.environ
    first, *others = arguments
    if first in ("-m", "-c"):
        name, *others = others
        sys.argv = [first if first == "-c" else name, *others]
        sys.path.insert(0, os.getcwd())
        if first == "-m":
            runpy.run_module(name, run_name="__main__", alter_sys=True)
        else:
            names: dict[str, Any] = {"__name__": "__main__"}
            exec(compile(name, "<string>", "exec"), names)
    else:
        sys.argv = [first, *others]
        sys.path.insert(0, os.path.dirname(os.path.abspath(first)))
        runpy.run_path(first, run_name="__main__")


if __name__ == "__main__":
    where, *words = sys.argv[1:]
    if not where.isdecimal():
        sys.exit(_ask(where, words))
    _serve(socket.socket(fileno=int(where)))
