"""Functions of state outside their arguments, and changes of it between two calls of jit."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import cached_property, partial, wraps
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from graphir.runtime import jit
from tests.runtime.jit.jitted import Converts, X

# -- what a function reads: each case gives a function, changes what it reads, gives it again


CASES: dict[str, Callable[[], Iterator[Any]]] = {}
Case = Callable[[], Iterator[Any]]


def case(generator: Case) -> Case:
    CASES[generator.__name__] = generator
    return generator


STATE: dict[str, Any] = {"__name__": "user", "np": np}


def user(source: str) -> Any:
    """A function of a module of its own, whose globals are STATE."""
    exec(f"def f(x):\n    {source}\n", STATE)
    return STATE.pop("f")


@case
def globals_by_value() -> Iterator[Any]:
    f = jit(user("return x * SCALE"))
    for STATE["SCALE"] in (2.0, 3.0, 3, True, 2.0, np.float64(2), np.float32(2), np.ones(4)):
        yield f


@case
def globals_that_hide_builtins() -> Iterator[Any]:
    f = jit(user("return x * max(1, 2)"))
    yield f
    STATE["max"] = lambda a, b: 7
    yield f
    del STATE["max"]
    yield f


@case
def functions_of_the_module() -> Iterator[Any]:
    f = jit(user("return helper(x)"))
    STATE["helper"] = user("return x + 1")
    yield f
    STATE["helper"] = user("return x + BIAS")
    for STATE["BIAS"] in (1, 2):
        yield f


@case
def arrays_written_in_place() -> Iterator[Any]:
    f = jit(user("return x * W + np.sum(W)"))
    STATE["W"] = X + 1
    for step in range(3):
        yield f
        STATE["W"][step] = -step


@case
def arrays_bound_anew() -> Iterator[Any]:
    f = jit(user("return x * W if W.ndim == 1 else x @ W"))
    for STATE["W"] in (X + 1, X + 1, X * 2, np.eye(4), np.arange(4), X.astype(">f4"), X[::-1]):
        yield f


@case
def values_of_arrays_that_decide() -> Iterator[Any]:
    f = jit(user("return x + 1 if W[0] > 0 else x * float(W.max())"))
    STATE["W"] = X - 1
    for value in (1, -1, -2, 1):
        STATE["W"][0] = value
        yield f


@case
def arrays_read_through_views() -> Iterator[Any]:
    f = jit(user("return x * W[0] + W.T[1]"))
    STATE["W"] = np.arange(16.0).reshape(4, 4)
    yield f
    STATE["W"] *= 2
    yield f


@case
def zero_dimensional_arrays() -> Iterator[Any]:
    f = jit(user("return x ** W"))
    STATE["W"] = np.array(2)
    for value in (2, 3):
        STATE["W"][...] = value
        yield f


@case
def cells() -> Iterator[Any]:
    def make() -> tuple[Any, Any]:
        scale, w = 2.0, X + 1

        def change(value: Any) -> None:
            nonlocal scale, w
            scale, w = value, X * value

        return jit(lambda x: x * scale + w), change

    f, change = make()
    yield f
    for value in (3.0, 4):
        change(value)
        yield f


@case
def cells_of_a_decorated_helper() -> Iterator[Any]:
    def decorated(function: Any) -> Any:
        factor = [2]

        @wraps(function)
        def wrapper(x: Any) -> Any:
            return function(x) * factor[0]

        wrapper.factor = factor  # type: ignore[attr-defined]
        return wrapper

    helper = decorated(lambda x: x + 1)
    f = jit(lambda x: helper(x))
    yield f
    helper.factor[0] = 3
    yield f


class Layer:
    scale = 2.0

    def __init__(self) -> None:
        self.w, self.inner = X + 1, SimpleNamespace(bias=1.0)

    def __call__(self, x: Any) -> Any:
        return x * self.w * self.scale + self.shift

    @property
    def shift(self) -> Any:
        return self.inner.bias * self.twice()

    @staticmethod
    def twice() -> int:
        return 2


@case
def attributes_of_an_instance() -> Iterator[Any]:
    layer = Layer()
    f = jit(lambda x: layer(x))
    yield f
    layer.w[0] = 5
    yield f
    layer.w = X + 7
    yield f
    layer.scale = 3.0
    yield f
    layer.inner.bias = 4.0
    yield f
    layer.inner = SimpleNamespace(bias=5.0)
    yield f
    layer.twice = lambda: 9  # type: ignore[method-assign]
    yield f


@case
def attributes_of_a_class() -> Iterator[Any]:
    class Wide(Layer):
        pass

    layer = Wide()
    f = jit(lambda x: layer(x) * Wide.scale)
    yield f
    Wide.scale = 5.0
    yield f
    Wide.twice = staticmethod(lambda: 3)  # type: ignore[method-assign]
    yield f
    Wide.__call__ = lambda self, x: x - self.scale  # type: ignore[method-assign]
    yield f


@case
def attributes_of_self() -> Iterator[Any]:
    class Model:
        def __init__(self) -> None:
            self.layers = [Layer(), Layer()]
            self.options = {"rate": 0.5}

        @jit
        def run(self, x: Any) -> Any:
            for layer in self.layers:
                x = x * layer.scale + layer.w
            return x * self.options["rate"]

    model = Model()

    def bound(x: Any) -> Any:
        return model.run(x)

    bound.__wrapped__ = lambda x: Model.__dict__["run"].__wrapped__(model, x)  # type: ignore
    yield bound
    model.layers[1].scale = 7.0
    yield bound
    model.layers[1].w += 1
    yield bound
    model.options["rate"] = 0.25
    yield bound
    model.layers.append(Layer())
    yield bound


@case
def attributes_through_aliases() -> Iterator[Any]:
    config = SimpleNamespace(inner=SimpleNamespace(scale=2.0), other=SimpleNamespace(scale=9.0))

    def run(x: Any) -> Any:
        first, second = config.inner, getattr(config, "other")  # noqa: B009
        y = x * first.scale
        return y * second.scale * getattr(first, "gain", 1.0)

    f = jit(run)
    yield f
    config.inner.scale = 3.0
    yield f
    config.other.scale = 4.0
    yield f
    config.inner.gain = 5.0
    yield f


@case
def attributes_of_modules() -> Iterator[Any]:
    config = ModuleType("config")
    config.scale, config.w = 2.0, X + 1  # type: ignore[attr-defined]
    STATE["config"] = sys.modules["config"] = config
    f = jit(user("import config as c; return x * config.scale + c.w + c.scale"))
    yield f
    config.scale = 3.0  # type: ignore[attr-defined]
    yield f
    config.w[1] = 9  # type: ignore[attr-defined]
    yield f
    del sys.modules["config"]


@case
def slots_and_cached_properties() -> Iterator[Any]:
    class Slotted:
        __slots__ = ("scale",)

        def __init__(self) -> None:
            self.scale = 2.0

    class Cached:
        base = 2.0

        @cached_property
        def value(self) -> float:
            return self.base * 2

    slotted, cached = Slotted(), Cached()
    f = jit(lambda x: x * slotted.scale + cached.value)
    yield f
    slotted.scale = 3.0
    yield f
    cached.__dict__.pop("value")
    cached.base = 5.0
    yield f


@case
def own_attribute_access() -> Iterator[Any]:
    class Lookup:
        def __init__(self) -> None:
            self.values = {"scale": 2.0}

        def __getattr__(self, name: str) -> Any:
            return self.values[name]

    class Watched:
        scale = 2.0

        def __getattribute__(self, name: str) -> Any:
            return object.__getattribute__(self, name)

    lookup, watched = Lookup(), Watched()
    f = jit(lambda x: x * lookup.scale + watched.scale)
    yield f
    lookup.values["scale"] = 3.0
    yield f
    watched.scale = 4.0
    yield f
    Watched.scale = 7.0
    del watched.scale
    yield f


@case
def partials_and_callables() -> Iterator[Any]:
    def scaled(x: Any, by: Any, w: Any) -> Any:
        return x * by.scale + w

    by, w = SimpleNamespace(scale=2.0), X + 1
    f = jit(partial(scaled, by=by, w=w))
    f.__wrapped__ = partial(scaled, by=by, w=w)
    yield f
    by.scale = 3.0
    yield f
    w[2] = 8
    yield f


@case
def contents_of_containers() -> Iterator[Any]:
    table, items, words = {"w": X + 1, "rate": 0.5}, [1.0, 2.0], {"relu"}

    def run(x: Any) -> Any:
        y = x * table["w"] * table["rate"] + sum(items)
        return np.maximum(y, 1) if "relu" in words else y

    f = jit(run)
    yield f
    table["rate"] = 0.25
    yield f
    table["w"][3] = -3
    yield f
    table["w"] = X - 5
    yield f
    items.append(3.0)
    yield f
    words.clear()
    yield f


@case
def state_that_the_function_writes() -> Iterator[Any]:
    counter = SimpleNamespace(count=0)

    def run(x: Any) -> Any:
        counter.count += 1
        return x * counter.count

    f = jit(run)

    def reference(x: Any) -> Any:
        return x * (counter.count + 1)

    def stepped(x: Any) -> Any:
        return f(x)

    stepped.__wrapped__ = reference  # type: ignore[attr-defined]
    for _ in range(3):
        yield stepped


@case
def inner_jitted_functions() -> Iterator[Any]:
    state = SimpleNamespace(scale=2.0)
    inner = jit(lambda x: x * state.scale)
    inner(np.ones(4, np.float32))
    f = jit(lambda x: x + inner(np.ones(4, np.float32)) + inner(x))
    f.__wrapped__ = lambda x: x + np.float32(state.scale) + x * state.scale
    yield f
    state.scale = 3.0
    yield f


@case
def foreign_arrays_that_a_function_closes_over() -> Iterator[Any]:
    values = X + 1
    foreign = Converts(values)
    f = jit(lambda x: x * foreign)
    f.__wrapped__ = lambda x: x * values
    yield f
    values *= 2
    yield f


@case
def arrays_deeper_than_names_lead() -> Iterator[Any]:
    deep = [{"a": [SimpleNamespace(inner=SimpleNamespace(last=SimpleNamespace(w=X + 1)))]}]
    name = "w"
    f = jit(lambda x: x * getattr(deep[0]["a"][0].inner.last, name))
    yield f
    deep[0]["a"][0].inner.last.w[0] = 11
    yield f
