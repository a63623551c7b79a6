"""Names of the Python target: valid identifiers, which are distinct under Python's comparison."""

from __future__ import annotations

import builtins
import keyword
import unicodedata
from collections.abc import Mapping

from graphir.ops.dims import Dim
from graphir.runtime.targets.emission import Names
from graphir.runtime.targets.python_.excerpts import defined

_RESERVED_WORDS = frozenset(
    {*dir(builtins), *keyword.kwlist, *keyword.softkwlist, "np", "ml_dtypes", "base64"}
)


class Identifiers:
    """A source of identifiers that resemble the names of a graph and are unique in a module.

    Python compares identifiers in the normal form NFKC. All identifiers here are in NFKC, so
    distinct texts are distinct identifiers. An identifier is never a keyword, a builtin, a dunder
    name, or a name that the module copies or imports.
    """

    def __init__(self) -> None:
        self._names = Names({*_RESERVED_WORDS, *defined()})

    def new(self, base: str) -> str:
        """Return a unique identifier: the name itself if valid and free, else a similar name."""
        return self._names.new(identifier(base))


def identifier(base: str) -> str:
    """Return a valid identifier similar to a name, in NFKC even with a number appended."""
    text = unicodedata.normalize("NFKC", base)
    text = "".join(c if f"_{c}".isidentifier() else "_" for c in text) or "graph"
    text = text if text.isidentifier() else f"_{text}"
    if not (text.isidentifier() and unicodedata.is_normalized("NFKC", f"{text}_2")):
        text = "".join(c if c.isascii() else "_" for c in text)
    dunder = text.startswith("__") and text.endswith("__")
    return f"_{text.strip('_')}_" if dunder else text


def dim_text(dim: Dim, names: Mapping[str, str]) -> str:
    """Return the expression of a dim, with the identifiers of its names from `names`."""
    text = ""
    for atoms, coefficient in dim.terms:
        factors = [
            names[atom]
            if isinstance(atom, str)
            else f"(({dim_text(atom.dividend, names)})//{atom.divisor})"
            for atom in atoms
        ]
        if abs(coefficient) != 1 or not factors:
            factors.insert(0, str(abs(coefficient)))
        sign = "-" if coefficient < 0 else "+" if text else ""
        text += sign + "*".join(factors)
    return text
