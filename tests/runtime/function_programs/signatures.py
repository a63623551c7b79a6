"""Calls of every function and method of the installed NumPy, with all of its keywords.

`inspect.signature` names the parameters; a value is drawn by the parameter's name.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.runtime.function_programs.arguments import words
from tests.runtime.function_programs.draft import Draft
from tests.runtime.function_programs.programs import Statement

# Functions of files, printing, global state, addresses, dates, and memory that holds no values yet
EXCLUDED = frozenset(
    words("""
    DataSource array2string array_repr array_str asmatrix bmat busday_count busday_offset
    datetime_as_string datetime_data empty empty_like from_dlpack fromfile fromregex fromstring
    genfromtxt get_include get_printoptions getbufsize geterr geterrcall info is_busday isnat load
    loadtxt may_share_memory memmap nested_iters printoptions save savetxt savez savez_compressed
    set_printoptions setbufsize seterr seterrcall shares_memory show_config show_runtime test
    einsum_path put_along_axis in1d frompyfunc piecewise apply_along_axis apply_over_axes
    fromfunction fromiter block base_repr binary_repr format_float_positional
    format_float_scientific typename mask_indices errstate vectorize nditer ndenumerate
    iterable isscalar put
    dump dumps tofile resize setflags to_device tobytes getfield setfield byteswap
    """)
)
# Results whose size or Python value depends on values
VALUE_SIZED = frozenset(
    words("""
    unique unique_all unique_counts unique_inverse unique_values nonzero flatnonzero argwhere
    extract compress trim_zeros union1d setdiff1d setxor1d intersect1d bincount roots poly polyfit
    tolist item histogram histogram_bin_edges histogram2d histogramdd delete insert matrix_rank
    lstsq svd eig eigvals kaiser sort_complex polydiv choose packbits unpackbits real_if_close
    """)
)
METHOD_KEYWORDS = {
    "max": ("keepdims", "initial", "where"),
    "min": ("keepdims", "initial", "where"),
    "sum": ("keepdims", "initial", "where"),
    "prod": ("keepdims", "initial", "where"),
    "mean": ("keepdims", "where"),
    "std": ("keepdims", "where", "correction", "mean"),
    "var": ("keepdims", "where", "correction", "mean"),
    "clip": ("casting", "dtype"),
}
UNKNOWN = ("bar", "axes_", "keepdim", "dim", "stacklevel", "inplace", "descending_")

Value = Callable[[Draft, str], str]


def _fixed(*options: str) -> Value:
    return lambda draft, subject: draft.choice(options)


def _axis(draft: Draft, subject: str) -> str:
    ndim = np.ndim(draft.evaluate(subject))
    options = [str(axis) for axis in range(-ndim, ndim)] * 3 + ["None"]
    if ndim > 1:
        options.append("(0, 1)")
        options.append("(-1,)")
    if draft.chance(0.02):
        options = [str(ndim)]
    return draft.choice(options)


def _plain_axis(draft: Draft, subject: str) -> str:
    ndim = max(np.ndim(draft.evaluate(subject)), 1)
    return str(draft.choice(range(-ndim, ndim)))


def _same_shape(draft: Draft, subject: str) -> str:
    if subject in draft.live:
        return draft.pick_like(subject)
    return subject


def _second(draft: Draft, subject: str) -> str:
    if draft.chance(0.25):
        return draft.literal()
    name = _same_shape(draft, subject)
    return draft.relayout(name) if draft.chance(0.1) else name


def _mask(draft: Draft, subject: str) -> str:
    return draft.mask(subject) if draft.chance(0.85) else "True"


def _several(draft: Draft, subject: str) -> str:
    others = [_same_shape(draft, subject) for _ in range(draft.random.randint(0, 2))]
    brackets = draft.choice(["[{}]", "({},)"])
    return brackets.format(", ".join([subject, *others]))


def _integers(draft: Draft, subject: str) -> str:
    size = max(len(draft.evaluate(subject)), 1)
    places = [draft.random.randrange(-size, size) for _ in range(draft.random.randint(1, 4))]
    return draft.choice(["{}", "np.array({})", "{}[0]", "np.array({}, dtype=np.int32)"]).format(
        places
    )


def _window(draft: Draft, subject: str) -> str:
    value = draft.evaluate(subject)
    return str(draft.choice([1, 2, min(3, value.shape[0])])) if value.ndim == 1 else "(1, 2)"


def _shape(draft: Draft, subject: str) -> str:
    shape = draft.evaluate(subject).shape
    options = [shape[::-1], (-1,), (1, *shape), (*shape, 1), shape]
    return str(draft.choice(options)) if draft.chance(0.8) else "-1"


def _permutation(draft: Draft, subject: str) -> str:
    axes = list(range(np.ndim(draft.evaluate(subject))))
    draft.random.shuffle(axes)
    return str(tuple(axes))


_BOOL = _fixed("True", "False")
_NUMBER = _fixed("0", "1", "2", "0.5", "-1", "2.5", "10")
_FLOAT_DTYPES = ("np.float64", "np.float32", "'float64'", "float", "np.dtype('f4')")
_ALL_DTYPES = (*_FLOAT_DTYPES, "np.int64", "'int32'", "complex", "np.float16", "bool", "np.uint8")
_CASTING = _fixed(*["'same_kind'"] * 3, *["'unsafe'"] * 3, "'safe'", "'no'", "'equiv'")
_SUBJECT: Value = lambda draft, subject: subject  # noqa: E731

VALUES: dict[str, Value] = {
    **dict.fromkeys(words("a x arr ary m array x1 f v prototype z val A y1 element condition"),
                    _SUBJECT),
    **dict.fromkeys(words("object p filt xp ar ar1 a1 number data"), _SUBJECT),
    **dict.fromkeys(words("b x2 y values choices weights fweights ar2 a2 test_elements src"),
                    _second),
    **dict.fromkeys(words("dst mean_ mask"), _same_shape),
    **dict.fromkeys(words("arrays tup arys args operands"), _several),
    **dict.fromkeys(
        words("keepdims subok equal_nan endpoint retstep return_index return_inverse return_counts"
        " sparse rowvar bias deg upper full_matrices compute_uv hermitian increasing right"
        " assume_unique invert density returned wrap stable descending copy unique include_initial"
        " fill_diagonal overwrite_input writeable return_indices sorted"),
        _BOOL,
    ),
    "axis": _axis,
    **dict.fromkeys(words("axis1 axis2 source destination axisa axisb axisc start"), _plain_axis),
    "axes": _permutation,
    "dtype": _fixed(*_ALL_DTYPES),
    "order": _fixed("'C'", "'F'", "'A'", "'K'"),
    "casting": _CASTING,
    "where": _mask,
    "initial": _NUMBER,
    "ddof": _fixed("0", "1"),
    "correction": _fixed("0", "1"),
    "decimals": _fixed("0", "1", "-1", "2"),
    "mode": _fixed("'wrap'", "'clip'", "'raise'", "'same'", "'full'", "'valid'", "'edge'",
                   "'constant'", "'reflect'", "'symmetric'", "'mean'", "'linear_ramp'",
                   "'maximum'", "'reduced'", "'r'", "'complete'"),
    "kind": _fixed("'stable'", "'quicksort'", "'heapsort'", "'mergesort'", "'sort'", "'table'",
                   "'introselect'", "'numeric'", "None"),
    "side": _fixed("'left'", "'right'"),
    "indices": _integers,
    "ind": _integers,
    "obj": _fixed("0", "1", "[0]", "slice(0, 2)", "[0, 1]", "-1"),
    "indices_or_sections": _fixed("1", "2", "3", "[1]", "[1, 2]"),
    "kth": _fixed("0", "1", "-1", "(0, 1)"),
    **dict.fromkeys(words("shape newshape new_shape"), _shape),
    "reps": _fixed("2", "(2, 1)", "(1, 2)", "1"),
    "repeats": _fixed("2", "1", "3", "[2]"),
    "shift": _fixed("1", "-1", "2", "(1, 1)"),
    "k": _fixed("0", "1", "-1", "2"),
    "n": _fixed("1", "2", "3", "5"),
    "q": _fixed("0.5", "0.25", "[0.25, 0.75]", "50", "0", "1", "np.array([0.1, 0.9])"),
    "method": _fixed("'linear'", "'lower'", "'higher'", "'nearest'", "'midpoint'",
                     "'inverted_cdf'", "'hazen'", "'median_unbiased'", "'weibull'"),
    "bins": _fixed("3", "5", "[-1.0, 0.0, 1.0]", "np.array([0, 1, 2])"),
    "range": _fixed("(0, 1)", "(-2.0, 2.0)", "None"),
    **dict.fromkeys(words("a_min min left nan_ to_begin"), _fixed("0", "-1", "None", "0.5")),
    **dict.fromkeys(words("a_max max right_ to_end"), _fixed("1", "2", "None", "3.5")),
    **dict.fromkeys(words("prepend append"), _fixed("0", "1.5", "[0]")),
    "rtol": _fixed("1e-5", "0.1", "1e-15"),
    "atol": _fixed("1e-8", "0.5", "0"),
    "fill_value": _fixed("0", "1.5", "True", "-1", "np.nan"),
    **dict.fromkeys(words("nan posinf neginf"), _fixed("0.0", "1.0", "-1.0", "None")),
    "dx": _fixed("1.0", "0.5"),
    "d": _fixed("1.0", "0.5"),
    "period": _fixed("6.283185307179586", "3"),
    "discont": _fixed("None", "1.0"),
    "minlength": _fixed("0", "10"),
    "offset": _fixed("0", "1", "-1"),
    "ord": _fixed("None", "1", "2", "np.inf", "-np.inf", "'fro'", "0", "3"),
    "UPLO": _fixed("'L'", "'U'"),
    "norm": _fixed("None", "'ortho'", "'forward'", "'backward'"),
    "s": _fixed("None", "(2, 2)"),
    **dict.fromkeys(words("M N num"), _fixed("3", "4", "5", "8")),
    "stop": _fixed("5", "2.5", "10"),
    "start_or_stop": _fixed("5", "0", "3.5", "-4"),
    "step": _fixed("1", "2", "0.5"),
    "base": _fixed("10.0", "2.0"),
    "beta": _fixed("0.0", "5.0"),
    "bitorder": _fixed("'big'", "'little'"),
    "pad_width": _fixed("1", "2", "(1, 2)", "((1, 0), (0, 1))", "0"),
    "window_shape": _window,
    "requirements": _fixed("'C'", "'F'", "['F', 'O']", "'W'", "['C', 'A', 'O', 'W']", "None"),
    "ndmin": _fixed("0", "1", "2", "3"),
    "varargs": _fixed("1.0", "0.5"),
    "edge_order": _fixed("1", "2"),
    "trim": _fixed("'fb'", "'f'", "'b'"),
    "device": _fixed("'cpu'", "None"),
    "default": _NUMBER,
    "condlist": lambda draft, subject: f"[{draft.mask(subject)}, {subject} > 1]",
    "choicelist": lambda draft, subject: f"[{subject}, {_second(draft, subject)}]",
    "mean": lambda draft, subject: f"np.mean({subject}, keepdims=True)",
    "x_": _second,
    "fp": lambda draft, subject: _same_shape(draft, subject),
    "dimensions": _fixed("(2, 3)", "(4,)", "3"),
    "rcond": _fixed("1e-10", "1e-5"),
    "tol": _fixed("100", "1e-9"),
    "multi_index": _fixed("([0, 1], [1, 0])"),
    "dims": _fixed("(3, 4)"),
    "from_": lambda draft, subject: f"{subject}.dtype",
    "to": _fixed(*_ALL_DTYPES),
    **dict.fromkeys(words("type1 type2 arg1 arg2 char"), _fixed(*_ALL_DTYPES)),
    "varargs_": _NUMBER,
    "func": _fixed("np.sum"),
    "fill": _NUMBER,
    "value": _NUMBER,
    "other": _second,
    "bins_": _fixed("3"),
    "new_order": _fixed("'S'"),
}  # fmt: skip
_SORTS = _fixed("'stable'", "'quicksort'", "'heapsort'", "'mergesort'", "None")
_ZERO_ONE = _fixed("0", "1")
# By function and parameter, where the parameter's name alone does not say what it takes
SPECIAL: dict[tuple[str, str], Value] = {
    **{(name, "kind"): _SORTS for name in ("sort", "argsort")},
    **{(name, "kind"): _fixed("'introselect'") for name in ("partition", "argpartition")},
    ("isin", "kind"): _fixed("'sort'", "'table'", "None"),
    **{(name, "mode"): _fixed("'wrap'", "'clip'", "'raise'") for name in ("take", "choose")},
    **{(name, "mode"): _fixed("'full'", "'same'", "'valid'") for name in ("convolve", "correlate")},
    ("qr", "mode"): _fixed("'reduced'", "'complete'", "'r'", "'raw'"),
    ("bincount", "x"): lambda draft, subject: f"np.abs({subject}).astype(int).ravel() % 4",
    ("einsum", "operands"): lambda draft, subject: draft.choice(
        [
            "'...i->...', {0}",
            "'i...->...i', {0}",
            "'...,...->...', {0}, {0}",
            "{0}, [..., 0], [0, ...]",
        ]
    ).format(subject),
    ("lexsort", "keys"): lambda draft, subject: f"({subject}.ravel(), -{subject}.ravel())",
    ("place", "mask"): _mask,
    ("place", "vals"): _fixed("[1, 2]", "0.5"),
    ("result_type", "arrays_and_dtypes"): lambda draft, subject: f"{subject}, np.float32",
    ("broadcast_shapes", "args"): lambda draft, subject: f"{subject}.shape, (1,)",
    ("view", "args"): _fixed("'u1'", "np.int64", "'f4'", "np.ndarray"),
    ("item", "args"): _ZERO_ONE,
    ("unpackbits", "a"): lambda draft, subject: f"{subject}.astype(np.uint8)",
    ("searchsorted", "sorter"): lambda draft, subject: f"np.argsort({subject})",
    **{(name, "UPLO"): _fixed("'L'", "'U'") for name in ("eigh", "eigvalsh")},
    ("cond", "p"): _fixed("None", "1", "'fro'", "2"),
    ("meshgrid", "indexing"): _fixed("'xy'", "'ij'"),
    ("array", "ndmax"): _fixed("0", "1", "2"),
    ("interp", "xp"): _fixed("[0.0, 1.0, 2.0]"),
    ("interp", "fp"): _fixed("[1.0, 5.0, 2.0]", "np.array([1, 2, 3])"),
    **{("interp", name): _fixed("0.0", "-1.0") for name in ("left", "right")},
    **{(name, "order"): _fixed("'C'", "'F'") for name in ("eye", "full", "ones", "zeros")},
    **{(name, "m"): _ZERO_ONE for name in ("polyder", "polyint")},
    **{("cross", name): _fixed("-1", "0") for name in ("axis", "axisc")},
    **{("cov", name): _fixed("None") for name in ("fweights", "aweights")},
    ("polyfit", "x"): lambda draft, subject: f"np.arange(len({subject}))",
    ("polyfit", "deg"): _fixed("1", "2"),
    **{("polyfit", name): _BOOL for name in ("full", "cov")},
    ("insert", "values"): _NUMBER,
    ("put", "v"): _NUMBER,
}
MODULES = {"np": np, "np.linalg": np.linalg, "np.fft": np.fft}


@functools.cache
def functions() -> tuple[tuple[str, Any], ...]:
    """Names and objects of NumPy's functions, those whose size depends on values once in five."""
    found = []
    for prefix, module in MODULES.items():
        for name in sorted(dir(module)):
            value = getattr(module, name)
            if name.startswith("_") or name in EXCLUDED or isinstance(value, type):
                continue
            if not callable(value) or value is np.test:
                continue
            found.append((f"{prefix}.{name}", value))
    return tuple(found)


@functools.cache
def methods() -> tuple[tuple[str, Any], ...]:
    names = [name for name in dir(np.ndarray) if not name.startswith("_") and name not in EXCLUDED]
    found = [(f".{name}", getattr(np.ndarray, name)) for name in sorted(names)]
    return tuple(pair for pair in found if callable(pair[1]))


@functools.cache
def _parameters(function: Any) -> tuple[inspect.Parameter, ...]:
    try:
        return tuple(inspect.signature(function).parameters.values())
    except ValueError:
        return ()


def _argument(draft: Draft, function: str, name: str, subject: str) -> str | None:
    drawn = SPECIAL.get((function.rpartition(".")[2], name)) or VALUES.get(name)
    return drawn(draft, subject) if drawn else None


def _required(parameter: inspect.Parameter) -> bool:
    return parameter.default is parameter.empty and parameter.kind not in (
        parameter.VAR_POSITIONAL,
        parameter.VAR_KEYWORD,
    )


def _draw_arguments(draft: Draft, name: str, function: Any, subject: str) -> list[str] | None:
    """Source of the arguments of a call, without `out` and (but for reductions) `where`."""
    arguments: list[str] = []
    is_positional = True
    is_ufunc = isinstance(function, np.ufunc)
    for parameter in _parameters(function):
        if parameter.name == "self":
            continue
        if parameter.kind == parameter.VAR_POSITIONAL:
            if drawn := _argument(draft, name, parameter.name, subject):
                arguments.append(drawn if drawn[0] not in "([" else f"*{drawn}")
            continue
        left_out = parameter.name in ("out", "like", "signature", "optimize", "max_work")
        left_out |= is_ufunc and parameter.name == "where"
        if not _required(parameter) and (left_out or not draft.chance(0.3)):
            is_positional = False
            continue
        drawn = _argument(draft, name, parameter.name, subject)
        if drawn is None:
            if _required(parameter):
                return None
            is_positional = False
            continue
        is_positional &= parameter.kind != parameter.KEYWORD_ONLY
        by_keyword = not is_positional or (
            parameter.kind == parameter.POSITIONAL_OR_KEYWORD
            and not _required(parameter)
            and draft.chance(0.7)
        )
        is_positional &= not by_keyword
        arguments.append(f"{parameter.name}={drawn}" if by_keyword else drawn)
    if name.startswith("."):
        for keyword in METHOD_KEYWORDS.get(name[1:], ()):
            if draft.chance(0.25):
                arguments.append(f"{keyword}={_argument(draft, name, keyword, subject)}")
    return arguments


def _draw_subject(draft: Draft) -> str:
    kinds = draft.choice(["biufc", "biufc", "f", "iu", "f"])
    found = draft.pick_array(kinds, min_ndim=0 if draft.chance(0.1) else 1)
    if found is None or draft.chance(0.15):
        n = draft.random.randint(1, 5)
        shape = draft.choice([(n,), (n, n), (2, n), (n, 3), (4,), (2, 2, n)])
        return draft.new_array(shape, draft.choice(["float64", "float32", "int64", "bool"]))
    return found


def _with_out(draft: Draft, call: str, value: Any, subject: str) -> tuple[str, ...]:
    """The lines of a call with `out=`, of the result's dtype or another, in C or F order."""
    buffer = draft.name()
    outputs = value if isinstance(value, tuple) else (value,)
    texts = []
    for output in outputs:
        dtype = str(output.dtype) if draft.chance(0.7) else draft.choice(["float64", "int64"])
        order = ", order='F'" if draft.chance(0.25) else ""
        texts.append(f"np.zeros({output.shape}, '{dtype}'{order})")
    made = texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
    extra = f", out={buffer}"
    if draft.chance(0.4) and not isinstance(value, tuple) and draft.is_valid(draft.mask(subject)):
        extra += f", where={draft.mask(subject)}" if "where=" not in call else ""
    if draft.chance(0.3) and "casting=" not in call:
        extra += f", casting={draft.choice(['unsafe', 'same_kind'])!r}"
    return f"{buffer} = {made}", call[:-1] + extra + ")"


def draw_call(
    draft: Draft, name: str, function: Any, subject: str
) -> tuple[tuple[str, ...], str] | None:
    """Lines before a call, and the call, that NumPy runs; None if none was found."""
    for _ in range(6):
        arguments = _draw_arguments(draft, name, function, subject)
        if arguments is None:
            return None
        prefix = f"{subject}{name}" if name.startswith(".") else name
        call = f"{prefix}({', '.join(arguments)})"
        if not draft.is_valid(call):
            continue
        if draft.chance(0.2) and any(one.name == "out" for one in _parameters(function)):
            value = draft.evaluate(call)
            outputs = value if isinstance(value, tuple) else (value,)
            if all(hasattr(output, "dtype") for output in outputs):
                *before, out_call = _with_out(draft, call, value, subject)
                before_state = dict(draft.live)
                if draft.run(*before) and draft.is_valid(out_call):
                    return tuple(before), out_call
                draft.live.clear()
                draft.live.update(before_state)
        return (), call
    return None


def any_call(draft: Draft) -> bool:
    """Call any function or method with keywords by its signature."""
    table = functions() if draft.chance(0.72) else methods()
    name, function = draft.choice(table)
    if name.rpartition(".")[2] in VALUE_SIZED and draft.chance(0.85):
        return False
    subject = _draw_subject(draft)
    if draft.live[subject].size > 5000 and not isinstance(function, np.ufunc):
        subject = draft.new_array((draft.random.randint(2, 5), draft.random.randint(2, 5)))
    drawn = draw_call(draft, name, function, subject)
    if drawn is None:
        return False
    before, call = drawn
    is_sized = name.rpartition(".")[2] in VALUE_SIZED
    target = draft.name()
    tag = "method" if name.startswith(".") else "function"
    lines = (*before, f"{target} = {call}")
    return draft.attempt(f"any {tag}", *lines, value_dependent=is_sized)


def unknown_keyword(draft: Draft) -> bool:
    """A keyword that NumPy refuses with TypeError: caught by the program, or not."""
    name, function = draft.choice(functions() if draft.chance(0.6) else methods())
    if name.rpartition(".")[2] in VALUE_SIZED:
        return False
    subject = _draw_subject(draft)
    drawn = draw_call(draft, name, function, subject)
    if drawn is None or drawn[0]:
        return False
    call = drawn[1]
    keyword = f"{draft.choice(UNKNOWN)}={draft.choice(['1', 'True', 'None'])}"
    call = f"{call[:-1]}{'' if call.endswith('()') else ', '}{keyword})"
    if draft.is_valid(call):
        return False
    if draft.chance(0.35):
        draft.body.append(Statement((f"t = {call}",), "unknown keyword"))
        draft.ends = True
        return True
    target = draft.name()
    return draft.attempt(
        "unknown keyword",
        "try:",
        f"    {target} = {call}",
        "except TypeError:",
        f"    {target} = {subject} * 2",
    )
