"""Views of recorded arrays: how each reads its base, and what is written through it."""
