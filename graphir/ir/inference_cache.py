"""Inference, each answer kept: what an op on operands of some types comes to under a rule set.

All graphs under a rule set share its cache, since an answer depends on the op, its attributes, the
types of its operands and, where the rules ask for them, the values of 0-d constants alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from graphir import ops
from graphir.dtypes import DType
from graphir.ops.attribute_record import AttributeRecord, content_of
from graphir.ops.op import Inferred, Op
from graphir.promotion.rules import PromotionRules

MOST = 1 << 16
"""As many answers are kept for a rule set; a program of many shapes begins anew."""


class InferenceCache:
    """The answers for one rule set, and those among them that depend on operand types alone."""

    def __init__(self, rules: PromotionRules) -> None:
        self.answers: dict[Any, Inferred] = {}
        self.by_types: dict[Any, Inferred] = {} if rules.by_value else self.answers
        """By op and operand types, of ops without attributes; empty where values count too."""

    @staticmethod
    def of(rules: PromotionRules) -> InferenceCache:
        """The cache of a rule set."""
        cache = _CACHES.get(rules)
        return _CACHES.setdefault(rules, InferenceCache(rules)) if cache is None else cache

    def infer(
        self, rules: PromotionRules, op: Op, types: tuple[Any, ...], attrs: Mapping[str, Any]
    ) -> Inferred:
        """What `op.infer` answers."""
        if op is ops.constant:  # each has values of its own
            return op.infer(rules, types, attrs)
        if not attrs:
            key = (op, *types)
        elif type(attrs) is AttributeRecord:
            key = (op, *types, attrs)
        else:  # a cast, the most frequent of ops with attributes, by the code of its dtype
            to = attrs["to"] if op is ops.cast and len(attrs) == 1 else None
            key = (op, *types, *((to.code,) if type(to) is DType else content_of(attrs)))
        try:
            answer = self.answers.get(key)
        except TypeError:  # a list among the attributes
            return op.infer(rules, types, attrs)
        if answer is None:
            if len(self.answers) >= MOST:
                self.answers.clear()
            answer = self.answers[key] = op.infer(rules, types, attrs)
        return answer


def infer(rules: PromotionRules, op: Op, types: Any, attrs: Mapping[str, Any]) -> Inferred:
    """What `op.infer` answers, kept for all who ask under these rules."""
    return InferenceCache.of(rules).infer(rules, op, tuple(types), attrs)


_CACHES: WeakKeyDictionary[PromotionRules, InferenceCache] = WeakKeyDictionary()
