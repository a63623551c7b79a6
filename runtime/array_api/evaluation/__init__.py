"""Lazy evaluation: pending array expressions, and their computation on demand."""
