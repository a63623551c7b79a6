"""Calls with Python numbers as one straight Python function: the questions of a path, in line.

A walk down the tree of Specializations costs a microsecond or two. The path that the last call took
is written out as source instead: what is computed of the numbers, a comparison for each question,
and the call of the Program. Another answer goes back to the walk, which may write another function.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from graphir.location import CALLERS
from graphir.numpy_api.number_questions import Computation, Feed, NumberUse, Reference
from graphir.promotion.cells import Interval
from graphir.promotion.scalars import identity_key
from runtime.jit.guards import Guards, Variants
from runtime.jit.specialization import GraphStep, Specializations

CALLERS.add(__name__)  # so inputs are of the line that calls what is jitted

_NUMBERS: tuple[Any, ...] = (int, float, complex)
_VERSIONS = 100
"""How often a tree may grow until nothing more is written; as many functions are kept."""


class Places(NamedTuple):
    """The places of arrays and of numbers among the arguments of a call, and how many there are."""

    arrays: Sequence[int]
    numbers: Sequence[int]
    arity: int


class Runnable(Protocol):
    """What runs calls that give the same answers."""

    feeds: Sequence[tuple[int, np.dtype[Any] | None, Feed]]
    results: Callable[..., Any]
    guards: Guards

    def fed(self, inputs: list[Any], values: list[Any]) -> list[Any]:
        """The arguments of `results`: arrays, then what feeds make of numbers."""
        ...


class NumberCalls:
    """Calls with arguments of one signature: they walk down its tree, and the path is written out.

    `slowly` runs a call for which the tree has nothing; `install` is given the function of the path
    that was taken last, which may be called instead.
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
        """The results for arguments."""
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
    """The function of the arguments of a call; None where an answer is an exception.

    `results` is called with arrays and with what `feeds` make of the numbers, if all questions have
    the answers of the path and `holds` agrees; else `otherwise` with the arguments.
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
    """The source of a function, and what its names stand for."""

    def __init__(self, places: Places) -> None:
        self._arguments = ", ".join(f"a{place}" for place in range(places.arity))
        self._arrays = [f"a{place}" for place in places.arrays]
        self._values = [f"a{place}" for place in places.numbers]
        self._namespace: dict[str, Any] = {"array": np.array, "__name__": __name__}
        self._conditions: list[str] = []

    def name(self, value: Any) -> str:
        """A name for a value."""
        name = f"c{len(self._namespace)}"
        self._namespace[name] = value
        return name

    def require(self, condition: str) -> None:
        """Go back to the walk unless a condition holds."""
        self._conditions.append(condition)

    def ask(self, step: GraphStep) -> None:
        """Ask a question."""
        question, answer = step.question, step.answer
        if isinstance(question, NumberUse):
            self.require(self._cells(question, step))
            return
        call = self._call(question)
        if not question.known and answer in _NUMBERS:
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
        """The condition that numbers are in cells that are known to answer so."""
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
        """The expression of an input that a number is."""
        if storage is None:
            return f"{self.name(feed.array)}(({self._all()}))"
        return f"array({self._values[at]}, {self.name(storage)})"

    def function(
        self, inputs: Sequence[str], results: Callable[..., Any], otherwise: Callable[..., Any]
    ) -> Callable[..., Any]:
        """The function that asks all this, and calls `results` or `otherwise`."""
        self._namespace |= {"results": results, "otherwise": otherwise}
        lines = [f"def call({self._arguments}):"]
        if self._conditions:
            lines += [" try:", f"  same = {' and '.join(self._conditions)}"]
            lines += [" except Exception:", "  same = False"]
            lines += [" if not same:", f"  return otherwise({self._arguments})"]
        lines.append(f" return results({', '.join([*self._arrays, *inputs])})")
        exec(compile("\n".join(lines), "<call with numbers>", "exec"), self._namespace)
        return self._namespace["call"]
