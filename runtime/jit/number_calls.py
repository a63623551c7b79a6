"""Fast path of calls with Python numbers: one straight-line function for a specialization.

A walk down the tree of Specializations costs one or two microseconds. Instead, this module
generates source for the path of the last call: the computations on the numbers, a comparison for
each question, and the call of the Program. If an answer differs, the function falls back to the
walk, which may generate another function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from graphir.numpy_api.number_questions import Computation, Feed, NumberUse, Reference
from graphir.promotion.scalars import Interval, identity_key
from graphir.runtime.jit.guards import Guards, Variants
from graphir.runtime.jit.specialization import GraphStep, Specializations

_NUMBERS: tuple[Any, ...] = (int, float, complex)
_VERSIONS = 100
"""The most growths of a tree for which functions are generated, and the most kept functions."""


class Places(NamedTuple):
    """The positions of arrays and of numbers among a call's arguments, and their total number."""

    arrays: Sequence[int]
    numbers: Sequence[int]
    arity: int


class Runnable(Protocol):
    """A compiled trace that runs the calls whose questions have equal answers."""

    feeds: Sequence[tuple[int, np.dtype[Any] | None, Feed]]
    results: Callable[..., Any]
    guards: Guards

    def fed(self, inputs: list[Any], values: list[Any]) -> list[Any]:
        """Return the arguments of `results`: the arrays, then the inputs derived from numbers."""
        ...


class NumberCalls:
    """Calls of one signature: walk the tree of specializations and generate the path's function.

    `slowly` runs a call without a specialization. `install` receives the function of the path of
    the last call, which later calls may use instead.
    """

    def __init__(
        self,
        tree: Specializations[Variants[Any]],
        places: Places,
        slowly: Callable[..., Any],
        install: Callable[[Callable[..., Any]], None],
    ) -> None:
        self._tree, self._places, self._slowly, self._install = tree, places, slowly, install
        self._functions: dict[Runnable, tuple[int, Callable[..., Any] | None]] = {}

    def __call__(self, *args: Any) -> Any:
        """Return the results for arguments."""
        values = [args[place] for place in self._places.numbers]
        variants: Variants[Any] | None = self._tree.find(values)
        leaf: Runnable | None = variants.holding() if variants else None
        if leaf is None:
            return self._slowly(*args)
        version, call = self._functions.get(leaf, (-1, None))
        if version != self._tree.version < _VERSIONS:
            if len(self._functions) == _VERSIONS:
                self._functions.clear()
            path = self._tree.path(values[: len(self._places.numbers)])
            holds = leaf.guards.hold if leaf.guards else None
            call = straight(self._places, path, leaf.feeds, leaf.results, self, holds)
            self._functions[leaf] = self._tree.version, call
        if call is not None:
            self._install(call)
        return leaf.results(*leaf.fed([args[place] for place in self._places.arrays], values))


def straight(
    places: Places,
    path: Sequence[GraphStep],
    feeds: Sequence[tuple[int, np.dtype[Any] | None, Feed]],
    results: Callable[..., Any],
    otherwise: Callable[..., Any],
    holds: Callable[[], bool] | None = None,
) -> Callable[..., Any] | None:
    """Generate the function of a path; return None if an answer of the path is an exception.

    If all questions have the answers of the path and `holds` returns True, the function calls
    `results` with the arrays and the inputs that `feeds` derive from the numbers. Otherwise it
    calls `otherwise` with the arguments.
    """
    code = _Code(places)
    for step in path:
        if isinstance(step.answer, type) and issubclass(step.answer, BaseException):
            return None
        code.ask(step)
    if holds is not None:
        code.require(f"{code.name(holds)}()")
    return code.function([code.array(*feed) for feed in feeds], results, otherwise)


class _Code:
    """The source of a generated function, and its namespace."""

    def __init__(self, places: Places) -> None:
        self._arguments = ", ".join(f"a{place}" for place in range(places.arity))
        self._arrays = [f"a{place}" for place in places.arrays]
        self._values = [f"a{place}" for place in places.numbers]
        self._namespace: dict[str, Any] = {"array": np.array, "__name__": __name__}
        self._conditions: list[str] = []

    def name(self, value: Any) -> str:
        """Bind a value to a new name of the namespace, and return the name."""
        name = f"c{len(self._namespace)}"
        self._namespace[name] = value
        return name

    def require(self, condition: str) -> None:
        """Add a condition; the function falls back to the walk unless it holds."""
        self._conditions.append(condition)

    def ask(self, step: GraphStep) -> None:
        """Add the condition that a question has the step's answer."""
        question, answer = step.question, step.answer
        if isinstance(question, NumberUse):
            self.require(self._cells(question, step))
            return
        call = self._call(question)
        if not question.plain and answer in _NUMBERS:
            value = f"v{len(self._values)}"
            self._values.append(value)
            self.require(f"type({value} := {call}) is {self.name(answer)}")
        elif answer in ((bool, True), (bool, False)):
            self.require(f"{call} is {answer[1]}")
        else:
            self.require(f"{self.name(identity_key)}({call}) == {self.name(answer)}")

    def _call(self, question: Computation) -> str:
        operands = ", ".join(
            self._values[operand.at] if type(operand) is Reference else self.name(operand)
            for operand in question.operands
        )
        return f"{self.name(question.function)}({operands})"

    def _cells(self, question: NumberUse, step: GraphStep) -> str:
        """Return the condition that the numbers lie in cells with the step's answer."""
        numbers = [each.at for each in question.operands if type(each) is Reference]
        if len(numbers) == 1 and isinstance(step.key, Interval):
            spans = sorted(each for each in step.keys if isinstance(each, Interval))
            low, high = step.key
            for each in spans:
                high = each.high if each.low == high else high
            for each in reversed(spans):
                low = each.low if each.high == low else low
            return f"{self.name(low)} <= {self._values[numbers[0]]} < {self.name(high)}"
        return f"{self.name(question.key)}(({self._all()})) in {self.name(frozenset(step.keys))}"

    def _all(self) -> str:
        return "".join(f"{value}, " for value in self._values)

    def array(self, at: int, storage: np.dtype[Any] | None, feed: Feed) -> str:
        """Return the expression of an input that derives from numbers."""
        if storage is None:
            return f"{self.name(feed.array)}(({self._all()}))"
        return f"array({self._values[at]}, {self.name(storage)})"

    def function(
        self, inputs: Sequence[str], results: Callable[..., Any], otherwise: Callable[..., Any]
    ) -> Callable[..., Any]:
        """Compile the function: check all conditions, then call `results` or `otherwise`."""
        self._namespace |= {"results": results, "otherwise": otherwise}
        lines = [f"def call({self._arguments}):"]
        if self._conditions:
            lines += [" try:", f"  same = {' and '.join(self._conditions)}"]
            lines += [" except Exception:", "  same = False"]
            lines += [" if not same:", f"  return otherwise({self._arguments})"]
        lines.append(f" return results({', '.join([*self._arrays, *inputs])})")
        exec(compile("\n".join(lines), "<call with numbers>", "exec"), self._namespace)
        return self._namespace["call"]
