"""Policies: allow, warn of or forbid the implicit casts of a graph."""

from graphir.passes.analysis.policies.policy import Action, Policy, Verdict

__all__ = ["Action", "Policy", "Verdict"]
