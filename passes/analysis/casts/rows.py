"""One use of one cast, and all that can be said of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from graphir import DType, Location, Symbol
from graphir.loss import Loss
from graphir.ops.dims import Size
from passes.analysis.casts import fixes
from passes.analysis.casts.conversion import CastConversion, Kind
from passes.analysis.casts.measured import Measured
from passes.analysis.casts.others import others
from passes.analysis.expressions import Expression

if TYPE_CHECKING:
    from passes.analysis.casts.causes import Uses


class CastRow:
    """One use of one cast: `operand` of `op` at `location`, from `source` to `target`.

    `symbol` is the cast (or what it was folded into) in the explicit graph, `place` that of the row
    in the order of the graph. `measured` is what a run saw of the cast (see runtime.audit), and
    `shares` the part of each output's error that the cast explains, None if unknown: the same for
    all uses of a cast.
    """

    # Rows are many: what most have alike stands here.
    measured: Measured | None = None
    shares: tuple[float, ...] | None = ()

    def __init__(
        self, conversion: CastConversion, location: Location, symbol: Symbol, place: int, uses: Uses
    ) -> None:
        self.conversion = conversion
        self.location = location
        self.symbol = symbol
        self.place = place
        self.uses = uses

    @property
    def kind(self) -> Kind:
        """Whether an op, a Python number, the user, `legalize` or an assignment asked for it."""
        return self.conversion.kind

    @property
    def op(self) -> str:
        """The name of the op that uses it."""
        return self.conversion.op

    @property
    def operand(self) -> str:
        """The name of the operand that is cast; "result" of what the op computes."""
        return self.conversion.operand

    @property
    def rule(self) -> str:
        """The rule set that asks for it; "cast", "legalize" or "assign" where none does."""
        return self.conversion.rule

    @property
    def source(self) -> DType:
        """The dtype before it."""
        return self.conversion.source

    @property
    def target(self) -> DType:
        """The dtype after it."""
        return self.conversion.target

    @property
    def path(self) -> tuple[DType, ...]:
        """The way up the rule set's lattice, or just the two ends."""
        return self.conversion.path

    @property
    def damage(self) -> float:
        """The relative error that it is estimated to bring, 0.0 of what is exact."""
        return self.conversion.damage

    @property
    def share(self) -> float | None:
        """The largest part of an output's error that it explains; None if unknown."""
        return None if self.shares is None else max(map(abs, self.shares), default=0.0)

    @property
    def user(self) -> Symbol | None:
        """What uses the cast here, in the explicit graph, if that is still known."""
        return self.uses.of(self).user

    @property
    def position(self) -> int:
        """The position of the operand among those of its user."""
        return self.uses.of(self).position

    @property
    def operands(self) -> Sequence[Symbol]:
        """The operands of the user before casts were inserted for it; none if it is not known."""
        return () if self.user is None else self.uses.operands(self.user)

    @property
    def cause(self) -> CastRow | None:
        """The row that made the dtype which asks for this cast; None where that is itself."""
        return self.uses.of(self).cause

    @property
    def loss(self) -> Loss:
        """What it can lose; of a known number, what it does."""
        return self.conversion.loss

    @property
    def exact(self) -> bool:
        """Whether every value survives."""
        return self.conversion.loss.exact

    @property
    def witness(self) -> complex | None:
        """The simplest value that does not survive (a known number: itself); None where exact."""
        return self.conversion.loss.witness

    @property
    def layer(self) -> str:
        """The layer of the graph in which it arose: `encoder/attention`."""
        return self.location.layer

    @property
    def bytes_before(self) -> int:
        """The bytes of an element in storage before the cast."""
        return self.conversion.source.storage.itemsize

    @property
    def bytes_after(self) -> int:
        """The bytes of an element in storage after the cast."""
        return self.conversion.target.storage.itemsize

    @property
    def elements(self) -> Size:
        """How many elements are cast: a number, or an expression of symbolic dims."""
        return self.symbol.size

    @property
    def bytes_added(self) -> Size:
        """The bytes of the array that the cast makes."""
        return self.elements * self.bytes_after

    @property
    def expression(self) -> Expression | None:
        """The piece of the program that it arose in; None where the source is not at hand."""
        return self.uses.expression(self.location)

    @property
    def span(self) -> tuple[int, int]:
        """Where in the text of the expression that stands which is cast.

        All of it, of a result and where the text is made of several ops; (0, 0) if not known.
        """
        return self._span(self.expression)

    def _span(self, expression: Expression | None) -> tuple[int, int]:
        if expression is None:
            return 0, 0
        if self.conversion.operand == "result" or self.location.compound:
            return 0, len(expression.text)
        if self.conversion.stores:  # the value is named last; what a text begins with is the target
            return expression.spans[-1] if expression.spans and expression.spans[-1][0] else (0, 0)
        position = self.position
        return expression.spans[position] if position < len(expression.spans) else (0, 0)

    @property
    def text(self) -> str:
        """What is cast as the program writes it, such as `x[1:]`; empty where that is not known."""
        return self._text(self.expression)

    def _text(self, expression: Expression | None) -> str:
        start, end = self._span(expression)
        return " ".join(expression.text[start:end].split()) if expression else ""

    @property
    def fix(self) -> str:
        """What to type instead, in one line; empty where nothing is to be done."""
        return fixes.fix(self)

    @property
    def others(self) -> Mapping[str, DType | str]:
        """By rule set, the dtype that the others give the operand, or why they refuse the op."""
        return others(self)

    def to_json(self) -> dict[str, Any]:
        """The row as JSON has it (see casts.schema.json), as a site of one use."""
        from passes.analysis.casts.sites import CastSite

        return CastSite(self).to_json()

    def shared_facts(self) -> tuple[Mapping[str, Any], ...]:
        """What many rows have in common, as JSON has it: one object of all that have it."""
        others, cache = self.others, self.uses.answers_json
        answers = cache.get(id(others))
        if answers is None:
            texts = {name: str(answer) for name, answer in others.items()}
            answers = cache[id(others)] = {"others": texts}
        return self.conversion.facts, answers

    def facts(self) -> dict[str, Any]:
        """What the rows of one place and conversion have in common besides, as JSON has it."""
        expression = self.expression
        return {
            "location": self.location.to_json(),
            "expression": cut(expression.brief) if expression else None,
            "text": cut(self._text(expression)) or None,
            "fix": self.fix or None,
        }

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CastRow):
            return NotImplemented
        return self.conversion == other.conversion and self.location == other.location

    def __hash__(self) -> int:
        return hash((self.conversion, self.location))

    def __repr__(self) -> str:
        conversion = self.conversion
        what = f"{conversion.kind} cast of {conversion.operand} of {conversion.op}"
        return f"<{what} at {self.location}: {conversion.source} -> {conversion.target}>"


MAX_QUOTE = 500
"""The most characters of the program that JSON quotes for a row."""


def cut(text: str) -> str:
    """A text as JSON quotes it."""
    return text if len(text) <= MAX_QUOTE else f"{text[: MAX_QUOTE - 1]}\N{HORIZONTAL ELLIPSIS}"


def size_json(size: Size) -> int | str:
    """A size as JSON has it: a number, or an expression of symbolic dims as text."""
    return size if isinstance(size, int) else str(size)
