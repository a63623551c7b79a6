"""Commands on programs of NumPy, JAX and torch: functions, modules, exported programs, types."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.commands import cli, refused

JAX = """
import jax
import jax.numpy as jnp
import numpy as np

params = {"w": jnp.array([0.5, 0.5, 0.5]), "b": jnp.zeros((4, 3), "bfloat16")}

def loss(params, x, kind="sum"):
    y = x * params["w"] + params["b"]
    return getattr(y, kind)()

@jax.jit
def wide(x):
    return x * np.array([1, 2, 3])

def halves(x):
    return x.astype(jnp.float16)

def built():
    from graphir.runtime import from_jax
    return from_jax(loss, params, np.ones((4, 3), "float32"))
"""
TORCH = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width=2):
        super().__init__()
        self.fc = nn.Linear(3, width)
        nn.init.constant_(self.fc.weight, 0.1)

    def forward(self, x):
        return self.fc(x).double()

class Sized(nn.Module):
    def __init__(self, width):
        super().__init__()

net = Net(4)
exported = torch.export.export(Net(), (torch.ones(2, 3),))

def scaled(x, y):
    return helper(x) * y

def helper(x):
    return x.to(torch.bfloat16)

def failing(x):
    return helper(x) @ torch.ones(7)

def steps(x):
    for _ in range(int(x.abs().max()) + 1):
        x = x.double()
    return x.numpy()
"""
NUMPY = """
import numpy as np

def scale(x, w):
    return x * np.float64(w)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    for name, text in (("jx", JAX), ("tch", TORCH), ("npy", NUMPY)):
        (tmp_path / f"{name}_of_tests.py").write_text(text)
    np.save(tmp_path / "x.npy", np.arange(12, dtype="float32").reshape(4, 3) / 7)
    np.save(tmp_path / "wide.npy", np.full((4, 3), 0.1))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield tmp_path
    for name in [name for name in sys.modules if name.endswith("_of_tests")]:
        del sys.modules[name]


def casts(*argv: str) -> list[tuple[str, ...]]:
    status, out, err = cli(*argv, "--format", "json")
    assert status == 0, err
    facts = json.loads(out)["casts"]
    return sorted((x["operand"], x["from"], x["to"], x["location"]["line"]) for x in facts)


LOSS = ("jx_of_tests.py:loss", "--input", "jx_of_tests.py:params", "--input")


def test_a_function_of_jax_by_types_and_by_values() -> None:
    pytest.importorskip("jax")
    rows = [("rhs", "bfloat16", "float32", 9)]
    assert casts("casts", *LOSS, "float32[4, 3]") == rows
    assert casts("casts", *LOSS, "x.npy", "--input", "kind='ravel'") == rows
    assert casts("audit", *LOSS, "x.npy") == rows
    assert casts("casts", "jx_of_tests:built") == rows  # a function that returns a graph
    (row,) = casts("casts", "jx_of_tests.py:wide", "--input", "float16[3]")
    assert row[:3] == ("rhs", "int32", "float16")
    status, out, _ = cli("run", *LOSS, "x.npy")
    assert status == 0 and out.startswith("output0: float32[]\n4.71428")


def test_values_of_jax_are_of_its_dtypes() -> None:
    pytest.importorskip("jax")
    out = cli("run", "jx_of_tests.py:halves", "--input", "wide.npy")[1]
    assert out.startswith("output0: float16[4, 3]\n[[0.1")


def test_a_module_of_torch_its_class_and_its_exported_program() -> None:
    pytest.importorskip("torch")
    rows = [("x", "float32", "float64", 12)]
    for name in ("Net", "net"):
        assert casts("casts", f"tch_of_tests.py:{name}", "--input", "float32[5, 3]") == rows
        assert casts("audit", f"tch_of_tests.py:{name}", "--input", "x.npy") == rows
    assert casts("casts", "tch_of_tests.py:exported") == rows
    out = cli("run", "tch_of_tests.py:net", "--input", "x=x.npy")[1]
    assert out.startswith("output0: float64[4, 4]")
    message = refused(3, "casts", "tch_of_tests.py:Sized", "--input", "x.npy")
    assert "whose constructor takes arguments" in message
    assert "name an instance: net = Sized(...)" in message


def test_a_function_of_torch_and_of_numpy() -> None:
    pytest.importorskip("torch")
    types = ("--input", "float32[4]", "--input", "y=float64[4]")
    assert casts("casts", "tch_of_tests.py:scaled", *types) == [
        ("lhs", "bfloat16", "float64", 22),
        ("x", "float32", "bfloat16", 25),
    ]
    types = ("--input", "float32[n]", "--input", "3")
    assert casts("casts", "npy_of_tests.py:scale", *types) == [("lhs", "float32", "float64", 5)]
    out = cli("run", "npy_of_tests.py:scale", "--input", "x.npy", "--input", "7")[1]
    assert out.startswith("output0: float64[4, 3]\n[[ 0.")


def test_a_function_of_torch_whose_values_leave_is_recorded_for_one_run() -> None:
    pytest.importorskip("torch")
    program = ("tch_of_tests.py:steps", "--input")
    for command in ("casts", "audit"):
        for value in ("x.npy", "float32[4, 3]"):
            assert casts(command, *program, value)[0] == ("x", "float32", "float64", 32)
            out = cli(command, *program, value)[1]
            assert "decided by values: int at tch_of_tests.py:31:20 is read as a Python" in out
            assert ("drawn values, seed 0: x float32[4, 3]" in out) is ("[" in value)
    assert "float64" in cli("annotate", *program, "x.npy")[1]
    assert cli("draw", *program, "x.npy")[0] == 0
    assert "record_torch(f, *args)" in refused(3, "run", *program, "x.npy")


@pytest.mark.parametrize("command", ["lower", "draw", "plan"])
def test_every_command_on_graphs_takes_programs(command: str) -> None:
    pytest.importorskip("torch")
    status, out, err = cli(command, "tch_of_tests.py:net", "--input", "x.npy")
    assert status == 0 and out, err


def test_diff_and_export_take_programs(folder: Path) -> None:
    pytest.importorskip("jax")
    wide = ("jx_of_tests.py:wide", "--input", "float16[3]")
    status, out, _ = cli("diff", *wide, "--rules", "numpy")
    assert status == 1 and "the result is float64 under numpy and float16 under jax_x32" in out
    assert cli("diff", *wide, "numpy")[:2] == (status, out)
    assert cli("export", *wide, "--to", "stablehlo", "-o", "out.mlir")[0] == 0
    assert "f16" in (folder / "out.mlir").read_text()


def test_errors_of_a_program_have_its_frames_alone() -> None:
    pytest.importorskip("torch")
    for command in ("casts", "audit"):
        status, out, err = cli(command, "tch_of_tests.py:failing", "--input", "x.npy")
        assert (status, out) == (3, "")
        assert err.startswith("Traceback") and "line 28, in failing" in err
        assert "size mismatch" in err.splitlines()[-1] and "/runtime/" not in err


def test_a_script_that_does_not_load(folder: Path) -> None:
    (folder / "syntax_of_tests.py").write_text("x = (\n")
    status, _, err = cli("casts", "syntax_of_tests.py:x")
    assert status == 3 and "SyntaxError" in err and "/runtime/" not in err
    (folder / "import_of_tests.py").write_text("import absent_of_tests\n")
    status, _, err = cli("casts", "import_of_tests.py:x")
    assert status == 3 and "import_of_tests.py" in err and "absent_of_tests" in err


def test_what_is_refused() -> None:
    pytest.importorskip("torch")
    message = refused(3, "run", "tch_of_tests.py:net", "--input", "float32[4, 3]")
    assert "an input has a type alone; give each by --input x.npy" in message
    assert "by pickle" in refused(3, "casts", "net.pt2")
    named = ("casts", "tch_of_tests.py:net", "--input", "float32[n, 3]")
    assert "write sizes, as in float32[8, 3]" in refused(3, *named)
    assert "missing a required argument: 'x'" in refused(3, "casts", "tch_of_tests.py:net")


def test_a_library_by_option() -> None:
    pytest.importorskip("jax")
    types = ("--input", "float32[4]", "--input", "y=float64[4]", "--library", "numpy")
    assert refused(3, "casts", "jx_of_tests.py:halves", *types)


def test_an_audit_in_several_dtypes_has_a_column_each() -> None:
    pytest.importorskip("torch")
    several = ("audit", "tch_of_tests.py:net", "--input", "x.npy", "--as-dtype", "bfloat16,float16")
    status, out, _ = cli(*several)
    assert status == 0 and out.split()[:3] == ["layer", "bfloat16", "float16"]
    assert "fc " in out and "% of the error" in out
    assert set(json.loads(cli(*several, "--format", "json")[1])) == {"bfloat16", "float16"}
    assert "name one dtype" in refused(2, *several, "--format", "html")


TORCH_SCRIPT = """\
import torch

def grey(rgb):
    r, g = rgb
    return (r + g) // 2

print(grey(torch.tensor([[200, 10], [100, 20]], dtype=torch.uint8)).tolist())
"""
NUMPY_BESIDE_TORCH = """\
from pathlib import Path
import numpy as np
import torch

former = Path("runs").read_text() if Path("runs").exists() else ""
Path("runs").write_text(former + ".")
print(np.arange(3) * 2)
"""
JAX_SCRIPT = """\
import jax.numpy as jnp
import numpy as np

x = np.linspace(0, 1, 4).astype(np.float32)
y = jnp.asarray(x) * 2
print(np.asarray(y) + x, x.sum())
"""


def test_a_script_of_torch_is_recorded_and_one_of_jax_runs(folder: Path) -> None:
    pytest.importorskip("torch")
    (folder / "script_tch.py").write_text(TORCH_SCRIPT)
    status, out, _ = cli("audit", "script_tch.py")
    assert status == 0 and "because line 5 wraps 1 of 2 elements" in out.splitlines()[0]
    (folder / "script_tch_np.py").write_text(NUMPY_BESIDE_TORCH)
    status, _, err = cli("audit", "script_tch_np.py")
    assert status == 3 and "--library numpy" in err and (folder / "runs").read_text() == "."
    assert cli("audit", "script_tch_np.py", "--library", "numpy")[0] == 0
    pytest.importorskip("jax")
    (folder / "script_jx.py").write_text(JAX_SCRIPT)
    status, out, _ = cli("audit", "script_jx.py")
    assert status == 0 and "jax at script_jx.py:5:5 computes outside of NumPy" in out
