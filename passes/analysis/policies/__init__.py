"""Policies: allow, warn of or forbid the implicit casts of a graph; limit the widest dtypes."""

from graphir.passes.analysis.policies.policy import Policy
from graphir.passes.analysis.policies.verdict import Action, Verdict

__all__ = ["Action", "Policy", "Verdict"]
