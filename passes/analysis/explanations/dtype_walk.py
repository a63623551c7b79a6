"""The dtypes of a graph's symbols after edits: inference of each symbol, once, in order.

Loops begin with the dtype that enters them; where a loop gives another one, the walk begins again
with that. Values that took their dtype from another one (`zeros_like`, `.astype(y.dtype)`) follow
it, and so do the numbers to which a library's trace gave the dtype beside them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, cast

from graphir.ir.inlining import Junction
from graphir.ir.op_builder import infer
from graphir.ir.operands import resolve_literal
from graphir.location import ASSIGN, INTERMEDIATE, Location
from graphir.ops.types import NoTensorType, TensorType
from graphir.passes.analysis.casts.behind_casts import stores
from graphir.passes.analysis.expressions import assigned_names, expression, is_a_call, stored_name
from graphir.passes.analysis.rebuild import Literals, is_literal
from graphir.public import DType, Graph, GraphirError, Symbol, ops, rules

_WRITTEN = re.compile(r"\b(as)?type\b|\.to\(|dtype|float|int\d*|half|double|asarray|array\(")
"""What a source expression has that writes a cast."""


class ProgramFacts:
    """What all walks over one graph with inline control flow ask of it, found once.

    `given` has the indices of the inputs that are data, and `data` of all that depends on them.
    """

    def __init__(self, graph: Graph, given: Iterable[Symbol]) -> None:
        self.graph = graph
        self.given = {x.index for x in given}
        self.data = {*self.given}
        for symbol in graph.symbols:
            for arg in symbol.args:
                if arg.index in self.data:
                    self.data.add(symbol.index)
                    break

    @cached_property
    def literals(self) -> Literals:
        """The numbers of the program, each in an expression or alone."""
        return Literals(self.graph)

    @cached_property
    def ops_at(self) -> Mapping[object, set[str]]:
        """The names of the ops that compute at each place of the program."""
        names: dict[object, set[str]] = {}
        for symbol in self.graph.symbols:
            if symbol.op.computes and symbol.op is not ops.cast:
                names.setdefault(symbol.location.place, set()).add(symbol.op.name)
        return names

    @cached_property
    def steps_at(self) -> Mapping[Location, Sequence[Symbol]]:
        """The symbols with operands at each location, in their order."""
        steps: dict[Location, list[Symbol]] = {}
        for symbol in self.graph.symbols:
            if symbol.args:
                steps.setdefault(symbol.location, []).append(symbol)
        return steps

    @cached_property
    def arrays(self) -> Mapping[int, Symbol]:
        """The array to which each cast stores a value, by the index of the cast."""
        found = dict(self.whole_stores)
        for update in filter(is_update, self.graph.symbols):
            found.update({stored(update, x).index: update.args[0] for x in update.args[1:]})
        return found

    @cached_property
    def whole_stores(self) -> Mapping[int, Symbol]:
        """The arrays that `out[:] = value` writes whole, by the index of the value's cast.

        The graph has the value alone then; the source has the last line that assigned `out`.
        """
        symbols, found = self.graph.symbols, dict[int, Symbol]()
        updates = (x for x in symbols if x.op.kind == "movement" and len(x.args) > 1)
        parts = {x.location.place for x in updates}
        for value in filter(stores, symbols):
            place = value.location
            if place.place not in parts and not place.in_place:
                source = expression(place)
                name = stored_name(source.text) if source else ""
                arrays = self._assigned.get((place.source, name), {}).get(value.dtype, ())
                earlier = [x for x in arrays if x.index < value.index]
                found.update([(value.index, earlier[-1])] if earlier else ())
        return found

    @cached_property
    def _assigned(self) -> Mapping[tuple[str, str], Mapping[DType, Sequence[Symbol]]]:
        """The values that lines assign to names, by file and name and dtype."""
        found: dict[tuple[str, str], dict[DType, list[Symbol]]] = {}
        for symbol in self.graph.symbols:
            file, line = symbol.location.source, symbol.location.line
            name = assigned_names(file).get(line) if line else None
            if name is not None and not isinstance(symbol.type, NoTensorType):
                found.setdefault((file, name), {}).setdefault(symbol.dtype, []).append(symbol)
        return found

    def is_function(self, step: Symbol) -> bool:
        """Whether the source expression of a step calls a function of several ops.

        The operands in the text are those of the function then, not of the step.
        """
        source = expression(step.location)
        is_call = source is not None and is_a_call(source.text)
        return is_call and len(self.ops_at.get(step.location.place, ())) > 1


class DtypeWalk:
    """The dtypes that the symbols of a graph have after edits.

    `edits` are dtypes of symbols, and `casts` of operands by (index of the user, position).
    `dtypes` has by index the dtype of each symbol, None without one, and `refused` the symbols
    whose operands the rules refuse. `replaced` has the dtypes of edited values, each with the last
    one that stands for it: what follows an edited value follows this.
    """

    def __init__(
        self,
        facts: ProgramFacts,
        edits: Mapping[int, DType] | None = None,
        casts: Mapping[tuple[int, int], DType] | None = None,
    ) -> None:
        self.facts, self.graph = facts, facts.graph
        self.edits, self.casts = edits or {}, casts or {}
        graph, before = facts.graph, facts.graph.rules_before
        self.rules = graph.rules if before is None else rules(cast(Any, before))
        self.refused: set[int] = set()
        self.dtypes: list[Any] = []
        self._edited = {**self.edits, **{at: dtype for (at, _), dtype in self.casts.items()}}
        self.replaced = {graph.symbols[at].type.dtype: to for at, to in self._edited.items()}
        self._pinned: dict[int, DType] = {}
        """The dtypes of carries whose loops do not keep the dtype that enters them."""

    def run(self) -> None:
        """Infer all symbols, again while a loop gives another dtype than it takes."""
        self._walk()
        while wrong := self._other_carries():
            self._pinned |= wrong
            self.forget()
            self._walk()

    def forget(self) -> None:
        """Forget what a walk found, before another one."""
        self.dtypes = []
        self.refused.clear()

    def _walk(self) -> None:
        dtypes, edited = self.dtypes, self._edited
        for symbol in self.graph.symbols:
            args, type_ = symbol.args, symbol.type
            if type(type_) is not TensorType:
                dtypes.append(None)
                continue
            # A symbol with the dtype of all its operands has that, and is no entry: most are.
            for arg in args:
                if dtypes[arg.index] is not type_.dtype:
                    break
            else:
                if args and symbol.index not in edited and symbol.op not in _SPECIAL:
                    dtypes.append(type_.dtype)
                    continue
            edit = self.edits.get(symbol.index)
            dtypes.append(self._inferred(symbol) if edit is None else edit)

    def _inferred(self, symbol: Symbol) -> DType:
        """Return the dtype of a symbol for those of its operands; subclasses may mend it."""
        if not symbol.args:
            return self._made_dtype(symbol, symbol.type.dtype)
        return self._inferred_dtype(symbol) if self._is_affected(symbol) else symbol.type.dtype

    def is_changed(self, symbol: Symbol) -> bool:
        """Whether a symbol has another dtype than in the program."""
        dtype = self.dtypes[symbol.index]
        return dtype is not None and dtype is not symbol.type.dtype

    def dtype_of(self, symbol: Symbol) -> DType:
        """Return the dtype of a symbol that has one, after the edits."""
        return self.dtypes[symbol.index]

    def _is_affected(self, symbol: Symbol) -> bool:
        if symbol.index in self._edited or any(map(self.is_changed, symbol.args)):
            return True
        if type(symbol.op) is Junction:
            return symbol.op.enters and symbol.args[0].type.dtype is not symbol.type.dtype
        return symbol.op is ops.cast and bool(self.replaced)

    def _made_dtype(self, symbol: Symbol, dtype: DType) -> DType:
        """Return the dtype of a value without operands; one that follows another value's."""
        mended = self.replaced.get(dtype, dtype)
        text = expression(symbol.location) if mended is not dtype else None
        follows = text is not None and (".dtype" in text.text or "_like(" in text.text)
        return mended if follows else dtype

    def _inferred_dtype(self, symbol: Symbol) -> DType:
        op, args, own = symbol.op, symbol.args, symbol.type.dtype
        if op is ops.cast:
            return self._cast_dtype(symbol)
        if type(op) is Junction:
            return self._junction_dtype(symbol, op)
        if any(self.dtypes[x.index] is None for x in args):
            return own
        if is_update(symbol):
            is_inside = args[0].location.place == symbol.location.place  # as of `np.diag`
            array = args[1] if is_inside and args[1].type.dtype is own else args[0]
            if self.is_changed(array):
                return self.dtypes[array.index]
        types: list[Any] = [self._operand_type(symbol, i) for i in range(len(args))]
        try:
            for i, arg in enumerate(args):
                leader = self.leader_of(symbol, arg)
                if leader is not None:
                    types[i] = arg.type.cast(self.dtype_of(leader))
                elif is_literal(arg) and self.facts.literals.within(symbol, i):
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
        return {**attrs, "dtype": self._operand_type(symbol, 0).dtype}

    def _operand_type(self, symbol: Symbol, position: int) -> TensorType:
        arg = symbol.args[position]
        dtype = self.casts.get((symbol.index, position), self.dtypes[arg.index])
        return arg.type if dtype is None else arg.type.cast(dtype)

    def _cast_dtype(self, symbol: Symbol) -> DType:
        """Return the dtype of a cast: that of the array written to, or of the value it names."""
        value, own = symbol.args[0], symbol.type.dtype
        origins = symbol.origins
        if not origins:
            return self._written_dtype(symbol)
        if origins[0].rule == ASSIGN and origins[0].location.in_place and value.args:
            return self.dtypes[value.args[0].index]
        array = self.facts.arrays.get(symbol.index)
        if array is not None and array.index < symbol.index and self.is_changed(array):
            return self.dtypes[array.index]
        if origins[0].in_call and own is value.type.dtype and self.is_changed(value):
            return self.dtypes[value.index]  # a function's cast of what the program has as wide
        is_inside = origins[0].operand == INTERMEDIATE or origins[0].kind == "implicit"
        if is_inside and own in self.replaced:
            return self._rounded_dtype(symbol)
        return own

    def _rounded_dtype(self, cast: Symbol) -> DType:
        """Return the dtype to which a library's function rounds: that of its changed operands."""
        steps, own = self.facts.steps_at[cast.location], cast.type.dtype
        inside = {x.index for x in steps}
        operands = (x for step in steps for x in step.args if x.index not in inside)
        before = (x for x in operands if x.index < len(self.dtypes) and x.type.dtype is own)
        return next((self.dtypes[x.index] for x in before if self.is_changed(x)), own)

    def _written_dtype(self, cast: Symbol) -> DType:
        """Return the dtype of a cast without origin.

        One that the program writes has its own; of `.astype(y.dtype)` it is that of `y`. One that a
        library's function makes has that of what it computes with.
        """
        own = cast.type.dtype
        text = expression(cast.location)
        is_written = text is None or (_WRITTEN.search(text.text) and ".dtype" not in text.text)
        return own if is_written else self.replaced.get(own, own)

    def _junction_dtype(self, symbol: Symbol, op: Junction) -> DType:
        if symbol.index in self._pinned:
            return self._pinned[symbol.index]
        own, together = symbol.type.dtype, symbol.args[: len(op.signature.promoted or ())]
        if not together:  # a result of an opaque step
            alike = (x for x in symbol.args if self.is_changed(x) and x.type.dtype is own)
            return next((self.dtypes[x.index] for x in alike), own)
        dtypes = {self.dtypes[x.index] for x in together} - {None}
        if len(dtypes) <= 1:
            return dtypes.pop() if dtypes else own
        try:
            return self.rules.common(tuple(x.type.cast(self.dtypes[x.index]) for x in together))
        except GraphirError:
            return own

    def leader_of(self, step: Symbol, number: Symbol) -> Symbol | None:
        """Return the operand whose dtype a library's trace gave to a number beside it, or None."""
        if number.op is not ops.constant or number.rank or not self.graph.provenance.library:
            return None
        if number.location.place != step.location.place:
            return None
        dtype = number.type.dtype
        alike = (x for x in step.args if self.is_changed(x) and x.type.dtype is dtype)
        return next(alike, None)

    def _other_carries(self) -> dict[int, DType]:
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


def is_update(symbol: Symbol) -> bool:
    """Whether a symbol is an array with elements written to it."""
    return symbol.op in _UPDATES or any(stores(stored(symbol, x)) for x in symbol.args[1:])


def stored(update: Symbol, value: Symbol) -> Symbol:
    """Return the value that a statement stores, before it moves it to the places of the array."""
    before = value
    while before.op.kind == "movement" and len(before.args) == 1:
        if before.location.place != update.location.place:
            return value
        before = before.args[0]
    return before if stores(before) else value


_UPDATES = (ops.slice_update, ops.scatter)
_SPECIAL = (ops.cast, *_UPDATES)
"""The ops whose results may have another dtype than the values that they are made of."""
