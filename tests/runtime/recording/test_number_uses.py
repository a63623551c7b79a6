"""Uses of a number that has an error: no figure is 0 where the exact run of the program differs.

Each use is a function of a narrow number `s` and of an array `y`. Its exact run has the same code
on wide data. The figure of an audit is the exact one, or unknown.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphir.runtime import record
from tests.runtime.recording.number_uses import SOME_OR_ALL, USES, parts, programs

X = (np.arange(1, 41) * 0.37).astype(np.float32)
Y = np.array([0.5, 1.25, 3.0, 7.0])
OF_SCALARS = r"""
y * s ;; 1j * s * y ;; c = 2j ; c *= s ; c * y ;; (c := 2j + s) * y ;; complex(s, 0) * y ;;
sum([1j, s]) * y ;; operator.mul(2j, s) * y ;; np.sum(y, initial=s) ;; y.prod(initial=s) ;;
np.add.reduce(y, 0, None, None, False, s) ;; np.linspace(0, s, 4) * y ;; np.linspace(s, 1, 3) ;;
a = array.array('d', [1]) ; a[0] = s ; a[0] * y ;; float(s * fractions.Fraction(1, 3)) * y ;;
(s * datetime.timedelta(1)).total_seconds() * y ;; math.log(s) * y ;; s * Own(2.0) * y ;;
y[y > 1] = s ; y ;; setm(y, s)
"""
"""Uses of a number of NumPy."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("uses", "number"),
    [
        (USES, "float(x.sum() / 3)"),
        (OF_SCALARS, "x.sum() / 3"),
        (OF_SCALARS, "(x.sum() / 3).astype(float)"),
    ],
    ids=["of Python", "float32", "float64"],
)
@pytest.mark.parametrize("part", SOME_OR_ALL)
def test_no_figure_is_clean_where_the_exact_run_differs(
    uses: str, number: str, part: slice, tmp_path: Path
) -> None:
    wrong: list[Any] = []
    for use, program in programs(uses, number, tmp_path / "number_uses.py")[part]:
        exact, real = program(X.astype(np.float64), Y.copy()), program(X, Y.copy())
        recording = record(program, X, Y.copy())
        first = recording.audit().outputs[0]
        error = max(abs(a - b).max() for a, b in zip(parts(exact), parts(real), strict=True))
        is_right = first.largest is not None and 0.7 * error <= first.largest <= 1.4 * error
        if not (is_right or not first.is_known) or repr(recording.result) != repr(real):
            wrong.append((use, first.largest, error, recording.result))
    assert not wrong
