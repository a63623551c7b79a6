"""Source trials: a program is run with edits in its source, before a fix is called good.

The unchanged program runs twice, each time in a process of its own (runtime.trial_process). If
both give the same bits, the edited program runs. The edits hold if the results that they are to
narrow have the wanted dtype, and an error that its rounding in the program's arithmetic explains,
and every other result has the same bits.
"""

from __future__ import annotations

import io
import os
import pickle
import signal
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from difflib import diff_bytes, unified_diff
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphir.passes.analysis.casts.measured import ExactValue
from graphir.passes.analysis.casts.sites import size_of
from graphir.passes.analysis.explanations.edits import Edit
from graphir.public import DType, ExecutionError, GraphirError
from graphir.runtime import trial_process
from graphir.runtime.audit.trials import eps, most_left
from graphir.runtime.testing import isolation
from graphir.runtime.trial_process import ArrayBytes, Outcome, ProgramName, Request
from graphir.runtime.user_code import INSTALLED
from graphir.source_text import source_line

SECONDS = 60.0
"""The longest run of the unchanged program; an edited one may take 20 times its seconds, or 10."""
LARGE = 0.01
"""The relative error from which a narrow result is refused, except of the narrowest floats."""
MOST_WORST = 32.0
"""The error of the worst element may be so many times the one that the norm may have."""


# -- the text of edited files


class EditedFile(NamedTuple):
    """The bytes of a source file, before and after edits."""

    path: str
    before: bytes
    after: bytes

    @property
    def patch(self) -> bytes:
        """The edits as a unified diff with paths from the working directory, for `patch -p1`."""
        name = Path(os.path.relpath(self.path)).as_posix().encode()
        texts = (self.before.split(b"\n"), self.after.split(b"\n"))
        before, after = (
            [x + b"\n" for x in text[:-1]] + [x for x in text[-1:] if x] for text in texts
        )
        lines = diff_bytes(unified_diff, before, after, b"a/" + name, b"b/" + name)
        return b"".join(x if x.endswith(b"\n") else x + _NO_END for x in lines)

    @property
    def diff(self) -> str:
        """The patch as text."""
        return self.patch.decode(_encoding(self.before).removesuffix("-sig"))


_NO_END = b"\n\\ No newline at end of file\n"


def _encoding(data: bytes) -> str:
    return tokenize.detect_encoding(io.BytesIO(data).readline)[0]


def edited_files(edits: Iterable[Edit]) -> list[EditedFile]:
    """Return the files of edits, with the edits.

    Raises ExecutionError for files that are not the user's, that have changed since Python read
    them, and for edits that overlap.
    """
    by_file: dict[str, list[Edit]] = {}
    for edit in edits:
        path = os.path.realpath(edit.place.source)
        if not os.path.isfile(path) or path.startswith(INSTALLED):
            raise ExecutionError(f"{edit.place} is no line of a file of the program")
        by_file.setdefault(path, []).append(edit)
    return [_edited(path, each) for path, each in by_file.items()]


def _edited(path: str, edits: Sequence[Edit]) -> EditedFile:
    data = Path(path).read_bytes()
    encoding = _encoding(data)
    lines = list(io.StringIO(data.decode(encoding), newline=""))  # as Python counts them
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    text, end = "".join(lines), len(data)
    for edit in sorted(edits, key=lambda x: x.place.place, reverse=True):
        _, line, column, end_line, end_column = edit.place.place
        start, stop = starts[line - 1] + column - 1, starts[end_line - 1] + end_column - 1
        for number in range(line, end_line + 1):
            loaded = source_line(edit.place.source, number)
            if loaded.rstrip("\r\n") != lines[number - 1].rstrip("\r\n"):
                raise ExecutionError(f"{path} has changed since it was loaded", fix="run it again")
        if stop > end:
            raise ExecutionError(f"{edit.place}: two edits of one expression")
        text = text[:start] + _spliced(text[start:stop], edit.text) + text[stop:]
        end = start
    return EditedFile(path, data, text.encode(encoding))


def _spliced(old: str, new: str) -> str:
    """Return the new text of an expression, with the line ends of the old one where both agree."""
    before, after = ([i for i, x in enumerate(text) if not x.isspace()] for text in (old, new))
    most = min(len(before), len(after))
    head = next((i for i in range(most) if old[before[i]] != new[after[i]]), most)
    rest = range(most - head)
    tail = next((i for i in rest if old[before[-1 - i]] != new[after[-1 - i]]), len(rest))
    start, stop = before[head - 1] + 1 if head else 0, before[-tail] if tail else len(old)
    if "#" in old[start:stop]:
        raise ExecutionError("the edited expression has a comment inside")
    first, last = after[head - 1] + 1 if head else 0, after[-tail] if tail else len(new)
    return old[:start] + new[first:last] + old[stop:]


# -- runs


class ProgramRun(NamedTuple):
    """How processes run a program: its name, its arguments, and whether it may do what it does.

    `inputs` are the arguments by position and by name; a ProgramName among them is an object.
    """

    program: ProgramName
    inputs: tuple[Sequence[Any], Mapping[str, Any]] = ((), {})
    arguments: tuple[str, ...] = ()
    may_act: bool = False

    def outcome(self, texts: Mapping[str, bytes], seconds: float) -> Outcome:
        """Run the program with these texts of its files in a process, for so many seconds."""
        name, file, attributes = self.program
        if not attributes and file not in texts:
            texts = {**texts, file: Path(file).read_bytes()}
        inputs = io.BytesIO()
        _Inputs(inputs).dump(self.inputs)
        path = tuple(folder or os.getcwd() for folder in sys.path)
        watch = "" if self.may_act else isolation.__file__
        request = Request(
            *((name, file, attributes), texts, self.arguments, inputs.getvalue()),
            *(path, INSTALLED, watch),
        )
        with TemporaryDirectory(prefix="graphir-", ignore_cleanup_errors=True) as folder:
            Path(folder, "request").write_bytes(pickle.dumps(tuple(request)))
            return _outcome(folder, seconds)


class _Inputs(pickle.Pickler):
    def persistent_id(self, obj: Any) -> Any:
        return tuple(obj) if isinstance(obj, ProgramName) else None


def _outcome(folder: str, seconds: float) -> Outcome:
    """Run the request in a folder; the process, and those that it started, have ended then."""
    process = subprocess.Popen(
        [sys.executable, "-B", "-P", trial_process.__file__, folder],
        env={"MPLBACKEND": "Agg", **os.environ, "TMPDIR": folder},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        status = process.wait(seconds)
    except subprocess.TimeoutExpired:
        return Outcome(f"it runs for more than {seconds:.0f} s")
    finally:
        with suppress(OSError, AttributeError):  # it has ended, or the platform has no groups
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()
    with suppress(OSError, EOFError, pickle.UnpicklingError):
        fields = pickle.loads(Path(folder, "outcome").read_bytes())
        arrays = tuple(ArrayBytes(*x) for x in fields.pop("arrays"))
        return Outcome(arrays=arrays, **fields)
    name = signal.Signals(-status).name if status < 0 else f"status {status}"
    return Outcome(f"the process ended by itself ({name})")


# -- verdicts


class WrongOutput(NamedTuple):
    """An output with its exact value, its error in the norm, and whether edits are to mend it."""

    dtype: str
    shape: tuple[int, ...]
    exact: ExactValue
    error: float
    is_mended: bool


class Promise(NamedTuple):
    """What edits are to do to `outputs`, the numbers of results in the graph.

    So many results of each dtype become narrower, of a `wanted` dtype; or the errors of `wrong`
    results go, and the others of these do not grow.
    """

    outputs: frozenset[int]
    narrowed: Mapping[str, int] = MappingProxyType({})
    wanted: frozenset[DType] = frozenset()
    wrong: Sequence[WrongOutput] = ()


class OutputChange(NamedTuple):
    """A result before and after edits: its dtypes and, if the bits differ, its errors in the norm.

    A narrow result is compared with the wide one, a wrong one with the exact one.
    """

    name: str
    dtype: str
    dtype_before: str
    error: float | None = None
    error_before: float | None = None


class Trial(NamedTuple):
    """A run with edits: the files and the results, or why the edits are refused."""

    problem: str
    files: tuple[EditedFile, ...] = ()
    outputs: tuple[OutputChange, ...] = ()


class SourceTrials:
    """The trials of edits of one program.

    `rounding` returns the relative error of outputs of the program with all its floats of a dtype.
    """

    def __init__(
        self, run: ProgramRun, rounding: Callable[[DType, Collection[int]], float]
    ) -> None:
        self._run, self._rounding = run, rounding
        self._first = Outcome("the unchanged program has not run")

    def unchanged(self, edits: Iterable[Edit]) -> str:
        """Run the program without edits twice; return why no trial is possible, or ""."""
        paths = {os.path.realpath(edit.place.source) for edit in edits}
        texts = {path: Path(path).read_bytes() for path in paths if os.path.isfile(path)}
        first = self._first = self._run.outcome(texts, SECONDS)
        if first.problem:
            ending = "; --rerun runs it nevertheless" if first.acts else " before any edit"
            return f"{first.problem}{ending}"
        second = self._run.outcome(texts, SECONDS)
        if first._replace(seconds=0.0) == second._replace(seconds=0.0):
            return ""
        return ": ".join(filter(None, ("a second run differs", second.problem)))

    def tried(self, edits: Sequence[Edit], promise: Promise) -> Trial:
        """Run the program with edits."""
        try:
            files = tuple(edited_files(edits))
            seconds = min(SECONDS, 10 + 20 * self._first.seconds)
            outcome = self._run.outcome({x.path: x.after for x in files}, seconds)
            if outcome.problem:
                return Trial(outcome.problem)
            return Trial("", files, tuple(self._changes(outcome, promise)))
        except GraphirError as error:
            return Trial(str(error))

    def _changes(self, outcome: Outcome, promise: Promise) -> Iterator[OutputChange]:
        """Yield the results before and after; ExecutionError if the promise does not hold."""
        before = self._first
        if len(before.arrays) != len(outcome.arrays) or before.rest != outcome.rest:
            raise ExecutionError("a part of the result that is no array changes")
        narrowed, mended = Counter[str](), 0
        for i, (old, new) in enumerate(zip(before.arrays, outcome.arrays, strict=True)):
            name = "the result" if before.results == 1 > i else f"output{i}"
            name = name if i < before.results else f"array {i - before.results} of the arguments"
            change = OutputChange(name, new.dtype, old.dtype)
            if old != new and promise.wrong:
                output, error, error_before = _mended(name, old, new, promise.wrong)
                mended += output.is_mended
                change = change._replace(error=error, error_before=error_before)
            elif old != new:
                change = change._replace(error=self._narrowed(name, old, new, promise))
                narrowed[old.dtype] += 1
            if old != new or i < before.results:
                yield change
        if mended < sum(x.is_mended for x in promise.wrong):
            raise ExecutionError("the error of a result stays")
        for dtype, count in promise.narrowed.items():
            if narrowed[dtype] < count:
                raise ExecutionError(f"{count - narrowed[dtype]} of {count} results stay {dtype}")

    def _narrowed(self, name: str, old: ArrayBytes, new: ArrayBytes, promise: Promise) -> float:
        """Return the error of a result that edits narrow; ExecutionError if it is too large."""
        dtype = DType(new.dtype) if new.dtype in {str(x) for x in promise.wanted} else None
        if dtype is None or old.dtype not in promise.narrowed or old.shape != new.shape:
            raise ExecutionError(f"{name} changes: {old.dtype} to {new.dtype}")
        error, worst = _errors(old, new)
        unit = 2.0**-dtype.precision if dtype.is_inexact else 0.0
        most = 4 * unit
        if dtype.is_inexact and (error > most or worst > MOST_WORST * most):
            rounding = self._rounding(dtype.part, promise.outputs)
            most = min(max(most, 2 * rounding), max(LARGE, most))
        if error > most or worst > MOST_WORST * most:
            raise ExecutionError(
                f"{name} has an error of {error:.2g}, and {worst:.2g} in its worst element; the "
                f"rounding of {dtype} in the program explains {most:.2g}"
            )
        return error


def _mended(
    name: str, old: ArrayBytes, new: ArrayBytes, wrong: Sequence[WrongOutput]
) -> tuple[WrongOutput, float, float]:
    """Return a wrong result with its errors after edits and before; ExecutionError if it grows."""
    for output in wrong:
        if not (old.dtype == output.dtype and old.shape == new.shape == output.shape):
            continue
        errors = [size_of(output.exact.error_of(_values(x))) for x in (new, old)]
        if errors[1] == output.error or abs(errors[1] - output.error) <= 0.1 * output.error:
            dtype = DType(old.dtype)
            kept = max(errors[1], eps(dtype))
            most = most_left(errors[1], dtype) if output.is_mended else kept
            if errors[0] > most or np.isinf(errors[0]):
                raise ExecutionError(
                    f"the error of {name} is {errors[0]:.2g}, and {errors[1]:.2g} without the edit"
                )
            return output, errors[0], errors[1]
    raise ExecutionError(f"{name} changes, and its exact value is unknown")


def _errors(old: ArrayBytes, new: ArrayBytes) -> tuple[float, float]:
    """Return the relative error in the norm, and the largest of an element.

    That of an element is relative to itself or, near a zero, to the lower quartile of magnitudes.
    Both are infinite if an element is no longer finite.
    """
    before, after = _values(old).reshape(-1), _values(new).reshape(-1)
    if np.array_equal(before, after):
        return 0.0, 0.0
    is_complex = any(DType(x.dtype).is_complex for x in (old, new))
    before, after = (
        x.astype(np.clongdouble if is_complex else np.longdouble) for x in (before, after)
    )
    finite = np.isfinite(before)
    is_same = np.array_equal(before[~finite], after[~finite], equal_nan=True)
    if not is_same or not np.isfinite(after[finite]).all():
        return np.inf, np.inf
    sizes, differences = np.abs(before[finite]), np.abs(after[finite] - before[finite])
    typical = np.quantile(sizes, 0.25, method="lower") if sizes.size else 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(differences, differences / np.maximum(sizes, typical), 0.0)
        scale = sizes.max(initial=0.0) or 1.0
        norm = np.linalg.norm(differences / scale) / np.linalg.norm(sizes / scale)
    return float(norm), float(relative.max(initial=0.0))


def _values(array: ArrayBytes) -> NDArray[Any]:
    return np.frombuffer(array.data, DType(array.dtype).storage).reshape(array.shape)
