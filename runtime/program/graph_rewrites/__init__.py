"""Rewrites of lowered graphs before the planner partitions them."""
