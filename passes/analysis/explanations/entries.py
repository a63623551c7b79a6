"""Entries: the ops at which a dtype that the data has not enters them, found in one forward walk.

The walk infers each symbol's dtype anew. At an entry it mends the operand: it goes on as if the
operand had the dtype of the data. So one walk finds all entries, and says which dtype each output
has without them. A walk with edits is a trial of these edits.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, cast

from graphir.ir.inlining import Junction
from graphir.ir.op_builder import infer
from graphir.ir.operands import resolve_literal
from graphir.location import ASSIGN
from graphir.ops import dtype_rules as signatures
from graphir.ops.types import NoTensorType, TensorType
from graphir.passes.analysis.casts.behind_casts import has_default_dtype, in_call, stores, uncast
from graphir.passes.analysis.expressions import expression, is_a_call
from graphir.passes.analysis.rebuild import Literals, is_literal
from graphir.public import DType, Graph, GraphirError, Symbol, ops, rules


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


_WRITTEN = re.compile(r"\b(as)?type\b|\.to\(|dtype|float|int\d*|half|double|asarray|array\(")
"""What a source expression has that writes a cast."""

_BY_DESIGN = (signatures.ACCUMULATION, signatures.POSITION, signatures.CAST)
"""The signatures of ops whose results are wide by themselves."""


class EntryWalk:
    """The dtypes of a graph's symbols without the entries, and the entries.

    `data` are the inputs that are data. `keep` is the dtype that the user wants: then whatever is
    wider is an entry, also what the program asks for. `edits` are dtypes of symbols, and `casts` of
    operands by (index of the user, position). `dtypes` has by index the dtype of each symbol, None
    without one;
    `refused` the symbols whose operands the rules refuse.
    """

    def __init__(
        self,
        graph: Graph,
        data: Collection[Symbol],
        keep: DType | None = None,
        edits: Mapping[int, DType] | None = None,
        casts: Mapping[tuple[int, int], DType] | None = None,
    ) -> None:
        self.graph, self.edits, self.casts = graph, edits or {}, casts or {}
        self.keep = keep
        before = graph.rules_before
        self.rules = graph.rules if before is None else rules(cast(Any, before))
        self.entries: list[Entry] = []
        self.mixed: list[Entry] = []
        """The ops at which data of unlike dtypes meet: they have their dtypes by the caller."""
        self.refused: set[int] = set()
        self.dtypes: list[Any] = []
        self._mended: dict[DType, DType] = {}
        """The dtypes of results of entries and edits, each with what it is without the last one."""
        places = {**self.edits, **{at: dtype for (at, _), dtype in self.casts.items()}}
        self._mended.update((graph.symbols[at].type.dtype, to) for at, to in places.items())
        self._pinned: dict[int, DType] = {}
        """The dtypes of carries whose loops do not keep the dtype that enters them."""
        self._given = {x.index for x in data}
        self._data = {*self._given}
        self._walk()
        while wrong := self._inconsistent():
            self._pinned |= wrong
            self.dtypes = []
            for found in (self.entries, self.mixed, self.refused):
                found.clear()
            self._walk()

    def _walk(self) -> None:
        data, dtypes, is_trial = self._data, self.dtypes, bool(self.edits or self.casts)
        for symbol in self.graph.symbols:
            args, type_ = symbol.args, symbol.type
            for arg in args:
                if arg.index in data:
                    data.add(symbol.index)
                    break
            if type(type_) is not TensorType:
                dtypes.append(None)
                continue
            for arg in args:  # most symbols have the dtype of all their operands: no call for them
                if dtypes[arg.index] is not type_.dtype:
                    break
            else:
                if args and not is_trial and symbol.op not in _SPECIAL:
                    dtypes.append(type_.dtype)
                    continue
            dtypes.append(self._dtype(symbol))

    def reaches(self, symbol: Symbol) -> bool:
        """Whether a symbol depends on the data."""
        return symbol.index in self._data

    def is_changed(self, symbol: Symbol) -> bool:
        """Whether a symbol has another dtype without the entries."""
        dtype = self.dtypes[symbol.index]
        return dtype is not None and dtype is not symbol.type.dtype

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

    # -- the dtype of one symbol

    def _dtype(self, symbol: Symbol) -> DType:
        edit = self.edits.get(symbol.index)
        if edit is not None:
            return edit
        dtype = symbol.type.dtype
        if not symbol.args:
            is_wide = symbol.index in self._given and self._is_too_wide(dtype)
            return (
                self._enter(Entry(symbol, None, dtype, dtype))
                if is_wide
                else self._made(symbol, dtype)
            )
        if self._has_other_operands(symbol):
            dtype = self._inferred(symbol)
        if not self.reaches(symbol):
            return dtype
        entry = self._entry(symbol, dtype)
        if entry is None and self._is_too_wide(dtype):
            entry = Entry(symbol, None, dtype, dtype)
        if entry is None:
            return dtype
        if self._is_inside(entry) or self._is_count(entry):
            return dtype
        if entry.birth is not None and entry.birth.index in self._given:
            self.mixed.append(entry)
            return dtype
        return self._enter(entry)

    def _is_count(self, entry: Entry) -> bool:
        """Whether integers meet a count or an index, whose dtype is the library's."""
        birth = entry.birth
        if birth is None or birth.op is ops.cast or self.keep is not None:
            return False
        return birth.op.signature in _BY_DESIGN and entry.dtype.is_integer

    def _enter(self, entry: Entry) -> DType:
        """Note an entry, and return the dtype with which the walk goes on."""
        if self.keep is not None and self._is_too_wide(entry.dtype):
            entry = entry._replace(wanted=self._wanted(entry.dtype, [self.keep]))
        self.entries.append(entry)
        self._mended[entry.dtype] = entry.wanted
        if entry.position is not None:
            self._mend_carry(entry.step.args[entry.position], entry)
        return entry.wanted

    def _is_too_wide(self, dtype: DType) -> bool:
        return self.keep is not None and is_narrower(self.keep, dtype)

    def _is_inside(self, entry: Entry) -> bool:
        """Whether a function of a library widens values of its own, and no line of the user's."""
        step, birth = entry.step, entry.birth
        if not self.graph.provenance.library or step.op is ops.cast:
            return False
        if birth is not None and birth.location.place != step.location.place:
            return False
        source = expression(step.location)
        is_function = source is not None and is_a_call(source.text)
        return is_function and len(self.ops_at.get(step.location.place, ())) > 1

    @cached_property
    def ops_at(self) -> dict[object, set[str]]:
        """The names of the ops that compute at each place of the program."""
        names: dict[object, set[str]] = {}
        for symbol in self.graph.symbols:
            if symbol.op.computes and symbol.op is not ops.cast:
                names.setdefault(symbol.location.place, set()).add(symbol.op.name)
        return names

    def _mend_carry(self, operand: Symbol, entry: Entry) -> None:
        """Let a value that enters a loop wide, and is the operand of an entry, enter it narrow."""
        while type(operand.op) is Junction and operand.op.enters:
            self.dtypes[operand.index] = entry.wanted
            operand = operand.args[0]

    def _made(self, symbol: Symbol, dtype: DType) -> DType:
        """Return the dtype of a value without operands; one that follows another value's."""
        mended = self._mended.get(dtype, dtype)
        text = expression(symbol.location) if mended is not dtype else None
        follows = text is not None and (".dtype" in text.text or "_like(" in text.text)
        return mended if follows else dtype

    def _has_other_operands(self, symbol: Symbol) -> bool:
        if any(map(self.is_changed, symbol.args)) or (symbol.op is ops.cast and self._mended):
            return True
        if type(symbol.op) is Junction:
            return symbol.op.enters and symbol.args[0].type.dtype is not symbol.type.dtype
        return any((symbol.index, i) in self.casts for i in range(len(symbol.args)))

    def _inferred(self, symbol: Symbol) -> DType:
        op, args, own = symbol.op, symbol.args, symbol.type.dtype
        if op is ops.cast:
            return self._of_cast(symbol)
        if type(op) is Junction:
            return self._of_junction(symbol, op)
        if any(self.dtypes[x.index] is None for x in args):
            return own
        if _is_update(symbol) and self.is_changed(args[0]):
            return self.dtypes[args[0].index]
        types: list[Any] = [self._type(symbol, i) for i in range(len(args))]
        try:
            for i, arg in enumerate(args):
                leader = self._followed_by(symbol, arg)
                if leader is not None:
                    types[i] = arg.type.cast(self._of(leader))
                elif is_literal(arg) and self._literals.within(symbol, i):
                    operands = [*types]
                    operands[i] = arg.attrs["literal"]
                    types[i] = arg.type.cast(resolve_literal(self.rules, op, operands, i)[1])
            return infer(self.rules, op, tuple(types), self._attrs(symbol)).type.dtype
        except GraphirError:
            self.refused.add(symbol.index)
            return own

    def _attrs(self, symbol: Symbol) -> Mapping[str, Any]:
        """Return the attributes; a dtype that is that of an operand follows it."""
        attrs, named = symbol.attrs, symbol.attrs.get("dtype")
        if named is None or symbol.args[0].type.dtype is not named:
            return attrs
        return {**attrs, "dtype": self.dtypes[symbol.args[0].index]}

    def _type(self, symbol: Symbol, position: int) -> TensorType:
        arg = symbol.args[position]
        dtype = self.casts.get((symbol.index, position), self.dtypes[arg.index])
        return arg.type if dtype is None else arg.type.cast(dtype)

    def _of_cast(self, symbol: Symbol) -> DType:
        """Return the dtype of a cast: that of the array written to, or of the value it names."""
        value, own = symbol.args[0], symbol.type.dtype
        origins = symbol.origins
        if not origins:
            return self._followed(symbol)
        if origins[0].rule == ASSIGN and origins[0].location.in_place and value.args:
            return self.dtypes[value.args[0].index]
        is_passed = origins[0].in_call and self.dtypes[value.index] is not value.type.dtype
        return self.dtypes[value.index] if is_passed and own is value.type.dtype else own

    def _followed(self, cast: Symbol) -> DType:
        """Return the dtype of a cast without origin.

        One that the program writes has its own; of `.astype(y.dtype)` it is that of `y`. One that a
        library's function makes has that of what it computes with.
        """
        own = cast.type.dtype
        text = expression(cast.location)
        is_written = text is None or (_WRITTEN.search(text.text) and ".dtype" not in text.text)
        return own if is_written else self._mended.get(own, own)

    def _of_junction(self, symbol: Symbol, op: Junction) -> DType:
        if symbol.index in self._pinned:
            return self._pinned[symbol.index]
        count = len(op.signature.promoted or ())
        if not op.signature.promoted:  # a result of an opaque step
            own = symbol.type.dtype
            alike = (x for x in symbol.args if self.is_changed(x) and x.type.dtype is own)
            return next((self.dtypes[x.index] for x in alike), own)
        dtypes = {self.dtypes[x.index] for x in symbol.args[:count]} - {None}
        if not dtypes:
            return symbol.type.dtype
        if len(dtypes) == 1:
            return dtypes.pop()
        try:
            types = tuple(x.type.cast(self.dtypes[x.index]) for x in symbol.args[:count])
            return self.rules.common(types)
        except GraphirError:
            return symbol.type.dtype

    def _inconsistent(self) -> dict[int, DType]:
        """Return the carries whose loop gives another dtype than they take, each with its dtype.

        A number takes what the loop gives, as the loop promotes it; else the dtype is as it was.
        """
        wrong: dict[int, DType] = {}
        for symbol in self.graph.symbols:
            leaves = type(symbol.op) is Junction and not symbol.op.enters
            for carry in symbol.args[1:2] if leaves else ():
                enters = type(carry.op) is Junction and carry.op.enters
                given, taken = self.dtypes[symbol.args[0].index], self.dtypes[carry.index]
                if enters and given is not taken:
                    to = given if taken.weak else carry.type.dtype
                    if self._pinned.get(carry.index) is not to and taken is not carry.type.dtype:
                        wrong[carry.index] = to
        return wrong

    @cached_property
    def _literals(self) -> Literals:
        return Literals(self.graph)

    # -- entries

    def _entry(self, symbol: Symbol, dtype: DType) -> Entry | None:
        op = symbol.op
        if dtype.family == "bool" or dtype.weak or op.kind == "creation":
            return None
        if op is ops.cast:
            return self._of_call(symbol) if in_call(symbol) else self._of_default(symbol)
        if type(op) is Junction or op.signature in _BY_DESIGN or _names_dtype(symbol):
            return None
        operands = self._operands(symbol)
        narrow = [i for i in operands if self._is_narrow_data(operands[i], dtype)]
        wide = [i for i, x in operands.items() if self._of(x).part is dtype.part]
        others = [i for i in wide if operands[i].index not in self._data]
        if not narrow:
            return self._of_integers(symbol, dtype, operands) if not wide else None
        wanted = self._wanted(dtype, [self._of(operands[i]) for i in narrow])
        for i in wide:
            births = self.births(operands[i])
            is_asked = all(x.op is ops.cast for x in births)
            if i not in others and is_asked and self.keep is None:
                return None  # the program asks for it
        if wide:
            position = (others or wide)[0]
            return Entry(symbol, position, wanted, dtype, self.birth(operands[position]))
        beside = [i for i in operands if i not in narrow and operands[i].index not in self._data]
        position = beside[0] if beside else None
        birth = None if position is None else self.birth(operands[position])
        return Entry(symbol, position, wanted, dtype, birth)

    def _followed_by(self, step: Symbol, number: Symbol) -> Symbol | None:
        """Return the operand whose dtype a library's trace gave to a number beside it, or None."""
        if number.op is not ops.constant or number.rank or not self.graph.provenance.library:
            return None
        if number.location.place != step.location.place:
            return None
        dtype = number.type.dtype
        alike = (x for x in step.args if self.is_changed(x) and x.type.dtype is dtype)
        return next(alike, None)

    def _of_integers(
        self, symbol: Symbol, dtype: DType, operands: Mapping[int, Symbol]
    ) -> Entry | None:
        """Return the entry at which integers of the data and narrow floats promote to wide ones."""
        floats = [self._of(x) for x in operands.values() if self._of(x).is_inexact]
        if not floats or not all(is_narrower(x, dtype) for x in floats):
            return None
        return Entry(symbol, None, self._wanted(dtype, floats), dtype)

    def _operands(self, symbol: Symbol) -> dict[int, Symbol]:
        """Return the operands that promote together by position, but for Python numbers."""
        positions = symbol.op.signature.promoted
        if positions is None:
            positions = range(len(symbol.args))
        operands = {i: uncast(symbol.args[i], _is_update(symbol)) for i in positions}
        return {
            i: x for i, x in operands.items()
            if self.dtypes[x.index] is not None and not self._of(x).weak
            and not is_literal(symbol.args[i]) and self._followed_by(symbol, x) is None
        }  # fmt: skip

    def _of(self, symbol: Symbol) -> DType:
        return self.dtypes[symbol.index]

    def _is_narrow_data(self, operand: Symbol, dtype: DType) -> bool:
        return operand.index in self._data and is_narrower(self._of(operand), dtype)

    def _wanted(self, dtype: DType, narrow: Sequence[DType]) -> DType:
        """Return the dtype of the kind of `dtype` that is as wide as the widest of `narrow`."""
        widest = max(narrow, key=_width)
        if dtype.is_complex and not widest.is_complex:
            return DType.complex64 if widest.bits <= 32 else DType.complex128
        return widest

    def _of_default(self, cast: Symbol) -> Entry | None:
        """Return the entry at a cast to `float` or `int`, whose width is the library's setting."""
        narrow = self._of(cast.args[0])
        if not has_default_dtype(cast) or not is_narrower(narrow, cast.type.dtype):
            return None
        return Entry(cast, None, narrow, cast.type.dtype)

    def _of_call(self, step: Symbol) -> Entry | None:
        """Return the entry by a cast that a NumPy function makes of its narrow argument."""
        place, narrow = step.location, self._of(uncast(step.args[0]))
        if not is_narrower(narrow, step.type.dtype):
            return None
        symbols = self.graph.symbols
        inside = {
            x.index
            for x in symbols
            if x.location == place and x.args and (place.compound or in_call(x))
        }
        others = (x for i in sorted(inside) for x in symbols[i].args if x.index not in inside)
        arguments = (x for x in others if is_narrower(narrow, self._dtype_so_far(x)))
        argument = next(arguments, None)
        is_walked = argument is not None and argument.index < len(self.dtypes)
        birth = self.birth(argument) if argument is not None and is_walked else argument
        return Entry(step, None, narrow, step.type.dtype, birth, argument)

    def _dtype_so_far(self, symbol: Symbol) -> DType:
        is_walked = symbol.index < len(self.dtypes)
        return self.dtypes[symbol.index] if is_walked else symbol.type.dtype

    def births(self, symbol: Symbol) -> list[Symbol]:
        """Return the first values behind a symbol that have its dtype, in their order."""
        dtype = self._of(symbol)
        stack, visited, found = [symbol], {symbol.index}, list[Symbol]()
        while stack:
            value = stack.pop()
            is_cast = value.op is ops.cast and not value.origins
            args = (
                () if is_cast else map(uncast, value.args[:1] if _is_update(value) else value.args)
            )
            alike = [x for x in args if self.dtypes[x.index] is dtype and not is_literal(x)]
            if not alike:
                found.append(value)
            new = [x for x in alike if x.index not in visited and x.index < value.index]
            visited.update(x.index for x in new)
            stack += new
        return sorted(found or [symbol], key=lambda x: x.index)

    def birth(self, symbol: Symbol) -> Symbol:
        """Return the first value behind a symbol that has its dtype."""
        return self.births(symbol)[0]


def first_of_dtype(symbol: Symbol) -> Symbol:
    """Return the first step behind a value that has its dtype."""
    dtype = symbol.dtype
    while True:
        values = (x for x in symbol.args if x.args and not isinstance(x.type, NoTensorType))
        following = next((x for x in values if x.type.dtype is dtype), None)
        if following is None:
            return symbol
        symbol = following


def since(symbol: Symbol) -> str:
    """Return ` since line 7: text`, for the first step behind a value that has its dtype; or ""."""
    place = first_of_dtype(symbol).location
    source = expression(place)
    return f" since line {place.line}: {source.brief}" if source is not None else ""


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


def _is_update(symbol: Symbol) -> bool:
    """Whether a symbol is an array with elements written to it."""
    return any(stores(x) for x in symbol.args[1:]) or symbol.op in _UPDATES


_UPDATES = (ops.slice_update, ops.scatter)
_SPECIAL = (ops.cast, *_UPDATES)
"""The ops whose results may have another dtype than the values that they are made of."""
