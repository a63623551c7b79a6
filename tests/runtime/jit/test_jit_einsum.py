"""np.einsum with `optimize` multiplies its factors as NumPy does, to the last bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from graphir.runtime import jit
from tests.support.evaluator import same
from tests.support.tables import every, sampled

CASES: list[tuple[str, tuple[tuple[int, ...], ...]]] = [
    ("ij,jk->ik", ((300, 500), (500, 40))),
    ("ij,kj->ik", ((150, 400), (200, 400))),
    ("ij,kj->ki", ((150, 400), (200, 400))),
    ("ij,j->i", ((300, 200), (200,))),
    ("i,ij,j->", ((300,), (300, 200), (200,))),
    ("ij,jk,kl->il", ((60, 200), (200, 90), (90, 50))),
    ("bij,bjk->bik", ((4, 60, 80), (4, 80, 50))),
    ("bhqd,bhkd->bhqk", ((2, 3, 60, 64), (2, 3, 70, 64))),
    ("...ij,...jk", ((3, 30, 40), (3, 40, 20))),
    ("ii,ij->j", ((40, 40), (40, 30))),
    ("ij,ij->ij", ((30, 40), (30, 40))),
    ("ij,ij->i", ((30, 40), (30, 40))),
    ("i,j->ij", ((30,), (40,))),
    ("ij->ji", ((4, 5),)),
    ("ijk,ilm,njm,nlk->", ((8, 9, 7), (8, 5, 6), (4, 9, 6), (4, 5, 7))),
]
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "c": lambda x: x,
    "f": np.asfortranarray,
    "single": lambda x: x.astype(np.float32),
    "int": lambda x: (5 * x).astype(np.int64),
}


@sampled(4)
@every("optimize", [True, "optimal"])
@every("layout", LAYOUTS)
@every(("subscripts", "shapes"), CASES)
def test_products_are_numpys(
    subscripts: str, shapes: tuple[tuple[int, ...], ...], layout: str, optimize: Any
) -> None:
    random = np.random.default_rng(0)
    arrays = [LAYOUTS[layout](random.normal(size=shape)) for shape in shapes]

    def function(*factors: Any) -> Any:
        return np.einsum(subscripts, *factors, optimize=optimize)

    expected = np.asarray(function(*arrays))
    assert same(np.asarray(jit(function, rules="numpy")(*arrays)), expected)
