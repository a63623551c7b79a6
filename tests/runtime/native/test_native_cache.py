"""Object code on disk: damaged, written by processes that are killed, kept from others, bounded."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from graphir.runtime import Program
from graphir.runtime.native import disk_cache as disk
from tests.runtime.native.native_processes import fails, needs_linux, needs_llvmlite, run
from tests.runtime.native.soak_native import VALUES, chain, is_native, right, wanted


def read(path: Path) -> bytes | None:
    return disk.Folder(path.parent).read(path.name)


@needs_llvmlite
def test_a_file_with_any_byte_changed_or_missing_is_not_read(engine: Any, folder: Path) -> None:
    assert right(Program(chain(1), native="now"), 1)
    paths = sorted(folder.iterdir())
    assert len(paths) == 3  # the probe, the entry and the program
    wholes = {path: path.read_bytes() for path in paths}
    path = paths[0]
    whole = wholes[path]
    assert read(path) == whole[32:]
    for at in range(0, len(whole), 5):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        assert read(path) is None
        path.write_bytes(whole[:at])
        assert read(path) is None
    path.write_bytes(whole + b"\0")
    assert read(path) is None
    path.write_bytes(wholes[paths[1]])
    assert read(path) is None
    for one in paths:
        one.write_bytes(wholes[one][:-1])
    engine._kernels.clear()
    program = Program(chain(1), native="now")
    assert right(program, 1)
    assert is_native(program)
    found = [one for one in paths if one.read_bytes() == wholes[one]]
    assert len(found) >= 1  # what was asked for again is whole again


@needs_llvmlite
def test_what_is_on_disk_is_not_made_again(
    engine: Any, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert right(Program(chain(1), native="now"), 1)
    engine._kernels.clear()
    monkeypatch.setattr(engine.llvm, "parse_assembly", fails)
    program = Program(chain(1), native="now")
    assert right(program, 1)
    assert is_native(program)
    monkeypatch.setattr(engine, "_FORMAT", "another")
    assert Program(chain(1), native="now")(VALUES).tobytes() == wanted(1).tobytes()


CODE = b"code"


def kept(key: str = "key") -> bool:
    """Whether it is there already."""
    made: list[bool] = []

    def make() -> bytes:
        made.append(True)
        return CODE

    assert disk.cached(make, key) == CODE
    return not made


def test_what_differs_in_any_part_is_another(folder: Path) -> None:
    for number, parts in enumerate([("ab", "c"), ("a", "bc"), ("abc",), ("abc", ""), ()]):
        assert disk.cached(lambda number=number: bytes([number]), *parts) == bytes([number])
        assert len(list(folder.iterdir())) == number + 1
    assert disk.cached(fails, "ab", "c") == bytes([0])


@pytest.mark.skipif(os.name != "posix", reason="asks for the rights of files")
def test_a_folder_that_others_may_write_to_is_not_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not kept()
    assert folder.stat().st_mode & 0o777 == 0o700
    for mode, found in [(0o700, True), (0o755, True), (0o775, False), (0o702, False)]:
        folder.chmod(mode)
        assert kept() == found
    folder.chmod(0o700)
    monkeypatch.setattr(os, "geteuid", lambda: folder.stat().st_uid + 1)
    assert disk.open_folder() is None
    assert not kept("other")
    assert len(list(folder.iterdir())) == 1


def test_a_cache_that_cannot_be_written_is_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.write_text("no folder")
    assert not kept()
    assert not kept()
    folder.unlink()

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert not kept()
    assert not kept()
    assert not list(folder.iterdir())


def test_the_folder_is_the_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("GRAPHIR_NATIVE_CACHE", "")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert disk.directory() == tmp_path / "home" / ".cache" / "graphir" / "native"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    assert disk.directory() == tmp_path / "other" / "graphir" / "native"
    monkeypatch.setenv("GRAPHIR_NATIVE_CACHE", "~/mine")
    assert disk.directory() == tmp_path / "home" / "mine"
    monkeypatch.chdir(tmp_path)
    before = set(tmp_path.iterdir())
    for off in ("0", "off", "relative/path"):
        monkeypatch.setenv("GRAPHIR_NATIVE_CACHE", off)
        assert disk.directory() is None
    assert set(tmp_path.iterdir()) == before


def test_the_oldest_files_go_and_what_killed_writers_left(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.mkdir()
    for number in range(10):
        disk.Folder(folder).write(f"key{number}.o", CODE * 500)
        os.utime(folder / f"key{number}.o", (number, number))
    (folder / "key.1.2").write_bytes(b"being written")
    (folder / "key.3.4").write_bytes(b"left")
    os.utime(folder / "key.3.4", (1, 1))
    monkeypatch.setattr(disk, "DISK", 4 * 4096)
    disk.Folder(folder).prune()
    left = {"key7.o", "key8.o", "key9.o", "key.1.2"}
    assert {one.name for one in folder.iterdir()} == left


@needs_llvmlite
@needs_linux
@pytest.mark.parametrize("moment", ["fdopen", "replace"])
def test_a_writer_that_is_killed_leaves_nothing_wrong(moment: str, folder: Path) -> None:
    code = (
        "BEGIN\nimport signal\n"
        f"real = os.{moment}\n"
        "def killed(*given, **named):\n"
        "    if given[1] == 'rb': return real(*given, **named)\n"
        "    if given[1] == 'wb': os.write(given[0], b'half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        f"os.{moment} = killed\nright(Program(chain(1), native='now'), 1)"
    )
    run(code, ends=-signal.SIGKILL)
    assert len(list(folder.iterdir())) == 1
    check = "BEGIN\np = Program(chain(1), native='now')\nassert right(p, 1) and is_native(p)"
    assert not run(check)
    assert len(list(folder.glob("*.o"))) == 3
