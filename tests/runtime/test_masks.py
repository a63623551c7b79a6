"""Masks of NumPy's functions, under jit and record: the truth of each value, whatever its dtype."""

from __future__ import annotations

from itertools import islice, product
from typing import Any

import numpy as np
import pytest

from graphir import GraphirError
from graphir.runtime import interpret, jit, record

Y = np.arange(1.0, 9.0)
WHOLE = [2, 0, 3, 0, 0, -2, 4, 0]
PARTS = [0.5, 0.0, -0.0, np.nan, 2.0, 0.0, 0.25, 1.0]
MASKS: dict[str, Any] = {
    "list of bits": [1, 0, 1, 0, 0, 1, 1, 0],
    "list of bools": [bool(value) for value in WHOLE],
    "list of ints": WHOLE,
    "list of floats": PARTS,
    "tuple": tuple(WHOLE),
    "bits": np.array([1, 0, 1, 0, 0, 1, 1, 0]),
    "int64": np.array([2, 0, 3, 0, 0, -2, 256, 0]),
    "int8": np.array(WHOLE, np.int8),
    "uint8": np.array([2, 0, 3, 0, 0, 254, 64, 0], np.uint8),
    "float64": np.array(PARTS),
    "float16": np.array(PARTS, np.float16) * np.float16(6e-5),
    "complex": np.array(PARTS) * 1j,
    "bool": np.array(WHOLE, bool),
    "zeros": np.zeros(8, int),
    "two axes": np.array(WHOLE).reshape(2, 4),
    "one value": [4],
    "number": 2,
    "part of a number": 0.5,
    "too short": [2, 0, 4],
}
PROGRAMS = [
    "np.place(y, m, [10.0, 20.0, 30.0])",
    "np.place(y, m, 7)",
    "np.place(y, m, [7])",
    "np.place(y, m, y[:3] * 10)",
    "np.place(y.reshape(2, 4), m, [10.0, 20.0, 30.0])",
    "z = np.arange(8); np.place(z, m, y[:3]); y += z",
    "np.putmask(y, m, [10.0, 20.0, 30.0])",
    "np.putmask(y, m, 7)",
    "np.putmask(y, m, y * 10)",
    "np.putmask(y, m, y[2])",
    "np.putmask(y, m, np.array(3.0))",
    "np.copyto(y, -1, where=m)",
    "np.copyto(y, y * 10, where=m)",
    "y += np.where(m, y, -y)",
    "y += np.where(m, 1.0, y)",
    "y += np.select([m], [y], -1)",
    "y += np.select([m, y > 3], [y, y * 2], -1)",
    "y += np.extract(m, y).sum()",
    "y += np.compress(m, y).sum()",
    "y += y.compress(m).sum()",
    "y += np.compress(m, y.reshape(4, 2), axis=0).sum()",
    "np.add(y, 1, out=y, where=m)",
    "y += np.sum(y, where=m)",
    "y += np.max(y, where=m, initial=0)",
    "y += np.any(m) + np.all(m)",
    "y += np.logical_and(m, y > 2)",
    "y += np.logical_not(m)",
    "y += np.count_nonzero(m)",
    "y += np.where(np.logical_or(m, y > 7), y, 0)",
    "y[np.asarray(m).astype(bool)] = 3",
]
OF_VALUES = ("np.extract", "np.compress", "y.compress")
"""Functions whose results have a size that depends on the mask: refused of a traced mask."""


def outcome(text: str, mask: Any, is_argument: bool, kind: str) -> Any:
    space: dict[str, Any] = {"np": np, "m": mask}
    exec(f"def program(y{', m' * is_argument}):\n    {text}\n    return y + 0", space)
    arguments = (Y.copy(), mask) if is_argument else (Y.copy(),)
    try:
        with np.errstate(all="ignore"):
            if kind == "jit":
                return jit(space["program"])(*arguments).tolist()
            if kind == "NumPy":
                return space["program"](*arguments).tolist()
            recording = record(space["program"], *arguments)
            again = interpret(recording.graph, *recording.inputs)
            again = again if isinstance(again, tuple) else (again,)
            assert all(map(np.array_equal, again, recording.outputs))
            return recording.result.tolist()
    except Exception as error:
        return error


def differences(every: int) -> list[Any]:
    wrong: list[Any] = []
    for text, name, is_argument in islice(product(PROGRAMS, MASKS, (False, True)), 0, None, every):
        mask = MASKS[name]
        if is_argument and not isinstance(mask, np.ndarray):
            continue
        expected = outcome(text, mask, is_argument, "NumPy")
        for kind in ("jit", "record"):
            found = outcome(text, mask, is_argument, kind)
            if isinstance(expected, Exception):
                same = isinstance(found, type(expected))
            else:
                same = found == expected
            refused = is_argument and any(each in text for each in OF_VALUES)
            if not same and not (refused and isinstance(found, GraphirError)):
                wrong.append((text, name, is_argument, kind, found, expected))
    return wrong


@pytest.mark.filterwarnings("ignore")
def test_a_mask_is_true_where_its_values_are() -> None:
    assert not differences(13)


@pytest.mark.exhaustive
@pytest.mark.filterwarnings("ignore")
def test_all_masks_are_true_where_their_values_are() -> None:
    assert not differences(1)
