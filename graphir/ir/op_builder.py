"""OpBuilder: type inference, source location and error wording for an op that is being added."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from graphir import ops
from graphir.dtypes import DType
from graphir.errors import GRAPHS, GraphirError, Vocabulary
from graphir.ir.operands import operand_infos
from graphir.location import Location, is_internal
from graphir.ops.attribute_record import AttributeRecord, content_of
from graphir.ops.op import Inference, Op
from graphir.ops.types import TensorType
from graphir.promotion import PromotionRules
from graphir.promotion.operands import Operand

# -- Cache of type inference: the result of an op on operand types, under a rule set
#
# All graphs under a rule set share its cache. That is sound because a result depends on four things
# alone: the op, its attributes, the types of its operands and, under rules that read them, the
# values of 0-d constants.

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
        if op.kind == "control":  # its graphs are its own: no reuse
            return op.infer(rules, types, attrs)
        if op is ops.constant:
            key = _literal_key(attrs)
            if key is None:
                return op.infer(rules, types, attrs)
        elif not attrs:
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


def _literal_key(attrs: Mapping[str, Any]) -> tuple[Any, ...] | None:
    """Return the key of a constant of a Python number; None of others, with values of their own."""
    literal, value = attrs.get("literal"), attrs.get("value")
    if literal is None or not isinstance(value, np.ndarray) or value.ndim:
        return None
    if isinstance(literal, int) and literal.bit_length() > 64:  # its text may have no end
        return None
    return ops.constant, attrs["dtype"], repr(literal), value.dtype, value.tobytes()  # pyright: ignore


def infer(rules: PromotionRules, op: Op, types: Any, attrs: Mapping[str, Any]) -> Inference:
    """Return the result of `op.infer` on operand types, cached for all graphs under these rules."""
    return InferenceCache.of(rules).infer(rules, op, tuple(types), attrs)


_CACHES: WeakKeyDictionary[PromotionRules, InferenceCache] = WeakKeyDictionary()


# -- OpBuilder: type inference, source location and error wording for an op that is being added

MOST_CODE = 4096
"""The most code objects in the caches of locations. A full cache is emptied."""


class OpBuilder:
    """Infer the type of an op, find its line in the user's program, and complete its errors.

    A graph has an OpBuilder, and so has a recorder of ops that is not a graph. `vocabulary` is the
    code in which errors word their fixes.
    """

    def __init__(self, rules: PromotionRules, vocabulary: Vocabulary = GRAPHS) -> None:
        self.rules, self._vocabulary = rules, vocabulary
        self.cache = InferenceCache.of(rules)
        self.layer = ""
        self.sites: dict[int, dict[int, Location]] = {}
        """Cache: the location of each call site, by id(code) (see `locate`) and offset."""
        self._here: Location | None = None

    # -- infer

    def infer(self, op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> Inference:
        """Infer result type, operand dtypes and normal attributes of an op on symbols."""
        return self.cache.infer(self.rules, op, self.types_of(args), attrs)

    def infer_of(self, op: Op, types: tuple[Any, ...], attrs: Mapping[str, Any]) -> Inference:
        """Infer an op as `infer` does, on operand types, or on Operands of a dtype and a value."""
        return self.cache.infer(self.rules, op, types, attrs)

    def types_of(self, args: Sequence[Any]) -> tuple[TensorType | Operand, ...]:
        """Return the types of symbols.

        Under rules that read values, a 0-d constant becomes an Operand with its value.
        """
        if not self.rules.by_value:
            types: list[TensorType] = []
            for arg in args:
                types.append(arg.type)
            return tuple(types)
        return tuple(arg.operand for arg in args)

    # -- locate

    def locate(self, frame: FrameType) -> Location:
        """Return the location of the innermost user frame, from `frame` outwards.

        Each call site has one Location object. Inside a block of `at` the answer is the location of
        that block.
        """
        if self._here is not None:
            return self._here
        # The key is id(code), because hashing a code object reads all of it. The Location keeps the
        # code object alive, so that its id stays valid.
        sites_of_code = self.sites
        while (sites := sites_of_code.get(code := id(frame.f_code))) is None:
            outer = frame.f_back
            if outer and (code in _INTERNAL_CODE or is_internal(frame)):
                if len(_INTERNAL_CODE) >= MOST_CODE:
                    _INTERNAL_CODE.clear()
                _INTERNAL_CODE[code] = frame.f_code
                frame = outer
            else:
                if len(sites_of_code) >= MOST_CODE:
                    sites_of_code.clear()
                sites = sites_of_code[code] = {}
        site = sites.get(frame.f_lasti)
        if site is None:
            site = sites[frame.f_lasti] = Location(frame.f_code, frame.f_lasti, self.layer)
        return site

    @contextmanager
    def within(self, layer: str) -> Generator[None]:
        """Give the ops added inside the block a layer name, joined to the name of outer blocks."""
        outer = self.layer, self.sites
        self.layer, self.sites = (f"{self.layer}/{layer}" if self.layer else layer), {}
        try:
            yield
        finally:
            self.layer, self.sites = outer

    @contextmanager
    def at(self, location: Location) -> Generator[None]:
        """Give the ops added inside the block this location, whatever line adds them."""
        outer = self._here, self.sites
        self._here, self.sites = location, {}
        try:
            yield
        finally:
            self._here, self.sites = outer

    # -- refuse

    def refuse(
        self, error: GraphirError, op: Op, operands: Sequence[Any], frame: FrameType
    ) -> GraphirError:
        """Return an error completed with the op, its operands, the user's line and the vocabulary.

        An error that has a location is returned unchanged.
        """
        if error.location is not None:
            return error
        operand_data = operand_infos(op, operands)
        placed = error.at(self.locate(frame), op.name, operand_data)
        return placed.having(vocabulary=self._vocabulary)


_INTERNAL_CODE: dict[int, CodeType] = {}
"""Cache of internal code objects, met on the way to a user's frame, by id.

The table keeps each code object alive: exec creates some of them, and Python may give the id of a
freed code object to another.
"""
