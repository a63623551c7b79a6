"""Policies: allow, warn of or forbid the implicit casts of a graph; limit the widest dtypes."""

from graphir.passes.analysis.policies.patterns import Action, Verdict
from graphir.passes.analysis.policies.policy import Policy

__all__ = ["Action", "Policy", "Verdict"]
