"""Reductions and accumulations of symbols that no single op computes."""
