"""Promotion lattices: order and join, laws, the published lattices, lattice files."""
