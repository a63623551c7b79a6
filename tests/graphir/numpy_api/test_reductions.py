"""Reductions with initial= and where=, and of x[mask]: NumPy's bits under each front end."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from graphir import Graph, GraphirError
from graphir.runtime import Program, interpret, jit, record
from tests.runtime.view_programs import differs
from tests.support.tables import every, sampled

RANDOM = np.random.default_rng(11)
DATA: dict[str, Any] = {
    "v": RANDOM.normal(size=317),
    "m": RANDOM.normal(size=(23, 31)),
    "t": RANDOM.normal(size=(5, 7, 3)),
    "g": RANDOM.normal(size=(23, 31)).astype(np.float32),
    "h": RANDOM.normal(size=(6, 9)).astype(np.float16),
    "c": RANDOM.normal(size=(9, 4)) + 1j * RANDOM.normal(size=(9, 4)),
    "i": RANDOM.integers(-40, 40, 317).astype(np.int32),
    "u": RANDOM.integers(0, 200, (23, 31)).astype(np.uint8),
    "b": RANDOM.random(317) > 0.4,
    "k": RANDOM.random((23, 31)) > 0.4,
    "r": RANDOM.random(31) > 0.4,
    "n": np.zeros((23, 31), bool),
    "L": (RANDOM.normal(size=(113, 97)) * np.exp(RANDOM.uniform(-9, 9, (113, 97)))).astype("f4"),
    "D": RANDOM.normal(size=(31, 11, 37)),
    "K": RANDOM.random((113, 97)) > 0.4,
    "I": RANDOM.integers(-(2**60), 2**60, (113, 97)),
}
RUNS = """
v.sum(initial=0.1); np.sum(m, initial=2.5); m.sum(0, initial=0.1); m.sum(axis=1, initial=3)
t.sum((1, 2), initial=0.1); t.sum((0, 1), initial=0); t.sum(1, initial=0.3); g.sum(initial=0.1)
g.sum(0, dtype="f8", initial=0.1); c.sum(initial=1j); c.sum(0, initial=0.5); h.sum(initial=0)
i.sum(initial=7); i.sum(initial=2.9); u.sum(0, initial=300); b.sum(initial=3)
np.sum(i, initial=i[0]); v.prod(initial=0.1); m.prod(0, initial=0.1); t.prod((0, 2), initial=3.3)
i.prod(initial=3); t.prod(1, initial=0.7, keepdims=True); t.prod(1, where=t > 0, initial=0.7)
np.max(v, initial=3); m.max(0, initial=0.5); m.min(initial=-9.0, keepdims=True)
u.max(1, initial=99); v[:0].max(initial=2); m[:0].min(axis=0, initial=2.0); v.min(initial=np.nan)
v.max(initial=v[3]); i.max(initial=None); np.max(v, where=b, initial=-1)
m.max(0, where=k, initial=-np.inf); m.min(1, where=r, initial=9.0); u.max(where=n, initial=3)
np.any(v > 1, where=b); np.all(m < 1, axis=0, where=k); (u > 9).all(where=r); np.any(v, where=b)
i.sum(where=b); u.sum(0, where=k); u.sum(where=r); b.sum(where=b); u.prod(where=k)
np.sum(u, 1, where=r, keepdims=True); m.sum(0, where=k); t.sum((0, 1), where=t > 0)
g.sum(axis=0, where=k, dtype="f8"); c.sum(0, where=c.real > 0)
m.sum(0, where=k[:, :1], initial=0.1); m.prod(where=k); v.prod(where=b); m.mean(0, where=k)
g.mean(0, where=k); u.mean(where=k); i.mean(where=b); np.mean(b, where=b); m.mean(axis=0, where=n)
c.mean(0, where=c.real > 0); h.mean(0, where=h > 0); m.var(0, where=k); g.std(0, where=k, ddof=1)
c.var(0, where=c.real > 0); u.var(0, where=k); m.std(axis=0, where=r, keepdims=True)
np.add.reduce(i, where=b, initial=3); np.add.reduce(m, where=k)
np.maximum.reduce(m, axis=None, initial=1.5); np.logical_or.reduce(v > 1, where=b)
np.multiply.reduce(m, axis=1, where=k, initial=2.0); np.sum(m, where=True, initial=0)
np.logical_and.reduce(k, axis=0, initial=False); np.nansum(m); u.T.sum(0, where=k.T)
v.sum(where=b); m.mean(1, where=k); v.std(where=b); v.sum(initial=-0.0); m.T.sum(0, where=k.T)
t.sum((0, 2), initial=0.1); L.sum(where=K); L.mean(where=K); L.sum(1, where=K); L.var(where=K)
L[1:-1, 2:].sum(where=K[1:-1, 2:].copy()); L.T[3:].mean(where=K.T[3:].copy()); L.sum(initial=3)
L.sum(where=K.T.copy().T); L.sum(1, where=K[0]); L.sum(where=K[:, :1])
L.T.std(0, where=K.T, ddof=1); v.sum(where=np.True_)
"""
SELECTIONS = """
i[b].sum(); i[b].mean(); np.sum(u[k]); u[k].prod(); v[b].max(); v[b].min(); np.max(i[b], axis=0)
u[k].min(); b[b].all(); np.any(v[b] > 1); v[b].prod(); np.count_nonzero(i[b]); u[n].sum()
i[b].max(initial=99); (v * 2)[b].max(); m[v[:23] > 0].max(); np.count_nonzero(v[b] > 0)
i[b].sum(dtype="i8"); u[n].any(); m[k].any(); (i[b] + 1).sum(); v[b].sum(); v[b].mean()
v[b].std(ddof=1); g[k].var(); L[K].sum(); L[K].mean(dtype="f8"); (L[K] * 2 - 1).sum()
c[c.real > 0].mean(); m[b[:23]].sum(axis=0); m[b[:23]].mean(0)
m[b[:23]].std(axis=0); m[b[:23]].max(axis=-2); m[b[:23]].sum()
t[t[:, :, 0] > 0].mean(axis=0); t[b[:5]].min(axis=0); L.T[K.T].sum(); v[::-1][b].sum()
np.count_nonzero(m[b[:23]], axis=0); v[v > 99].sum(); v[v > 99].mean(); m[n[:, 0]].sum(0)
I[K].mean()
"""
CALLS = """
h.sum(initial=0.5); h.sum(where=h > 0); h.sum(0); h.T.std(axis=1); v.sum(initial=v[0])
c.prod(where=c.real > 0); v.sum(initial=None); m.T.prod(initial=2.0); h.sum(initial=True)
np.bitwise_or.reduce(i, initial=3)
"""
"""Reductions in an order that no op has: the graph calls NumPy."""
REFUSED = {
    "h[h > 0].sum()": r"use x\.astype\(np\.float32\)",
    "t.transpose(0, 2, 1)[b[:5]].sum()": r"as x lies in memory; pass x\.copy",
    "i.max(initial=2**40)": "out of bounds for int32",
    "v.max(where=b)": "specify .initial",
    "v.sum(where=i)": "Cannot cast .* from dtype.'int32'. to dtype.'bool'.",
    "m[r[:23]].max(axis=1)": "the size of",
    "v[b].size": r"np\.count_nonzero\(mask\) is its size",
    "len(v[b])": r"np\.count_nonzero\(mask\) is its size",
}
RAISES = ["u[n].max()", "v[v > 99].min()"]
"""NumPy raises too: there is no extreme of no elements."""


def _function(line: str) -> tuple[Any, list[Any]]:
    names = [name for name in DATA if re.search(rf"(?<![\w.]){name}\b(?!=)", line)]
    space: dict[str, Any] = {"np": np, "__name__": "user"}
    exec(f"def f({', '.join(names)}):\n    return {line}\n", space)
    return space["f"], [DATA[name].copy() for name in names]


def _lines(text: str) -> list[str]:
    return re.split(r"; |\n", text.strip())


@pytest.mark.filterwarnings("ignore")
@sampled(2)
@every("line", _lines(RUNS + SELECTIONS.lstrip() + CALLS.lstrip()))
def test_reductions_under_jit_have_numpys_bits(line: str) -> None:
    function, args = _function(line)
    with np.errstate(all="ignore"):
        expected, jitted = function(*args), jit(function)
        for _ in range(2):
            assert not differs(jitted(*args), expected)


@pytest.mark.filterwarnings("ignore")
@sampled(2)
@every("line", _lines(RUNS))
def test_recorded_reductions_are_replayed_with_numpys_bits(line: str) -> None:
    function, args = _function(line)
    recording = record(function, *args)
    if recording.outputs:  # a NumPy bool is none
        assert not recording.notes
        for replay in (interpret(recording.graph, *recording.inputs),
                       Program(recording.graph)(*recording.inputs)):  # fmt: skip
            assert not differs(replay, function(*args))


@pytest.mark.filterwarnings("ignore")
@every("line", list(REFUSED) + RAISES)
def test_reductions_in_an_order_that_no_op_has_are_refused(line: str) -> None:
    function, args = _function(line)
    with pytest.raises(GraphirError, match=REFUSED.get(line, "out of range")) as refused:
        jit(function)(*args)
    assert refused.value.location is not None and refused.value.location.line == 2


@pytest.mark.filterwarnings("ignore")
def test_recorded_masked_sums_of_halves_are_taken_as_given() -> None:
    function, args = _function("h.sum(where=h > 0)")
    recording = record(function, *args)
    assert [str(note).partition(" is ")[2][:14] for note in recording.notes] == ["taken as given"]
    assert interpret(recording.graph, *recording.inputs) == function(*args)


@every("rules", ["numpy", "max", "jax"])
def test_reductions_of_symbols_take_masks_and_starts(rules: str) -> None:
    x, mask = DATA["m"], DATA["k"]
    with Graph("masked", rules=rules) as g:
        s, k = g.input("float64", x.shape), g.input("bool", mask.shape)
        g.output(
            np.sum(s, axis=0, where=k, initial=0.5),
            np.max(s, initial=0.5, where=k),
            np.any(s > 1, where=mask),
            np.mean(s, axis=0, where=k),
            np.std(s, axis=0, where=k),
            np.min(x, where=k, initial=9.0),
        )
    expected = (
        np.sum(x, axis=0, where=mask, initial=0.5),
        np.max(x, initial=0.5, where=mask),
        np.any(x > 1, where=mask),
        np.mean(x, axis=0, where=mask),
        np.std(x, axis=0, where=mask),
        np.min(x, where=mask, initial=9.0),
    )
    for ours, theirs in zip(interpret(g, x, mask), expected, strict=True):
        assert not differs(ours, theirs)


ORDERS = """
m.T.sum(); np.sum(m.T, 0); t.transpose(2, 0, 1).sum((0, 2)); t.swapaxes(0, 1).mean(); g.T.mean(1)
m.T[:10].sum(); m.T[:10].std(axis=0, ddof=1); t.T.var((0, 1), keepdims=True); m.T.prod(axis=1)
np.add.reduce(t.T, axis=(1, 2), keepdims=True); c.T.sum(); u.T.mean(); u.T.sum(0, where=k.T)
np.asfortranarray(m).sum(1, keepdims=True); m.T.mean(0, where=k.T); m.T.sum(initial=0.5)
L[1:-1, 1:-1].sum(); L[1:-1, 1:-1].mean(); L[1:-1, 1:-1].var(); np.std(L[:, 1:], axis=(0, 1))
L.T[1:].sum(); L.T[1:].mean(); D[:, 1:].sum((1, 2)); D[:, 1:, :-1].mean(); D[:, :, 1:].sum((0, 2))
np.broadcast_to(L[:, None], (113, 3, 97)).sum(); np.broadcast_to(v, (40, 317)).T.mean()
np.add.reduce(L[1:-1, 1:-1], axis=(0, 1)); np.add.reduce(L[:, 1:], axis=None, dtype="f8")
L.sum(dtype="f8"); L.mean(dtype="f8"); I.mean(); I.sum(dtype="f8"); I.var(); I.mean(1)
L.std(dtype="f8"); np.average(I); np.average(L[1:], weights=K[1:]); np.nansum(L, dtype="f8")
np.nanmean(I); D.T[1:].var(); I[1:, 1:].sum(dtype="f8"); I.T[1:].mean(); np.nanmean(I[1:, 1:])
D.var(dtype="f4"); D.std((0, 1), dtype="f4"); I.var(dtype="f4"); I[1:, 1:].mean(where=K[1:, 1:])
"""


@pytest.mark.filterwarnings("ignore:overflow")
@sampled(2)
@every("line", _lines(ORDERS))
def test_sums_add_along_the_axes_as_they_lie_in_memory(line: str) -> None:
    function, args = _function(line)
    recording = record(function, *args)
    assert not differs(interpret(recording.graph, *recording.inputs), function(*args))
    if "prod" not in line and "T.sum(initial" not in line:
        assert not differs(jit(function)(*args), function(*args))


def test_a_start_that_is_an_argument_may_be_another_at_each_call() -> None:
    @jit
    def total(x: Any, start: Any, flag: Any) -> Any:
        return x.sum(initial=start), x.max(initial=start, where=flag), x.sum(axis=0, where=flag)

    x = np.array([[0.1, 0.2], [0.3, 0.4]])
    for start, flag in ((0.7, True), (3, False), (-2.5, True), (0.7, True)):
        expected = total.__wrapped__(x, start, flag)
        for ours, theirs in zip(total(x, start, flag), expected, strict=True):
            assert not differs(ours, theirs)
    with pytest.raises(GraphirError, match="initial=300 is not representable in int8"):
        jit(lambda x, k: x.max(initial=k))(np.ones(3, np.int8), 300)


@every("native", ["off", "auto"])
def test_a_program_adds_arrays_of_many_blocks_as_numpy_does(native: Any) -> None:
    x = np.random.default_rng(5).normal(size=(700, 900)).astype(np.float32)

    def sums(x: Any, mask: Any) -> Any:
        inner = (x * 3)[1:-1, 1:-1]
        return (x + 1).sum(where=mask), (x - 1).mean(1, where=mask), inner.mean()

    program = Program(record(sums, x, x > 0).graph, native=native)
    for mask in (x > 0.3, x < 1):
        for ours, theirs in zip(program(x, mask), sums(x, mask), strict=True):
            assert not differs(ours, np.asarray(theirs))
    assert not differs(jit(lambda x: (x + 1)[x > 0].var())(x), (x + 1)[x > 0].var())
