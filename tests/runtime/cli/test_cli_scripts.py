"""`graphir audit` of scripts, modules, methods; texts and dicts as inputs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.commands import cli, refused

FLAT = """
import sys
import numpy as np

data = np.loadtxt("data.csv", delimiter=",", dtype=np.float32, skiprows=1)
weights = np.array([0.5, 0.25])
total = (data[:, 1:] * weights).sum(axis=1)
if __name__ == "__main__":
    print("arguments", *sys.argv[1:])
    print(f"mean {total.mean():.3f}")
    sys.exit()
unreachable = total * np.float16(2)
"""
WORK = """
from dataclasses import dataclass
import numpy as np
from ..tables import LUT
from .. import tables

def bright(image, config=None, mode="fast", path=None):
    assert (config, mode, path) == ({"gain": 2.0, "name": "lut"}, "slow", "im.npy.txt")
    return LUT[image] + LUT[image]

def flags(config):
    return np.arange(3) * config["scale"], config["flags"]

class Engine:
    def __init__(self):
        self.scale = np.array([1.5, 2.5])

    def apply(self, image):
        self.last = image * self.scale
        return self.last * tables.SCALE

engine = Engine()
"""


UNREAD = """
import os
import numpy as np

def main():
    x = np.linspace(0, 1, 50, dtype=np.float32)
    low, high = np.percentile(x, [5, 95])
    y = np.pad(x, 2, mode="edge") * np.float64(high - low)
    z = y - y.mean()
    assert z.shape == (54,){end}

main()
"""
ENDS = {
    "": "y - y.mean() in line 9: float64",
    "print(y.dtype)": "y in line 11: float64",
    "np.savez(os.devnull, z=z)": "z in line 11: float64",
    "z.tofile(os.devnull)": "z in line 11: float64",
    'print(f"{y.dtype}, {z.max():.2f}")': "z.max() in line 11: float64",
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "flat.py").write_text(FLAT)
    (tmp_path / "data.csv").write_text("a,b,c\n1,2,3\n4,5.5,6\n")
    inner = tmp_path / "shop_of_tests" / "inner"
    inner.mkdir(parents=True)
    (inner / "__init__.py").write_text("")
    (inner.parent / "__init__.py").write_text("")
    (inner.parent / "tables.py").write_text(
        "import numpy as np\nLUT = (np.arange(256) ** 2 // 255).astype(np.uint8)\nSCALE = 2.0\n"
    )
    (inner / "work.py").write_text(WORK)
    np.save(tmp_path / "im.npy", np.array([200, 100], np.uint8))
    np.save(tmp_path / "f.npy", np.ones(2, np.float32))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] == "shop_of_tests"]:
        del sys.modules[name]


def document(*argv: str) -> dict[str, Any]:
    status, out, _ = cli("audit", *argv)
    assert status == 0
    return json.loads(out)


def test_a_flat_script_runs_as_main_with_its_arguments() -> None:
    argv, main = sys.argv, sys.modules["__main__"]
    status, out, err = cli("audit", "flat.py", "--", "--epochs", "3")
    assert status == 0 and (sys.argv, sys.modules["__main__"]) == (argv, main)
    assert "arguments --epochs 3\nmean 3.000\n" in err
    assert "total: float64, 0 of 2 differ" in out and "total.mean() in line 10: float64" in out
    assert "are float64 because line 7 multiplies by `weights`, a float64 of line 6" in out
    assert "loadtxt" not in err + out  # data


@pytest.mark.parametrize("end", ENDS)
def test_values_of_main_are_those_that_leave_or_that_nothing_reads(folder: Path, end: str) -> None:
    name = f"unread{[*ENDS].index(end)}.py"  # sources are kept by their names
    (folder / name).write_text(UNREAD.replace("{end}", f"\n    {end}"))
    status, out, _ = cli("audit", name)
    assert status == 0 and "because line 8 multiplies by" in out
    assert "not seen" not in out and "not recorded" not in out  # what NumPy's own code does
    assert ENDS[end] in out and ("arrays that it never uses count" in out) is (not end)
    (folder / "empty.py").write_text("import numpy as np\nprint(3)\n")
    assert cli("audit", "empty.py")[0] == 3  # nothing was recorded


def test_a_screen_has_the_worst_rows_and_verbose_has_all(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder / "a_folder_with_a_long_name"
    folder.mkdir()
    lines = (
        f"    y{i} = np.pad(x, {i}).astype(np.float16) * np.float64({i})" for i in range(1, 30)
    )
    text = "\n".join(["import numpy as np", "def f(x):", *lines, "    return y1, y29, sum(x)"])
    (folder / "rows_and_rows_of_casts.py").write_text(text)
    monkeypatch.setattr("graphir.runtime.cli.graphs_and_casts.terminal_width", lambda _: 80)
    call = "audit", f"{folder.name}/rows_and_rows_of_casts.py:f", "--input", "f.npy"
    short, whole = (cli(*call, *extent)[1].rstrip().split("\n") for extent in ((), ("-v",)))
    assert len(short) <= 24 < len(whole) and "more rows: -v)" in " ".join(short)
    rows = [x for x in short if ".py" in x]
    assert rows and all(f"{folder.name}/rows_and_rows_of_casts.py:" in x for x in rows)
    assert len(cli(*call, "-q")[1].split("\n")) < 8


def test_the_report_of_a_script_is_alone_on_stdout() -> None:
    outputs = document("flat.py", "--format", "json")["outputs"]
    assert [output["name"] for output in outputs] == ["total", "total.mean() in line 10"]


@pytest.mark.parametrize("name", ["shop_of_tests.inner.work", "shop_of_tests/inner/work.py"])
def test_a_module_of_a_package_with_relative_imports(name: str) -> None:
    entries = ("--input", "config.gain=2.0", "--input", "config.name='lut'", "--input")
    values = (*entries, "mode='slow'", "--input", "path='im.npy.txt'", "--format", "json")
    (loss,) = document(f"{name}:bright", "--input", "im.npy", *values)["losses"]
    assert (loss["kind"], loss["location"]["line"], loss["measured"]["changed"]) == ("wrap", 9, 1)


def test_a_method_of_an_object_of_a_module() -> None:
    out = cli("audit", "shop_of_tests.inner.work:engine.apply", "--input", "f.npy")[1]
    assert "output0 and output1 are float64 because line 19 multiplies by `self.scale`" in out
    assert "output1: " in out and "output2: " not in out  # the result, and what it sets


def test_a_method_of_a_class_names_the_form_that_works() -> None:
    name = "shop_of_tests.inner.work:"
    error = refused(3, "audit", f"{name}Engine.apply", "--input", "f.npy")
    assert f"name one: {name}engine.apply" in error
    given = "audit", f"{name}Engine.apply", "--input", f"{name}engine", "--input", "f.npy"
    assert cli(*given)[0] == 3  # a text, for objects are named by their file


def test_dicts_from_literals() -> None:
    value = "{'scale': 0.5, 'flags': [1, None]}"
    out = cli("audit", "shop_of_tests.inner.work:flags", "--input", value)
    assert out[0] == 0 and "output0: float64" in out[1]


def test_what_cannot_be_asked() -> None:
    assert "no module 'shop_of_tests.absent'; got missing shop" in refused(
        3, "audit", "shop_of_tests.absent:f"
    )
    assert "takes no arguments after --" in refused(
        3, "audit", "shop_of_tests.inner.work:bright", "--", "3"
    )
    assert "give the arguments of a script after --" in refused(
        3, "audit", "flat.py", "--input", "3"
    )
    assert "--input \"'slow'\" is a text" in refused(
        3, "audit", "shop_of_tests.inner.work:flags", "--input", "slow"
    )
    assert "absent.py: no such file" in refused(3, "audit", "absent.py")
    assert "name what it defines" in refused(3, "casts", "flat.py")
