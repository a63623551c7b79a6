"""The test suite of a package with the pytest plugin and without it: outcomes and times.

    python -m tests.benchmarks.plugin_suites FOLDER --package NAME [--pytest "-k one tests"]

FOLDER is where the suite runs, such as an unpacked source distribution.
Runs alternate without and with `--casts=NAME`, each in a process of its own, with one thread of
OpenBLAS. Prints tests whose outcome the plugin changed, the times of both, and the ratio of their
medians; the status is 1 if an outcome changed. Times are the processor's seconds of all processes,
shadows too, which other work on the machine changes least; on Linux, where orphans have a reaper.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import resource
import shlex
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[2]

Outcomes = dict[str, str]

_SET_CHILD_SUBREAPER = 36

KINDS = ("failure", "error", "skipped")


def outcomes(report: Path) -> Outcomes:
    """The outcome of each test by node id: both outcomes if its teardown fails too."""
    results: Outcomes = {}
    for case in ElementTree.parse(report).iter("testcase"):
        node = f"{case.get('classname')}::{case.get('name')}"
        outcome = " ".join(
            f"{child.tag}:{child.get('type')}" for child in case if child.tag in KINDS
        )
        results[node] = f"{results.get(node, '')} {outcome or 'passed'}".strip()
    return results


def run_suite(
    folder: Path, python: str, package: str, arguments: list[str], log: Path
) -> tuple[Outcomes, float]:
    """One run of the suite, with the plugin if `package` is not empty, and its processor time."""
    report = log.with_suffix(".xml")
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
    command += ["-p", "graphir.pytest_plugin", f"--casts={package}"] if package else []
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    programs = os.pathsep.join([str(Path(python).parent), os.environ["PATH"]])
    start = processor_time()
    with log.open("w") as output:
        subprocess.run(
            [*command, *arguments],
            cwd=folder,
            env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": path, "PATH": programs},
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    return outcomes(report), processor_time() - start


def processor_time() -> float:
    """The processor's seconds of all children of this process, which have ended or end now."""
    with contextlib.suppress(ChildProcessError):
        while True:  # shadows are orphans
            os.wait()
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> int:
    """Compare the suites, and print what the plugin changed and what it cost."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--package", required=True)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--logs", type=Path, help="where outputs and reports of the runs are kept")
    parser.add_argument("--pytest", default="", help="further arguments of pytest, as one text")
    options = parser.parse_args()
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    logs = options.logs or Path(tempfile.mkdtemp())
    logs.mkdir(parents=True, exist_ok=True)
    times: dict[str, list[float]] = {"without": [], "with": []}
    plain: list[Outcomes] = []
    changed: set[str] = set()
    for run in range(options.runs):
        for state, package in (("without", ""), ("with", options.package)):
            log = logs / f"{options.package}-{run}-{state}.log"
            results, seconds = run_suite(
                options.folder, options.python, package, shlex.split(options.pytest), log
            )
            times[state].append(seconds)
            if package:
                before = plain[-1]
                differences = before.items() ^ results.items()
                for node in sorted({node for node, _ in differences}):
                    changed.add(node)
                    print(f"{node}: {before.get(node)} -> {results.get(node)}", flush=True)
            else:
                plain.append(results)
            print(f"{state} the plugin: {len(results)} tests in {seconds:.1f} s", flush=True)
    unstable = {
        node for node, _ in set.union(*(set(plain[0].items()) ^ set(r.items()) for r in plain))
    }
    without, with_plugin = (statistics.median(times[state]) for state in times)
    print(f"{len(plain[0])} tests, {len(changed - unstable)} changed by the plugin", end="; ")
    print(f"{len(unstable)} differ between runs without it")
    print(f"{without:.1f} s without, {with_plugin:.1f} s with: {with_plugin / without:.2f} times")
    return int(bool(changed - unstable))


if __name__ == "__main__":
    sys.exit(main())
