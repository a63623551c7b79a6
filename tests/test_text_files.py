"""Graphs saved and loaded, and files that were damaged."""

from __future__ import annotations

import io
import pickle
import re
import zipfile

import numpy as np
import pytest

from graphir import DType, Graph, GraphirError, ParseError, ops
from graphir.printer import symbol_text
from tests.texts import check_same, every_dtype, every_op


def big_graph():
    g = Graph("big", rules="explicit")
    rng = np.random.default_rng(7)
    for dtype in DType:
        bits = np.zeros(80, np.complex128) if dtype.is_complex else rng.integers(0, 2, 80)
        g.emit(
            ops.constant, (), {"dtype": dtype, "value": bits.astype(dtype.storage).reshape(4, 20)}
        )
        g.scalar(1, dtype)
    return g


def test_save_and_load(tmp_path):
    for name, g in {"big": big_graph(), "ops": every_op(), "dtypes": every_dtype()}.items():
        g.save(tmp_path / f"{name}.txt")
        again = Graph.load(str(tmp_path / f"{name}.txt"))
        assert str(again) == str(g)
        assert (tmp_path / f"{name}.txt").read_text("utf-8") == str(g) + "\n"
    check_same(big_graph(), Graph.load(tmp_path / "big.txt"))
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "big.txt",
        "big.txt.npz",
        "dtypes.txt",
        "ops.txt",
    ]
    Graph.load(tmp_path / "big.txt").verify()


def test_large_constants_are_named_in_order():
    g = big_graph()
    assert re.findall(r'npz\("(c\d+)"\)', str(g)) == [f"c{i}" for i in range(len(DType))]
    line = symbol_text(g.symbols[4])
    assert line.startswith('%4 = constant {dtype=int16, value=npz("c2")} : int16[4, 20] loc(')


def test_constants_are_given():
    g = Graph("g")
    g.constant(np.arange(100))
    text = str(g)
    assert "..." not in text
    with pytest.raises(ParseError, match=r'npz\("c0"\) .* Graph.parse\(text, {\'c0\': array}\)'):
        Graph.parse(text)
    check_same(g, Graph.parse(text, {"c0": np.arange(100)}))
    for bad in ({}, {"c1": np.arange(100)}, {"c0": np.arange(99)}, {"c0": np.arange(100.0)}):
        with pytest.raises(ParseError, match="c0"):
            Graph.parse(text, bad)
    for bad in (list(range(100)), None, np.array([None] * 100)):
        with pytest.raises(ParseError, match="c0"):
            Graph.parse(text, {"c0": bad})
    with pytest.raises(ParseError, match="bits"):
        Graph.parse(text.replace("int64", "int4"), {"c0": np.arange(100, dtype=np.uint8)})


def saved(tmp_path):
    path = tmp_path / "g.graph"
    g = Graph("g")
    g.constant(np.arange(100, dtype=np.float32))
    g.constant[DType.bfloat16](np.arange(100))
    g.save(path)
    return path, tmp_path / "g.graph.npz"


def corruptions():
    def rezip(**arrays):
        file = io.BytesIO()
        np.savez(file, **arrays)
        return file.getvalue()

    def raw(**members):
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            for name, data in members.items():
                archive.writestr(name + ".npy", data)
        return file.getvalue()

    npy = io.BytesIO()
    np.save(npy, np.arange(100, dtype=np.float32))
    c0, c1 = np.arange(100, dtype=np.float32), np.zeros(100, np.uint16)
    header = b"\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (%s,), }"
    return {
        "nothing": b"",
        "text": b"graph",
        "an array": npy.getvalue(),
        "a pickle": pickle.dumps({"c0": c0, "c1": c1}),
        "half": rezip(c0=c0, c1=c1)[:300],
        "a missing key": rezip(c0=c0),
        "no keys": rezip(),
        "another dtype": rezip(c0=c0.astype(np.float64), c1=c1),
        "another shape": rezip(c0=c0[:99], c1=c1),
        "other bits": rezip(c0=c0, c1=c1.astype(np.uint8)),
        "objects": rezip(c0=np.array([{}] * 100), c1=c1),
        "members that are text": raw(c0="1", c1="2"),
        "a vast shape": raw(c0=header % b"9" * 30, c1="2"),
        "a vast array": raw(c0=(header % b"99999999999").ljust(127) + b"\n", c1="2"),
    }


@pytest.mark.parametrize("kind", corruptions())
def test_a_corrupt_archive(tmp_path, kind):
    path, archive = saved(tmp_path)
    archive.write_bytes(corruptions()[kind])
    told = r"g\.graph with g\.graph\.npz: .*(g\.graph\.npz|npz\()"
    with pytest.raises(ParseError, match=told) as caught:
        Graph.load(path)
    assert (caught.value.line, caught.value.column) in ((2, 39), (3, 40))


def test_bytes_of_an_archive_changed(tmp_path):
    path, archive = saved(tmp_path)
    good, text = archive.read_bytes(), str(Graph.load(path))
    rng = np.random.default_rng(3)
    for at in rng.integers(0, len(good), 200):
        archive.write_bytes(
            good[:at] + bytes([good[at] ^ int(rng.integers(1, 256))]) + good[at + 1 :]
        )
        try:
            assert str(Graph.load(path)) == text
        except GraphirError as error:
            assert "g.graph.npz" in str(error)


def test_missing_files(tmp_path):
    path, archive = saved(tmp_path)
    archive.unlink()
    with pytest.raises(GraphirError, match=r"npz, .* is missing"):
        Graph.load(path)
    with pytest.raises(FileNotFoundError):
        Graph.load(tmp_path / "none.graph")
    with pytest.raises(FileNotFoundError):
        Graph("g").save(tmp_path / "no folder" / "g.graph")
    path.write_bytes(b"graph \xff")
    with pytest.raises(ParseError, match="UTF-8"):
        Graph.load(path)


def test_graphs_whose_names_share_a_stem_share_no_constants(tmp_path):
    for version in (1, 2):
        g = Graph("g")
        g.output(g.constant(np.full(100, version)))
        g.save(tmp_path / f"model.v{version}")
    (symbol,) = Graph.load(tmp_path / "model.v1").outputs
    assert symbol.attrs["value"][0] == 1
