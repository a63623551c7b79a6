"""The dynamic audit: measure the effect of every cast on real data, and its share in the errors."""

from graphir.runtime.audit.audit import audit

__all__ = ["audit"]
