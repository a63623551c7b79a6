"""Records that machine code reads, by the names of their fields, and the drivers that read them.

A driver is machine code that never changes: a file of LLVM assembly with the abbreviations of
`words_of`. There `JobCall.kernel` is the number of the 64-bit word of a field, `JobCall.words` the
number of words of a record, and `State.WAITS` a number of an enumeration. A ctypes structure
declares the fields for both sides, so Python writes a record by the names by which its driver reads
it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from ctypes import Array, Structure, c_int64, sizeof
from enum import IntEnum
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphir.runtime.native.assembly import package_text
from graphir.runtime.program.cost_model import KEPT_LAYOUTS, LINE

Words: TypeAlias = NDArray[np.int64]
Relocation: TypeAlias = tuple[int, int]
"""A word to which a run adds the address of a memory, and the number of the memory."""

T = TypeVar("T", bound="WordRecord")

_WORD = 8


class WordRecord(Structure):
    """A record of 64-bit words. `fields` has the names of the words, in order.

    A record that `fills_lines` of the cache shares none of them with another thread's.
    """

    fields: ClassVar[str]
    fills_lines: ClassVar[bool] = False


def record(structure: type[T]) -> type[T]:
    """Decorator: declare the fields of a record for ctypes."""
    names: list[tuple[str, Any]] = [(name, c_int64) for name in structure.fields.split()]
    if structure.fills_lines:
        names.append(("_spare", c_int64 * (-len(names) % (LINE // _WORD))))
    structure._fields_ = names
    return structure


def word(structure: type[Structure], field: str) -> int:
    """Return the number of the word of a field."""
    offset: int = getattr(structure, field).offset
    return offset // _WORD


def word_count(structure: type[Structure]) -> int:
    """Return the number of words of a record."""
    return sizeof(structure) // _WORD


def words_of_records(records: Iterable[Structure | NDArray[np.int64]]) -> Words:
    """Return the words of records and arrays, one after another."""
    buffers: Any = records
    return np.frombuffer(bytearray(b"".join(buffers)), np.int64)


class WordTable:
    """A table of words in the making, with the words to which a run adds addresses."""

    def __init__(self) -> None:
        self.words: list[int] = []
        self.relocations: list[Relocation] = []

    def add(self, structure: Structure) -> int:
        """Append a record, and return the number of its first word."""
        start = len(self.words)
        self.words += words_of_records([structure]).tolist()
        return start

    def relocate(self, position: int, memory: int) -> None:
        """Let a run add the address of a memory, by its number, to a word."""
        self.relocations.append((position, memory))


def context_of(records: Iterable[Structure | NDArray[np.int64]]) -> Array[c_int64]:
    """Return the words of records and arrays as the context of a driver."""
    words: Any = words_of_records(records)
    return (c_int64 * len(words)).from_buffer(words)


def driver_text(
    file: str, *names: type[Structure] | type[IntEnum], texts: Mapping[str, str] | None = None
) -> str:
    """Return the assembly of a driver (see `with_numbers`); `file` is its path in the package.

    `texts` replace words of it.
    """
    text = package_text(file)
    for name, replacement in (texts or {}).items():
        text = re.sub(rf"\b{name}\b", replacement, text)
    return with_numbers(text, *names)


def with_numbers(text: str, *names: type[Structure] | type[IntEnum]) -> str:
    """Return assembly with numbers for the names of fields of records and of enumerations."""
    if not names:
        return text
    by_name = {owner.__name__: owner for owner in names}

    def number(match: re.Match[str]) -> str:
        owner, field = by_name[match[1]], match[2]
        if issubclass(owner, IntEnum):
            return str(owner[field].value)
        return str(word_count(owner) if field == "words" else word(owner, field))

    return re.sub(rf"\b({'|'.join(by_name)})\.(\w+)", number, text)


class CallableCode(Protocol):
    """A kernel or a driver: the address of `function(record, context, first, end)`, its context."""

    @property
    def address(self) -> int: ...  # noqa: D102
    @property
    def context(self) -> Array[Any]: ...  # noqa: D102


# -- jobs, which threads share


@record
class JobHead(WordRecord):
    """Elements of a kernel that threads share, in ranges. A part for each thread follows.

    `holders` is the number of workers that have the job; its caller waits until there are none.
    `size` is the number of elements, `block` that of a range. `step` has the words from the record
    of one thread to the next, and `records` is the address of the first. A job that `is_backward`
    takes the last range of a part first.
    """

    fields = "holders parts size block kernel context step records is_backward"
    fills_lines = True


@record
class JobPart(WordRecord):
    """A part of the ranges of a job: the next range that no thread has taken, and the end.

    `worker` is the address of the worker that takes ranges from this part first; the caller has the
    first part. `first` is the first range.
    """

    fields = "next end worker first"
    fills_lines = True


RECORDS, BACKWARD = word(JobHead, "records"), word(JobHead, "is_backward")
"""The words that each run of a job sets."""


class SharedRanges(NamedTuple):
    """The elements of each range that threads take, and the number of threads besides the caller.

    `function` and `pool` are the addresses of the driver `share` and of its workers.
    """

    block: int
    helpers: int
    function: int
    pool: int


NOT_SHARED = SharedRanges(0, 0, 0, 0)
"""All elements are one range of the caller."""


@lru_cache(KEPT_LAYOUTS)
def job_words(kernel: int, context: int, size: int, shared: SharedRanges, step: int = 0) -> Words:
    """Return the words of a job without the address of the records; the caller copies them.

    `kernel` and `context` are addresses.
    """
    parts, ranges = shared.helpers + 1, -(-size // max(1, shared.block))
    bounds = [ranges * part // parts for part in range(parts + 1)]
    head = JobHead(0, parts, size, shared.block, kernel, context, step)
    return words_of_records([head, *[JobPart(a, b, 0, a) for a, b in pairwise(bounds)]])


# -- the pool of threads


@record
class Worker(WordRecord):
    """A worker: its state, which is a `State` or the address of a job; its lock, and its pool."""

    fields = "state lock pool"
    fills_lines = True


@record
class Pool(WordRecord):
    """The pool, which its workers follow: four functions of the system, and three numbers.

    `polls` is the number of polls before a worker waits. If `ends` is not 0, all workers end.
    """

    fields = "start_thread acquire release relax polls ends workers"
    fills_lines = True


class State(IntEnum):
    """The state of a worker. Any larger number than LAST is the address of a job that it has."""

    ABSENT = 0
    POLLS = 1
    WAITS = 2
    WORKS = 3
    LAST = 15
