"""Rewrites of the bound steps of a plan, which keep the values of all outputs."""
