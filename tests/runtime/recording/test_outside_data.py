"""Arrays that other packages and random generators make for a program are its data."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from graphir.runtime import record
from tests.support.commands import cli
from tests.support.tables import every


class Image:
    """An object of another package that NumPy takes for an array."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array([200, 100], np.uint8)


def of_objects() -> Any:
    pixels = np.asarray(Image())
    return pixels + pixels


def of_a_generator(seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    samples = rng.integers(150, 200, 3, dtype=np.uint8)
    rng.shuffle(samples)
    return samples + samples, rng.normal(size=2).astype(np.float32) * np.float64(2)


def of_a_given_generator(rng: Any) -> Any:
    samples = rng.integers(150, 200, size=3).astype(np.uint8)
    return samples + samples


def of_old_random_numbers() -> Any:
    state = np.random.RandomState(3)
    return state.randint(150, 200, 3).astype(np.uint8) * np.uint8(2)


@every(
    ("program", "arguments"),
    [
        (of_objects, lambda: ()),
        (of_a_given_generator, lambda: (np.random.default_rng(5),)),
        (of_old_random_numbers, lambda: ()),
    ],
)
def test_they_are_inputs_and_what_follows_is_audited(program: Any, arguments: Any) -> None:
    recording = record(program, *arguments())
    assert recording.result.tolist() == program(*arguments()).tolist()
    assert [note.reason for note in recording.notes] == ["is taken as given: it is data"]
    report = recording.audit()
    assert not report.unseen and [row.kind for row in report.losses] == ["wrap"]


def test_a_generator_gives_the_numbers_of_a_plain_run() -> None:
    recording = record(of_a_generator)
    for mine, plain in zip(recording.result, of_a_generator(), strict=True):
        assert mine.tolist() == plain.tolist()
    assert recording.audit().outputs[1].is_known


LIBRARY = """
import numpy as np
class Reader:
    def read(self, channel):
        table = np.zeros(2, np.uint8)
        table[:] = [200, 100]
        return table + np.uint8(channel)
def load(function=None):
    return Reader().read(0) if function is None else function(Reader().read(0))
"""


@pytest.fixture
def library(tmp_path: Path) -> Any:
    folder = tmp_path / "site-packages"
    folder.mkdir()
    file = folder / "reader_of_tests.py"
    file.write_text(LIBRARY)
    module: Any = ModuleType("reader_of_tests")
    module.__file__ = str(file)
    sys.modules[module.__name__] = module
    exec(compile(LIBRARY, str(file), "exec"), vars(module))
    yield module
    del sys.modules[module.__name__]


def test_functions_and_methods_of_installed_packages_give_data(library: Any) -> None:
    def program() -> Any:
        reader = library.Reader()
        table = library.load()
        return table + table, reader.read(channel=1) * np.uint8(2)

    recording = record(program)
    assert [mine.tolist() for mine in recording.result] == [x.tolist() for x in program()]
    assert sorted(note.what for note in recording.notes) == ["load", "read"]
    assert [row.kind for row in recording.audit().losses] == ["wrap", "wrap"]


def test_functions_of_the_program_that_a_package_calls_are_recorded(library: Any) -> None:
    recording = record(lambda: library.load(lambda table: table + table))
    assert "wrap" in [row.kind for row in recording.audit().losses]


def test_tables_of_pandas(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"price": [2.5, 3.25], "quantity": [200, 150]})

    def program() -> Any:
        prices = table["price"].to_numpy().astype(np.float32)
        quantities = table["quantity"].values.astype(np.int16)
        ids = np.asarray(table["quantity"])
        return prices * quantities, quantities * np.int16(300), ids * 2

    recording = record(program)
    for mine, plain in zip(recording.result, program(), strict=True):
        assert mine.dtype == plain.dtype and mine.tolist() == plain.tolist()
    assert [note.what for note in recording.notes] == ["to_numpy", "values", "asarray"]
    report = recording.audit()
    assert not report.unseen and [row.kind for row in report.losses] == ["wrap"]


SCRIPT = """
from typing import NamedTuple
import numpy as np

class Batch(NamedTuple):
    x: np.ndarray
    y: int

class Tracker:
    def __init__(self):
        self.history = []

tracker = Tracker()
data = np.array([1.0, 2.0]).astype(np.float32)
for step in range(20):
    tracker.history.append(data * step)
batch = Batch(data * 2, 3)
results = {"a": data * 3}
print("%.2f of %d" % (batch.x.sum(), results["a"].argmax()))
"""


def test_outputs_of_a_script_have_the_names_of_its_variables(tmp_path: Path) -> None:
    (tmp_path / "names.py").write_text(SCRIPT)
    status, out, err = cli("audit", str(tmp_path / "names.py"), "-v")
    names = [line.partition(":")[0] for line in out.splitlines() if " differ from " in line]
    printed = ["batch.x.sum() in line 19", "results['a'].argmax() in line 19"]
    assert status == 0 and names == ["data", "batch.x", "results['a']", *printed]
    assert err.startswith("6.00 of 1") and "not seen" not in out
