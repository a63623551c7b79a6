"""The process of a trial: it runs a program once, from given texts of its files.

The file runs by its path and imports nothing of the project, so that a run takes 0.2 s and not 1.2.
Files whose text is edited are compiled from memory: nothing on the disk changes. Unless the user
allows it, the process ends before the program writes a file outside of its temporary folder, uses a
socket, or starts a thread or a process.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import io
import linecache
import os
import pickle
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import Any, NamedTuple, NoReturn, cast

MOST_BYTES = 1 << 28
"""The largest result of a program that trials compare."""


class ProgramName(NamedTuple):
    """An object of a module: of a file, unless `file` is empty; a script, if `name` is empty."""

    module: str
    file: str
    name: str


class Request(NamedTuple):
    """What a process is to run: see `runtime.source_trials.ProgramRun`.

    `texts` has sources by their resolved paths, `inputs` the pickled arguments. `installed` are the
    starts of files that are not the user's. `isolation` is the file of `runtime.testing.isolation`,
    or empty if the program may do whatever it does.
    """

    program: tuple[str, str, str]
    texts: Mapping[str, bytes]
    arguments: tuple[str, ...]
    inputs: bytes
    path: tuple[str, ...]
    installed: tuple[str, ...]
    isolation: str


class ArrayBytes(NamedTuple):
    """An array of any library, or a scalar: the name of its dtype, its shape and its bytes."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes


class Outcome(NamedTuple):
    """What a run gave: the arrays of its results, the other parts, or why there are none.

    The first `results` arrays are those of the result, the others those of what it may write to.
    `acts` is whether the problem is that the program does what a trial may not repeat.
    """

    problem: str
    arrays: tuple[ArrayBytes, ...] = ()
    rest: bytes = b""
    results: int = 0
    acts: bool = False
    seconds: float = 0.0


def main(folder: str) -> NoReturn:
    """Run the request in a folder, and write the outcome beside it."""
    with open(os.path.join(folder, "request"), "rb") as file:
        request = Request(*pickle.load(file))
    output = open(os.path.join(folder, "outcome"), "wb")  # noqa: SIM115 -- before acts are watched
    started = time.perf_counter()

    def finish(outcome: Outcome) -> NoReturn:
        arrays, seconds = [tuple(x) for x in outcome.arrays], time.perf_counter() - started
        fields = outcome._asdict() | {"arrays": arrays, "seconds": seconds}
        output.write(pickle.dumps(fields))
        output.flush()
        os._exit(0)  # at once: whatever the program has left behind

    sys.path[:], sys.argv[:] = request.path, [request.program[1] or "-c"]
    _serve(request.texts)
    if request.isolation:
        _forbid_acts(request, folder, lambda act: finish(Outcome(act, acts=True)))
    try:
        outcome = _run(request)
    except BaseException as error:  # SystemExit too
        frames = traceback.extract_tb(error.__traceback__)
        places = [f" at {os.path.basename(x.filename)}:{x.lineno}" for x in frames]
        user = [p for x, p in zip(frames, places, strict=True) if _is_user(x.filename, request)]
        text = " ".join(str(error).split())[:300]
        outcome = Outcome(f"{type(error).__name__}: {text}{(user or [''])[-1]}")
    finish(outcome)


def _is_user(file: str, request: Request) -> bool:
    return not file.startswith((*request.installed, "<"))


def _serve(texts: Mapping[str, bytes]) -> None:
    """Let modules of these files have these texts, also where their lines are read."""
    plain = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, fullname: str) -> Any:
        path = loader.get_filename(fullname)
        text = texts.get(os.path.realpath(path))
        return plain(loader, fullname) if text is None else loader.source_to_code(text, path)

    cast(Any, SourceFileLoader).get_code = get_code
    for path, text in texts.items():
        lines = io.StringIO(importlib.util.decode_source(text)).readlines()
        linecache.cache[path] = len(text), None, lines, path


# -- acts that are not to be repeated

_PATHS = {"os.rename": 2} | dict.fromkeys(("open", "os.remove", "os.rmdir", "os.mkdir"), 1)
"""The events of acts on files, and how many paths their arguments start with."""
_STARTS = {
    "_thread": ("start_new_thread", "start_new", "start_joinable_thread"),
    "threading": ("_start_new_thread", "_start_joinable_thread"),
    "_posixsubprocess": ("fork_exec",),
}
"""The functions by which threads and processes start: not all releases have events of them."""


def _forbid_acts(request: Request, folder: str, end: Callable[[str], NoReturn]) -> None:
    """End the process before an act that others see, unless an installed module is imported."""
    spec = importlib.util.spec_from_file_location("isolation", request.isolation)
    assert spec is not None and spec.loader is not None
    isolation = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(isolation)
    inside = os.path.join(os.path.realpath(folder), "")
    observed, visible_act = isolation.OBSERVED, isolation.visible_act

    def act(text: str, *others: str) -> None:
        frame = inspect.currentframe()
        while frame is not None and not _is_user(frame.f_code.co_filename, request):
            if any(x in frame.f_code.co_filename for x in ("<frozen importlib", *others)):
                return
            frame = frame.f_back
        where = (
            f" at {os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}" if frame else ""
        )
        end(f"the program {text}{where}")

    def observe(event: str, args: tuple[Any, ...]) -> None:
        if event in observed and not _is_inside(inside, event, args):
            text = visible_act(event, args)
            if text:
                act(text)

    def watched(start: Callable[..., Any]) -> Callable[..., Any]:
        def start_watched(*args: Any, **keywords: Any) -> Any:
            if start.__name__ == "fork_exec":
                act("starts a process")
            act("starts a thread", f"{os.sep}site-packages{os.sep}")  # libraries have their own
            return start(*args, **keywords)

        return start_watched

    for name, functions in _STARTS.items():
        with contextlib.suppress(ImportError):
            module = importlib.import_module(name)
            for each in functions:
                if hasattr(module, each):
                    setattr(module, each, watched(getattr(module, each)))
    isolation.forbid_writing(folder)
    sys.addaudithook(observe)


def _is_inside(folder: str, event: str, args: tuple[Any, ...]) -> bool:
    """Whether an act is on files of a folder alone, whose paths may start at a descriptor."""
    paths = args[: _PATHS.get(event, 0)]
    descriptor = args[-1] if event != "open" and paths else -1
    base = os.getcwd() if descriptor < 0 else os.path.realpath(f"/proc/self/fd/{descriptor}")
    full = [os.path.realpath(os.path.join(base, os.fsdecode(path))) for path in paths]
    return bool(full) and all(path.startswith(folder) for path in full)


# -- the run


def _load(program: tuple[str, str, str]) -> Any:
    """Return the object that a ProgramName means; its module runs if it is not loaded."""
    name, file, attributes = program
    loaded = getattr(sys.modules.get(name), "__file__", None)
    if file and "." not in name and loaded != file:
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None and spec.loader is not None
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    value: Any = importlib.import_module(name.removesuffix(".__init__"))
    for part in attributes.split("."):
        value = getattr(value, part)
    return value


class _Inputs(pickle.Unpickler):
    """Reads arguments, among which ProgramNames stand for objects."""

    def persistent_load(self, pid: Any) -> Any:
        return _load(pid)


def _run(request: Request) -> Outcome:
    """Run the program; return the arrays of its result, and those that it may have written to."""
    if not request.program[2]:
        return _outcome([], _script(request))
    function = _load(request.program)
    if isinstance(function, type) and hasattr(function, "forward"):
        function = cast("Callable[..., Any]", function)()  # a class of torch modules
    positional, keywords = _Inputs(io.BytesIO(request.inputs)).load()
    result = function(*positional, **keywords)
    return _outcome(result, [positional, keywords, getattr(function, "__self__", function)])


def _script(request: Request) -> list[Any]:
    """Run a script as `python script.py` does; return its variables."""
    file = request.program[1]
    module = sys.modules["__main__"] = ModuleType("__main__")
    module.__file__, sys.argv = file, [file, *request.arguments]
    sys.path.insert(0, os.path.dirname(file))
    try:
        exec(compile(request.texts[file], file, "exec"), vars(module))
    except SystemExit as end:
        if end.code not in (None, 0):
            raise
    return [x for name, x in vars(module).items() if name[:2] != "__"]


def _outcome(result: Any, states: list[Any]) -> Outcome:
    """Return the outcome of a result, and of states as far as they can be pickled."""
    parts = _Parts()
    try:
        parts.dump(result)
    except Exception as error:  # what the result's own code raises
        return Outcome(f"the result cannot be compared: {error}")
    count = len(parts.arrays)
    for state in states:
        other = _Parts()
        try:
            other.dump(state)
        except Exception:
            continue
        parts.arrays += other.arrays
        parts.file.write(other.file.getvalue())
    return Outcome("", tuple(parts.arrays), parts.file.getvalue(), count)


class _Parts(pickle.Pickler):
    """The arrays of a value in `arrays`, and whatever else it holds in `file`."""

    def __init__(self) -> None:
        self.file = io.BytesIO()
        super().__init__(self.file)
        self.arrays: list[ArrayBytes] = []
        self._size = 0

    def persistent_id(self, obj: Any) -> Any:
        array = _array(obj)
        if array is None or array.dtype.kind == "O":
            return None
        self._size += array.nbytes
        if self._size > MOST_BYTES:
            raise ValueError(f"its arrays have more than {MOST_BYTES >> 20} MiB")
        dtype = array.dtype.newbyteorder("=")
        name = str(dtype) if dtype.names or dtype.kind in "mM" else dtype.name
        data = array.astype(dtype, copy=False).tobytes()
        self.arrays.append(ArrayBytes(name, tuple(array.shape), data))
        return "scalar" if type(obj) is array.dtype.type else type(obj).__name__


def _array(value: Any) -> Any:
    """Return an array of any library as one of NumPy; None for another value."""
    np: Any = importlib.import_module("numpy")
    torch, jax = (cast(Any, sys.modules.get(name)) for name in ("torch", "jax"))
    if isinstance(value, (np.ndarray, np.generic)):
        return None if isinstance(value, np.ma.MaskedArray) else np.asarray(value)
    if torch is not None and isinstance(value, torch.Tensor):
        tensor = value.detach().cpu().resolve_conj().resolve_neg().contiguous()
        name = str(tensor.dtype).removeprefix("torch.")
        if not name.startswith(("bfloat", "float8")):
            return tensor.numpy()
        bits = tensor.view(getattr(torch, f"int{8 * tensor.element_size()}")).numpy()
        return bits.view(getattr(importlib.import_module("ml_dtypes"), name))
    if jax is not None and isinstance(value, getattr(jax, "Array", ())):
        is_key = jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key)
        return np.asarray(jax.random.key_data(value) if is_key else value)
    return None


if __name__ == "__main__":
    main(sys.argv[1])
