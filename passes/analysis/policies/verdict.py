"""Verdict: the decision of a policy on one cast."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

Action: TypeAlias = Literal["allow", "warn", "forbid"]


class Verdict(NamedTuple):
    """The action for a cast, and the words of the policy that decided it."""

    action: Action
    why: tuple[str, ...]

    def __str__(self) -> str:
        verb = {"allow": "allowed", "warn": "warned of", "forbid": "forbidden"}[self.action]
        return f"{verb} by {', '.join(self.why)}"
