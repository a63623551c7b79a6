"""The test suite of a package with the pytest plugin and without it: outcomes and times.

    python -m tests.benchmarks.plugin_suites FOLDER --package NAME [--pytest "-k one tests"]

FOLDER is where the suite runs, such as an unpacked source distribution.
Runs alternate without and with `--casts=NAME`, each in a process of its own. Prints tests whose
outcome the plugin changed, the times of both, and the ratio of their medians; the status is 1 if
an outcome changed.
"""

from __future__ import annotations

import argparse
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[2]

Outcomes = dict[str, str]

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
    """One run of the suite, with the plugin if `package` is not empty, and its seconds."""
    report = log.with_suffix(".xml")
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}"]
    command += ["-p", "graphir.pytest_plugin", f"--casts={package}"] if package else []
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    programs = os.pathsep.join([str(Path(python).parent), os.environ["PATH"]])
    start = time.perf_counter()
    with log.open("w") as output:
        subprocess.run(
            [*command, *arguments],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": path, "PATH": programs},
            stdout=output,
            stderr=subprocess.STDOUT,
            check=False,
        )
    return outcomes(report), time.perf_counter() - start


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
