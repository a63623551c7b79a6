"""array_api against array-api-strict under 2025.12: names, signatures, what the year added.

A call of both namespaces gives the same dtype, shape and values, or both refuse it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

pytest.importorskip("array_api_strict", reason="array-api-strict is not installed: no comparison")

import array_api_strict as strict

from graphir import DType, GraphirError
from graphir.runtime import array_api
from graphir.runtime.array_api.dtypes import ALL
from tests.support.tables import every

if np.lib.NumpyVersion(strict.__version__) < "2.6.0":
    pytest.skip("array-api-strict has 2025.12 from 2.6 on", allow_module_level=True)

NAMES = [str(dtype) for dtype in ALL]
NUMBERS = (
    *(True, False, 0, 1, -1, 3, 127, 128, 300, -129, 2**31, 2**63),
    *(2.5, -0.0, float("inf"), float("nan"), 1e300, 1j),
)
Other = str | bool | int | float | complex
"""A second operand: an array of ones by its dtype, or a number."""


@pytest.fixture(autouse=True)
def standard_of_2025():
    strict.set_array_api_strict_flags(api_version="2025.12")
    yield
    strict.reset_array_api_strict_flags()


# -- names


OF_STRICT = {"ArrayAPIStrictFlags", "__version__"}
"""The library's own names."""


@every("path", ["", "linalg", "fft"])
def test_every_name_of_the_library_has_its_signature(path: str):
    theirs, ours = (getattr(xp, path) if path else xp for xp in (strict, array_api))
    names = {*theirs.__all__} - OF_STRICT
    names = {name for name in names if not name.endswith("array_api_strict_flags")}
    assert names <= {*ours.__all__} | {"newaxis"}
    otherwise = {"astype", "from_dlpack", "expand_dims"}  # defaults of the library, or of 2024.12
    for name in names - otherwise:
        if callable(found := getattr(ours, name)) and not isinstance(found, type | DType):
            assert parameters(found) == parameters(getattr(theirs, name)), name


def parameters(function: Any) -> list[tuple[str, Any, Any]]:
    return [(x.name, x.kind, x.default) for x in inspect.signature(function).parameters.values()]


# -- what 2025.12 added or changed


def assigned(key: Callable[[Any], Any]) -> Callable[..., Any]:
    def assign(xp: Any, x: Any, y: Any) -> Any:
        x = xp.asarray(x, copy=True)
        x[key(xp)] = y
        return x

    return assign


CALLS: dict[str, Callable[[Any, Any, Any], Any]] = {
    "x[1] = y": assigned(lambda xp: 1),
    "x[:2] = y": assigned(lambda xp: slice(2)),
    "x[mask] = y": assigned(lambda xp: xp.asarray([True, False, True])),
    "clip(x, y)": lambda xp, x, y: xp.clip(x, y),
    "clip(x, max=y)": lambda xp, x, y: xp.clip(x, max=y),
    "clip(x, y, y)": lambda xp, x, y: xp.clip(x, y, y),
    "searchsorted(x, y)": lambda xp, x, y: xp.searchsorted(x, y),
    "searchsorted(x, y, right)": lambda xp, x, y: xp.searchsorted(x, y, side="right"),
    "isin(x, y)": lambda xp, x, y: xp.isin(x, y),
    "isin(y, x)": lambda xp, x, y: xp.isin(y, x),
    "isin(x, y, invert)": lambda xp, x, y: xp.isin(x, y, invert=True),
    "eig(x)": lambda xp, x, y: xp.linalg.eig(x * xp.reshape(x, (3, 1)))[0],
    "eigvals(x)": lambda xp, x, y: xp.linalg.eigvals(x * xp.reshape(x, (3, 1))),
}
Asked = tuple[str, str, Other]


def outcome(xp: Any, asked: Asked, refusals: tuple[type[Exception], ...]) -> Any:
    """The result as a NumPy array, or None for a refusal."""
    call, dtype, other = asked
    x = xp.astype(xp.asarray([0, 1, 3]), getattr(xp, dtype))
    y = xp.astype(xp.asarray(1), getattr(xp, other)) if isinstance(other, str) else other
    try:
        return np.asarray(CALLS[call](xp, x, y))
    except refusals:
        return None


def is_integer(name: Other) -> bool:
    return isinstance(name, str) and DType(name).is_integer


DEVIATIONS: dict[str, Callable[[Asked], bool]] = {
    "bounds of clip that the dtype does not hold: the library wraps": lambda asked: (
        "clip" in asked[0] and is_integer(asked[1]) and type(asked[2]) is int
    ),
    "uint64 beside signed integers has no common dtype; the library clips and searches": (
        lambda asked: (
            asked[0].startswith(("clip", "search"))
            and {DType(x).family for x in asked[1:] if isinstance(x, str)} == {"int", "uint"}
        )
    ),
    "the library searches floats among integers, and integers among floats": lambda asked: (
        "search" in asked[0] and isinstance(asked[2], str)
    ),
    "isin is of all dtypes here, of integers alone in the library": lambda asked: (
        "isin" in asked[0] and not is_integer(asked[1])
    ),
    "the library's isin leaves out `invert` (2.6.1)": lambda asked: "invert" in asked[0],
}


@pytest.mark.filterwarnings("ignore")  # NumPy warns of overflow
def test_what_2025_12_changed_is_taken_and_refused_alike():
    unused, compared = dict(DEVIATIONS), 0
    for asked in product(CALLS, NAMES, (*NAMES, *NUMBERS)):
        ours = outcome(array_api, asked, (GraphirError, TypeError, OverflowError))
        theirs = outcome(strict, asked, (TypeError, ValueError, OverflowError))
        if ours is not None and theirs is not None and ours.dtype == theirs.dtype:
            if np.array_equal(ours, theirs, equal_nan=ours.dtype.kind in "fc"):
                compared += 1
                continue
        elif ours is theirs is None:
            continue
        reasons = [why for why, applies in DEVIATIONS.items() if applies(asked)]
        assert reasons, (asked, ours, theirs)
        for why in reasons:
            unused.pop(why, None)
    assert not unused and compared > 1500


SHAPES = [(), ((),), ((2, 1), (3,)), ((0,), (1, 1)), ((2,), (3,)), ((4, 1, 1), (3, 1), (5,))]


@every("shapes", SHAPES)
def test_broadcast_shapes(shapes: tuple[tuple[int, ...], ...]):
    try:
        theirs = strict.broadcast_shapes(*shapes)
    except ValueError:
        with pytest.raises(ValueError, match="broadcast"):
            array_api.broadcast_shapes(*shapes)
    else:
        assert array_api.broadcast_shapes(*shapes) == theirs


AXES = [0, -3, 2, 3, -4, (), (0, 1), (-1, 0), (1, -2), (0, 0), (0, -5), (4,), (1, 2, -1)]


@every("axis", AXES)
def test_expand_dims(axis: Any):
    ours, theirs = (xp.reshape(xp.arange(6), (2, 3)) for xp in (array_api, strict))
    try:
        expected = strict.expand_dims(theirs, axis)
    except (ValueError, IndexError):
        with pytest.raises(ValueError):
            array_api.expand_dims(ours, axis)
    else:
        assert array_api.expand_dims(ours, axis).shape == expected.shape


def test_several_results_and_devices_are_tuples():
    for xp in (array_api, strict):
        x = xp.asarray([1, 2])
        assert type(xp.meshgrid(x, x)) is type(xp.broadcast_arrays(x, x)) is tuple
        assert type(xp.__array_namespace_info__().devices()) is tuple


def test_array_api_compat_finds_the_namespace():
    reason = "array-api-compat is not installed: no comparison"
    compat: Any = pytest.importorskip("array_api_compat", reason=reason)
    x = array_api.ones((2, 3))
    for version in (None, "2021.12", "2024.12", "2025.12"):
        assert compat.array_namespace(x, 1.0, None, api_version=version) is array_api
    with pytest.raises(ValueError, match="2026"):
        compat.array_namespace(x, api_version="2026.12")
    assert (compat.device(x), compat.size(x), compat.to_device(x, "cpu")) == ("cpu", 6, x)
    assert compat.is_array_api_obj(x) and not compat.is_lazy_array(x)


# -- a standard of tomorrow


def test_what_no_standard_has_is_refused_by_its_name():
    x = array_api.asarray([1.0])
    calls: dict[str, Callable[[], Any]] = {
        "tomorrow": lambda: array_api.tomorrow(x),
        "morrow": lambda: array_api.linalg.morrow(x),
        "next_method": lambda: x.next_method(),
        "where": lambda: array_api.sum(x, where=True),  # pyright: ignore[reportCallIssue]
        "2026.12": lambda: x.__array_namespace__(api_version="2026.12"),
        "float8": lambda: array_api.zeros(2, dtype="float8"),
        "bfloat16": lambda: array_api.zeros(2, dtype="bfloat16"),
        "decimal floating": lambda: array_api.isdtype(x.dtype, "decimal floating"),
        "gpu:0": lambda: array_api.asarray(1, device="gpu:0"),
        "middle": lambda: array_api.searchsorted(x, 1.0, side="middle"),
    }
    for name, call in calls.items():
        with pytest.raises((AttributeError, TypeError, ValueError), match=name):
            call()
