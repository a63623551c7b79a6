"""The dynamic audit: what every cast of a graph does to real data, and so to the results."""

from runtime.audit.audit import audit

__all__ = ["audit"]
