"""Values for parameters, by their names, and the calls that NumPy accepts with them.

The arguments of a call are found by trial: candidates for each required parameter, in all
combinations, until NumPy computes something. So no call is written by hand, and a function that a
later NumPy adds is tested by its signature.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tests.numpy_reference.targets import Target

M = np.array([[0.5, -1.25, 2.0], [3.5, 0.25, -0.75]])
S = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, -0.25], [0.5, -0.25, 5.0]])
V = np.array([1.5, 0.25, 3.0])
R = np.array([0.25, 1.5, 3.0])  # it rises
I3 = np.array([2, 0, 1])
I2 = np.array([[2, 0, 1], [1, 1, 0]])
MASK = np.array([[True, False, True], [False, True, True]])
C = np.array([1.5 + 2j, -0.5j, 2.0 + 0j])
BYTES = np.array([[3, 200, 7]], np.uint8)
POINT = np.array(2.5)
DATES = np.array(["2024-01-01", "2024-01-06"], "M8[D]")

ARRAYS = (M, S, V, I3, I2, MASK, POINT, C, np.array(3))

RESULT = "an array like the result"
# Candidates by the name of a parameter, best first. What is not here is an array, if it is required
# and named like one, or has another value of the type of its default.
CANDIDATES: dict[str, tuple[Any, ...]] = {
    "self": ARRAYS,
    "x1": (M, I2, MASK, S, V),
    "x2": (M, S, I2, MASK, V),
    "x": (M, V, S, I3, C, I2, MASK, np.array(["NaT"], "M8[D]"), 2.5),
    "y": (M, V, S),
    "a": (M, S, V, I2, I3, BYTES, POINT, np.eye(6).reshape(2, 3, 6)),
    "A": (S,),
    "b": (M, S, V, I2),
    "xp": (R,),
    "fp": (V,),
    "p": (V,),
    "q": (0.5, np.array([0.25, 0.75]), 50.0),
    "u": (V,),
    "v": (V, M),
    "w": (V,),
    "m": (M, S, V),
    "arr": (M, V, S, I3, DATES),
    "values": (V, M, np.array([7.0])),
    "vals": (V,),
    "value": (7, V),
    "index": (0, slice(1, None), (0, 1), None, ..., (slice(None), 0), -1, I3 % 2, MASK, [1, 0]),
    "ind": (np.array([0, 2]),),
    "indices": (np.array([0, 1]), 1, I2 % 2, I2),
    "multi_index": ((np.array([0, 1]), np.array([1, 2])),),
    "dims": ((2, 3),),
    "condition": (MASK, np.array([True, False])),
    "condlist": ([M > 0, M > 1],),
    "choicelist": ([M, M * 2],),
    "choices": ([M, M * 2, M * 3],),
    "funclist": ([np.negative, np.abs],),
    "arrays": ([M, M * 2], [V, V]),
    "arys": ((M, V),),
    "args": ((M, V), (V, V), ()),
    "xi": ((V, R),),
    "tup": ([M, M * 2],),
    "operands": (("ij,ij->i", M, M), ("ij->ji", M), ("i,i", V, V)),
    "axis": (0, -1, 1, (0, 1)),
    "axis1": (0,),
    "axis2": (1,),
    "axes": ((1, 0), (0, 1), (-2, -1), [(-2, -1), (-2, -1), (-2, -1)]),
    "axisa": (0,),
    "axisb": (0,),
    "axisc": (0,),
    "source": (0,),
    "destination": (1, -1),
    "start": (0, 1),
    "stop": (5, 2),
    "step": (2,),
    "start_or_stop": (5,),
    "num": (5,),
    "dtype": (np.float64, np.float32, np.int64, np.complex128, bool),
    "out": (RESULT,),
    "where": (MASK, np.array([True, False, True]), True),
    "keepdims": (True,),
    "initial": (1, 0.5),
    "casting": ("unsafe", "same_kind"),
    "order": ("C", "F", "K"),
    "subok": (False, True),
    "like": (V,),
    "device": ("cpu",),
    "copy": (True, False),
    "mean": (RESULT,),
    "weights": (np.array([[1.0, 2.0, 0.5], [0.25, 3.0, 1.0]]), V, np.array([1.0, 2.0])),
    "shape": ((2, 3), (3, 2), 6, (6,), -1),
    "new_shape": ((3, 2),),
    "dimensions": ((2, 3),),
    "n": (3, 4),
    "N": (3,),
    "k": (1, -1),
    "kth": (1,),
    "ndim": (2,),
    "s": ((2, 3), (4,)),
    "d": (0.5,),
    "norm": ("ortho", "forward", "backward"),
    "mode": ("clip", "wrap", "full", "edge", "reflect", "reduced"),
    "method": ("lower", "nearest", "linear", "midpoint"),
    "side": ("right", "left"),
    "sorter": (I3,),
    "kind": ("stable", "sort", "real floating"),
    "stable": (True,),
    "ord": (1, np.inf, "fro", 2),
    "repeats": (2, I3),
    "reps": ((2, 1), 2),
    "shift": (1, (1, 2)),
    "pad_width": (1, ((1, 0), (0, 2))),
    "indices_or_sections": (3, [1], 1),
    "fill_value": (7, 1.5),
    "decimals": (1,),
    "nan": (1.0,),
    "posinf": (2.0,),
    "neginf": (-2.0,),
    "min": (-0.5, None),
    "max": (1.0, None),
    "a_min": (-0.5,),
    "a_max": (1.0,),
    "bins": (R, 4, [R, R], "auto"),
    "range": ((0.0, 3.0), [(0.0, 3.0), (0.0, 3.0)]),
    "sample": (M.T, V),
    "minlength": (5,),
    "prepend": (0.0, np.array([[1.0], [2.0]])),
    "append": (0.0,),
    "to_end": (V,),
    "to_begin": (V,),
    "left": (-1.0,),
    "right": (True, 9.0),
    "period": (2.0,),
    "dx": (0.5,),
    "deg": (1,),
    "rcond": (1e-10,),
    "rtol": (1e-3,),
    "atol": (1e-2,),
    "tol": (1e-3,),
    "ddof": (1,),
    "correction": (1,),
    "fweights": (I3 + 1,),
    "aweights": (V,),
    "varargs": ((), (0.5,)),
    "edge_order": (2,),
    "obj": (1, [0, 2]),
    "func1d": (np.sum,),
    "func": (np.sum,),
    "function": (np.add,),
    "nin": (1,),
    "nout": (1,),
    "mask_func": (np.triu,),
    "element": (M,),
    "test_elements": (V,),
    "ar1": (V, I3),
    "ar2": (I3 / 2, I3),
    "ar": (V,),
    "ary": (M, np.array([M, M]), V),
    "array": (M,),
    "z": (C, M),
    "X": (M,),
    "dst": (M,),
    "src": (M * 2,),
    "mask": (MASK,),
    "UPLO": ("U",),
    "offset": (1, 0),
    "indexing": ("ij",),
    "from_": (np.float32,),
    "to": (np.float64,),
    "type1": (np.float32,),
    "type2": (np.float64,),
    "arg1": (np.float32,),
    "arg2": (np.float64,),
    "arrays_and_dtypes": ((M, np.float32),),
    "object": (M, [1, 2.5]),
    "iter": ([1.0, 2.0],),
    "buffer": (b"abcdefgh",),
    "count": (1,),
    "seq_of_zeros": (V,),
    "new_order": ("<",),
    "type": (np.float64,),
    "val": (7.0,),
    "beta": (2.0,),
    "dates": (DATES, np.datetime64("2024-01-02")),
    "offsets": (1,),
    "begindates": (DATES,),
    "enddates": (DATES,),
    "number": (5,),
    "base": (3,),
    "typechars": (["i", "f"],),
    "char": ("d",),
    "bitorder": ("little",),
    "unit": ("D",),
    "prototype": (M,),
    "optimize": (False,),
    "keys": ([V, I3],),
    "roots": (V,),
    "min_digits": (4,),
    "precision": (3,),
    "einsum_call": (False,),
    "requirements": (["C"],),
    "trim": ("b",),
}  # fmt: skip
# Results of these are random, or the contents of new memory.
UNSET = {"np.empty", "np.empty_like"}
# Parameters that are left alone.
NEVER = {"signature", "extobj"}


class Call(NamedTuple):
    """One call: `data` names the arguments that are values of the program, not part of its text."""

    target: Target
    form: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    scalars: bool = False

    def __str__(self) -> str:
        shown = [_shown(value) for value in self.args]
        shown += [f"{name}={_shown(value)}" for name, value in self.kwargs.items()]
        return f"{self.target.path}({', '.join(shown)})"

    def data(self) -> list[Any]:
        """The values that the program takes as arguments, copied."""
        return copy.deepcopy([v for v in (*self.args, *self.kwargs.values()) if self._given(v)])

    def body(self) -> Callable[..., Any]:
        """A function of the data that makes the call."""
        function, args, kwargs, given = self.target.function, self.args, self.kwargs, self._given

        def body(*data: Any) -> Any:
            values = iter(data)
            positional = [next(values) if given(each) else each for each in args]
            named = {k: next(values) if given(each) else each for k, each in kwargs.items()}
            return function(*positional, **named)

        return body

    def expected(self) -> tuple[Any, list[Any]]:
        """NumPy's result, and the arguments after the call; raises what NumPy raises."""
        data = self.data()
        with warnings.catch_warnings(), np.errstate(all="ignore"), np.printoptions():
            warnings.simplefilter("ignore")
            return self.body()(*data), data

    def _given(self, value: Any) -> bool:
        if isinstance(value, (np.ndarray, np.generic)):
            return True
        if isinstance(value, (list, tuple)):
            return any(map(self._given, value))
        return self.scalars and type(value) in (int, float, complex)


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, (list, tuple)):
        inner = ", ".join(map(_shown, value))
        return f"[{inner}]" if isinstance(value, list) else f"({inner})"
    return getattr(value, "__name__", None) or repr(value)
