"""Calls that give another value than NumPy, or raise an error of Python: by front end and path.

Both lists are exact: a call that goes wrong and is not here fails a test, and so does a path that
is here and is right in all its calls.
"""

_ZERO = "an integer divided by zero is 0"

# Meant: a deviation that the documentation states.
DEVIATES: dict[str, dict[str, str]] = {
    "jit": {
        "np.isscalar": "an array of rank 0 counts as a NumPy scalar",
        "np.reciprocal": _ZERO,
    },
    "record": {"np.reciprocal": f"in the graph, {_ZERO}"},
}

_KEYWORDS = "raises TypeError for keywords that a symbol's method lacks"
_DISPATCH = "raises TypeError for a symbol in a place that NumPy dispatches on"
_DEGREES = "other bits for float32"
_VAR = "other bits for float16; the result of an integer or complex dtype= is a float"

_COMPARED = "other values with dtype=bool"
_LIKE = "raises StopIteration for like="

# To be mended.
KNOWN: dict[str, dict[str, str]] = {
    "jit": {
        "ndarray.all": _KEYWORDS,
        "ndarray.any": _KEYWORDS,
        "ndarray.argmax": _KEYWORDS,
        "ndarray.argmin": _KEYWORDS,
        "ndarray.astype": _KEYWORDS,
        "ndarray.clip": _KEYWORDS,
        "ndarray.flatten": _KEYWORDS,
        "ndarray.max": _KEYWORDS,
        "ndarray.mean": _KEYWORDS,
        "ndarray.min": _KEYWORDS,
        "ndarray.prod": _KEYWORDS,
        "ndarray.reshape": _KEYWORDS,
        "ndarray.squeeze": _KEYWORDS,
        "ndarray.std": _KEYWORDS,
        "ndarray.sum": _KEYWORDS,
        "ndarray.var": _KEYWORDS,
        "np.equal": _COMPARED,
        "np.greater": _COMPARED,
        "np.greater_equal": _COMPARED,
        "np.less": _COMPARED,
        "np.less_equal": _COMPARED,
        "np.arange": _LIKE,
        "np.array": _LIKE,
        "np.empty": _LIKE,
        "np.eye": _LIKE,
        "np.frombuffer": _LIKE,
        "np.fromfunction": _LIKE,
        "np.fromiter": _LIKE,
        "np.full": _LIKE,
        "np.identity": _LIKE,
        "np.array_equiv": "False for equal arrays",
        "np.corrcoef": "dtype= gives other bits",
        "np.poly": _DISPATCH,
        "np.roots": _DISPATCH,
        "ndarray.conj": "a bool array becomes int8",
        "ndarray.conjugate": "a bool array becomes int8",
        "ndarray.view": _KEYWORDS,
        "np.cov": "dtype= is ignored",
        "np.degrees": _DEGREES,
        "np.rad2deg": _DEGREES,
        "np.exp2": "other bits for complex numbers",
        "np.iterable": "False for an array",
        "np.nanstd": "the result of a complex dtype= is real",
        "np.nanvar": "the result of a complex dtype= is real",
        "np.std": _VAR,
        "np.var": _VAR,
        "np.trapezoid": "x of more axes than y is aligned wrongly",
    },
    "record": {},
}
