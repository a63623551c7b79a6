"""What each rule set answers to a symbol beside a literal: a table of each library's own answers.

Taken from the libraries by running them, written down, and compared with those that are present.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np
import pytest

from graphir import DType, Graph, GraphirError, PromotionRules, ops, rule_sets, runtime
from graphir.promotion.library import LibraryRules
from tests.support.tables import every

Shape: TypeAlias = tuple[int, ...]
Question: TypeAlias = Callable[[Any, Any], Any]

QUESTIONS: dict[str, tuple[str, Question]] = {
    "float32 + np.float64(1)": ("float32", lambda x, call: x + np.float64(1)),
    "float32 + 1.0": ("float32", lambda x, call: x + 1.0),
    "int8 + True": ("int8", lambda x, call: x + True),
    "int8 + 128": ("int8", lambda x, call: x + 128),
    "int8 + 1.5": ("int8", lambda x, call: x + 1.5),
    "uint8 + (-1)": ("uint8", lambda x, call: x + (-1)),
    "float16 + 2049": ("float16", lambda x, call: x + 2049),
    "float16 + 1e10": ("float16", lambda x, call: x + 1e10),
    "bool + 1": ("bool", lambda x, call: x + 1),
    "int8 < 300": ("int8", lambda x, call: x < 300),
}
"""Each is asked of an array of one element, which is 1, or True; `call` names a function."""

PLACED: dict[str, tuple[str, Question]] = {
    "200 ** int8": ("int8", lambda x, call: 200**x),
    "int8 ** 200": ("int8", lambda x, call: x**200),
    "bool ** 2": ("bool", lambda x, call: x**2),
    "bool ** 3": ("bool", lambda x, call: x**3),
    "2 ** bool": ("bool", lambda x, call: 2**x),
    "bool // 2": ("bool", lambda x, call: x // 2),
    "bool % 2": ("bool", lambda x, call: x % 2),
    "bool << 1": ("bool", lambda x, call: x << 1),
    "clip(uint8, -1, 1.5)": ("uint8", lambda x, call: call("clip", x, -1, 1.5)),
    "clip(uint8, 0, 300)": ("uint8", lambda x, call: call("clip", x, 0, 300)),
    "clip(uint8, 300, 1.5)": ("uint8", lambda x, call: call("clip", x, 300, 1.5)),
    "where(bool, 1, 1.5)": ("bool", lambda x, call: call("where", x, 1, 1.5)),
    "where(bool, 300, 1.5)": ("bool", lambda x, call: call("where", x, 300, 1.5)),
    "float32[] ** 0.5": ("float32[]", lambda x, call: x**0.5),
    "float32[] ** 1.5": ("float32[]", lambda x, call: x**1.5),
    "int8[] ** 2": ("int8[]", lambda x, call: x**2),
    "bool ** 2.0": ("bool", lambda x, call: x**2.0),
}
"""Where the place of a literal counts, or the literals beside it."""

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
    "tf_legacy": (
        "float64 2 | float32 2 | TypeError | int8 -127 | float64 2.5 | uint8 0 | "
        "float16 2048 | float16 inf | int64 2 | bool True"
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
        "float32 2 | float32 2 | int8 2 | error | error | error | "
        "error | float16 inf | bool True | error"
    ),
    "explicit": (
        "error | float32 2 | int8 2 | error | error | error | error | error | bool True | error"
    ),
}
"""NumPy 1.26.4, Dask 2026.8 and TensorFlow's modes, run in environments of their own; CuPy 14.2 by
its dispatch tables. JAX's table of 2020 and the options of JEP 9407 speak of dtypes alone, in
which values are as JAX has them; Python has no arrays; of MAX 26.7, which ran, see golden/."""

PLACED_PRESENT = {
    "numpy": (
        "OverflowError | OverflowError | int8 1 | int64 1 | int64 2 | int64 0 | int64 1 | "
        "int64 2 | float64 1 | uint8 1 | float64 1.5 | float64 1 | float64 300 | float32 1 | "
        "float32 1 | int8 1 | float64 1"
    ),
    "jax": (
        "int8 -56 | int8 1 | int32 1 | int32 1 | int64 2 | int64* 0 | int64* 1 | int64* 2 | "
        "float64* 1.5 | uint8 1 | float64* 1.5 | float64* 1 | float64* 300 | float32 1 | "
        "float32 1 | int8 1 | float64* 1"
    ),
    "jax_x32": (
        "int8 -56 | int8 1 | int32 1 | int32 1 | int32 2 | int32* 0 | int32* 1 | int32* 2 | "
        "float32* 1.5 | uint8 1 | float32* 1.5 | float32* 1 | float32* 300 | float32 1 | "
        "float32 1 | int8 1 | float32* 1"
    ),
    "jax_strict": (
        "int8 -56 | int8 1 | int32 1 | int32 1 | TypePromotionError | TypePromotionError | "
        "TypePromotionError | TypePromotionError | TypePromotionError | uint8 1 | "
        "TypePromotionError | float64* 1 | float64* 300 | float32 1 | float32 1 | int8 1 | "
        "TypePromotionError"
    ),
    "torch": (
        "int8 -56 | RuntimeError | int64 1 | int64 1 | int64 2 | int64 0 | int64 1 | int64 2 | "
        "float32 1 | RuntimeError | float32 1.5 | float32 1 | float32 300 | float32 1 | "
        "float32 1 | int8 1 | float32 1"
    ),
    "array_api": (
        "OverflowError | OverflowError | TypeError | TypeError | TypeError | TypeError | "
        "TypeError | TypeError | TypeError | uint8 1 | TypeError | TypeError | TypeError | "
        "float32 1 | float32 1 | int8 1 | TypeError"
    ),
    "tensorflow": (
        "int8 -56 | InvalidArgumentError | TypeError | TypeError | TypeError | TypeError | "
        "TypeError | TypeError | TypeError | uint8 1 | TypeError | TypeError | TypeError | "
        "float32 1 | float32 1 | int8 1 | TypeError"
    ),
}
PLACED_ABSENT = {
    "numpy_legacy": (
        "int16 200 | int16 1 | int8 1 | int64 1 | int64 2 | int64 0 | int64 1 | int64 2 | "
        "float64 1 | uint16 1 | float64 1.5 | float64 1 | float64 300 | float32 1 | float64 1 | "
        "int8 1 | int8 1"
    ),
    "dask": (
        "OverflowError | OverflowError | int8 1 | int64 1 | int64 2 | int64 0 | int64 1 | "
        "int64 2 | float64 1 | uint8 1 | float64 1.5 | float64 1 | float64 300 | float32 1 | "
        "float32 1 | int8 1 | float64 1"
    ),
    "tf_all": (
        "int8 -56 | InvalidArgumentError | int32* 1 | int32* 1 | int32* 2 | int32* 0 | "
        "int32* 1 | TypeError | float64 1 | uint8 1 | float64 300 | TypeError | TypeError | "
        "float32 1 | float32 1 | int8 1 | float32* 1"
    ),
    "tf_safe": (
        "int8 -56 | InvalidArgumentError | int32* 1 | int32* 1 | int32* 2 | int32* 0 | "
        "int32* 1 | TypeError | TypeError | uint8 1 | TypeError | TypeError | TypeError | "
        "float32 1 | float32 1 | int8 1 | float32* 1"
    ),
}
"""The same libraries. In NumPy 1, int8[] is a 0-d array."""

DIFFERENT = {
    ("array_api", "clip(uint8, 0, 300)"): "error",  # the standard leaves it undefined
    ("tf_all", "clip(uint8, 300, 1.5)"): "float64 1.5",  # there the lower bound is met last
    ("tf_all", "bool ** 2.0"): "float32 1",  # there weak; weak floats have 64 bits in graphir
    ("tf_safe", "bool ** 2.0"): "float32 1",
}
"""Where graphir answers otherwise."""


def _answers(table: Mapping[str, str], placed: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """By rule set and question, from the rows of both tables."""
    return {
        name: dict(zip(QUESTIONS, row.split(" | "), strict=True))
        | (dict(zip(PLACED, placed[name].split(" | "), strict=True)) if name in placed else {})
        for name, row in table.items()
    }


LIBRARIES = _answers(PRESENT, PLACED_PRESENT)
ANSWERS = LIBRARIES | _answers(ABSENT, PLACED_ABSENT)
CASES = [(name, question) for name, row in ANSWERS.items() for question in row]


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
    dtype, shape, asked = _asked(question)
    graph = Graph(rules=_rules(name))
    try:
        found = asked(graph.input(DType(dtype), shape), lambda op, *args: getattr(ops, op)(*args))
        graph.output(found)
        value = runtime.interpret(graph, np.ones(shape, dtype))
    except GraphirError:
        return "error"
    return _shown(value.dtype, found.weak, value)


def _asked(question: str) -> tuple[str, Shape, Question]:
    """The dtype and shape of the array, and what is asked of it."""
    dtype, asked = (QUESTIONS | PLACED)[question]
    return dtype.removesuffix("[]"), () if dtype.endswith("[]") else (1,), asked


def test_every_rule_set_of_a_library_has_its_answers():
    of_libraries = {each.name for each in rule_sets() if isinstance(each, LibraryRules)}
    assert of_libraries <= set(ANSWERS)


@every("name, question", CASES)
def test_graphir_answers_as_the_library(name: str, question: str):
    library = ANSWERS[name][question]
    expected = DIFFERENT.get((name, question), library)
    assert _same(ours(name, question), expected)
    assert (name, question) not in DIFFERENT or not _same(expected, library)


# -- the libraries themselves


def _calling(functions: Any) -> Any:
    return lambda name, *args: getattr(functions, name)(*args)


def _numpy(name: str, dtype: str, shape: Shape, asked: Question) -> str:
    found = asked(np.ones(shape, dtype), _calling(np))
    return _shown(found.dtype, False, found)


def _jax(name: str, dtype: str, shape: Shape, asked: Question) -> str:
    jax = import_module("jax")
    promotion = "strict" if name == "jax_strict" else "standard"
    with jax.enable_x64(name != "jax_x32"), jax.numpy_dtype_promotion(promotion):
        x = jax.numpy.ones(shape, dtype)
        found = asked(_Lax(x) if name == "jax_lax" else x, _calling(jax.numpy))
        return _shown(found.dtype, found.weak_type and found.dtype != bool, found)


class _Lax:
    """An array whose operators are functions of jax.lax."""

    def __init__(self, array: Any) -> None:
        self.array, self.lax = array, import_module("jax.lax")

    def __add__(self, other: Any) -> Any:
        return self.lax.add(self.array, other)

    def __lt__(self, other: Any) -> Any:
        return self.lax.lt(self.array, other)


def _torch(name: str, dtype: str, shape: Shape, asked: Question) -> str:
    torch = import_module("torch")
    found = asked(torch.ones(shape).to(getattr(torch, dtype)), _calling(torch))
    return _shown(str(found.dtype).removeprefix("torch."), False, found.tolist())


def _array_api(name: str, dtype: str, shape: Shape, asked: Question) -> str:
    xp = import_module("array_api_strict")
    found = asked(xp.ones(shape, dtype=getattr(xp, dtype)), _calling(xp))
    return _shown(np.asarray(found).dtype, False, np.asarray(found))


def _tensorflow(name: str, dtype: str, shape: Shape, asked: Question) -> str:
    tf = import_module("tensorflow")
    functions = {"clip": tf.clip_by_value, "where": tf.where}
    found = asked(tf.constant(np.ones(shape, dtype)), lambda op, *args: functions[op](*args))
    return _shown(found.dtype.name, False, found.numpy())


LIVE = {
    "numpy": ("numpy", _numpy),
    "torch": ("torch", _torch),
    "array_api": ("array_api_strict", _array_api),
    "tensorflow": ("tensorflow", _tensorflow),
    **{name: ("jax", _jax) for name in LIBRARIES if name.startswith("jax")},
}


@every("name", LIBRARIES)
def test_libraries_answer_as_written_down(name: str):
    module, live = LIVE[name]
    pytest.importorskip(module, reason=f"{module} is not installed: nothing to compare with")
    for question, expected in LIBRARIES[name].items():
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                found = live(name, *_asked(question))
            except Exception as error:  # of whatever class: that is the library's answer
                found = type(error).__name__
        assert _same(found, expected) and (" " in expected or found == expected), question
