"""A Sphinx extension: the entries of the reference that are objects, not classes or functions.

Autodoc shows the ops and the members of DType as data without facts. Here their facts become the
ends of the pages api/ops and api/dtypes, and links to the README lead to the first page.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING

from graphir import DType, Op, ops

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_SHARED = "Raises PromotionError for dtypes"
"""The start of the sentence in the help of every op; the page says it once."""


def op_entries() -> str:
    """Return a section for each kind of ops, with the signature and the help of each op."""
    listed = [*ops.CATALOGUE.values(), *ops.CONTROL.values()]
    sections: list[str] = []
    for kind in dict.fromkeys(op.kind for op in listed):
        sections += [f"\n{kind.capitalize()}\n{'-' * len(kind)}\n"]
        sections += [_entry(op) for op in sorted(listed, key=lambda op: op.name) if op.kind == kind]
    return "\n".join(sections)


def _entry(op: Op) -> str:
    text = (inspect.getdoc(op) or "").partition(_SHARED)[0]
    plain = re.sub(r"([*_|<>\\])", r"\\\1", text.strip())
    paragraphs = [part.replace("\n", "\n   | ") for part in plain.split("\n\n")]
    del paragraphs[1:2]  # the signature
    head = f".. py:function:: {op.name}{inspect.signature(op)}"
    return "\n\n   | ".join([head, *paragraphs]) + "\n"


def dtype_rows() -> str:
    """Return the rows of the table of dtypes."""
    rows: list[str] = []
    for dtype in DType:
        form = dtype.format
        facts = [f"`{dtype}`", str(dtype.bits)]
        facts += [str(form.exponent), str(form.mantissa)] if form else ["", ""]
        facts += [_number(dtype.min), _number(dtype.max)]
        facts += [_number(2.0**-form.mantissa), _number(form.least)] if form else ["", ""]
        facts += [
            form.specials if form else "",
            str(dtype.storage) if dtype != dtype.storage else "",
        ]
        rows.append("   * - " + "\n     - ".join(facts))
    return "\n".join(rows)


def _number(value: float) -> str:
    if abs(value) < 10**6 or isinstance(value, float):
        return f"{value:.6g}"
    return f"-2**{value.bit_length() - 1}" if value < 0 else f"2**{value.bit_length()} - 1"


def _complete(app: Sphinx, page: str, content: list[str]) -> None:
    content[0] = content[0].replace("(../README.md", "(index.md")
    if page == "api/ops":
        content[0] += op_entries()
    if page == "api/dtypes":
        content[0] += dtype_rows()


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect the extension: Sphinx calls this function."""
    app.connect("source-read", _complete)
    return {"parallel_read_safe": True}
