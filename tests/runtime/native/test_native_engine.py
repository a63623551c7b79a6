"""What keeps the native tier safe: its start, the cache on disk, memory, threads and processes."""

from __future__ import annotations

import gc
import logging
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from graphir.runtime import Program
from graphir.runtime.native import compilation, probe
from graphir.runtime.native.drivers.records import WordRecord, record
from graphir.runtime.program.cost_model import COST
from tests.runtime.native.native_processes import (
    fails,
    needs_fork,
    needs_linux,
    needs_llvmlite,
    run,
)
from tests.runtime.native.soak_native import VALUES, at_once, chain, is_native, right, wanted

# -- the start


def test_imports_and_short_calls_do_without_llvmlite() -> None:
    assert not run(
        "import sys, graphir, runtime\nBEGIN\nrun = Program(chain(1))\n"
        "for _ in range(3): assert right(run, 1)\nassert 'llvmlite' not in sys.modules"
    )


ABSENT = """
import sys, importlib.util
class Absent:
    def find_spec(self, name, path=None, target=None):
        return LOOKED(name) if name.split(".")[0] == "llvmlite" else None
def refuse(name):
    raise ModuleNotFoundError(name)
class Broken:
    create_module = staticmethod(lambda spec: None)
    def exec_module(self, module): raise OSError("libllvmlite.so: cannot be loaded")
def broken(name):
    return importlib.util.spec_from_loader(name, Broken())
sys.meta_path.insert(0, Absent())
if LOOKED is refuse:
    importlib.util.find_spec = lambda name, p=None, f=importlib.util.find_spec: (
        None if name == "llvmlite" else f(name, p))
BEGIN
from graphir.runtime import execute
for number in range(3):
    run = Program(chain(number), native="now")
    assert right(run, number) and not is_native(run)
    assert execute(chain(number), VALUES).tobytes() == wanted(number).tobytes()
print(run.explain())
"""


def test_without_llvmlite_nothing_tells_of_it() -> None:
    said = run(ABSENT.replace("LOOKED", "refuse"))
    assert "WARNING" not in said


def test_llvmlite_that_cannot_be_imported_is_told_of_once() -> None:
    said = run(ABSENT.replace("LOOKED", "broken"))
    assert said.count("WARNING:graphir.native") == 1
    assert "libllvmlite.so: cannot be loaded" in said


def other_values(engine: Any, patch: Callable[..., None]) -> None:
    whole = engine.object_code
    patch(engine, "object_code", lambda text, opt: whole(text.replace("fadd", "fsub"), opt))


def other_ufuncs(engine: Any, patch: Callable[..., None]) -> None:
    from graphir.runtime.native import abi as structs

    whole = structs.words
    patch(structs, "words", lambda address: whole(address - 8))


def no_linker(engine: Any, patch: Callable[..., None]) -> None:
    engine._linker.cache_clear()
    patch(engine.llvm, "create_lljit_compiler", fails)


BREAKS: list[Callable[[Any, Callable[..., None]], None]] = [
    lambda engine, patch: patch(engine.llvm, "parse_assembly", fails),
    lambda engine, patch: patch(engine.llvm.JITLibraryBuilder, "link", fails),
    lambda engine, patch: patch(engine, "processor", fails),
    no_linker,
    other_values,
    other_ufuncs,
]


@needs_llvmlite
@pytest.mark.parametrize("broken", BREAKS, ids=range(len(BREAKS)))
def test_a_probe_that_fails_is_told_of_once(
    engine: Any,
    broken: Callable[[Any, Callable[..., None]], None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken(engine, monkeypatch.setattr)
    with caplog.at_level(logging.DEBUG):
        for number in range(4):
            program = Program(chain(number), native="now")
            assert right(program, number)
            assert not is_native(program)
    assert [one.name for one in caplog.records] == ["graphir.native"]
    with pytest.raises(compilation.UnusableError) as failed:
        probe.engine()
    assert str(failed.value) in caplog.text


@needs_llvmlite
def test_a_probe_that_is_interrupted_is_begun_again(
    engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(probe, "_problem", interrupted)
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                Program(chain(1), native="now").ir(0)
    program = Program(chain(1), native="now")
    assert right(program, 1)
    assert is_native(program)


@needs_llvmlite
def test_entries_alone_may_fail(
    engine: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from graphir.runtime.native import abi

    class OtherArrayObject(WordRecord):
        fields = "references type data dims ndim strides base dtype flags"

    monkeypatch.setattr(abi, "ArrayObject", record(OtherArrayObject))
    program = Program(chain(1), native="now")
    with caplog.at_level(logging.DEBUG):
        assert right(program, 1)
    assert not is_native(program)
    assert not caplog.records
    assert not program.kernels(0).why
    assert engine.call is None


@needs_llvmlite
def test_an_error_of_llvm_leaves_its_region_to_numpy(
    engine: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    good = Program(chain(1), native="now")
    assert right(good, 1)
    assert is_native(good)
    with caplog.at_level(logging.DEBUG):
        for number in range(2, 5):
            with monkeypatch.context() as inside:
                inside.setattr(engine, "object_code", fails)
                program = Program(chain(number), native="now")
                assert right(program, number)
                assert program.kernels(0).why == "RuntimeError: as LLVM might"
    assert len(caplog.records) == 1
    assert right(good, 1)
    assert is_native(good)


@needs_llvmlite
def test_a_missing_symbol_is_an_error_and_nothing_is_printed(
    engine: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    call = "declare void @no_such()\ndefine void @f() {\ncall void @no_such()\nret void\n}"
    with pytest.raises(RuntimeError, match="materialize"):
        engine.CompiledCode(call, "f")
    assert capfd.readouterr() == ("", "")


@needs_llvmlite
@needs_linux
def test_memory_that_may_not_be_made_executable() -> None:
    said = run(
        "import ctypes, sys\nif ctypes.CDLL(None).prctl(65, 1, 0, 0, 0):\n"  # PR_SET_MDWE
        "    print('the kernel is older'); sys.exit()\nBEGIN\n"
        "for n in range(3):\n    program = Program(chain(n), native='now')\n"
        "    assert right(program, n) and not is_native(program)"
    )
    if "the kernel is older" in said:
        pytest.skip("PR_SET_MDWE came with Linux 6.3")
    assert len(said.splitlines()) == 1
    assert said.startswith("WARNING:graphir.native:")


# -- memory


@needs_llvmlite
def test_equal_programs_share_a_kernel(engine: Any) -> None:
    programs = [Program(chain(5), native="now") for _ in range(3)]
    assert all(right(program, 5) for program in programs)
    assert len(engine._kernels) == 1
    assert right(Program(chain(6), native="now"), 6)
    assert len(engine._kernels) == 2


def kernels_of(program: Program) -> list[Any]:
    return list(program.kernels(0).compiled_kernels.values())


@needs_llvmlite
def test_kernels_of_programs_that_die_are_freed(
    engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(COST, "KEPT_KERNELS", 4)
    made: list[weakref.ref[Any]] = []
    for number in range(12):
        program = Program(chain(number), native="now")
        assert right(program, number)
        made += map(weakref.ref, kernels_of(program))
    del program
    gc.collect()
    assert len(made) == 12
    assert sum(one() is not None for one in made) == len(engine._kernels) <= 4


@needs_llvmlite
def test_kernels_stay_as_long_as_their_program(
    engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(COST, "KEPT_KERNELS", 1)
    programs = [Program(chain(number), native="now") for number in range(4)]
    assert all(right(program, number) for number, program in enumerate(programs))
    kernels = list(map(kernels_of, programs))
    assert all(right(program, number) for number, program in enumerate(programs))
    assert kernels == list(map(kernels_of, programs))


@needs_llvmlite
def test_code_that_is_called_is_not_freed(engine: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(COST, "KEPT_KERNELS", 1)
    program = Program(chain(3), native="now")
    assert right(program, 3)
    function: Any = program.machine_code
    kernel = weakref.ref(kernels_of(program)[0])
    assert right(Program(chain(4), native="now"), 4)
    del program
    gc.collect()
    assert kernel() is not None
    assert function(VALUES).tobytes() == wanted(3).tobytes()
    del function
    gc.collect()
    assert kernel() is None


@needs_llvmlite
@needs_linux
def test_memory_levels_off() -> None:
    run(
        "BEGIN\nfrom graphir.runtime.program.cost_model import COST\nCOST.KEPT_KERNELS = 8\n"
        "sizes = many(150)\n"
        "assert sizes[-1] - sizes[4] < 75 * 15, sizes  # a live kernel is about 50 KB"
    )


@needs_llvmlite
@needs_linux
def test_memory_that_is_refused() -> None:
    """Is told of as without machine code; what was made of several results is freed."""
    run(
        "import resource, graphir\nBEGIN\ng = Graph()\nx = g.input('float32', (10**5,))\n"
        "g.output(x + 1.0, x * 2.0, x * 3.0)\nx = np.ones(10**5, np.float32)\n"
        "program, kept = Program(g, threads=1, native='now'), []\n"
        "for _ in range(3): program(x)\nassert is_native(program)\n"
        "function, room = program.machine_code, os.sysconf('SC_PAGE_SIZE') * 2500\n"
        "size = int(open('/proc/self/statm').read().split()[0]) * os.sysconf('SC_PAGE_SIZE')\n"
        "resource.setrlimit(resource.RLIMIT_AS, (size + room, -1))\n"
        "try:\n    while True: kept.append(program(x))\n"
        "except graphir.ExecutionError as error: assert 'add' in str(error), error\n"
        "assert kept and all(function(x) is None for _ in range(1000))\n"
        "kept.clear()\nassert function(x)[2][0] == 3"
    )


# -- threads and processes


@needs_llvmlite
def test_threads_that_compile_and_call_at_once(
    engine: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(COST, "KEPT_KERNELS", 40)
    assert at_once(64, 1.0) >= 64


@needs_llvmlite
def test_a_job_asked_for_again_meanwhile_is_done_once() -> None:
    done = Done()
    with compilation.LOCK:
        for _ in range(3):
            compilation.submit(done.add, 0)
        compilation.submit(done.add, 1)
    end = time.monotonic() + 30
    while len(done.values) < 2 and time.monotonic() < end:
        time.sleep(0.001)
    assert done.values == [0, 1]


@needs_llvmlite
def test_a_job_may_be_asked_for_while_its_thread_asks_for_another() -> None:
    """As the handler of a signal may, at any moment."""
    done = list[int]()

    class Asking:
        def __hash__(self) -> int:
            compilation.submit(done.append, 1)
            return 0

        def __call__(self) -> None:
            done.append(2)

    threading.Thread(target=compilation.submit, args=(Asking(),), daemon=True).start()
    end = time.monotonic() + 10
    while 2 not in done and time.monotonic() < end:
        time.sleep(0.001)
    assert {1, 2} <= set(done)


class Done:
    """What jobs did that wait for whoever compiles."""

    def __init__(self) -> None:
        self.values: list[int] = []

    def add(self, value: int) -> None:
        with compilation.LOCK:
            self.values.append(value)


FORKS = """
BEGIN
import faulthandler, itertools, signal
from graphir.runtime.program.cost_model import COST
COST.COMPILE_COST = 0
numbers, stop = itertools.count(100), []
def compile():
    while not stop:
        number = next(numbers)
        assert right(Program(chain(number), native="now"), number)
shared = Program(chain(1))
assert right(Program(chain(0), native="now"), 0)
workers = [threading.Thread(target=compile, daemon=True) for _ in range(3)]
for one in workers: one.start()
def child():
    faulthandler.register(signal.SIGALRM, chain=True)
    signal.alarm(12)
    assert right(Program(chain(7), native="now"), 7)
    end = time.monotonic() + 15
    while not is_native(shared):  # by the thread of the child
        assert right(shared, 1) and time.monotonic() < end
    assert right(shared, 1)
for _ in range(6):
    right(shared, 1)
    pid = os.fork()
    if not pid:
        try: child()
        except BaseException as error: print(error, flush=True); os._exit(1)
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0
stop.append(1)
for one in workers: one.join()
"""


@needs_llvmlite
@needs_fork
def test_a_process_may_fork_while_others_compile() -> None:
    assert not run(FORKS, "-W", "ignore")


@needs_llvmlite
def test_a_process_may_end_while_others_compile() -> None:
    for delay in (0.0, 0.02):
        run(
            "BEGIN\nfrom graphir.runtime.program.cost_model import COST\nCOST.COMPILE_COST = 0\n"
            "assert right(Program(chain(0), native='now'), 0)\n"
            "programs = [Program(chain(n)) for n in range(1, 9)]\n"
            "for n, one in enumerate(programs, 1): assert right(one, n)\n"
            f"time.sleep({delay})"
        )
