"""Tests of the stand-ins of NumPy's constructors in the modules that hold them."""

import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from graphir.numpy_api.interception import Interceptor
from graphir.runtime.recording.recording import record


def _module(source: str) -> ModuleType:
    module = ModuleType("a_program")
    exec(source, vars(module))
    return module


def test_a_name_has_its_stand_in_until_the_last_block_ends():
    interceptor, space = Interceptor(), {"zeros": np.zeros}
    with interceptor.block(lambda: interceptor.replace(space, "zeros", "a stand-in")):
        with interceptor.block(lambda: pytest.fail("the first block has begun")):
            interceptor.add(space, "type", "an addition")
        assert space == {"zeros": "a stand-in", "type": "an addition"}
        assert interceptor.is_added(space, "type")
    assert space == {"zeros": np.zeros}
    assert not interceptor.is_active and not interceptor.is_added(space, "type")


def test_an_attribute_of_a_class_comes_back():
    class Owner:
        def method(self) -> int:
            return 1

    original, interceptor = vars(Owner)["method"], Interceptor()
    with interceptor.block():
        interceptor.replace_attribute(Owner, "method", lambda self: 2)  # pyright: ignore
        assert Owner().method() == 2
    assert vars(Owner)["method"] is original


def test_a_recorded_program_may_bind_the_name_of_a_constructor_anew(
    monkeypatch: pytest.MonkeyPatch,
):
    module = _module(
        "from numpy import ones, zeros\n"
        "def program(x):\n"
        "    global zeros\n"
        "    result = x + zeros(2) + ones(2)\n"
        "    zeros = 'of the program'\n"
        "    return result\n"
    )
    monkeypatch.setitem(sys.modules, "a_program", module)
    program: Any = module.program
    record(program, np.arange(2.0))
    assert module.zeros == "of the program"
    assert module.ones is np.ones
