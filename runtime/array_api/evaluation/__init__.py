"""Pending array expressions, and how they are computed."""
