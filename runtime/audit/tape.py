"""The values of a run, from the last symbol to the first, in bounded memory.

A range of symbols whose values fit in memory is computed and kept. A longer range is halved: the
first half runs to the middle, where the live values are the checkpoint from which the second half
starts (A. Griewank, Achieving logarithmic growth of temporal and spatial complexity in reverse
automatic differentiation, 1992). So the memory is that of the range that fits, and of one set of
live values for each halving.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from graphir import Symbol
from runtime.audit.subject import Subject
from runtime.audit.wide import Array, WideRun

_Values = dict[int, tuple[Array | None, Array | None]]


def values_backwards(subject: Subject, memory: int) -> Iterator[tuple[WideRun, Symbol]]:
    """Yield each live symbol from the last to the first, with a run that has its values.

    The run also has the values of the symbol's operands, and at most `memory` bytes of values at a
    time besides the checkpoints.
    """
    tape = _Tape(subject, memory)
    yield from tape.range(0, len(subject.live), tape.values(0))


class _Tape:
    def __init__(self, subject: Subject, memory: int) -> None:
        self.subject, self.memory, self.run = subject, memory, subject.run()
        self.live, self.last = subject.live, subject.last
        self.sizes = [subject.bytes_of(symbol) for symbol in self.live]

    def values(self, end: int) -> _Values:
        """Return the values that the run has of the first `end` live symbols, and of inputs."""
        places = {x.index for x in (*self.run.graph.inputs, *self.live[:end])}
        pairs = {i: (self.run.beside.values[i], self.run.values[i]) for i in places}
        return {i: pair for i, pair in pairs.items() if pair[0] is not None}

    def range(self, start: int, end: int, values: _Values) -> Iterator[tuple[WideRun, Symbol]]:
        """Yield the symbols of a range from the last to the first; the run has `values`."""
        symbols = self.live[start:end]
        if end - start <= 1 or sum(self.sizes[start:end]) <= self.memory:
            self._advance(symbols, keep=True)
            yield from ((self.run, symbol) for symbol in reversed(symbols))
            return
        middle = (start + end) // 2
        self._advance(self.live[start:middle], keep=False)
        yield from self.range(middle, end, self.values(middle))
        self._restore(values, end)
        yield from self.range(start, middle, values)

    def _advance(self, symbols: Sequence[Symbol], keep: bool) -> None:
        runs = self.run.beside, self.run
        for symbol in symbols:
            for run in runs:
                if run.values[symbol.index] is None:
                    run.values[symbol.index] = run.value(symbol)
            for x in () if keep else (symbol, *symbol.args):
                if self.last[x.index] == symbol.index:
                    for run in runs:
                        run.values[x.index] = None

    def _restore(self, values: _Values, end: int) -> None:
        for symbol in self.live[:end]:
            self.run.beside.values[symbol.index] = self.run.values[symbol.index] = None
        for i, (beside, wide) in values.items():
            self.run.beside.values[i], self.run.values[i] = beside, wide
