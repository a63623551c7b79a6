"""Every name and signature of the standard, as tests/golden/array_api_2025_12.json has them."""

from __future__ import annotations

import ast
import inspect
import json
import math
from typing import Any

import numpy as np
import pytest

from graphir import DType
from graphir.runtime import array_api as xp
from tests import GOLDEN
from tests.support.tables import every

STANDARD = json.loads((GOLDEN / "array_api_2025_12.json").read_text(encoding="utf-8"))
INFO = xp.__array_namespace_info__()

FUNCTIONS = [
    pytest.param(owner, name, parameters, id=f"{label}{name}")
    for label, owner, key in (
        ("", xp, "functions"),
        ("linalg.", xp.linalg, "linalg"),
        ("fft.", xp.fft, "fft"),
        ("Array.", xp.Array, "methods"),
        ("info.", type(INFO), "info"),
    )
    for name, parameters in STANDARD[key].items()
]


def parameters_of(function: Any) -> dict[str, inspect.Parameter]:
    found = dict(inspect.signature(function).parameters)
    found.pop("self", None)
    return found


@every(("owner", "name", "parameters"), FUNCTIONS)
def test_a_function_takes_what_the_standard_says(owner: Any, name: str, parameters: list[Any]):
    found = parameters_of(getattr(owner, name))
    assert [(n, one.kind.name.lower()) for n, one in found.items()] == [
        (n, kind) for n, kind, _ in parameters
    ]
    for n, kind, default in parameters:
        if default is not None:
            assert found[n].default == ast.literal_eval(default), n
        elif name == "expand_dims" and n == "axis":
            assert found[n].default == 0  # the default of 2024.12
        elif kind != "var_positional" and owner is not type(INFO):  # whose defaults it leaves out
            assert found[n].default is inspect.Parameter.empty, n


@every(("owner", "name", "parameters"), FUNCTIONS)
def test_a_function_has_its_name_and_says_what_it_does(owner: Any, name: str, parameters: Any):
    function = getattr(owner, name)
    assert function.__name__ == name
    assert (function.__doc__ and function.__doc__.strip()) or name.startswith("__")


def test_there_are_as_many_as_the_standard_has():
    assert {key: len(STANDARD[key]) for key in ("functions", "linalg", "fft", "methods")} == {
        "functions": 136,
        "linalg": 25,
        "fft": 14,
        "methods": 34,
    }


def test_all_that_is_exported_is_there_and_is_the_standard():
    extra = {"Array", "Device", "__array_api_version__", "fft", "linalg"}
    standard = {*STANDARD["functions"], *STANDARD["constants"], *STANDARD["dtypes"]}
    assert set(xp.__all__) == standard | extra
    assert set(xp.linalg.__all__) == set(STANDARD["linalg"])
    assert set(xp.fft.__all__) == set(STANDARD["fft"])
    for module in (xp, xp.linalg, xp.fft):
        assert all(hasattr(module, name) for name in module.__all__)


def test_what_linalg_shares_with_the_namespace_is_the_same():
    for name in ("matmul", "tensordot", "vecdot", "matrix_transpose"):
        assert getattr(xp.linalg, name) is getattr(xp, name)


def test_constants():
    assert (xp.e, xp.pi, xp.inf, xp.newaxis) == (math.e, math.pi, math.inf, None)
    assert math.isnan(xp.nan)
    assert xp.__array_api_version__ == "2025.12"


@every("name", STANDARD["dtypes"])
def test_dtypes_are_objects_with_their_names(name: str):
    dtype = getattr(xp, name)
    assert dtype is DType(name) and str(dtype) == name
    assert xp.zeros((), dtype=dtype).dtype == dtype
    assert len({dtype, getattr(xp, name)}) == 1
    assert all(dtype != getattr(xp, other) for other in STANDARD["dtypes"] if other != name)


def test_an_array_has_the_properties_of_the_standard():
    x = xp.zeros((2, 3), dtype=xp.int8)
    assert [hasattr(x, name) for name in STANDARD["properties"]] == [True] * 7
    assert (x.shape, x.ndim, x.size, x.device) == ((2, 3), 2, 6, "cpu")
    assert x.T.shape == x.mT.shape == (3, 2)
    assert xp.zeros((2, 3, 4)).mT.shape == (2, 4, 3)
    for wrong in (lambda: xp.zeros(3).T, lambda: xp.zeros((1, 2, 3)).T, lambda: xp.zeros(3).mT):
        with pytest.raises(ValueError, match="matrices"):
            wrong()


REFLECTED = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul"),
    *("and", "or", "xor", "lshift", "rshift"),
)


@every("name", REFLECTED)
def test_operators_have_reflected_and_in_place_forms(name: str):
    for form in ("", "r", "i"):
        assert list(parameters_of(getattr(xp.Array, f"__{form}{name}__"))) == ["other"]


# -- the namespace of an array


def test_an_array_knows_its_namespace():
    x = xp.asarray(1)
    assert x.__array_namespace__() is xp
    for version in ("2025.12", "2024.12", "2023.12", "2022.12", "2021.12", None):
        assert x.__array_namespace__(api_version=version) is xp
    for version in ("2020.12", "2099.12", "", "2024"):
        with pytest.raises(ValueError, match=r"2025\.12"):
            x.__array_namespace__(api_version=version)


def test_an_array_is_not_made_directly():
    for wrong in (1, [1], np.zeros(2), None):
        with pytest.raises(TypeError, match="asarray"):
            xp.Array(wrong)


# -- inspection


def test_what_the_namespace_says_of_itself():
    assert INFO.capabilities() == {
        "boolean indexing": True,
        "data-dependent shapes": True,
        "max dimensions": 64,
    }
    with pytest.raises(ValueError, match="dimension"):
        np.zeros((1,) * 65)
    assert INFO.devices() == ("cpu",) and INFO.default_device() == "cpu"
    assert INFO.default_dtypes(device="cpu") == {
        "real floating": xp.float64,
        "complex floating": xp.complex128,
        "integral": xp.int64,
        "indexing": xp.int64,
    }
    assert xp.asarray([1]).dtype == xp.arange(3).dtype == INFO.default_dtypes()["integral"]
    assert xp.argsort(xp.zeros(2)).dtype == INFO.default_dtypes()["indexing"]


KINDS = {
    "bool": ["bool"],
    "signed integer": ["int8", "int16", "int32", "int64"],
    "unsigned integer": ["uint8", "uint16", "uint32", "uint64"],
    "real floating": ["float32", "float64"],
    "complex floating": ["complex64", "complex128"],
}
KINDS["integral"] = KINDS["signed integer"] + KINDS["unsigned integer"]
KINDS["numeric"] = KINDS["integral"] + KINDS["real floating"] + KINDS["complex floating"]


@every("kind", KINDS)
def test_dtypes_of_a_kind(kind: str):
    assert INFO.dtypes(kind=kind) == {name: getattr(xp, name) for name in KINDS[kind]}
    for name in STANDARD["dtypes"]:
        dtype = getattr(xp, name)
        assert xp.isdtype(dtype, kind) is (name in KINDS[kind])
        assert xp.isdtype(dtype, (kind, xp.bool)) is (name in KINDS[kind] or name == "bool")


def test_dtypes_of_several_kinds_and_of_all():
    assert set(INFO.dtypes(kind=("bool", "real floating"))) == {"bool", "float32", "float64"}
    assert set(INFO.dtypes(device="cpu")) == set(STANDARD["dtypes"])
    for wrong in (lambda: INFO.dtypes(kind="float"), lambda: xp.isdtype(xp.bool, "float")):
        with pytest.raises(ValueError, match="real floating"):
            wrong()
    with pytest.raises(TypeError):
        xp.isdtype(xp.bool, (("bool",),))
    with pytest.raises(ValueError, match="device"):
        INFO.dtypes(device="gpu")


@every("name", KINDS["integral"])
def test_limits_of_integers(name: str):
    info, theirs = xp.iinfo(getattr(xp, name)), np.iinfo(name)
    assert (info.bits, info.min, info.max) == (theirs.bits, theirs.min, theirs.max)
    assert info.dtype == getattr(xp, name) == xp.iinfo(xp.zeros(2, dtype=info.dtype)).dtype
    assert [hasattr(info, one) for one in STANDARD["iinfo"]] == [True] * 4
    with pytest.raises(TypeError):
        xp.finfo(getattr(xp, name))


@every("name", KINDS["real floating"] + KINDS["complex floating"])
def test_limits_of_floats(name: str):
    info, theirs = xp.finfo(getattr(xp, name)), np.finfo(name)
    for one in STANDARD["finfo"]:
        if one != "dtype":
            assert getattr(info, one) == getattr(theirs, one)
            assert type(getattr(info, one)) in (int, float)
    assert info.dtype == getattr(xp, str(theirs.dtype))
    with pytest.raises(TypeError):
        xp.iinfo(getattr(xp, name))
    with pytest.raises(TypeError):
        xp.finfo("no dtype")


def test_expand_dims_takes_its_axis_by_position_or_keyword():
    x = xp.zeros((2, 3))
    assert xp.expand_dims(x, 1).shape == xp.expand_dims(x, axis=1).shape == (2, 1, 3)
    assert xp.expand_dims(x).shape == (1, 2, 3)
