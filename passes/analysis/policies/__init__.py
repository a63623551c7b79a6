"""Policies: allow, warn of or forbid the implicit casts of a graph; limit the widest dtypes."""

from graphir.passes.analysis.policies.patterns import Action, CastKind, Verdict, cast_kind
from graphir.passes.analysis.policies.policy import Policy

__all__ = ["Action", "CastKind", "Policy", "Verdict", "cast_kind"]
