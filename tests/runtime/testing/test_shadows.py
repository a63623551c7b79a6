"""Shadows of tests: what they see of the functions, and that the tests see nothing of them."""

from __future__ import annotations

import ctypes
import json
import os
import sys
from typing import Any

import pytest

from graphir.runtime.testing.budget import Budget, CallSignature, Claims
from graphir.runtime.testing.ledger import CallRecord, Ledger
from graphir.runtime.testing.shadow import Shadow
from graphir.runtime.testing.shadow_pool import ShadowPool
from tests.runtime.testing.conftest import Project

WORKERS = ("-p", "xdist", "-n", "2")
ALONE_OR_WORKERS = (
    pytest.param((), id="alone"),
    pytest.param(WORKERS, id="workers", marks=pytest.mark.exhaustive),
)

FILES = """
    import os
    from pathlib import Path
    import numpy as np

    def save(path, x):
        x = x / np.float64(2)
        with open(path, "w") as file:
            file.write(f"{x.tolist()}")

    def load(path):
        return np.array(eval(Path(path).read_text()), np.float32) * np.float64(2)

    def move(path, folder):
        os.mkdir(folder)
        os.rename(path, folder / "moved")
        return np.float32(len(os.listdir(folder)))

    def append(file, x):
        file.write(f"{x.tolist()}\\n")
        file.flush()

    def count(path):
        return np.ones(len(Path(path).read_text().splitlines()), np.float32)

    def fill(memory):
        memory[:] = memory + np.int32(1)

    def last(x):
        return x[-1] * np.float64(1)
    """

TESTS_OF_FILES = """
    import os
    import tempfile
    from pathlib import Path
    import numpy as np
    import pytest
    from lab import files

    def test_written_then_read(tmp_path):
        files.save(tmp_path / "a", np.ones(3, np.float32))
        assert files.load(tmp_path / "a").tolist() == [1, 1, 1]
        files.move(tmp_path / "a", tmp_path / "b")
        assert sorted(os.listdir(tmp_path)) == ["b"]

    def test_open_file(tmp_path):
        with open(tmp_path / "a", "w") as file:
            for i in range(3):
                files.append(file, np.ones(i, np.float32))
        assert files.count(tmp_path / "a").tolist() == [1, 1, 1]
        assert (tmp_path / "a").read_text() == "[]\\n[1.0]\\n[1.0, 1.0]\\n"

    def test_in_the_folder(tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        files.save("a", np.ones(3, np.float64))
        files.save("a", np.ones(2, np.int32))
        assert files.load("a").tolist() == [1, 1]
        assert os.listdir() == ["a"] and os.getcwd() == str(tmp_path)

    def test_temporary_folder():
        with tempfile.TemporaryDirectory() as folder:
            files.save(f"{folder}/a", np.ones(3, np.int16))
            os.remove(f"{folder}/a")
        assert not os.path.exists(folder)

    def test_memory_map(tmp_path):
        memory = np.memmap(tmp_path / "a", np.int32, "w+", shape=2)
        files.fill(memory)
        memory.flush()
        assert np.fromfile(tmp_path / "a", np.int32).tolist() == [1, 1]
        assert files.last(memory) == 1
    """


def write_conftest(project: Project, text: str) -> None:
    project.write(test_conftest=text)
    os.rename(project.folder / "test_conftest.py", project.folder / "conftest.py")


def test_a_function_that_writes_a_file_is_not_seen_and_the_report_says_why(
    project: Project,
) -> None:
    project.write(files=FILES, test_files=TESTS_OF_FILES)
    report = project.report("-vv")
    assert "not seen: 2 of 7 functions called" in report
    assert "lab.files:save: it opens a file for writing" in report
    # A shadow that starts within the test lacks the file that the test has just made.
    reasons = "lab.files:move: it calls os.mkdir", "lab.files:move: a test failed in its shadow"
    assert any(reason in report for reason in reasons)
    assert "lab/files.py:7:9 " in report  # the cast before it writes


SCALES = """
    import numpy as np

    def a(x): return x * 2
    def b(x): return x * 3
    def c(x): return x / np.float64(2)
    def d(x): return x + 1
    def e(x): return x - 1
    def f(x): return -x
    """


def test_a_shadow_that_ended_is_replaced(project: Project) -> None:
    project.write(
        scales=SCALES,
        test_scales="""
        import subprocess
        import numpy as np
        import pytest
        from lab import scales

        X = np.ones(3, np.float32)

        def test_process():
            scales.a(X)
            subprocess.run(["true"])
            scales.b(X)

        @pytest.mark.parametrize("name", "cdef")
        def test_after(name):
            getattr(scales, name)(X)
        """,
    )
    report = project.report("-vv")
    assert "not seen" not in report and "6 functions recorded" in report


def test_a_shadow_is_no_child_and_sends_no_signal(project: Project) -> None:
    project.write(
        scales=SCALES,
        test_scales="""
        import os
        import signal
        import subprocess
        import time
        import numpy as np
        import pytest
        from lab import scales

        X = np.ones(3, np.float32)

        def test_child():
            scales.a(X)
            with pytest.raises(ChildProcessError):
                os.waitpid(-1, os.WNOHANG)
            with pytest.raises(ChildProcessError):
                os.wait()

        @pytest.fixture
        def signals():
            received = []
            before = signal.signal(signal.SIGCHLD, lambda *_: received.append(1))
            yield received
            signal.signal(signal.SIGCHLD, before)

        def test_own_child():
            process = subprocess.Popen(["true"])
            scales.b(X)
            assert os.wait() == (process.pid, 0)
            process.returncode = 0

        def test_signal_of_a_shadow_before():
            scales.c(X)
            received = []
            before = signal.signal(signal.SIGCHLD, lambda *_: received.append(1))
            time.sleep(1)
            signal.signal(signal.SIGCHLD, before)
            assert not received
        """,
    )
    report = project.report("-vv")
    assert "functions called" not in report and "3 functions recorded" in report


def test_no_shadow_starts_where_a_signal_would_tell_of_it(project: Project) -> None:
    project.write(
        scales=SCALES,
        test_scales="""
        import signal
        import time
        import numpy as np
        from lab import scales

        X = np.ones(3, np.float32)

        def test_handler():
            received = []
            before = signal.signal(signal.SIGCHLD, lambda *_: received.append(1))
            scales.a(X)
            time.sleep(0.3)
            signal.signal(signal.SIGCHLD, before)
            assert not received

        def test_pending_signal():
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
            scales.b(X)
            time.sleep(0.3)
            assert not signal.sigpending()
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])

        def test_neither():
            scales.c(X)
        """,
    )
    report = project.report("-vv")
    assert "lab.scales:a: its test handles SIGCHLD" in report
    assert "lab.scales:b: its test blocks SIGCHLD" in report
    assert "1 function recorded" in report


def test_a_shadow_writes_no_shared_memory(project: Project) -> None:
    project.write(
        shared="""
        import numpy as np

        def count(memory, x):
            memory[0] = memory[0] + 1
            return x / 2
        """,
        test_shared="""
        import mmap
        import multiprocessing
        import time
        import numpy as np
        from lab import shared

        def test_memory():
            memory = mmap.mmap(-1, 100)
            value = multiprocessing.get_context("fork").RawArray("i", [0])
            shared.count(memory, np.ones(2, np.float32))
            shared.count(value, np.ones(2, np.float64))
            time.sleep(1)
            assert memory[0] == 1 and value[0] == 1
        """,
    )
    assert "1 function recorded" in project.report()


def has_landlock() -> bool:
    """Whether this kernel and container let a process give up writing files."""
    create, version = 444, 1
    return sys.platform == "linux" and ctypes.CDLL(None).syscall(create, None, 0, version) > 0


@pytest.mark.skipif(not has_landlock(), reason="compiled code is held back by Landlock alone")
def test_compiled_code_writes_no_file_twice(project: Project) -> None:
    project.write(
        compiled="""
        import ctypes
        import numpy as np

        def log(path, x):
            c = ctypes.CDLL(None)
            c.fopen.restype = ctypes.c_void_p
            file = c.fopen(path, b"a")
            if file:
                c.fputs(b"line", ctypes.c_void_p(file))
                c.fclose(ctypes.c_void_p(file))
            return x / 2

        def remove(path, x):
            ctypes.CDLL(None).unlink(path)
            return x / 2
        """,
        test_compiled="""
        import time
        import numpy as np
        from lab import compiled

        def test_log(tmp_path):
            compiled.log(bytes(tmp_path / "log"), np.ones(2, np.float32))
            compiled.remove(bytes(tmp_path / "log"), np.ones(2, np.float32))
            (tmp_path / "log").touch()
            time.sleep(1)
            assert (tmp_path / "log").read_text() == ""
        """,
    )
    assert "2 functions recorded" in project.report()


def test_tests_that_fork_use_threads_and_change_folders(project: Project) -> None:
    project.write(
        scales=SCALES,
        test_scales="""
        import os
        import threading
        import numpy as np
        from lab import scales

        X = np.ones(3, np.float32)

        def test_fork(tmp_path):
            scales.a(X)
            child = os.fork()
            if not child:
                scales.b(X)
                (tmp_path / "child").touch()
                os._exit(0)
            assert os.waitpid(child, 0) == (child, 0)
            assert (tmp_path / "child").exists()
            scales.c(X)

        def test_thread():
            thread = threading.Thread(target=scales.d, args=[X])
            thread.start()
            thread.join()
            scales.e(X)

        def test_patched(tmp_path, monkeypatch):
            monkeypatch.chdir(tmp_path)
            monkeypatch.setattr(scales, "c", lambda x: x)
            monkeypatch.setattr("builtins.open", None)
            assert scales.c(X) is X and os.getcwd() == str(tmp_path)
            scales.f(X)
        """,
    )
    report = project.report("-vv")
    assert "4 functions recorded" in report and "not seen: 2 of 6 functions called" in report
    for name in "bd":
        assert f"lab.scales:{name}: only other threads or processes" in report


def test_a_shadow_that_records_nothing_goes_on_to_the_calls_that_it_shall_record(
    project: Project,
) -> None:
    project.write(
        scales=SCALES,
        test_scales="""
        import numpy as np
        import pytest
        from lab import scales

        @pytest.mark.parametrize("name", "abcdef")
        def test_scales(name):
            sum(range(1_000_000))
            getattr(scales, name)(np.ones(3, np.float32))
        """,
    )
    impatient = "import graphir.runtime.testing.shadow as s; s._PLAIN, s._LOOK = 0, 0.001"
    write_conftest(project, impatient)
    report = project.report("-vv")
    assert "not seen" not in report and "6 functions recorded" in report


@pytest.mark.exhaustive
def test_tests_that_replace_functions_count_their_own_calls(project: Project) -> None:
    project.write(
        scales=SCALES,
        test_scales="""
        from unittest import mock
        import numpy as np
        import pytest
        from lab import scales

        X = np.ones(3, np.float32)
        NAMES = [
            *("builtins.open", "io.open", "os.open", "os.read", "os.listdir", "os.scandir"),
            *("os.getpid", "os.fork", "os.pipe", "os.close", "os.kill", "os.waitpid", "os.getcwd"),
            *("time.time", "time.perf_counter", "time.monotonic", "signal.getsignal"),
            *("threading.active_count", "select.poll", "ctypes.CDLL", "ctypes.PyDLL"),
        ]

        @pytest.mark.parametrize("name", "abcdef")
        def test_replaced(name):
            patches = [mock.patch(name) for name in NAMES]
            mocks = [patch.start() for patch in patches]
            getattr(scales, name)(X)
            for patch in patches:
                patch.stop()
            assert [x._mock_name for x in mocks if x.called] == []
        """,
    )
    # Each test has a shadow of its own, so that all of them start one.
    report = project.report("-vv", *WORKERS)
    assert "functions recorded" in report


def test_what_the_ends_of_fixtures_call_is_recorded(project: Project) -> None:
    project.write(
        scales=SCALES,
        test_scales="""
        import numpy as np
        import pytest
        from lab import scales

        @pytest.fixture(scope="module")
        def wide():
            yield
            scales.b(np.ones(3, np.float32))

        @pytest.fixture
        def narrow(wide):
            yield
            scales.c(np.ones(3, np.float32))

        def test_fixtures(narrow):
            pass
        """,
    )
    report = project.report("-vv")
    assert "not seen" not in report and "2 functions recorded" in report


def test_functions_with_many_signatures_see_the_types_of_numpy_in_a_recording(
    project: Project,
) -> None:
    project.write(
        kinds="""
        import numpy as np

        KINDS = {np.ndarray: 1}

        def kind(x, tag):
            return KINDS[type(x)]

        def total(x, tags):
            count = sum(kind(x * 1, tag) for tag in tags)
            return x / np.float64(count)
        """,
        test_kinds="""
        import numpy as np
        from lab import kinds

        TAGS = [type(f"Tag{i}", (), {})() for i in range(300)]

        def test_total():
            assert kinds.total(np.full(2, 300, np.float32), TAGS).tolist() == [1, 1]
        """,
    )
    report = project.report("-vv")
    assert "lab/kinds.py:11:12 lhs of divide float32 float64" in " ".join(report.split())


def test_the_recording_of_a_long_loop_passes_by_calls_like_those_before(project: Project) -> None:
    project.write(
        loops="""
        import numpy as np

        def step(x):
            for _ in range(20):
                x = x * np.float32(0.5) + np.float32(1)
            return x

        def solve(x):
            for _ in range(3000):
                x = step(x)
            return x / np.float64(2)
        """,
        test_loops="""
        import numpy as np
        from lab import loops

        def test_solve():
            assert loops.solve(np.ones(2, np.float32)).tolist() == [1, 1]
        """,
    )
    report = project.report("-vv")
    assert "not seen" not in report and "2 functions recorded" in report
    assert "lab/loops.py:12:12 lhs of divide float32 float64" in " ".join(report.split())


def test_a_function_without_a_recording_is_claimed_again_when_shadows_end() -> None:
    budget = Budget()
    claims: Any = Claims(budget)
    pool: Any = ShadowPool(Ledger(), budget, claims)
    signature = CallSignature(CallRecord("lab:f", ""), kind=("lab:f", frozenset()))  # pyright: ignore
    for _ in range(5):
        reader, writer = os.pipe()
        os.close(writer)  # a shadow that crashed
        signature.claims = 1
        claims.functions.add("lab:f")
        pool._live[Shadow(reader, os.dup(reader), 1.0)] = [signature]
        pool.collect(wait=True)
        assert claims.allow(signature, "") and "lab:f" not in claims.functions


def test_beyond_its_budget_a_run_records_functions_and_dtypes_that_are_new(
    project: Project,
) -> None:
    project.write(
        scales="""
        def half(x): return x / 2
        def third(x): return x / 3
        """,
        test_scales="""
        import numpy as np
        from lab import scales

        def test_float(): scales.half(np.ones(2, np.float32))
        def test_rank(): scales.half(np.ones((2, 2), np.float32))
        def test_int(): scales.half(np.ones((2, 2), np.int32))
        def test_third(): scales.third(np.ones(2, np.float32))
        """,
    )
    write_conftest(project, "import graphir.runtime.testing.budget as b; b.FREE_WORK = b.WORK = 0")
    assert "not seen" not in project.report("--casts-baseline", "casts.json")
    functions = json.loads((project.folder / "casts.json").read_text())["functions"]
    calls = {name: [*function["calls"]] for name, function in functions.items()}
    assert calls == {
        "lab.scales:half": ["float32[:]", "int32[:,:]"],
        "lab.scales:third": ["float32[:]"],
    }


# -- gates


UNSEEN = """
    import subprocess
    import numpy as np

    def run(x):
        subprocess.run(["true"])
        return x / np.float64(2)

    def scale(x):
        return x * 2
    """

TESTS_OF_UNSEEN = """
    import numpy as np
    from lab.unseen import run, scale

    def test_run():
        run(np.ones(3, np.float32))

    def test_scale():
        scale(np.ones(3, np.float32))
    """


@pytest.mark.parametrize("workers", ALONE_OR_WORKERS)
def test_a_gate_fails_on_functions_that_it_did_not_see(
    project: Project, workers: tuple[str, ...]
) -> None:
    project.write(unseen=UNSEEN, test_unseen=TESTS_OF_UNSEEN)
    gate = ("--casts-fail", "to:int8", *workers)
    run = project.run(*gate)
    assert run.returncode == 1
    assert "1 function called but not seen, which fails the run" in run.stdout
    assert "lab.unseen:run: it calls subprocess.Popen" in run.stdout
    assert project.run(*gate, "--casts-unseen=pass").returncode == 0
    assert project.run(*workers).returncode == 0  # no gate


def test_a_comparison_with_a_baseline_fails_on_functions_that_it_did_not_see(
    project: Project,
) -> None:
    project.write(unseen=UNSEEN, test_unseen=TESTS_OF_UNSEEN)
    baseline = ("--casts-baseline", "casts.json")
    assert project.run(*baseline).returncode == 0  # writes it
    run = project.run(*baseline)
    assert run.returncode == 1 and "lab.unseen:run: it calls subprocess.Popen" in run.stdout
    (project.folder / "pytest.ini").write_text("[pytest]\ncasts_unseen = pass\n")
    assert project.run(*baseline).returncode == 0


def test_generators_and_coroutines_that_no_recording_saw_fail_a_gate(project: Project) -> None:
    project.write(
        lazy="""
        import numpy as np

        def halves(x):
            for each in x:
                yield each / 2

        async def later(x):
            return x / 2

        async def stream(x):
            yield x / 2

        def pairs(x):
            yield x[0] / 2
            yield x[1] / 2

        def total(x):
            return sum(pairs(x))
        """,
        test_lazy="""
        import asyncio
        import numpy as np
        from lab.lazy import halves, later, stream, total

        async def first():
            async for each in stream(np.ones(3, np.float32)):
                return await later(each)

        def test_lazy():
            list(halves(np.ones(3, np.float32)))
            assert total(np.ones(2, np.float32)) == 1
            assert asyncio.run(first()).tolist() == [0.25] * 3
        """,
    )
    run = project.run("--casts-fail", "to:int8")
    assert run.returncode == 1 and "3 functions called but not seen" in run.stdout
    assert "lab.lazy:halves: it is a generator" in run.stdout
    assert "lab.lazy:later: it is a coroutine" in run.stdout
    assert "lab.lazy:stream: it is a coroutine" in run.stdout


def test_a_recording_that_fails_where_the_test_does_not_is_not_seen(project: Project) -> None:
    project.write(
        guarded="""
        import os
        import numpy as np

        PROCESS = os.getpid()

        def guarded(x):
            if os.getpid() != PROCESS:
                raise RuntimeError("another process")
            return x.astype(np.int8)

        def refused(x):
            raise ValueError(x.sum(dtype=np.int8))
        """,
        test_guarded="""
        import numpy as np
        import pytest
        from lab.guarded import guarded, refused

        def test_guarded():
            assert guarded(np.ones(2)).sum() == 2

        def test_refused():
            with pytest.raises(ValueError):
                refused(np.ones(2))
        """,
    )
    run = project.run("--casts-fail", "to:bool")
    assert run.returncode == 1 and "1 function called but not seen" in run.stdout
    assert "lab.guarded:guarded: a test failed in its shadow: RuntimeError" in run.stdout


@pytest.mark.parametrize("workers", ALONE_OR_WORKERS)
def test_a_package_that_no_test_imports_is_an_error(
    project: Project, workers: tuple[str, ...]
) -> None:
    project.write(scales=SCALES, test_scales="def test_nothing(): pass")
    run = project.run(*workers, package="=nosuchpackage")
    assert run.returncode == 4
    assert "--casts=nosuchpackage: no test imports this package" in run.stdout


def test_a_collection_alone_writes_no_baseline(project: Project) -> None:
    project.write(unseen=UNSEEN, test_unseen=TESTS_OF_UNSEEN)
    run = project.run("--collect-only", "--casts-baseline", "casts.json")
    assert run.returncode == 0 and not (project.folder / "casts.json").exists()
