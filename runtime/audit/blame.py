"""How much of the error of each output is that of each cast."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from graphir import GraphirError, Symbol
from passes.casts import OutputError
from runtime.audit.comparing import Output
from runtime.audit.subject import Subject
from runtime.audit.wide import Array, WideRun
from runtime.progress import Count


class Blame:
    """Wide runs of a subject, each with the loss of one site alone put in.

    Where `kept` has the values of the run without any, only what depends on the site is computed;
    else everything is, once more.
    """

    def __init__(self, subject: Subject, kept: WideRun | None, count: Count) -> None:
        self.subject, self.kept, self.count = subject, kept, count

    def shared(
        self, sites: Iterable[Symbol], outputs: Sequence[Output], errors: Sequence[OutputError]
    ) -> list[OutputError]:
        """The errors of the outputs, with the shares of these sites; those of the others are 0."""
        found = [dict.fromkeys((site.index for site in self.subject.sites), 0.0) for _ in errors]
        together = list(zip(self.subject.graph.outputs, outputs, errors, found, strict=True))
        for site in sites if any(error.differing for error in errors) else ():
            values = self._with_loss(site)
            for symbol, output, error, shares in together:
                if symbol.index in values:
                    shares[site.index] = output.share(error, values[symbol.index])
        return [replace(error, shares=shares) for _, _, error, shares in together]

    def _with_loss(self, site: Symbol) -> Mapping[int, Array]:
        """The wide values of the outputs that depend on a site, with its loss put in."""
        wide, symbols = self._run(site)
        values: dict[int, Array] = {}
        for symbol in self.count.each(symbols):
            new = wide.with_loss(site) if symbol is site else _again(wide, symbol, values)
            values[symbol.index] = new
            for arg in symbol.args:
                if self.subject.last[arg.index] == symbol.index:
                    values.pop(arg.index, None)
        return values

    def _run(self, site: Symbol) -> tuple[WideRun, Iterable[Symbol]]:
        """The wide run without the loss of a site, and the symbols that depend on that."""
        path = self.subject.path(site)
        if self.kept is not None:
            return self.kept, path
        wide, places = self.subject.run(), {symbol.index for symbol in path}
        walk = self.count.each(wide.walk(), 2)
        return wide, (symbol for symbol in walk if symbol.index in places)


def _again(wide: WideRun, symbol: Symbol, values: Mapping[int, Array]) -> Array:
    """The wide value of a symbol on other operands; where it has none, the one that it had."""
    known = [values[x.index] if x.index in values else wide.known(x) for x in symbol.args]
    try:
        return wide.computed(symbol, known)
    except GraphirError:
        return wide.known(symbol)
