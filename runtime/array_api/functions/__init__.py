"""The standard's functions; each module holds one chapter of the standard."""
