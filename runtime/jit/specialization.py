"""Specialization on Python numbers: a decision tree from numbers to the traces of one signature.

A trace asks questions about Python numbers: whether they fit a dtype, how they compare, which value
they have. The inner nodes of the tree are these questions, in the order in which the function asks
them; the leaves are the traces. The tree is sound because a function that gets equal answers does
the same, and so asks the same question next. A call walks down from the root. If a number is in no
known cell, the walk asks the question of the rule set, which may give a known answer. If no branch
has the answer, jit traces the function for these numbers.

A walk down the tree costs one or two microseconds. `NumberCalls` instead generates source for the
path of the last call: the computations on the numbers, a comparison for each question, and the call
of the Program. If an answer differs, the function falls back to the walk, which may generate
another function.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from graphir.numpy_api.traced_numbers import (
    Computation,
    Feed,
    NumberTrace,
    NumberUse,
    Question,
    Reference,
    Values,
)
from graphir.promotion.scalars import Interval, identity_key
from graphir.runtime.jit.guards import Variants

if TYPE_CHECKING:
    from graphir.runtime.jit.jit import CompiledTrace

_MOST_BRANCHES = 128
"""The most leaves of a tree; a further leaf clears the tree."""


class _Fork:
    """An inner node: a question, the known answers by key, and the next node by answer."""

    __slots__ = ("answers", "branches", "question")

    def __init__(self, question: Question) -> None:
        self.question = question
        self.answers: dict[Hashable, Hashable] = {}
        self.branches: dict[Hashable, Any] = {}

    def answer(self, key: Hashable, values: Values) -> Hashable:
        """Compute the answer for a new key; record the key if a branch has the answer."""
        answer_ = self.question.answer(values)
        if answer_ in self.branches:
            self.answers[key] = answer_
        return answer_


class GraphStep(NamedTuple):
    """A question on the path to a leaf, its key and answer, and all keys with that answer."""

    question: Question
    key: Hashable
    answer: Any
    keys: list[Hashable]


class Specializations:
    """The decision tree of one signature; its leaves are the results of traces."""

    def __init__(self) -> None:
        self._top: dict[Hashable, Any] = {}
        self._count = 0
        self._lock = Lock()
        self.version = 0
        """The number of times that the tree has grown, by leaves or keys."""

    def __len__(self) -> int:
        return self._count

    def find(self, values: Values) -> Variants | None:
        """Return the leaf for these numbers, or None without a trace for them.

        The walk appends the numbers that the function computes from them to `values`.
        """
        node = self._top.get(None)
        while type(node) is _Fork:
            key = node.question.key(values)
            answer = node.answers.get(key)
            if answer is None:
                answer = node.answer(key, values)
                self.version += 1
            node = node.branches.get(answer)
        return node

    def path(self, values: Values) -> list[GraphStep]:
        """Return the questions on the path to the leaf that `find` returns for these numbers."""
        steps: list[GraphStep] = []
        node = self._top.get(None)
        while type(node) is _Fork:
            key = node.question.key(values)
            answer = node.answers.get(key)
            keys = [key for key, other in list(node.answers.items()) if other == answer]
            steps.append(GraphStep(node.question, key, answer, keys))
            node = node.branches.get(answer)
        return steps

    def add(self, numbers: NumberTrace, leaf: Variants) -> Variants:
        """Insert the leaf of a trace; return the leaf that the tree has for its answers.

        That is an earlier leaf if another thread has inserted one for the same answers.
        """
        with self._lock:
            if self._count == _MOST_BRANCHES:
                self._top, self._count = {}, 0
            branches, at = self._top, None
            for question, key, answer in numbers.questions:
                node = branches.get(at)
                if type(node) is not _Fork or node.question.cache_key != question.cache_key:
                    node = branches[at] = _Fork(question)
                node.answers[key] = answer
                branches, at = node.branches, answer
            branch = branches.get(at)
            if branch is None or type(branch) is _Fork:
                self._count += 1
                self.version += 1
                branch = branches[at] = leaf
            return branch


_NUMBERS: tuple[Any, ...] = (int, float, complex)
_VERSIONS = 100
"""The most growths of a tree for which functions are generated, and the most kept functions."""


class Places(NamedTuple):
    """The positions of arrays and of numbers among a call's arguments, and their total number."""

    arrays: Sequence[int]
    numbers: Sequence[int]
    arity: int


class NumberCalls:
    """Calls of one signature: walk the tree of specializations and generate the path's function.

    `slowly` runs a call without a specialization. `install` receives the function of the path of
    the last call, which later calls may use instead.
    """

    def __init__(
        self,
        tree: Specializations,
        places: Places,
        slowly: Callable[..., Any],
        install: Callable[[Callable[..., Any]], None],
    ) -> None:
        self._tree, self._places, self._slowly, self._install = tree, places, slowly, install
        self._functions: dict[CompiledTrace, tuple[int, Callable[..., Any] | None]] = {}

    def __call__(self, *args: Any) -> Any:
        """Return the results for arguments."""
        values = [args[place] for place in self._places.numbers]
        variants: Variants | None = self._tree.find(values)
        leaf: CompiledTrace | None = variants.holding() if variants else None
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
        numbers = [operand.at for operand in question.operands if type(operand) is Reference]
        if len(numbers) == 1 and isinstance(step.key, Interval):
            spans = sorted(cell for cell in step.keys if isinstance(cell, Interval))
            low, high = step.key
            for cell in spans:
                high = cell.high if cell.low == high else high
            for cell in reversed(spans):
                low = cell.low if cell.high == low else low
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
