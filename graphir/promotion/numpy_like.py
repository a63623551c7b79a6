"""CuPy and Dask, which follow NumPy except for the differences in this file.

Measured on CuPy 14.2.0 (its dispatch tables; no kernel ran) and Dask 2026.8.0, both with NumPy
2.4.6. Before CuPy 14 and on NumPy 1, both libraries promoted by the values of scalars, but never by
the values of 0-d arrays.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from graphir.dtypes import DType
from graphir.promotion.in_place import IN_PLACE
from graphir.promotion.library import COMPLEX, by_op
from graphir.promotion.numpy_ import DTYPES, FACTS, WIDE, Numpy
from graphir.promotion.operands import Place


class Cupy(Numpy):
    """CuPy 14: NumPy 2, but clip and logical ops refuse complex numbers, and sign takes bool.

    CuPy's own atan2, hypot, copysign and nextafter would accept complex numbers; no op here does.
    CuPy has no scalars, and no operator `@=` (cupy/_core/core.pyx).
    """

    releases: Mapping[str, Mapping[str, object]] = {}
    library = "CuPy"
    roots = False
    in_place = IN_PLACE
    has_scalars = False
    exceptions = by_op(
        {
            **FACTS,
            "clip logical_and logical_or logical_xor logical_not": dict.fromkeys(COMPLEX),
            "sign": {DType.bool: DType.int8},
        }
    )

    cell = Numpy.cell

    def literal_value(self, value: Any, place: Place) -> Any:
        """Return the value unchanged: the bounds of clip are ordinary operands."""
        return value

    def omits_bound(self, value: Any, place: Place) -> bool:
        """Return False: clip uses every bound."""
        return False

    def shortcut(self, value: Any, place: Place) -> bool:
        """Return False: `**` is the function power (cupy/_core/core.pyx)."""
        return False


class Dask(Numpy):
    """Dask: NumPy's functions give the dtype of elementwise ops; 0-d arrays count like others.

    tensordot adds the products of chunks by `sum`, so bool and integer results have 64 bits. matmul
    does so only where the contracted axis has several chunks. Graphs have no chunks, so matmul
    keeps the join here, as with one chunk. Dask has no sort, argsort or take_along; its arrays
    never change.
    """

    releases: Mapping[str, Mapping[str, object]] = {}
    library = "Dask"
    in_place = frozenset[str]()
    exceptions = by_op({**FACTS, "tensordot": WIDE, "positive": {DType.bool: DType.bool}})


CUPY = Cupy(
    "cupy",
    "CuPy 14: NumPy 2, with fewer ops on complex numbers.",
    source="github.com/cupy/cupy/pull/8323 (NEP 50), cupy/_core of 14.2",
    dtypes=DTYPES,
)
DASK = Dask(
    "dask",
    "dask.array: NumPy 2, to which it delegates.",
    source="dask/array/core.py, elemwise and apply_infer_dtype",
    dtypes=DTYPES,
)
