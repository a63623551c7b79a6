"""Policies: which implicit casts of a graph are allowed, warned of or forbidden; dtype budgets."""

from passes.analysis.policies.policy import Policy
from passes.analysis.policies.verdict import Action, Verdict

__all__ = ["Action", "Policy", "Verdict"]
