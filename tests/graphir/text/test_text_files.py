"""Graphs saved and loaded, and files that were damaged."""

from __future__ import annotations

import io
import os
import pickle
import re
import zipfile

import numpy as np
import pytest

from graphir import DType, Graph, GraphirError, ParseError, ops
from graphir.runtime.cli.main import main
from graphir.text.printer import symbol_text
from tests.graphir.text.texts import check_same, every_dtype, every_op


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
        head, rest = (tmp_path / f"{name}.txt").read_text("utf-8").split("graph @", 1)
        assert head.splitlines()[0] == "graphir 1"
        assert head.count("\n") == 1 + (name == "big")  # the archive's digest
        assert f"graph @{rest}" == str(g) + "\n"
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
    # As before texts had a version and a digest, so that the archive itself is read.
    path.write_text(f"{g}\n", encoding="utf-8")
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
    told = r"g\.graph with g\.graph\.npz: .*(g\.graph\.npz|npz\(|no array named)"
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
    with pytest.raises(GraphirError, match=r"npz is not a readable .*No such file"):
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


# -- the version line and the digest


def pair(tmp_path, values, name="net.gir"):
    g = Graph("net")
    g.output(g.constant(np.asarray(values, np.float32)))
    g.save(tmp_path / name)
    return g


def test_a_saved_text_begins_with_its_version(tmp_path):
    pair(tmp_path, np.arange(3.0))
    text = (tmp_path / "net.gir").read_text()
    assert text.startswith("graphir 1\ngraph @net ")
    assert str(Graph.parse(text)) == text.removeprefix("graphir 1\n").rstrip("\n")
    with pytest.raises(ParseError, match=r"line 1, column 9: a text of version 2; .* version 1"):
        Graph.parse(text.replace("graphir 1", "graphir 2"))
    with pytest.raises(ParseError, match="the version of the format"):
        Graph.parse(text.replace("graphir 1", "graphir one"))


def test_text_and_archive_of_two_saves_are_refused(tmp_path):
    pair(tmp_path, np.arange(100.0))
    old = (tmp_path / "net.gir.npz").read_bytes()
    g = pair(tmp_path, np.arange(100.0) + 1)
    assert (tmp_path / "net.gir").read_text().startswith('graphir 1\narchive sha256 "')
    check_same(g, Graph.load(tmp_path / "net.gir"))
    (tmp_path / "net.gir.npz").write_bytes(old)
    with pytest.raises(ParseError, match="not the archive that was saved with this text"):
        Graph.load(tmp_path / "net.gir")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="has no FIFOs")
def test_an_archive_that_is_a_fifo_is_refused_at_once(tmp_path):
    pair(tmp_path, np.arange(100.0))
    (tmp_path / "net.gir.npz").unlink()
    os.mkfifo(tmp_path / "net.gir.npz")
    with pytest.raises(ParseError, match="not a regular file"):
        Graph.load(tmp_path / "net.gir")


def full_disk(monkeypatch, after=0):
    """Let syncs beyond the first ones fail, as on a full disk."""
    real, count = os.fsync, iter(range(100))

    def fsync(descriptor):
        if next(count) >= after:
            raise OSError(28, "No space left on device")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)


@pytest.mark.parametrize("after", [0, 1])
def test_a_save_that_fails_leaves_the_old_files(tmp_path, monkeypatch, after):
    old = pair(tmp_path, np.arange(100.0))
    full_disk(monkeypatch, after)
    with pytest.raises(OSError, match=r"No space left on device: .*net\.gir"):
        pair(tmp_path, np.arange(100.0) + 1)
    monkeypatch.undo()
    check_same(old, Graph.load(tmp_path / "net.gir"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net.gir", "net.gir.npz"]


@pytest.mark.skipif(os.name != "posix", reason="asks for permissions and links")
def test_a_save_keeps_permissions_and_links(tmp_path):
    pair(tmp_path, np.arange(3.0), "real.gir")
    (tmp_path / "real.gir").chmod(0o640)
    (tmp_path / "net.gir").symlink_to("real.gir")
    g = pair(tmp_path, np.arange(4.0))
    assert (tmp_path / "net.gir").is_symlink()
    assert (tmp_path / "real.gir").stat().st_mode & 0o777 == 0o640
    check_same(g, Graph.load(tmp_path / "real.gir"))


def test_every_output_of_a_command_replaces_the_old_file_whole(tmp_path, monkeypatch, capsys):
    pair(tmp_path, np.arange(3.0))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").write_text("old")
    full_disk(monkeypatch)
    for command in ("casts", "draw", "lower", "run", "export --to python"):
        name, *more = command.split()
        wants = ["--output", "out"]
        assert main([name, "net.gir", *more, *wants]) == 3, command
        assert "No space left" in capsys.readouterr().err
        assert (tmp_path / "out").read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["net.gir", "out"]
