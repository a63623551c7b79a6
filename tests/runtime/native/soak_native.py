"""Machine code made, shared, let go and lost, for long.

`python -m tests.runtime.native.soak_native [--graphs N]`.
Memory after each tenth of the graphs is printed; it must level off. Then processes are killed while
they write their cache, and those that follow must be right.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from typing import Any

import numpy as np

from graphir import Graph
from graphir.runtime import Program

VALUES = np.linspace(-3, 3, 100, dtype=np.float32)


def chain(number: int) -> Graph:
    """One of many different graphs."""
    graph = Graph("chain")
    x = graph.input("float32", ("n",), name="x")
    graph.output((x * (1 + number / 1024) + number) * x - number % 7)
    return graph


def wanted(number: int, x: Any = VALUES) -> Any:
    """What it computes of some values."""
    one = np.float32
    return (x * one(1 + number / 1024) + one(number)) * x - one(number % 7)


def is_native(program: Program) -> bool:
    """Whether the next call of a program is machine code."""
    return program.machine_code is not None


def right(program: Program, number: int) -> bool:
    """Whether three calls, of which the last is native, give the same bits as NumPy."""
    return all(program(VALUES).tobytes() == wanted(number).tobytes() for _ in range(3))


def resident() -> int:
    """The memory of this process, in KB."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


def many(graphs: int) -> list[int]:
    """Memory after each tenth of so many graphs, whose programs die."""
    found: list[int] = []
    for number in range(graphs):
        program = Program(chain(number), native="now")
        assert right(program, number)
        assert is_native(program)
        if number % (graphs // 10) == graphs // 10 - 1:
            found.append(resident())
    return found


def at_once(threads: int, seconds: float) -> int:
    """The calls of many threads that compile and call for so long, all of which were right."""
    calls, wrong = [0] * threads, list[int]()
    shared = [Program(chain(number), native="now") for number in range(threads)]
    end = time.monotonic() + seconds

    def work(thread: int) -> None:
        made = random.Random(thread)
        while (not calls[thread] or time.monotonic() < end) and not wrong:
            number = made.randrange(3 * threads)
            program = shared[number] if number < threads else Program(chain(number), native="now")
            if not right(program, number):
                wrong.append(number)
            calls[thread] += 1

    workers = [threading.Thread(target=work, args=(thread,)) for thread in range(threads)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    assert not wrong, wrong
    return sum(calls)


_WRITER = """
from tests.runtime.native.soak_native import *
import sys
for number in range(int(sys.argv[1]), int(sys.argv[1]) + 40):
    program = Program(chain(number), native="now")
    assert right(program, number) and is_native(program), number
"""


def killed(times: int, folder: str) -> None:
    """Kill writers of a cache at any moment; one that then runs to its end must be right."""
    settings = os.environ | {"GRAPHIR_NATIVE_CACHE": folder}
    for turn in range(times):
        start = turn // 5 * 20
        command = [sys.executable, "-X", "faulthandler", "-c", _WRITER, str(start)]
        process = subprocess.Popen(command, env=settings)
        time.sleep(random.uniform(0.2, 0.8))
        process.kill()
        process.wait()
        if turn % 5 == 4:
            subprocess.run(command, env=settings, check=True)


def main() -> None:
    """All of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=10_000)
    parser.add_argument("--seconds", type=float, default=60)
    given = parser.parse_args()
    faulthandler.enable()
    print("megabytes:", [size >> 10 for size in many(given.graphs)])
    print("64 threads:", at_once(64, given.seconds), "calls in turn, all right")
    with tempfile.TemporaryDirectory() as folder:
        killed(int(given.seconds), folder)
        print(len(os.listdir(folder)), "files after writers were killed")


if __name__ == "__main__":
    main()
