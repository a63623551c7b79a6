"""The command `doctor`: what is installed, and which tiers work, a line each.

The versions with which the project was measured are those of its extras, in pyproject.toml or in
the metadata of the installed distribution.
"""

from __future__ import annotations

import argparse
import platform
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from graphir import Graph, GraphError, PromotionRules, ops
from graphir.entry_points import Group, declared_names, load_declared
from graphir.promotion.rules import minor_version
from graphir.rule_reports.tables import aligned
from graphir.runtime.cli.arguments import Status, add_output, output_format, write_text
from graphir.runtime.native.disk_cache import directory, open_folder
from graphir.runtime.native.probe import UnusableError, engine
from graphir.runtime.program import Program
from graphir.runtime.program.tier import tier

Verdict: TypeAlias = Literal["ok", "note", "fails"]

CORE = ("numpy", "ml_dtypes", "networkx")
USES = {
    "llvmlite": "machine code",
    "jax": "from_jax, the JAX target",
    "torch": "from_torch",
    "onnx": "from_onnx, the ONNX target",
    "onnxruntime": "runs of exported models",
    "dask": "the Dask target",
    "ipython": "%%audit and %%casts",
    "pytest": "pytest --casts",
}
"""The optional packages, and what needs each."""

ADDED = {
    "numpy": "a function or keyword that it adds is a call of NumPy, or refused by its name",
    "jax": "a primitive that it adds is computed by JAX as a call, or refused by its name",
    "torch": "an operator that it adds is a call of PyTorch, and a dtype refused by its name",
}
"""The libraries whose rules have releases, and what becomes of what a newer release adds."""

_ROOT = Path(__file__).parents[2]


class Diagnosis(NamedTuple):
    """A line of the report."""

    verdict: Verdict
    subject: str
    text: str


def add_doctor(command: Callable[..., Any]) -> None:
    """Add the command `doctor`; `command` adds a subcommand to the parser."""
    doc = "What is installed and works here, and what to type for the rest; status 1 if it fails."
    add_output(command("doctor", _doctor, doc, ""), ("text",), "text")


def _doctor(args: argparse.Namespace) -> Status:
    """Print a line for each diagnosis; return status 1 if one of the core fails."""
    output_format(args, ("text",), "text")
    diagnoses = [*_versions(), *_optional(), *_tiers(), *_declared(), *_places()]
    write_text("\n".join(aligned(diagnoses)), args)
    return Status.FINDINGS if any(x.verdict == "fails" for x in diagnoses) else Status.FINE


# -- what is installed


def requirements() -> dict[str, str]:
    """Return the versions that the project asks for, such as `>=0.45`, by package."""
    file = _ROOT / "pyproject.toml"
    if file.is_file():
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        extras = project["optional-dependencies"].values()
        lines = [*project["dependencies"], *(line for extra in extras for line in extra)]
    else:
        try:
            lines = metadata.requires("graphir") or []
        except metadata.PackageNotFoundError:
            lines = []
    versions: dict[str, str] = {}
    for line in lines:
        match = re.match(r"([\w.-]+)(?:\[.*?\])?\s*([=<>~!]=?[^;\s]+)?", line)
        if match and (match[2] or match[1] not in versions):
            pin = versions.get(match[1], "").startswith("==")  # a pin says what was measured
            versions[match[1]] = versions[match[1]] if pin else match[2] or ""
    return versions


def _versions() -> Iterator[Diagnosis]:
    version = _version("graphir") or "not installed"
    yield Diagnosis("ok", "graphir", f"{version}, in {_ROOT}")
    old = sys.version_info < (3, 11)
    yield Diagnosis("fails" if old else "ok", "Python", f"{platform.python_version()}")
    for name in CORE:
        yield _package(name, "", "fails")
    config: Any = np.show_config(mode="dicts")  # pyright: ignore[reportUnknownMemberType]
    blas = config.get("Build Dependencies", {}).get("blas", {})
    yield Diagnosis("ok", "BLAS of numpy", f"{blas.get('name', '?')} {blas.get('version', '')}")


def _optional() -> Iterator[Diagnosis]:
    for name, use in USES.items():
        yield _package(name, use, "note")


def _package(name: str, use: str, otherwise: Verdict) -> Diagnosis:
    """Return the diagnosis of a package, or the line to type for one that is missing."""
    bound = requirements().get(name, "")
    version = _version(name)
    if version is None:
        line = f"pip install '{name}{bound}'" if bound else f"pip install {name}"
        need = f", for {use}" if use else ""
        return Diagnosis(otherwise, name, f"not installed{need}: {line}")
    if name in ADDED:
        newest = PromotionRules.find(name)
        measured, followed = [*newest.releases], newest.of_release(version).name
        if minor_version(version) > minor_version(measured[-1]):
            text = f"{version}, newer than {measured[-1]}, the newest that was measured"
            return Diagnosis("note", name, f"{text}: graphs have rules {followed}; {ADDED[name]}")
        if minor_version(version) >= minor_version(measured[0]):
            return Diagnosis("ok", name, f"{version}, rules {followed}")
    if not _is_within(version, bound):
        return Diagnosis(otherwise, name, f"{version}; measured with {name}{bound}")
    return Diagnosis("ok", name, version)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _is_within(version: str, bound: str) -> bool:
    """Whether a version is that of `==`, or at least that of `>=`."""
    parts, least = ([int(x) for x in re.findall(r"\d+", text)] for text in (version, bound))
    return parts[: len(least)] == least if bound.startswith("==") else parts >= least


# -- what works


def _tiers() -> Iterator[Diagnosis]:
    yield _attempt("NumPy tier", partial(_run, "off"), "a region of 3 ops has the values of NumPy")
    if why := tier("auto")[1]:
        yield Diagnosis("note", "native tier", f"no machine code: {why}")
        return
    try:
        engine()
    except UnusableError as error:
        yield Diagnosis("note", "native tier", f"no machine code: {error}")
        return
    text = "a region of 3 ops is machine code, with the values of NumPy"
    yield _attempt("native tier", partial(_run, "now"), text, "note")


def _run(native: Literal["off", "now"]) -> None:
    graph = Graph("doctor", rules="numpy")
    x = graph.input("float32", ("n",), name="x")
    graph.output(ops.sqrt(x * x + 1))
    values = np.linspace(0, 1, 1000, dtype=np.float32)
    program = Program(graph, native=native)
    for _ in range(2):  # the first call compiles
        if not np.array_equal(program(values), np.sqrt(values * values + np.float32(1))):
            raise GraphError("a run has other values than NumPy")
    if native == "now":
        program.ir(0, values)  # raises the reason if the region has no machine code


def _attempt(
    subject: str, run: Callable[[], object], text: str, otherwise: Verdict = "fails"
) -> Diagnosis:
    try:
        run()
    except Exception as error:  # whatever is broken: the report names it
        return Diagnosis(otherwise, subject, f"{type(error).__name__}: {error}")
    return Diagnosis("ok", subject, text)


def _declared() -> Iterator[Diagnosis]:
    groups: tuple[Group, ...] = ("graphir.ops", "graphir.rules")
    for group in groups:
        for name in declared_names(group):
            yield _attempt(f"{group} {name}", partial(load_declared, group, name), "loads", "note")


# -- where


def _places() -> Iterator[Diagnosis]:
    folder, path = open_folder(), directory()
    if folder is None:
        yield Diagnosis("note", "cache", f"{path or 'none'}: switched off, or not the user's alone")
    else:
        yield Diagnosis("ok", "cache", str(path))
