"""Names of graphs and inputs, from the names that other libraries give."""

from __future__ import annotations

import re


def identifier(text: str) -> str:
    """Return the identifier that is most like a text."""
    name = re.sub(r"\W+", "_", text).strip("_")
    return name if name.isidentifier() else f"x_{name}"
