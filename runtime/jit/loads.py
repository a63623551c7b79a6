"""The outside names that a code object loads: globals, free variables and attributes."""

from __future__ import annotations

import dis
import sys
import sysconfig
from collections.abc import Sequence
from itertools import chain
from types import CodeType, FrameType
from typing import Any, NamedTuple, cast


class Loads(NamedTuple):
    """The names that a code object loads from outside its local variables.

    `attributes` are the possible attribute names, for any owner; they include the text constants,
    for `getattr(self, "scale")`. `updates` are names that the code only updates, by `calls += 1` or
    `log.append(x)`: such a name does not count as loaded, since its value reaches nothing else
    unless other code loads the name. `literals` are the text constants, `modules` the imports.
    `writes` is whether the code can write to an array.
    """

    globals: tuple[str, ...]
    free: frozenset[str]
    attributes: frozenset[str]
    updates: frozenset[str]
    literals: frozenset[str]
    modules: tuple[str, ...]
    writes: bool


_MOST_CODES = 4096
_LOADS: dict[int, tuple[CodeType, Loads]] = {}
"""Cache keyed by id(code), since hashing a code object reads all of it; values keep it alive."""

_KINDS = {
    "LOAD_GLOBAL": "global",
    "LOAD_NAME": "global",
    "LOAD_FROM_DICT_OR_GLOBALS": "global",
    "LOAD_DEREF": "free",
    "LOAD_CLASSDEREF": "free",
    "LOAD_FROM_DICT_OR_DEREF": "free",
    "LOAD_ATTR": "attribute",
    "LOAD_METHOD": "attribute",
    "LOAD_SUPER_ATTR": "attribute",
    "IMPORT_FROM": "attribute",
    "IMPORT_NAME": "module",
}
_STORES = {"global": {"STORE_GLOBAL"}, "free": {"STORE_DEREF"}, "attribute": {"STORE_ATTR"}}
_UPDATES = {"STORE_GLOBAL", "STORE_DEREF", "STORE_ATTR"}
_UPDATERS = {"append", "extend", "insert", "add", "update", "clear"}  # methods that return None
_WRITERS = frozenset(
    (
        *("fill", "sort", "partition", "put", "place", "putmask", "put_along_axis", "copyto", "at"),
        *("fill_diagonal", "resize", "setfield", "itemset", "byteswap", "shuffle", "readinto"),
        *("out", "__setitem__"),
    )
)
"""The functions and methods that write to an array, and the keyword of those that can."""
_ITEM_STORES = {"STORE_SUBSCR", "STORE_SLICE"}
_IN_PLACE = {
    f"{sign}=" for sign in ("+", "-", "*", "@", "/", "//", "%", "**", "&", "|", "^", "<<", ">>")
}
_STACK = {"SWAP", "COPY"}
_SIMPLE = {"LOAD_CONST", "LOAD_SMALL_INT", "LOAD_FAST", "LOAD_FAST_BORROW"}


def loads_of(code: CodeType) -> Loads:
    """Return the names that a code object loads or updates outside itself; cached."""
    entry = _LOADS.get(id(code))
    if entry is None:
        if len(_LOADS) >= _MOST_CODES:
            _LOADS.clear()
        entry = _LOADS[id(code)] = code, _loads_in(code)
    return entry[1]


def _loads_in(code: CodeType) -> Loads:
    names: dict[str, set[str]] = {kind: set() for kind in (*_KINDS.values(), "update")}
    writes = False
    instructions = list(dis.get_instructions(code))
    for at, instruction in enumerate(instructions):
        kind = _KINDS.get(instruction.opname, "")
        if instruction.opname in _UPDATES or _is_counting(instructions[at:], kind):
            names["update"].add(instruction.argval)
        elif kind:
            names[kind].add(instruction.argval)
        writes |= instruction.opname in _ITEM_STORES or instruction.argrepr in _IN_PLACE
    tuples = [
        cast("tuple[Any, ...]", constant) for constant in code.co_consts if type(constant) is tuple
    ]
    texts = chain(code.co_consts, *tuples)
    literals = {constant for constant in texts if type(constant) is str and constant.isidentifier()}
    return Loads(
        tuple(sorted(names["global"])),
        frozenset(names["free"]),
        frozenset(names["attribute"] | literals),
        frozenset(names["update"]),
        frozenset(literals),
        tuple(sorted(names["module"])),
        writes or not _WRITERS.isdisjoint(names["global"] | names["attribute"] | literals),
    )


def _is_counting(ahead: Sequence[dis.Instruction], kind: str) -> bool:
    """Whether a load starts a statement that only updates the loaded name.

    Such statements are `name += 1`, `name[key] += 1`, `name[key] = value`, `name.append(...)`.
    """
    load, *rest = [instruction for instruction in ahead[:10] if instruction.opname not in _STACK]
    if len(rest) < 2 or kind not in _STORES:
        return False
    if rest[0].opname in ("LOAD_METHOD", "LOAD_ATTR"):
        return rest[0].argval in _UPDATERS and _is_dropped(ahead)
    if rest[0].opname not in _SIMPLE:
        return False
    if rest[1].opname == "STORE_SUBSCR":
        return True
    if _is_item(rest[1]):
        return len(rest) > 4 and _updates(rest[2:5], {"STORE_SUBSCR"})
    return len(rest) > 2 and _updates(rest[:3], _STORES[kind]) and rest[2].argval == load.argval


def _is_dropped(ahead: Sequence[dis.Instruction]) -> bool:
    """Whether the code drops the result of the call at the first instruction's position."""
    start = _start(ahead[0])
    calls = (
        at
        for at, instruction in enumerate(ahead)
        if instruction.opname == "CALL" and _start(instruction) == start
    )
    first = next(calls, None)
    return None not in start and first is not None and ahead[first + 1].opname == "POP_TOP"


def _start(instruction: dis.Instruction) -> tuple[int | None, int | None]:
    place = instruction.positions
    return (place.lineno, place.col_offset) if place else (None, None)


def _updates(instructions: Sequence[dis.Instruction], stores: set[str]) -> bool:
    """Whether three instructions end a statement `... += operand`."""
    operand, update, store = instructions
    is_update = update.opname == "BINARY_OP" and update.argrepr.endswith("=")
    return operand.opname in _SIMPLE and is_update and store.opname in stores


def _is_item(instruction: dis.Instruction) -> bool:
    return instruction.opname == "BINARY_SUBSCR" or instruction.argrepr == "[]"  # since 3.14


# -- library code and user code


_LIBRARIES = {"graphir", "numpy", "traced_numpy", "ml_dtypes", "networkx", "llvmlite"}
_STANDARD = tuple({sysconfig.get_path(name) for name in ("stdlib", "platstdlib")})
_LIBRARY: dict[int, tuple[CodeType, bool]] = {}


def is_library(frame: FrameType) -> bool:
    """Whether a frame runs code of graphir, NumPy or the standard library."""
    code = frame.f_code
    entry = _LIBRARY.get(id(code))
    if entry is None:
        if len(_LIBRARY) >= _MOST_CODES:
            _LIBRARY.clear()
        name: str = frame.f_globals.get("__name__", "")
        entry = _LIBRARY[id(code)] = code, is_library_module(name, code.co_filename)
    return entry[1]


def is_library_module(name: str, file: str = "") -> bool:
    """Whether a module belongs to graphir, NumPy or the standard library.

    For standard library names, `file` must lie in the standard library too, if given.
    """
    top = name.partition(".")[0]
    if top in _LIBRARIES or top.startswith("namedtuple_"):  # generated __new__ of a namedtuple
        return True
    if top not in sys.stdlib_module_names:
        return False
    return not file or ("site-packages" not in file and file.startswith(("<frozen", *_STANDARD)))
