"""What others might have written: files of each kind, and every way in which they go wrong."""

from __future__ import annotations

import io
import json
import random
import re
import zipfile
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from graphir import DType, Graph, lattice, lattices, ops
from graphir.passes import lower
from graphir.text.printer import graph_text, large_constants
from tests.graphir.text.texts import EXPLICIT, QUESTION, every_dtype, every_op

Files = dict[str, bytes]
"""A file to load, under its suffix, and what lies beside it."""

# -- honest files


def _graphs() -> list[Graph]:
    g = Graph("net.large", rules="jax")
    x = g.input("bfloat16", ("n", 100), name="x")
    w = g.constant(np.linspace(-1, 1, 100, dtype=np.float32))
    bits = g.constant[DType.bfloat16](np.arange(200).reshape(2, 100))
    with g.layer("encoder"):
        g.output(ops.softmax(x * w + 0.5), ops.matmul(bits, w))
    return [g, lower(g), every_op(), every_dtype()]


def _beside(graph: Graph) -> bytes:
    file = io.BytesIO()
    arrays = {
        name: one.view(f"u{one.itemsize}") if one.dtype.isbuiltin == 2 else one
        for name, one in large_constants(graph).items()
    }
    np.savez(file, allow_pickle=False, **arrays)
    return file.getvalue()


def _array(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def _archive(packed: bool = False, **arrays: np.ndarray) -> bytes:
    file = io.BytesIO()
    (np.savez_compressed if packed else np.savez)(file, **arrays)
    return file.getvalue()


@cache
def corpus() -> list[Files]:
    """Files as this project and NumPy write them."""
    graphs = _graphs()
    found: list[Files] = [
        {"gir": graph_text(g).encode(), "gir.npz": _beside(g)} for g in graphs[:2]
    ]
    texts = [graph_text(g) for g in graphs] + [graph_text(every_op(), locations=False)]
    for text in texts[2:]:
        head = text[: text.index(" -> ")]
        found += [
            {"gir": f"{head} -> () {{\n{line}\n}}".encode()}
            for line in text.split("\n")[1:-2]
            if line.count("%") == 1 + len(re.findall(r"%[a-z]\w*", line))
        ]
    found += [{"gir": one.encode()} for one in (QUESTION, EXPLICIT, *texts[2:])]
    arrays = [
        np.arange(6.0).reshape(2, 3).T,
        np.zeros(0, "i2"),
        np.array(3 + 1j),
        np.zeros(3, "V2"),
    ]
    found += [{"npy": _array(one)} for one in arrays]
    found += [{"npz": _archive(packed, a=one)} for packed in (True, False) for one in arrays]
    edges = {name: lattice(name).edges for name in list(lattices())[:10]}
    for name, one in edges.items():
        named = {str(low): list(map(str, above)) for low, above in one.items()}
        found.append({"json": json.dumps({"name": name, "source": "x", "edges": named}).encode()})
    return found + [{"number": one} for one in (b"1", b"-0x1F", b"2.5e-3", b"1+2j", b"True")]


@cache
def _kinds() -> list[list[Files]]:
    """The corpus by kind; graphs, of which there are most, come most often."""
    kinds: dict[tuple[str, ...], list[Files]] = {}
    for files in corpus():
        kinds.setdefault(tuple(files), []).append(files)
    objects = np.array([_Left()], object)
    kinds["npy",] += [{"npy": _array(objects)}]
    kinds["npz",] += [{"npz": _archive(a=objects)}]
    return [*kinds.values(), *[kinds["gir",]] * 4]


class _Left:
    """What runs if it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return eval, ("1",)


# -- ways in which they go wrong

LARGEST = 1 << 22
"""The bytes of a file: time and memory are in proportion to them."""

HOSTILE = """
    999999999999 1000000000000000000000000 -1 0 1e400 0x1p+99999 nan inf true none [ ] [[[ ( ) { }
    npz("c0") npz("c9") complex( float32[999999999999] float32[] [0,999999999999999999999]
    [10000000000,10000000000] float64 object weak_int index %0 %x %"\\ud800" "\\u0000" n*n*n
    (n+1)//2 n//0 because( loc("f":1:1) // -> : ; , = { } rules=none from=max tf32=away # return
    __import__("os") eval graph @ O |O |V2147483647 <U999999999 (99999999999,) (-1,) True, PK
""".split()  # noqa: SIM905 -- as it would be typed
CHARACTERS = '٣²℘é\x00\ud800\u202e\ufeff\U0001f600\x1b"\\%[](){}\n\t \x85\u2028'
_WORDS = re.compile(rb"\w+|\s+|.", re.DOTALL)


def _at(r: random.Random, data: bytes) -> int:
    return r.randrange(len(data) + 1)


def _bits(r: random.Random, data: bytes) -> bytes:
    made = bytearray(data)
    for _ in range(r.choice((1, 1, 2, 8))):
        if made:
            made[r.randrange(len(made))] ^= 1 << r.randrange(8)
    return bytes(made)


def _cut(r: random.Random, data: bytes) -> bytes:
    a, b = sorted((_at(r, data), _at(r, data)))
    return r.choice((data[:a], data[a:], data[:a] + data[b:]))


def _splice(r: random.Random, data: bytes) -> bytes:
    suffix_of = [one for files in corpus() for one in files.values()]
    other, a = r.choice(suffix_of), _at(r, data)
    b, c = sorted((_at(r, other), _at(r, other)))
    return data[:a] + other[b:c] + data[a if r.random() < 0.5 else _at(r, data) :]


def _tokens(r: random.Random, data: bytes) -> bytes:
    words = _WORDS.findall(data)
    for _ in range(r.choice((1, 1, 2, 5))):
        at, kind = r.randrange(len(words) + 1), r.random()
        other = r.choice(HOSTILE).encode("utf-8", "surrogatepass") if kind < 0.6 else b""
        other = other or r.choice(words or [b""])
        words[at : at + (r.random() < 0.6)] = [] if kind > 0.9 else [other]
    return b"".join(words)


def _lines(r: random.Random, data: bytes) -> bytes:
    lines = data.split(b"\n")
    at = r.randrange(len(lines))
    times = r.choice((2,) * 10 + (3,) * 9 + (2000,))
    again = [lines[at]] * min(times, LARGEST // (1 + len(lines[at])))
    return b"\n".join(lines[:at] + again + lines[at + 1 :])


_INFLATED = (b"9" * 12, b"9" * 30, b"1" + b"0" * 5000, b"0", b"-1", b"1e9", b"1e-999") * 5 + (
    b"9" * 10**6,
)


def _numbers(r: random.Random, data: bytes) -> bytes:
    found = list(re.finditer(rb"\d+", data))
    if not found:
        return data + b"9" * 5000
    one = r.choice(found)
    digits = r.choice(_INFLATED)
    return data[: one.start()] + digits + data[one.end() :]


def _deep(r: random.Random, data: bytes) -> bytes:
    at, what = _at(r, data), r.choice((b"[", b"(", b"{", b'{"a":', b'"', b"-", b"[[", b"%0, "))
    return data[:at] + what * r.choice((100,) * 9 + (3000,) * 9 + (100_000,)) + data[at:]


def _long(r: random.Random, data: bytes) -> bytes:
    at, what = _at(r, data), r.choice((b"a", b" ", b"n+", b"n*", b"1,", b"\\", b"#", b"\xc3\xa9"))
    return data[:at] + what * r.choice((1000,) * 19 + (300_000,)) + data[at:]


def _character(r: random.Random, data: bytes) -> bytes:
    at = _at(r, data)
    return data[:at] + r.choice(CHARACTERS).encode("utf-8", "surrogatepass") + data[at:]


def _header(r: random.Random, data: bytes) -> bytes:
    """Four bytes of the headers of a zip archive or an array become a telling number."""
    marks = [m.start() for m in re.finditer(rb"PK\x01\x02|PK\x03\x04|PK\x05\x06|\x93NUM", data)]
    if not marks:
        return _bits(r, data)
    at, made = r.choice(marks) + r.randrange(4, 50), bytearray(data)
    size = r.choice((1, 2, 4))
    value = r.choice((0, 1, 8, 12, 14, 255, 2**16 - 1, 2**31 - 1, 2**32 - 1)) % 256**size
    made[at : at + size] = value.to_bytes(size, "little")
    return bytes(made)


def _claims(r: random.Random, data: bytes) -> bytes:
    """An array's header says something else, and is as long as it was, or not."""
    shapes = (b"(99999999999,)", b"(2, 3", b"(4611686018427387904, 8)", b"(-1,)", b"()", b"(" * 300)
    descrs = (b"|O", b"<f8", b"|V2147483647", b"<U536870911", b"V0", b">c16", b"[('a','<f4')]")
    new, where = (r.choice(shapes), rb"\([\d, ]*\)") if r.random() < 0.6 else (
        r.choice(descrs), rb"[<|>]\w\d+")  # fmt: skip
    found = re.search(rb"'descr.*?" + where, data)
    if not found:
        return _tokens(r, data)
    end = found.end()
    start = end - len(re.search(where + rb"$", found.group()).group())  # pyright: ignore
    rest = data[end:] if r.random() < 0.5 else data[end + len(new) - (end - start) :]
    return data[:start] + new + rest


def _packed(r: random.Random, data: bytes) -> bytes:
    """An archive of something else, or packed in another way: of zeros without end, too."""
    file, members = io.BytesIO(), [data, corpus()[0]["gir.npz"]]
    header = _array(np.zeros(1, np.uint8))[:128]
    big = 10 ** r.choice((5, 7, 8))
    members.append(header.replace(b"(1,)", b"(%d,)" % big) + bytes(min(big, 10**7)))
    method = r.choice(
        (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    )
    with zipfile.ZipFile(file, "w", method, compresslevel=1) as archive:
        for name in r.choice((("c0", "c1"), ("a",), ("a", "../b", "é"))):
            archive.writestr(name + r.choice((".npy", "")), r.choice(members))
    return file.getvalue()


Mutation = Callable[[random.Random, bytes], bytes]
ANY: tuple[Mutation, ...] = (_bits, _cut, _splice, _tokens, _lines, _numbers, _deep, _long)
BINARY: tuple[Mutation, ...] = (_bits, _cut, _splice, _header, _header, _claims, _claims, _packed)


def mutated(r: random.Random) -> Files:
    """Files of one kind, one of them gone wrong in one to three ways."""
    files = dict(r.choice(r.choice(_kinds())))
    suffix = r.choice(list(files))
    for _ in range(r.choice((1, 1, 2, 3))):
        ways = BINARY if suffix.endswith(("npz", "npy")) else (*ANY, _character)
        files[suffix] = r.choice(ways)(r, files[suffix])[:LARGEST]
    return files
