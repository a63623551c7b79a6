"""The graphs of one signature, of which a call runs the one that its Python numbers ask for.

They are the leaves of a tree of questions, those that traces of the function asked in turn: a
function that gets the same answers does the same, and so asks the same question next. A call walks
down from the root, and where a number is not in the cells met before, the rule set may still give
the same answer. Where no branch leads on, the function is traced for these numbers.
"""

from __future__ import annotations

from collections.abc import Hashable
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar

from graphir.numpy_api.number_questions import Question, Values
from graphir.numpy_api.traced_numbers import NumberTrace

Leaf = TypeVar("Leaf")

_MOST_BRANCHES = 128
"""The leaves of a tree; for one more it begins anew."""


class _Fork:
    """A question, the answers that keys are known to have, and what follows an answer."""

    __slots__ = ("answers", "branches", "question")

    def __init__(self, question: Question) -> None:
        self.question = question
        self.answers: dict[Hashable, Hashable] = {}
        self.branches: dict[Hashable, Any] = {}

    def answer(self, key: Hashable, values: Values) -> Hashable:
        """The answer for a key that was not met before."""
        answer_ = self.question.answer(values)
        if answer_ in self.branches:
            self.answers[key] = answer_
        return answer_


class GraphStep(NamedTuple):
    """A question on the way to a leaf, its key and answer, and all keys known to have that."""

    question: Question
    key: Hashable
    answer: Any
    keys: list[Hashable]


class Specializations(Generic[Leaf]):
    """What was made of one signature, by the answers to the questions that its traces asked."""

    def __init__(self) -> None:
        self._top: dict[Hashable, Any] = {}
        self._count = 0
        self._lock = Lock()
        self.version = 0
        """How often the tree has grown, by branches or keys."""

    def __len__(self) -> int:
        return self._count

    def find(self, values: Values) -> Leaf | None:
        """What runs a call with these numbers, None where nothing was made for them.

        What the function computes of the numbers is added to the values.
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
        """The questions on the way to what `find` gives for these numbers."""
        steps: list[GraphStep] = []
        node = self._top.get(None)
        while type(node) is _Fork:
            key = node.question.key(values)
            answer = node.answers.get(key)
            keys = [key for key, each in list(node.answers.items()) if each == answer]
            steps.append(GraphStep(node.question, key, answer, keys))
            node = node.branches.get(answer)
        return steps

    def add(self, numbers: NumberTrace, leaf: Leaf) -> Leaf:
        """Keep what a trace made, or give what another thread kept for the same answers."""
        with self._lock:
            if self._count == _MOST_BRANCHES:
                self._top, self._count = {}, 0
            branches, at = self._top, None
            for question, key, answer in numbers.questions:
                node = branches.get(at)
                if type(node) is not _Fork or node.question.shown != question.shown:
                    node = branches[at] = _Fork(question)
                node.answers[key] = answer
                branches, at = node.branches, answer
            branch = branches.get(at)
            if branch is None or type(branch) is _Fork:
                self._count += 1
                self.version += 1
                branch = branches[at] = leaf
            return branch
