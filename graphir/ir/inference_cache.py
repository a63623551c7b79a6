"""Cache of type inference: the result of an op on operand types, under a rule set.

All graphs under a rule set share its cache. That is sound because a result depends on four things
alone: the op, its attributes, the types of its operands and, under rules that read them, the values
of 0-d constants.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from graphir import ops
from graphir.dtypes import DType
from graphir.ops.attribute_record import AttributeRecord, content_of
from graphir.ops.op import Inference, Op
from graphir.promotion.rules import PromotionRules

MOST = 1 << 16
"""The most results in the cache of a rule set. A full cache is emptied.

A program of many shapes fills it.
"""


class InferenceCache:
    """The inference results of one rule set.

    `by_types` has the results that depend on the op and the operand types alone.
    """

    def __init__(self, rules: PromotionRules) -> None:
        self.answers: dict[Any, Inference] = {}
        self.by_types: dict[Any, Inference] = {} if rules.by_value else self.answers
        """The results for ops without attributes, by (op, *operand types).

        It is empty under rules that read the values of constants.
        """

    @staticmethod
    def of(rules: PromotionRules) -> InferenceCache:
        """Return the cache of a rule set, and create it at first use."""
        cache = _CACHES.get(rules)
        return _CACHES.setdefault(rules, InferenceCache(rules)) if cache is None else cache

    def infer(
        self, rules: PromotionRules, op: Op, types: tuple[Any, ...], attrs: Mapping[str, Any]
    ) -> Inference:
        """Return the cached result of `op.infer(rules, types, attrs)`."""
        if op is ops.constant or op.kind == "control":  # its values or graphs are its own: no reuse
            return op.infer(rules, types, attrs)
        if not attrs:
            key = (op, *types)
        elif type(attrs) is AttributeRecord:
            key = (op, *types, attrs)
        else:  # cast is the most frequent op with attributes: its key is the code of its dtype
            to = attrs["to"] if op is ops.cast and len(attrs) == 1 else None
            key = (op, *types, *((to.code,) if type(to) is DType else content_of(attrs)))
        try:
            answer = self.answers.get(key)
        except TypeError:  # an attribute is a list, which has no hash
            return op.infer(rules, types, attrs)
        if answer is None:
            if len(self.answers) >= MOST:
                self.answers.clear()
            answer = self.answers[key] = op.infer(rules, types, attrs)
        return answer


def infer(rules: PromotionRules, op: Op, types: Any, attrs: Mapping[str, Any]) -> Inference:
    """Return the result of `op.infer` on operand types, cached for all graphs under these rules."""
    return InferenceCache.of(rules).infer(rules, op, tuple(types), attrs)


_CACHES: WeakKeyDictionary[PromotionRules, InferenceCache] = WeakKeyDictionary()
