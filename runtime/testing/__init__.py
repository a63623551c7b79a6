"""Casts of a package as its tests run: the machinery of the pytest plugin, and assertions."""

from graphir.runtime.testing.assertions import assert_keeps_dtype, assert_no_lossy_casts, casts_of

__all__ = ["assert_keeps_dtype", "assert_no_lossy_casts", "casts_of"]
