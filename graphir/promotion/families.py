"""The families of ops that share a dtype rule."""

from __future__ import annotations

from typing import Literal, TypeAlias

Family: TypeAlias = Literal[
    "arithmetic",
    "divided",
    "floating",
    "averaged",
    "accumulated",
    "ordered",
    "bitwise",
    "shifted",
    "truth",
    "tested",
    "moved",
]
"""The methods of PromotionRules that name the dtype in which an op happens."""
