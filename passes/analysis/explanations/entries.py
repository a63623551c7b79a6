"""Entries: the ops at which a dtype that the data has not enters them, found in one forward walk.

At an entry the walk mends the operand: it goes on as if the operand had the dtype of the data. So
one walk finds all entries, and says which dtype each output has without them. A walk with edits is
a trial of these edits.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple

from graphir.ir.inlining import Junction
from graphir.location import Location
from graphir.ops import dtype_rules as signatures
from graphir.passes.analysis.casts.behind_casts import has_default_dtype, in_call, uncast
from graphir.passes.analysis.explanations.dtype_walk import (
    DtypeWalk,
    ProgramFacts,
    is_update,
    stored,
)
from graphir.passes.analysis.rebuild import is_literal
from graphir.public import DType, Graph, Symbol, TensorType, ops


class Entry(NamedTuple):
    """An op whose data operands have the `wanted` dtype, and whose result has a wider one.

    `position` is that of the operand that brings the wider `dtype`, whose `birth` is the first
    value behind it that has this dtype; both are None if the data operands alone promote. If a
    NumPy function makes its argument wide by itself, `step` is the cast, and `argument` the wide
    argument, if there is one.
    """

    step: Symbol
    position: int | None
    wanted: DType
    dtype: DType
    birth: Symbol | None = None
    argument: Symbol | None = None


_BY_DESIGN = (signatures.ACCUMULATION, signatures.POSITION, signatures.CAST)
"""The signatures of ops whose results are wide by themselves."""


class EntryWalk(DtypeWalk):
    """The entries of a graph, and the dtypes that its symbols have without them.

    `keep` is the dtype that the user wants: then whatever is
    wider is an entry, also what the program asks for. Ops at which data of unlike dtypes meet are
    `mixed`: they have their dtypes by the caller, and the walk does not mend them.
    """

    def __init__(
        self,
        facts: ProgramFacts,
        keep: DType | None = None,
        edits: Mapping[int, DType] | None = None,
        casts: Mapping[tuple[int, int], DType] | None = None,
    ) -> None:
        super().__init__(facts, edits, casts)
        self.keep = keep
        self.entries: list[Entry] = []
        self.mixed: list[Entry] = []
        self._births = Births(self.dtypes, self.facts)
        self._arguments: dict[tuple[Location, DType], Symbol | None] = {}
        self.run()

    def forget(self) -> None:
        """Forget what a walk found, before another one."""
        super().forget()
        self._births = Births(self.dtypes, self.facts)
        for found in (self.entries, self.mixed, self._arguments):
            found.clear()

    def entries_of(self, output: Symbol) -> list[Entry]:
        """Return the entries by which an output has its dtype, in the order of the program."""
        by_step = {entry.step.index: entry for entry in self.entries}
        found: list[Entry] = []
        stack, visited = [output], {output.index}
        while stack:
            symbol = stack.pop()
            if symbol.index in by_step:
                found.append(by_step[symbol.index])
            for arg in symbol.args:
                if arg.index not in visited and self.is_changed(arg):
                    visited.add(arg.index)
                    stack.append(arg)
        return sorted(found, key=lambda entry: entry.step.index)

    # -- the walk

    def _inferred(self, symbol: Symbol) -> DType:
        """Return the dtype of a symbol, at an entry that of the data."""
        dtype = super()._inferred(symbol)
        if symbol.index not in self.facts.data:
            return dtype
        entry = self._entry_at(symbol, dtype) if symbol.args else None
        if entry is None and self._is_too_wide(dtype):
            entry = Entry(symbol, None, dtype, dtype)
        if entry is None or self._is_inside(entry) or self._is_count(entry):
            return dtype
        if entry.birth is not None and entry.birth.index in self.facts.given:
            self.mixed.append(entry)
            return dtype
        return self._enter(entry)

    def _enter(self, entry: Entry) -> DType:
        """Note an entry, and return the dtype with which the walk goes on."""
        if self.keep is not None and self._is_too_wide(entry.dtype):
            entry = entry._replace(wanted=self._wanted(entry.dtype, [self.keep]))
        self.entries.append(entry)
        self.replaced[entry.dtype] = entry.wanted
        if entry.position is not None:
            self._mend_carry(entry.step.args[entry.position], entry)
        return entry.wanted

    def _mend_carry(self, operand: Symbol, entry: Entry) -> None:
        """Let a value that enters a loop wide, and is the operand of an entry, enter it narrow."""
        while type(operand.op) is Junction and operand.op.enters:
            self.dtypes[operand.index] = entry.wanted
            operand = operand.args[0]

    def _is_too_wide(self, dtype: DType) -> bool:
        return self.keep is not None and is_narrower(self.keep, dtype)

    def _is_inside(self, entry: Entry) -> bool:
        """Whether a function of a library widens values of its own, and no line of the user's."""
        step, birth = entry.step, entry.birth
        if not self.graph.provenance.library or step.op is ops.cast:
            return False
        if birth is not None and birth.location.place != step.location.place:
            return False
        return self.facts.is_function(step)

    def _is_count(self, entry: Entry) -> bool:
        """Whether integers meet a count or an index, whose dtype is the library's."""
        birth = entry.birth
        if birth is None or birth.op is ops.cast or self.keep is not None:
            return False
        return birth.op.signature in _BY_DESIGN and entry.dtype.is_integer

    # -- what an entry is

    def _entry_at(self, symbol: Symbol, dtype: DType) -> Entry | None:
        op = symbol.op
        if dtype.family == "bool" or dtype.weak or op.kind == "creation":
            return None
        if symbol.index in self.facts.whole_stores:
            return self._entry_of_store(symbol, dtype)
        if op is ops.cast:
            if in_call(symbol):
                return self._entry_of_call(symbol, dtype)
            return self._entry_of_default(symbol)
        if type(op) is Junction or op.signature in _BY_DESIGN or _names_dtype(symbol):
            return None
        operands = self._operands(symbol)
        of_data = {i: x for i, x in operands.items() if x.index in self.facts.data}
        narrow = [i for i, x in of_data.items() if is_narrower(self.dtype_of(x), dtype)]
        wide = [i for i, x in operands.items() if self.dtype_of(x).part is dtype.part]
        others = [i for i in wide if i not in of_data]
        if not narrow:
            return self._entry_of_integers(symbol, dtype, operands) if not wide else None
        wanted = self._wanted(dtype, [self.dtype_of(operands[i]) for i in narrow])
        are_asked = (self._births.is_asked(operands[i]) for i in wide if i in of_data)
        if self.keep is None and any(are_asked):
            return None  # the program asks for it
        beside = others or wide or [i for i in operands if i not in of_data]
        position = beside[0] if beside else None
        birth = None if position is None else self._births.of(operands[position])
        return Entry(symbol, position, wanted, dtype, birth)

    def _operands(self, symbol: Symbol) -> dict[int, Symbol]:
        """Return the operands that promote together by position, but for Python numbers."""
        positions = symbol.op.signature.promoted
        if positions is None:
            positions = range(len(symbol.args))
        writes = is_update(symbol)
        values = {i: stored(symbol, symbol.args[i]) if i else symbol.args[0] for i in positions}
        operands = {i: uncast(value, writes) for i, value in values.items()}
        return {
            i: x for i, x in operands.items()
            if self.dtypes[x.index] is not None and not self.dtype_of(x).weak
            and not is_literal(symbol.args[i]) and self.leader_of(symbol, x) is None
        }  # fmt: skip

    def _wanted(self, dtype: DType, narrow: Sequence[DType]) -> DType:
        """Return the dtype of the kind of `dtype` that is as wide as the widest of `narrow`."""
        widest = max(narrow, key=_width)
        if dtype.is_complex and not widest.is_complex:
            return DType.complex64 if widest.bits <= 32 else DType.complex128
        return widest

    def _entry_of_integers(
        self, symbol: Symbol, dtype: DType, operands: Mapping[int, Symbol]
    ) -> Entry | None:
        """Return the entry at which integers of the data and narrow floats promote to wide ones."""
        floats = [self.dtype_of(x) for x in operands.values() if self.dtype_of(x).is_inexact]
        if not floats or not all(is_narrower(x, dtype) for x in floats):
            return None
        return Entry(symbol, None, self._wanted(dtype, floats), dtype)

    def _entry_of_store(self, cast: Symbol, dtype: DType) -> Entry | None:
        """Return the entry at which a value is stored in all elements of a wider array."""
        narrow = self.dtype_of(cast.args[0])
        birth = self._births.of(self.facts.whole_stores[cast.index])
        return Entry(cast, None, narrow, dtype, birth) if is_narrower(narrow, dtype) else None

    def _entry_of_default(self, cast: Symbol) -> Entry | None:
        """Return the entry at a cast to `float` or `int`, whose width is the library's setting."""
        narrow = self.dtype_of(cast.args[0])
        if not has_default_dtype(cast) or not is_narrower(narrow, cast.type.dtype):
            return None
        return Entry(cast, None, narrow, cast.type.dtype)

    def _entry_of_call(self, step: Symbol, dtype: DType) -> Entry | None:
        """Return the entry by a cast that a NumPy function makes of its narrow argument."""
        place, narrow = step.location, self.dtype_of(uncast(step.args[0]))
        if not is_narrower(narrow, dtype):
            return None
        key = place, narrow
        if key not in self._arguments:  # of all rounds of a loop, which share the place
            self._arguments[key] = self._wide_argument(place, narrow)
        argument = self._arguments[key]
        is_walked = argument is not None and argument.index < len(self.dtypes)
        birth = self._births.of(argument) if argument is not None and is_walked else argument
        return Entry(step, None, narrow, dtype, birth, argument)

    def _wide_argument(self, place: Location, narrow: DType) -> Symbol | None:
        """Return the first argument of a NumPy function that is wider than a dtype, or None."""
        inside = [x for x in self.facts.steps_at[place] if place.compound or in_call(x)]
        indices = {x.index for x in inside}
        others = (arg for x in inside for arg in x.args if arg.index not in indices)
        return next((x for x in others if is_narrower(narrow, self._dtype_so_far(x))), None)

    def _dtype_so_far(self, symbol: Symbol) -> DType:
        is_walked = symbol.index < len(self.dtypes)
        return self.dtypes[symbol.index] if is_walked else symbol.type.dtype


class Births:
    """The values where the dtypes of symbols are born, for the dtypes of symbols by index."""

    def __init__(self, dtypes: Sequence[DType | None], facts: ProgramFacts) -> None:
        self._dtypes, self._arrays = dtypes, facts.whole_stores
        self._births: dict[int, tuple[Symbol, bool]] = {}

    def of(self, symbol: Symbol) -> Symbol:
        """Return the first value behind a symbol that has its dtype."""
        return self._found(symbol)[0]

    def is_asked(self, symbol: Symbol) -> bool:
        """Whether casts that the program writes make a symbol's dtype wherever it is born."""
        return self._found(symbol)[1]

    def entry(self, symbol: Symbol) -> Symbol:
        """Return the first step after a symbol's birth that computes with another dtype.

        Without such a step it is the birth.
        """
        entry = birth = self.of(symbol)
        while symbol is not birth:
            if not is_update(symbol):
                positions = symbol.op.signature.promoted or range(len(symbol.args))
                others = (uncast(symbol.args[i]) for i in positions)
                dtypes = {self._dtypes[x.index] for x in others if not is_literal(x)}
                if not dtypes <= {None, DType.bool, self._dtypes[symbol.index]}:
                    entry = symbol
            symbol = next(x for x in self._sources(symbol) if self.of(x) is birth)
        return entry

    def conversion(self, symbol: Symbol) -> Symbol:
        """Return the last cast by which the program gave a symbol its dtype; else the birth."""
        stack, visited = deque([symbol]), {symbol.index}
        while stack:
            value = stack.popleft()
            if value.op is ops.cast and not value.origins:
                return value
            sources = [x for x in self._sources(value) if x.index not in visited]
            visited |= {x.index for x in sources}
            stack += sources
        return self.of(symbol)

    def _found(self, symbol: Symbol) -> tuple[Symbol, bool]:
        """Return the first of the values where a symbol's dtype is born, and if all are casts."""
        births, stack = self._births, [symbol]
        while stack:
            value = stack[-1]
            sources = self._sources(value)
            waiting = [x for x in sources if x.index not in births]
            if waiting:
                stack += waiting
                continue
            found = [births[x.index] for x in sources] or [(value, value.op is ops.cast)]
            first = min((x for x, _ in found), key=attrgetter("index"))
            births[stack.pop().index] = first, all(is_cast for _, is_cast in found)
        return births[symbol.index]

    def _sources(self, value: Symbol) -> list[Symbol]:
        """Return the operands from which a value has its dtype; none where it is born."""
        if value.op is ops.cast and not value.origins:
            return []
        if value.index in self._arrays:
            return [self._arrays[value.index]]
        args = map(uncast, value.args[:1] if is_update(value) else value.args)
        dtype = self._dtypes[value.index]
        return [x for x in args if self._dtypes[x.index] is dtype and not is_literal(x)]


def births_of(graph: Graph) -> Births:
    """Return the births of the dtypes that a graph has."""
    types = (symbol.type for symbol in graph.symbols)
    dtypes = [x.dtype if type(x) is TensorType else None for x in types]
    return Births(dtypes, ProgramFacts(graph, ()))


def is_narrower(dtype: DType, other: DType) -> bool:
    """Whether a dtype is narrower than another of its kind: floats, or integers."""
    if dtype.weak or other.weak:
        return False
    if dtype.is_inexact and other.is_inexact:
        return dtype.part.precision < other.part.precision
    if dtype.is_integer and other.is_integer:
        return dtype.bits < other.bits or (dtype.family, other.family) == ("uint", "int")
    return False


def _width(dtype: DType) -> tuple[bool, int]:
    return dtype.is_inexact, dtype.part.precision if dtype.is_inexact else dtype.bits


def _names_dtype(symbol: Symbol) -> bool:
    return symbol.attrs.get("dtype") is not None
