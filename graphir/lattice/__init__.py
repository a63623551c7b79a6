"""Promotion lattices: order and join, laws, the published ones, files."""
