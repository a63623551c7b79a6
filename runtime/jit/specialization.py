"""Specialization on Python numbers: a decision tree from numbers to the traces of one signature.

A trace asks questions about Python numbers: whether they fit a dtype, how they compare, which value
they have. The inner nodes of the tree are these questions, in the order in which the function asks
them; the leaves are the traces. The tree is sound because a function that gets equal answers does
the same, and so asks the same question next. A call walks down from the root. If a number is in no
known cell, the walk asks the question of the rule set, which may give a known answer. If no branch
has the answer, jit traces the function for these numbers.
"""

from __future__ import annotations

from collections.abc import Hashable
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar

from graphir.numpy_api.number_questions import Question, Values
from graphir.numpy_api.traced_numbers import NumberTrace

Leaf = TypeVar("Leaf")

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


class Specializations(Generic[Leaf]):
    """The decision tree of one signature; its leaves are the results of traces."""

    def __init__(self) -> None:
        self._top: dict[Hashable, Any] = {}
        self._count = 0
        self._lock = Lock()
        self.version = 0
        """The number of times that the tree has grown, by leaves or keys."""

    def __len__(self) -> int:
        return self._count

    def find(self, values: Values) -> Leaf | None:
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
            keys = [key for key, each in list(node.answers.items()) if each == answer]
            steps.append(GraphStep(node.question, key, answer, keys))
            node = node.branches.get(answer)
        return steps

    def add(self, numbers: NumberTrace, leaf: Leaf) -> Leaf:
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
