"""Gates on programs of which a part is not seen: what a trace folds, and what no graph enters."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from graphir.passes import cast_report
from graphir.passes.reports import REPORT_FORMATS
from graphir.runtime.cli.main import Status
from tests.support.commands import cli, refused
from tests.support.sarif import checked_results
from tests.support.tables import every, sampled

NUMPY = """
import math
import numpy as np

HELD = np.arange(8, dtype=np.float32)

class Model:
    def __init__(self):
        self.weights = [np.ones(8, np.float32)]
    def __call__(self, x):
        return x * self.weights[0]

model = Model()

def window(n):
    k = np.arange(n)
    return 0.5 - 0.5 * np.cos(2 * np.pi * k / (n - 1))

def windowed(x):
    return x * np.cos(np.arange(8) * 0.1).astype(np.float32)

def read(data):
    return np.frombuffer(data, dtype=np.int16) / np.float32(32768)

def beside_read(x):
    return x + np.frombuffer(b"abcdefghabcdefgh", dtype=np.int16) / np.float32(32768)

def scaled(x):
    return x * np.int32(0.25)

def held(x):
    return x * HELD

def singular(x):
    return np.linalg.svd(x)[1]

def chosen(x):
    return x if x[0] > 0 else x * np.float64(2)

def doubled(x):
    return x * 2

def halved(x):
    return x * (x.shape[0] / 2)
"""
JAX = """
import jax
import jax.numpy as jnp
import numpy as np

HELD, ARRAY = np.arange(8, dtype=np.float32), jnp.arange(8, dtype=jnp.float32)

def scaled(x):
    return x * jnp.asarray(0.25, jnp.int8).astype(jnp.float32)

def typed(x):
    return x * jnp.int8(0.25).astype(jnp.float32)

def listed(x):
    return x + jnp.array([0.25] * 8, dtype=jnp.float32)

@jax.jit
def held(x):
    return jax.nn.gelu(x * HELD) + ARRAY

def windowed(x):
    return jnp.abs(x) * np.cos(np.arange(8)).astype(np.float32)

def called_back(x):
    return jax.pure_callback(lambda y: y, jax.ShapeDtypeStruct(x.shape, x.dtype), x)

def scattered(x):
    return jnp.zeros(8, x.dtype).at[jnp.arange(8)].add(x)

def convolved(x):
    return jnp.convolve(x, x)
"""
TORCH = """
import numpy as np
import torch

HELD = torch.arange(8, dtype=torch.float32)

def scaled(x):
    return x * torch.tensor(0.25, dtype=torch.int8).float()

def listed(x):
    return x + torch.tensor([0.25] * 8)

def held(x):
    return torch.nn.functional.gelu(x * HELD)

def windowed(x):
    return x * torch.from_numpy(np.cos(np.arange(8)).astype(np.float32))

def convolved(x):
    return torch.nn.functional.max_pool1d(torch.conv1d(x[None, None], HELD[None, None, :3]), 2)
"""
MODEL = """<ir_version: 8, opset_import: ["" : 17]>
g (bool c, float[2,3] x) => (float[n,3] y)
{ y = If(c) <
    then_branch = t () => (float[2,3] a) { h = Cast<to=10>(x) a = Cast<to=1>(h) },
    else_branch = e () => (float[1,3] b) {
      i = Constant<value_ints=[0]>() k = Cast<to=10>(x) d = Cast<to=1>(k) b = Gather(d, i) }> }"""

TYPE = ("--input", "float32[8]")
SEEN, FOUND, UNSEEN = Status.FINE, Status.FINDINGS, Status.UNSEEN


@pytest.fixture(autouse=True)
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folded_np.py").write_text(NUMPY)
    (tmp_path / "folded_jx.py").write_text(JAX)
    (tmp_path / "folded_tch.py").write_text(TORCH)
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.arange(1, 9, dtype=np.float32))


@sampled(3)
@every(
    ("name", "inputs", "status", "place"),
    [
        ("window", ("--input", "64"), FOUND, "folded_np.py:17:31"),
        ("windowed", TYPE, FOUND, "folded_np.py:20:23"),
        ("windowed", ("--input", "x.npy"), FOUND, "folded_np.py:20:23"),
        ("read", ("--input", "b'abcdefgh'"), FOUND, "folded_np.py:23:12"),
        ("beside_read", TYPE, FOUND, "folded_np.py:26:16"),
        ("held", ("--input", "float32[8]"), SEEN, ""),
        ("model", TYPE, SEEN, ""),
        ("model", ("--input", "float32[n, 8]"), SEEN, ""),
        ("singular", ("--input", "float32[4, 4]"), SEEN, ""),
        ("singular", ("--input", "int32[4, 4]"), UNSEEN, "converts between int32 and float64"),
        ("chosen", ("--input", "x.npy"), UNSEEN, "another branch did not run"),
        ("doubled", ("--input", "3.0"), UNSEEN, "the result at doubled"),
    ],
)
def test_what_numpy_computes_at_once_is_recorded_or_named(
    name: str, inputs: tuple[str, ...], status: Status, place: str
) -> None:
    found, out, err = cli("casts", f"folded_np.py:{name}", *inputs, "--fail-on", "any")
    assert (found, place in out) == (status, True), (out, err)
    assert ("no casts seen" in out or "casts may be missing" in out) == (status is UNSEEN)
    assert ("--unseen pass lets that pass" in err) == (status is UNSEEN)
    assert cli("casts", f"folded_np.py:{name}", *inputs)[0] == 0
    passing = ("--fail-on", "any", "--unseen", "pass")
    assert cli("casts", f"folded_np.py:{name}", *inputs, *passing)[0] == (status is FOUND)
    drawing = cli("draw", f"folded_np.py:{name}", *inputs, "--fail-on", "any")
    assert drawing[0] == status


def test_casts_and_audit_see_the_same_program() -> None:
    for name, inputs in (("window", ("--input", "64")), ("windowed", TYPE), ("beside_read", TYPE)):
        documents = [
            json.loads(cli(command, f"folded_np.py:{name}", *inputs, "--format", "json")[1])
            for command in ("casts", "audit")
        ]
        places = [
            {(x["location"]["line"], x["op"], x["from"], x["to"]) for x in document["casts"]}
            for document in documents
        ]
        assert places[0] == places[1] and places[0]


def test_a_trace_that_folds_is_named_where_nothing_can_be_drawn() -> None:
    """Sizes with names have no values to draw, and other rules none to record."""
    for inputs in (("--input", "float32[n]"), (*TYPE, "--rules", "jax")):
        status, out, _ = cli("casts", "folded_np.py:scaled", *inputs, "--fail-on", "lossy")
        assert "a constant int32[] at folded_np.py:29:12 is made while the program is traced" in out
        assert status in (FOUND, UNSEEN)


@every(
    ("name", "status", "part"),
    [
        ("scaled", UNSEEN, "jnp.asarray at folded_jx.py:9:16 makes int8 0 of 0.25"),
        ("typed", UNSEEN, "a scalar type of jnp at folded_jx.py:12:16 makes int8 0 of 0.25"),
        ("listed", SEEN, ""),
        ("held", SEEN, ""),
        ("windowed", UNSEEN, "a constant float32[8] at folded_jx.py:22:12 is made while"),
        ("called_back", UNSEEN, "jax.pure_callback at folded_jx.py:25:12 is not entered"),
        ("scattered", SEEN, ""),
        ("convolved", SEEN, ""),
    ],
)
def test_jax(name: str, status: Status, part: str) -> None:
    jax = pytest.importorskip("jax")
    asarray = jax.numpy.asarray
    found, out, err = cli("casts", f"folded_jx.py:{name}", *TYPE, "--fail-on", "lossy")
    assert (found, part in out) == (status, True), (out, err)
    assert jax.numpy.asarray is asarray


def test_threads_trace_at_once_and_leave_the_constructors_as_they_were() -> None:
    jax = pytest.importorskip("jax")
    from concurrent.futures import ThreadPoolExecutor
    from threading import Barrier

    from graphir.runtime.sources import from_jax

    owners = [(jax.numpy, "asarray"), (jax.numpy, "array"), (type(jax.numpy.int32), "__call__")]
    before = [getattr(*each) for each in owners]
    barrier = Barrier(4)

    def program(x: object) -> object:
        barrier.wait(60)
        scaled = x * jax.numpy.asarray(0.25, jax.numpy.int8)
        barrier.wait(60)
        return scaled

    with ThreadPoolExecutor(4) as pool:
        graphs = list(pool.map(lambda _: from_jax(program, np.ones(3, np.float32)), range(4)))
    assert [[part.what for part in graph.provenance.unseen] for graph in graphs] == [
        ["jnp.asarray"]
    ] * 4
    assert [getattr(*each) for each in owners] == before


@every(
    ("name", "status", "part"),
    [
        ("scaled", UNSEEN, "torch.tensor at folded_tch.py:8:16 makes int8 0 of 0.25"),
        ("listed", SEEN, ""),
        ("held", SEEN, ""),
        ("windowed", UNSEEN, "a constant float32[8] at folded_tch.py:17:16 is made while"),
        ("convolved", SEEN, ""),
    ],
)
def test_torch(name: str, status: Status, part: str) -> None:
    pytest.importorskip("torch")
    found, out, err = cli("casts", f"folded_tch.py:{name}", *TYPE, "--fail-on", "lossy")
    assert (found, part in out) == (status, True), (out, err)


@pytest.fixture
def opaque_branches(tmp_path: Path) -> str:
    """The path of a model with an If whose branches no graph has, and that hold four casts."""
    pytest.importorskip("onnx")
    from onnx import parser, save

    save(parser.parse_model(MODEL), tmp_path / "if.onnx")
    return "if.onnx"


@every("form", REPORT_FORMATS)
def test_every_format_names_branches_that_were_not_entered(opaque_branches: str, form: str) -> None:
    run = ("--input", "True", "--input", "float32[2, 3]")
    for command, inputs in (("casts", ()), ("audit", run)):
        argv = (command, opaque_branches, *inputs, "--format", form)
        status, out, _ = cli(*argv, "--fail-on", "any")
        assert status == UNSEEN
        plain = out.replace("\\", "")
        if form == "sarif":
            assert checked_results(out)[0]["level"] == "warning"
        if form == "json":
            (part,) = json.loads(out)["unseen"]
            assert part["hides_casts"] and part["hides"] == (command == "audit")
        else:
            assert "onnx.If at If" in plain or "onnx.If at <code>If" in plain
        if form in ("text", "details", "markdown", "html"):
            assert "casts may be missing" in plain
        if command == "casts":
            assert "4 nodes that may cast" in plain
        assert cli(*argv, "--fail-on", "any", "--unseen", "pass")[0] == SEEN


def test_a_table_of_dtypes_names_them_first(opaque_branches: str) -> None:
    run = ("--input", "True", "--input", "float32[2, 3]", "--as-dtype", "float16,bfloat16")
    status, out, err = cli("audit", opaque_branches, *run, "--fail-on", "float64->*")
    assert status == UNSEEN and "a part of the program was not seen" in err
    assert out.startswith("not seen (the error of 1 of 1 output is unknown, and casts may be")
    assert "onnx.If at If" in out.splitlines()[0]


def test_comparisons_are_gates_too(opaque_branches: str) -> None:
    for argv, status in {
        ("diff", opaque_branches, "numpy"): UNSEEN,
        ("diff", opaque_branches, "numpy", "--unseen", "pass"): SEEN,
        ("diff", "folded_np.py:windowed", "jax", *TYPE): FOUND,
        ("diff", "folded_np.py:held", "numpy_legacy", *TYPE): SEEN,
    }.items():
        assert cli(*argv)[0] == status, argv


def test_a_call_that_was_read_from_text_may_cast(tmp_path: Path) -> None:
    from graphir import Graph

    text = (
        "graph @g rules=jax (%x: float32[3]) -> (float32[3]) {\n"
        '  %0 = call(%x) {callee="jax.f", types=(float32[3])} : (float32[3]) loc("a.py":1:1)\n'
        "  %1 = part(%0) {index=0} : float32[3]\n  return %1\n}"
    )
    (part,) = cast_report(Graph.parse(text)).unseen
    assert (part.what, part.casts, part.hides) == ("jax.f", True, False)


# -- drawn inputs


def test_audits_draw_values_of_types() -> None:
    argv = ("audit", "folded_np.py:held", *TYPE, "--format", "json")
    first, again, other = (json.loads(cli(*argv, *more)[1]) for more in ((), (), ("--seed", "1")))
    assert first == again and first["outputs"][0]["differing"] is not None
    assert first["outputs"] != other["outputs"]
    note = "drawn values, seed 0: x float32[8] (standard normal)"
    assert note in first["sentences"] and note.replace("seed 0", "seed 1") not in first["sentences"]
    for form in REPORT_FORMATS:
        out, err = cli("audit", "folded_np.py:held", *TYPE, "--format", form)[1:]
        assert note in (err if form in ("concise", "github") else out.replace("\\", "")), form


@every("dtype", ("bool", "int8", "uint64", "float16", "float64", "complex64"))
def test_values_are_drawn_of_every_family(dtype: str) -> None:
    out = cli("audit", "folded_np.py:held", "--input", f"x={dtype}[8]")[1]
    assert f"drawn values, seed 0: x {dtype}[8] (" in out


def test_audits_of_other_libraries_and_models_draw_values(opaque_branches: str) -> None:
    pytest.importorskip("jax")
    pytest.importorskip("torch")
    for program in ("folded_jx.py:held", "folded_tch.py:held"):
        status, out, _ = cli("audit", program, *TYPE)
        assert status == 0 and "drawn values, seed 0: x float32[8]" in out
    status, out, _ = cli(
        "audit", opaque_branches, "--input", "c=True", "--input", "x=float32[2, 3]"
    )
    assert status == 0 and "drawn values, seed 0: x float32[2, 3]" in out


def test_named_sizes_are_refused_with_what_to_write() -> None:
    message = refused(3, "audit", "folded_np.py:held", "--input", "float32[n]")
    assert "write sizes, as in float32[8]" in message
    message = refused(3, "casts", "folded_np.py:halved", "--input", "float32[n]")
    assert message.startswith("graphir: folded_np.py:44:17: n / 2: the size n has a name")
    assert "write n // 2 for a whole size, or write the size as a number" in message
    assert cli("casts", "folded_np.py:halved", "--input", "float32[8]")[0] == 0
