"""Drawn programs: their statements, their source text, their outcome, and smaller ones that fail.

A program is a list of statements over the arguments `x0`, `x1`, ... and the variables `v0`, `v1`,
..., rendered as source text. A value that a library does not compute exactly stands between marks,
`~(jnp.sin(x0))~`. Plain text drops the marks. Noisy text calls `noise` there, which moves each
element by some ulps: the spread of a few noisy runs is the error bound of each element, with the
condition of all that follows. `~~(` marks a function that cancels inside, such as gelu: its value
also moves by some eps of one; a line `~!x0` marks a tensor that the line before writes.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import ml_dtypes
import numpy as np

SPREADS = 4.0  # spreads of the noisy runs that an inexact element may be off
ULPS = 4.0  # ulps of its own dtype that an inexact element may be off besides
TRIALS = 40  # runs that the reduction of one program may take
_MARKS = re.compile(r"~~\(|~\(|\)~|~!")


@dataclass(frozen=True)
class Statement:
    """Source lines that define or write `names`, from the variables `reads`."""

    names: tuple[str, ...]
    text: str
    reads: tuple[str, ...]
    tags: tuple[str, ...]
    alias: str = ""  # the variable whose memory the names share
    setup: str = ""  # lines that run once, before the function: modules
    loose: bool = False  # inexact without marks

    @property
    def inexact(self) -> bool:
        return self.loose or bool(_MARKS.search(self.text))


@dataclass(frozen=True)
class Program:
    """A drawn function: arguments, statements and outputs, and the mode it runs in."""

    seed: int
    header: str
    arguments: tuple[str, ...]  # source of each argument's value
    statements: tuple[Statement, ...]
    outputs: tuple[str, ...]
    mode: str
    refusal: bool = False  # the library refuses its last statement

    @property
    def tags(self) -> list[str]:
        tags = {tag for statement in self.statements for tag in statement.tags}
        return sorted({*tags, f"mode {self.mode}"})

    def inexact_outputs(self) -> set[str]:
        """Outputs that depend on a value within marks; writes reach all names of one memory."""
        families: dict[str, set[str]] = {}
        inexact: set[str] = set()
        for statement in self.statements:
            for name in statement.names:
                root = statement.alias or name
                families.setdefault(name, families.setdefault(root, {root})).add(name)
            if statement.inexact or inexact.intersection(statement.reads):
                for name in statement.names:
                    inexact |= families[name]
        return inexact.intersection(self.outputs)

    def text(self, noisy: bool = False) -> str:
        setups = [statement.setup for statement in self.statements if statement.setup]
        body = "\n".join(statement.text for statement in self.statements)
        body = render_marks(body, noisy) + f"\nreturn ({', '.join(self.outputs)},)"
        names = ", ".join(f"x{index}" for index in range(len(self.arguments)))
        values = "\n".join(f"        {value}," for value in self.arguments)
        lines = [self.header, ""]
        if setups:
            setup = "\n".join(["super().__init__()", "torch.manual_seed(0)", *setups])
            lines += ["", "class Net(torch.nn.Module):", "    def __init__(self):"]
            lines += [indent(setup, 8), "", f"    def forward(self, {names}):", indent(body, 8)]
        else:
            lines += ["", f"def f({names}):", indent(body, 4)]
        lines += ["", "", "def arguments():", "    return (", values, "    )", ""]
        if setups:
            lines += ["", "f = Net()", ""]
        return "\n".join(lines)


def indent(text: str, columns: int) -> str:
    return "\n".join(" " * columns + line if line else line for line in text.split("\n"))


def render_marks(text: str, noisy: bool) -> str:
    text = re.sub(r"~!(\w+)", r"noise_(\1)", text) if noisy else re.sub(r"\n *~!\w+", "", text)
    text = text.replace("~~(", "wide(" if noisy else "(").replace("~(", "noise(" if noisy else "(")
    text = text.replace(")~", ")")
    return text if noisy else re.sub(r"= \(([\w.]+\([^()]*\))\)$", r"= \1", text, flags=re.M)


def load_program(program: Program, path: str, **names: Any) -> dict[str, Any]:
    """The namespace of a program's text, written to `path` so that errors show its lines."""
    text = program.text(noisy=bool(names))
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    namespace: dict[str, Any] = {"__name__": f"program_{program.seed}", "__file__": path, **names}
    exec(compile(text, path, "exec"), namespace)
    return namespace


@dataclass
class Outcome:
    """Status (equal, refused, differ, crashed, invalid), kind and detail of one run."""

    status: str
    kind: str = ""
    detail: str = ""
    culprits: list[str] = field(default_factory=list)

    @property
    def identity(self) -> tuple[str, str, str]:
        text = self.detail if self.status in ("refused", "crashed") else ""
        return self.status, self.kind, normalized(text)


def normalized(text: str) -> str:
    """A message without names, numbers and paths, so that equal causes group."""
    text = re.sub(r"\S*program_\d+\S*", "PROGRAM", text)
    text = re.sub(r"\b([vxwncm])\d+\b", r"\1", text)
    return re.sub(r"-?\d+(\.\d+)?(e[+-]?\d+)?", "N", text)[:160]


def as_parts(array: np.ndarray) -> np.ndarray:
    """Complex numbers as a last axis of two; bool as uint8; else the array itself."""
    array = np.ascontiguousarray(array).reshape(array.shape)
    if array.dtype.kind == "c":
        return np.stack([array.real, array.imag], -1)
    return array.astype(np.uint8) if array.dtype.kind == "b" else array


def is_floating(array: np.ndarray) -> bool:
    return array.dtype.kind == "f" or array.dtype == ml_dtypes.bfloat16


def same_bits(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Elements of the same bits; any NaN is any other."""
    if not is_floating(first):
        return np.asarray(first == second)
    bits = np.dtype(f"u{first.dtype.itemsize}")
    both_nan = np.isnan(first) & np.isnan(second)
    return np.asarray((first.view(bits) == second.view(bits)) | both_nan)


def _eps(array: np.ndarray) -> float:
    return float(ml_dtypes.finfo(array.dtype).eps) if is_floating(array) else 0.0


def within_bound(value: np.ndarray, wanted: np.ndarray, runs: Sequence[np.ndarray]) -> np.ndarray:
    """Elements within the spread of noisy runs, or that the runs do not determine."""
    wide = np.longdouble
    center, value = wanted.astype(wide), value.astype(wide)
    if not runs:
        noisy = np.stack([center * (1 + 64 * _eps(wanted)), center])
    else:
        noisy = np.stack([run.astype(wide) for run in runs])
    with np.errstate(all="ignore"):
        spread = np.abs(noisy - center).max(0)
        stable = np.isfinite(noisy).all(0) & np.isfinite(center)
        alike = (noisy == center).all(0) | (np.isnan(noisy).all(0) & np.isnan(center))
        tiny = float(ml_dtypes.finfo(wanted.dtype).tiny) if is_floating(wanted) else 0.0
        bound = SPREADS * spread + ULPS * _eps(wanted) * np.abs(center) + tiny
        near = np.abs(value - center) <= bound
    equal = (value == center) | (np.isnan(value) & np.isnan(center))
    return np.where(stable, near, equal | ~alike)


Leaves = Sequence[np.ndarray]


def compare_outputs(
    program: Program,
    value: Leaves,
    references: Sequence[Leaves],
    noisy_runs: Callable[[], Sequence[Leaves]],
) -> Outcome:
    """Compare each output's dtype, shape and values with the first reference, or any other."""
    wanted = references[0]
    if len(value) != len(wanted):
        return Outcome("differ", "number of outputs", f"{len(value)}, not {len(wanted)}")
    inexact = program.inexact_outputs()
    runs: Sequence[Leaves] | None = None
    for index, name in enumerate(program.outputs):
        got, want = value[index], wanted[index]
        if got.dtype != want.dtype:
            return Outcome("differ", "dtype", f"{name}: {got.dtype}, not {want.dtype}", [name])
        if got.shape != want.shape:
            return Outcome("differ", "shape", f"{name}: {got.shape}, not {want.shape}", [name])
        parts = [as_parts(reference[index]) for reference in references]
        good = np.any([same_bits(as_parts(got), part) for part in parts], axis=0)
        if name in inexact and not good.all():
            runs = noisy_runs() if runs is None else runs
            noisy = [as_parts(run[index]) for run in runs if run[index].shape == want.shape]
            noisy += parts[1:] if noisy else []
            good = good | within_bound(as_parts(got), parts[0], noisy)
        if not good.all():
            kind = "value, within a bound" if name in inexact else "value, bit for bit"
            detail = _describe(name, as_parts(got), parts[0], good)
            return Outcome("differ", f"{kind}, {want.dtype}", detail, [name])
    return Outcome("equal")


def _describe(name: str, got: np.ndarray, want: np.ndarray, good: np.ndarray) -> str:
    place = tuple(np.argwhere(~good)[0])
    bad = int((~good).sum())
    where = f"{name}[{', '.join(map(str, place))}]"
    return f"{where}: {got[place]!r}, not {want[place]!r} ({bad} of {good.size} elements)"


def shrink(program: Program, run: Callable[[Program], Outcome], outcome: Outcome) -> Program:
    """A program with fewer outputs and statements, and the same kind of failure."""
    trials = itertools.count()

    def fails(smaller: Program) -> bool:
        return next(trials) < TRIALS and run(smaller).identity == outcome.identity

    if not program.refusal:
        singles = sorted(program.outputs, key=lambda name: name not in outcome.culprits)
        for name in singles if len(singles) > 1 else ():
            smaller = drop_dead(replace(program, outputs=(name,)))
            if fails(smaller):
                program = smaller
                break
        for statement in program.statements:
            smaller = drop_dead(replace(program, outputs=statement.names[-1:]))
            if len(smaller.statements) < len(program.statements) and fails(smaller):
                program = smaller
                break
    for statement in reversed(program.statements):
        kept = tuple(other for other in program.statements if other is not statement)
        smaller = replace(program, statements=kept)
        if kept and not _reads_undefined(smaller) and fails(smaller):
            program = smaller
    return program


def _reads_undefined(program: Program) -> bool:
    """Whether a statement or an output reads a variable that no statement defines."""
    known = {f"x{index}" for index in range(len(program.arguments))}
    for statement in program.statements:
        if not known.issuperset(statement.reads):
            return True
        known.update(statement.names)
    return not known.issuperset(program.outputs)


def drop_dead(program: Program) -> Program:
    """The program without statements that its outputs do not depend on."""
    memory = {name: s.alias for s in program.statements if s.alias for name in s.names}
    needed = _family(memory, program.outputs)
    kept: list[Statement] = []
    for statement in reversed(program.statements):
        if needed.intersection(statement.names):
            kept.append(statement)
            needed.update(statement.reads)
            needed |= _family(memory, needed)
    return replace(program, statements=tuple(reversed(kept)))


def _family(memory: dict[str, str], names: Iterable[str]) -> set[str]:
    """All names of the memory that the names share."""

    def root(name: str) -> str:
        while name in memory and memory[name] != name:
            name = memory[name]
        return name

    roots = {root(name) for name in names}
    return {*names, *roots, *(name for name in memory if root(name) in roots)}


def compare_leaves(got: Leaves, wanted: Leaves, bound: float) -> str:
    """What is off between two lists of arrays, by more than `bound` of the largest magnitude."""
    if len(got) != len(wanted):
        return f"{len(got)} results, not {len(wanted)}"
    for index, (value, want) in enumerate(zip(got, wanted, strict=True)):
        if value.dtype != want.dtype or value.shape != want.shape:
            types = f"{value.dtype}{list(value.shape)}, not {want.dtype}{list(want.shape)}"
            return f"result {index}: {types}"
        if not is_floating(want):
            if not np.array_equal(value, want):
                return f"result {index}: {(value != want).sum()} of {want.size} numbers differ"
            continue
        exact = want.astype("float64")
        largest = np.abs(exact[np.isfinite(exact)]).max(initial=0.0)
        with np.errstate(invalid="ignore"):
            error = np.abs(value.astype("float64") - exact)
        off = ~((error <= bound * largest) | same_bits(value, want))
        if off.any():
            figure = error[off].max() / max(largest, 1e-30)
            return f"result {index}: {off.sum()} of {want.size} are off, by {figure:.2g}"
    return ""


def split_table(table: str) -> list[str]:
    entries = table.replace("\\|", "\0").replace("\n", "|").split("|")
    return [entry.replace("\0", "|").strip() for entry in entries if entry.strip()]


def substitute(template: str, **texts: str) -> str:
    """Replace the capitals X, Y, A, D, S that stand alone."""
    for letter, text in texts.items():
        pieces: list[str] = []
        for index, char in enumerate(template):
            before = template[index - 1] if index else " "
            after = template[index + 1] if index + 1 < len(template) else " "
            alone = char == letter and not (before.isalnum() or before in "._" or after.isalnum())
            pieces.append("\1" if alone else char)
        template = "".join(pieces).replace("\1", text)
    return template


def draw_number(rng: random.Random, dtype: str, chance: float, large: float) -> Any:
    """A number for an array: with this chance a special one, `large` among those of floats."""
    special = rng.random() < chance
    if dtype == "bool":
        return rng.random() < 0.5
    if dtype.startswith("uint"):
        return rng.choice([200, 255, 127]) if special else rng.randint(0, 9)
    if dtype.startswith("int"):
        edges = [127, -128, 100] if dtype == "int8" else [1000, -32768, 32767]
        edges += [16777217, 2147483647] if dtype in ("int32", "int64") else []
        return rng.choice(edges) if special else rng.randint(-5, 9)
    if dtype.startswith("complex"):
        return complex(round(rng.uniform(-2, 2), 3), round(rng.uniform(-2, 2), 3))
    values = [float("inf"), float("nan"), -0.0, 0.0, 300.0, 1e-6, large, -1e4]
    return rng.choice(values) if special else round(rng.gauss(0.3, 1.5), 4)
