"""What each rule set answers to a symbol beside a literal: a table of each library's own answers.

Taken from the libraries by running them, written down, and compared with those that are present.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import runtime
from graphir import DType, Graph, PromotionError, PromotionRules, rule_sets

QUESTIONS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "float32 + np.float64(1)": ("float32", lambda x: x + np.float64(1)),
    "float32 + 1.0": ("float32", lambda x: x + 1.0),
    "int8 + True": ("int8", lambda x: x + True),
    "int8 + 128": ("int8", lambda x: x + 128),
    "int8 + 1.5": ("int8", lambda x: x + 1.5),
    "uint8 + (-1)": ("uint8", lambda x: x + (-1)),
    "float16 + 2049": ("float16", lambda x: x + 2049),
    "float16 + 1e10": ("float16", lambda x: x + 1e10),
    "bool + 1": ("bool", lambda x: x + 1),
    "int8 < 300": ("int8", lambda x: x < 300),
}
"""Each is asked of an array of one element, which is 1, or True."""

PRESENT = {
    "numpy": (
        "float64 2 | float32 2 | int8 2 | OverflowError | float64 2.5 | "
        "OverflowError | float16 2048 | float16 inf | int64 2 | bool True"
    ),
    "jax": (
        "float64 2 | float32 2 | int8 2 | int8 -127 | float64* 2.5 | uint8 0 | "
        "float16 2048 | float16 inf | int64* 2 | bool True"
    ),
    "jax_x32": (
        "float32 2 | float32 2 | int8 2 | int8 -127 | float32* 2.5 | uint8 0 | "
        "float16 2048 | float16 inf | int32* 2 | bool True"
    ),
    "jax_strict": (
        "TypePromotionError | float32 2 | TypePromotionError | int8 -127 | TypePromotionError | "
        "uint8 0 | float16 2048 | float16 inf | TypePromotionError | bool True"
    ),
    "jax_lax": " | ".join(["TypeError"] * 10),
    "torch": (
        "float32 2 | float32 2 | int8 2 | int8 -127 | float32 2.5 | uint8 0 | "
        "float16 2048 | float16 inf | int64 2 | bool True"
    ),
    "array_api": (
        "TypeError | float32 2 | TypeError | OverflowError | TypeError | "
        "OverflowError | AttributeError | AttributeError | TypeError | OverflowError"
    ),
    "tensorflow": (
        "float32 2 | float32 2 | InvalidArgumentError | int8 -127 | InvalidArgumentError | "
        "uint8 0 | float16 2048 | float16 inf | InvalidArgumentError | bool True"
    ),
}
"""NumPy 2.4.6, JAX 0.10.2, PyTorch 2.13.0, array-api-strict 2.6.1, TensorFlow 2.21.0.

A dtype with * is weak. array-api-strict has no float16, and takes no scalars of NumPy.
"""

ABSENT = {
    "numpy_legacy": (
        "float32 2 | float32 2 | int8 2 | int16 129 | float64 2.5 | int16 0 | "
        "float32 2050 | float32 1e10 | int64 2 | bool True"
    ),
    "cupy": (
        "float64 2 | float32 2 | int8 2 | OverflowError | float64 2.5 | "
        "OverflowError | float16 2048 | float16 inf | int64 2 | bool True"
    ),
    "dask": (
        "float64 2 | float32 2 | int8 2 | OverflowError | float64 2.5 | "
        "OverflowError | float16 2048 | float16 inf | int64 2 | bool True"
    ),
    "tf_all": (
        "float64 2 | float32 2 | TypeError | int8 -127 | float64* 2.5 | uint8 0 | "
        "float16 2048 | float16 inf | int32* 2 | bool True"
    ),
    "tf_safe": (
        "float64 2 | float32 2 | TypeError | int8 -127 | TypeError | uint8 0 | "
        "float16 2048 | float16 inf | int32* 2 | bool True"
    ),
    "jax_2020": (
        "float64 2 | float32 2 | int8 2 | int8 -127 | float64 2.5 | uint8 0 | "
        "float16 2048 | float16 inf | int64 2 | bool True"
    ),
    "jep_option_0": (
        "float64 2 | float32 2 | error | int8 -127 | error | uint8 0 | "
        "float16 2048 | float16 inf | error | bool True"
    ),
    "jep_option_1": (
        "float64 2 | float32 2 | error | int8 -127 | float16 2.5 | uint8 0 | "
        "float16 2048 | float16 inf | error | bool True"
    ),
    "jep_option_2": (
        "float64 2 | float32 2 | error | int8 -127 | float16 2.5 | uint8 0 | "
        "float16 2048 | float16 inf | error | bool True"
    ),
    "jep_option_3": (
        "float64 2 | float32 2 | error | int8 -127 | float64* 2.5 | uint8 0 | "
        "float16 2048 | float16 inf | error | bool True"
    ),
    "python": ("error | error | error | error | error | error | error | error | int64* 2 | error"),
    "max": (
        "float64 2 | float32 2 | int8 2 | error | error | error | error | error | bool True | error"
    ),
    "max_strict": (
        "float64 2 | float32 2 | int8 2 | error | error | error | "
        "error | float16 inf | bool True | error"
    ),
    "explicit": (
        "error | float32 2 | int8 2 | error | error | error | error | error | bool True | error"
    ),
}
"""NumPy 1.26.4, Dask 2026.8 and TensorFlow's modes, run in environments of their own; CuPy 14.2 by
its dispatch tables. JAX's table of 2020 and the options of JEP 9407 speak of dtypes alone, in
which values are as JAX has them; Python has no arrays; of MAX 26.7, which ran, see golden/."""

LIBRARIES, ANSWERS = (
    {name: dict(zip(QUESTIONS, row.split(" | "), strict=True)) for name, row in table.items()}
    for table in (PRESENT, PRESENT | ABSENT)
)
CASES = [(name, question) for name in ANSWERS for question in QUESTIONS]


def _shown(dtype: Any, weak: bool, value: Any) -> str:
    number = np.asarray(value).astype(object).ravel()[0]
    return f"{dtype}{'*' * weak} {number if isinstance(number, bool) else f'{number:g}'}"


def _same(one: str, other: str) -> bool:
    """Equal, or both errors, and numbers equal as floats."""
    if " " not in one or " " not in other:
        return " " not in one and " " not in other
    (dtype, value), (dtype_2, value_2) = one.split(), other.split()
    alike = value == value_2 or (value != "True" and float(value) == float(value_2))
    return dtype == dtype_2 and alike


def _rules(name: str) -> PromotionRules:
    known = {each.name: each for each in rule_sets()}
    if name not in known:
        pytest.skip(f"no rule set {name} is registered")
    return known[name]


def ours(name: str, question: str) -> str:
    """What graphir answers."""
    dtype, asked = QUESTIONS[question]
    graph = Graph(rules=_rules(name))
    try:
        found = asked(graph.input(DType(dtype), (1,)))
    except PromotionError:
        return "error"
    graph.output(found)
    value = runtime.interpret(graph, np.ones(1, dtype))
    return _shown(value.dtype, found.weak, value)


def test_every_rule_set_has_its_answers():
    assert {each.name for each in rule_sets()} <= set(ANSWERS)


@pytest.mark.parametrize("name, question", CASES)
def test_graphir_answers_as_the_library(name: str, question: str):
    assert _same(ours(name, question), ANSWERS[name][question])


# -- the libraries themselves


def _numpy(name: str, dtype: str, asked: Callable[[Any], Any]) -> str:
    found = asked(np.ones(1, dtype))
    return _shown(found.dtype, False, found)


def _jax(name: str, dtype: str, asked: Callable[[Any], Any]) -> str:
    jax = import_module("jax")
    promotion = "strict" if name == "jax_strict" else "standard"
    with jax.enable_x64(name != "jax_x32"), jax.numpy_dtype_promotion(promotion):
        x = jax.numpy.ones(1, dtype)
        found = asked(_Lax(x) if name == "jax_lax" else x)
        return _shown(found.dtype, found.weak_type and found.dtype != bool, found)


class _Lax:
    """An array whose operators are functions of jax.lax."""

    def __init__(self, array: Any) -> None:
        self.array, self.lax = array, import_module("jax.lax")

    def __add__(self, other: Any) -> Any:
        return self.lax.add(self.array, other)

    def __lt__(self, other: Any) -> Any:
        return self.lax.lt(self.array, other)


def _torch(name: str, dtype: str, asked: Callable[[Any], Any]) -> str:
    torch = import_module("torch")
    found = asked(torch.ones(1).to(getattr(torch, dtype)))
    return _shown(str(found.dtype).removeprefix("torch."), False, found.tolist())


def _array_api(name: str, dtype: str, asked: Callable[[Any], Any]) -> str:
    xp = import_module("array_api_strict")
    found = asked(xp.ones(1, dtype=getattr(xp, dtype)))
    return _shown(np.asarray(found).dtype, False, np.asarray(found))


def _tensorflow(name: str, dtype: str, asked: Callable[[Any], Any]) -> str:
    found = asked(import_module("tensorflow").constant(np.ones(1, dtype)))
    return _shown(found.dtype.name, False, found.numpy())


LIVE = {
    "numpy": ("numpy", _numpy),
    "torch": ("torch", _torch),
    "array_api": ("array_api_strict", _array_api),
    "tensorflow": ("tensorflow", _tensorflow),
    **{name: ("jax", _jax) for name in LIBRARIES if name.startswith("jax")},
}


@pytest.mark.parametrize("name", LIBRARIES)
def test_libraries_answer_as_written_down(name: str):
    module, live = LIVE[name]
    pytest.importorskip(module, reason=f"{module} is not installed: nothing to compare with")
    for question, (dtype, asked) in QUESTIONS.items():
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                found = live(name, dtype, asked)
            except Exception as error:
                found = type(error).__name__
        expected = LIBRARIES[name][question]
        assert _same(found, expected) and (" " in expected or found == expected), question
