"""OpBuilder: what adding an op takes besides the list it is added to."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

from graphir.errors import GRAPHS, GraphirError, Vocabulary
from graphir.ir.inference_cache import InferenceCache
from graphir.ir.operands import operand_infos
from graphir.location import Location, is_internal
from graphir.ops.op import Inferred, Op
from graphir.ops.types import TensorType
from graphir.promotion import PromotionRules
from graphir.promotion.operands import Operand

MOST_CODE = 4096
"""As many code objects are known by their places; a program that makes more begins anew."""


class OpBuilder:
    """Infers the type of an op, finds its line in the user's program, and words its refusal.

    A graph has one, and so has what records ops without being a graph. `internal` says of a frame
    whether it is never the user's; `vocabulary` is how the errors put the ways out.
    """

    def __init__(
        self,
        rules: PromotionRules,
        internal: Callable[[FrameType], bool] = is_internal,
        vocabulary: Vocabulary = GRAPHS,
    ) -> None:
        self.rules, self._internal, self._vocabulary = rules, internal, vocabulary
        self.cache = InferenceCache.of(rules)
        self.layer = ""
        self.sites: dict[int, dict[int, Location]] = {}
        """The location of each place that ops were added at, by code (see `locate`) and offset."""
        self._here: Location | None = None

    # -- infer

    def infer(self, op: Op, args: Sequence[Any], attrs: Mapping[str, Any]) -> Inferred:
        """Type, operand dtypes and attributes of an op on symbols, under the rules here."""
        return self.cache.infer(self.rules, op, self.types_of(args), attrs)

    def infer_of(self, op: Op, types: tuple[Any, ...], attrs: Mapping[str, Any]) -> Inferred:
        """The same of operands that are known by their types alone, or by those and a value."""
        return self.cache.infer(self.rules, op, types, attrs)

    def types_of(self, args: Sequence[Any]) -> tuple[TensorType | Operand, ...]:
        """The types of symbols; of a known 0-d one, under rules that ask for it, its value too."""
        if not self.rules.by_value:
            types: list[TensorType] = []
            for arg in args:
                types.append(arg.type)
            return tuple(types)
        return tuple(arg.operand for arg in args)

    # -- locate

    def locate(self, frame: FrameType) -> Location:
        """The location of the user's frame at or above this one, one object for each place.

        Inside `at` the place that it says.
        """
        if self._here is not None:
            return self._here
        # By id, since hashing a code object reads all of it; the Location keeps the code alive.
        sites_of_code = self.sites
        while (sites := sites_of_code.get(code := id(frame.f_code))) is None:
            outer = frame.f_back
            if outer and (code in _INTERNAL_CODE or self._internal(frame)):
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
        """Inside the block, ops belong to a part of the program."""
        outer = self.layer, self.sites
        self.layer, self.sites = (f"{self.layer}/{layer}" if self.layer else layer), {}
        try:
            yield
        finally:
            self.layer, self.sites = outer

    @contextmanager
    def at(self, location: Location) -> Generator[None]:
        """Inside the block, ops arise at this place, whatever line makes them."""
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
        """An error with the op, its operands and the user's line, in the user's words."""
        if error.location is not None:
            return error
        operand_data = operand_infos(op, operands)
        placed = error.at(self.locate(frame), op.name, operand_data)
        return placed.having(vocabulary=self._vocabulary)


_INTERNAL_CODE: dict[int, CodeType] = {}
"""Code that no user wrote, met on the way to a user's frame, by id.

Kept, since another code may get the id of one that is gone, and some of it is made by exec.
"""
