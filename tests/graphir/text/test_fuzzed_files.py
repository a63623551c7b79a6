"""Files that have gone wrong, and sizes that are checked before memory is taken."""

from __future__ import annotations

import random
import subprocess
import sys
import zipfile

import numpy as np
import pytest

from graphir import ExecutionError, Graph, GraphError, ParseError
from graphir.errors import shortened
from graphir.promotion.scalars import number
from graphir.runtime.value_files import read_input
from graphir.text.files import UNPACKED, read_arrays
from tests import ROOT
from tests.graphir.text import fuzz_loading
from tests.graphir.text.fuzzing import corpus, mutated
from tests.support.tables import every


@pytest.mark.exhaustive
def test_1500_files_load_or_are_refused():
    command = [
        sys.executable,
        "-m",
        "tests.graphir.text.fuzz_loading",
        "--files",
        "1500",
        "--first",
        "7000000",
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    for kind in ("gir: loaded", "gir: ParseError", "npy: ExecutionError", "npz: loaded"):
        assert kind in done.stdout
    assert "0 neither loaded nor refused" in done.stdout


def test_honest_files_load(tmp_path):
    for files in corpus():
        assert fuzz_loading.verdict(tmp_path, files) == "loaded"


@pytest.mark.parametrize("error", [ValueError("bad"), GraphError("x" * 5000), GraphError("no")])
def test_an_unclear_error_is_found(tmp_path, monkeypatch, error):
    def load(*_):
        raise error

    monkeypatch.setattr(fuzz_loading, "load", load)
    with pytest.raises((ValueError, AssertionError)):
        fuzz_loading.verdict(tmp_path, {"json": b"{}"})


def test_what_runs_or_hangs_is_found():
    hook = """if 1:
        import pickle, signal, numpy as np
        from tests.graphir.text import fuzz_loading
        fuzz_loading.SECONDS = 1
        fuzz_loading._bounded()
        def run(folder, files):
            if files in fuzz_loading.corpus(): return None
            raise_in = next(ways)
            raise_in()
        def hang():
            while True: pass
        ways = iter([lambda: eval("1"), lambda: pickle.loads(b"cos\\nsystem\\n."), hang,
                     lambda: np.ones(2**28)])
        fuzz_loading.load = run
        assert fuzz_loading.run(0, 4, 0) == 4
    """
    done = subprocess.run(
        [sys.executable, "-c", hook], cwd=ROOT, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for kind in ("RunError: exec", "RunError: pickle.find_class", "HangError", "MemoryError"):
        assert kind in done.stdout


def test_files_are_made_of_their_number_alone():
    assert mutated(random.Random("0:5")) == mutated(random.Random("0:5"))


def npy(header: str, data: bytes = b"", version: int = 1) -> bytes:
    text = header.encode("latin-1") + b"\n"
    size = len(text).to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes([version, 0]) + size + text + data


def header(descr: str = "'<f8'", shape: str = "(1,)") -> str:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"


REFUSED = {
    "a vast shape": (npy(header(shape="(999999999999,)"), bytes(8)), ""),
    "a product beyond 64 bits": (npy(header(shape="(4611686018427387904, 8)"), bytes(8)), ""),
    "a size that is negative": (npy(header(shape="(-1,)"), bytes(8)), ""),
    "objects": (npy(header("'|O'"), bytes(8)), "Object arrays cannot be loaded"),
    "objects in a field": (npy(header("[('a', '|O')]"), bytes(8)), "Object arrays cannot be load"),
    "a long header": (npy(" " * 20_000 + header(), bytes(8)), "20058"),
    "a version to come": (npy(header(), bytes(8), 9), "version"),
    "no array": (b"hello, world", "does not begin as"),
    "nothing": (b"", "does not begin as"),
    "a call": (npy("__import__('os').getpid()"), ""),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_malformed_arrays_are_refused(kind, tmp_path):
    data, why = REFUSED[kind]
    (tmp_path / "x.npy").write_bytes(data)
    with pytest.raises(ExecutionError, match=f"not a readable .npy or .npz file: .*{why}"):
        read_input(str(tmp_path / "x.npy"))


@every("version", [1, 2, 3])
def test_arrays_are_read_as_numpy_reads_them(version, tmp_path):
    for array in (np.arange(6.0).reshape(2, 3).T, np.zeros(0, ">i2"), np.array("é"), np.array(1j)):
        with open(tmp_path / "x.npy", "wb") as file:
            np.lib.format.write_array(file, array, (version, 0))
        found = read_input(str(tmp_path / "x.npy"))
        assert found.dtype == array.dtype
        np.testing.assert_array_equal(found, array)
        found[...] = found  # it is the caller's own


def test_what_an_archive_unpacks_to_is_bounded(tmp_path):
    count = UNPACKED[0] // 2 + 10_000_000
    member = npy(header("'|u1'", f"({count},)"), bytes(count))
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("a.npy", "b.npy"):
            archive.writestr(name, member)
    with (tmp_path / "x.npz").open("rb") as file, pytest.raises(ValueError, match="at most"):
        read_arrays(file)
    with pytest.raises(ExecutionError, match=r"would unpack to \d+ bytes"):
        read_input(f"{tmp_path / 'x.npz'}:a")


@every(
    ("line", "why"),
    [
        ("%0 = constant {dtype=float32, value=[1, 1]} : float32[999999999999]", "an axis of 99999"),
        (
            "%0 = constant {dtype=int64, value=" + "[" * 100_000 + " : float32[1]",
            "nested more than",
        ),
        (
            "%0 = constant {dtype=int64, value=" + "9" * 1_000_000 + "} : int64",
            "1000000 characters",
        ),
        ("%0 = constant {dtype=int64, value=1} : " + "a" * 1_000_000, "characters ..."),
        ("%0 = constant {dtype=int64, value=1} : int64[" + "(" * 100_000, "nested more than"),
        ("%0 = constant {dtype=int64, value=1} : int64[" + "n*" * 100_000 + "n]", "too many terms"),
    ],
)
def test_text_without_end(line, why):
    with pytest.raises(ParseError, match=why) as caught:
        Graph.parse(f"graph @g rules=max () -> () {{\n  {line}\n}}")
    assert caught.value.line in (2, 3)
    assert len(str(caught.value)) < 2000


def test_large_shapes_are_only_sizes():
    g = Graph("g")
    g.output(g.full(1, 10**12, "float32"))
    assert Graph.parse(str(g)).outputs[0].shape == (10**12,)


@every("text", ["1e400", "-1e400", "1e400j", "9" * 5000])
def test_numbers_beyond_all_floats(text):
    with pytest.raises(ExecutionError, match="beyond all floats"):
        number(text)


def test_numbers_are_never_evaluated():
    assert number("__import__('os')") is None
    assert number("-inf") == float("-inf")


def test_the_middle_of_a_long_message_is_left_out():
    assert shortened("a" * 1000) == "a" * 1000
    cut = shortened("a" * 500 + "b" * 10**6 + "c" * 500)
    assert len(cut) < 1100
    assert cut.startswith("aaa")
    assert cut.endswith("ccc")
    assert "characters ..." in cut
