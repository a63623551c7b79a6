"""Explanations: which line gives a value its dtype, and what to write instead."""
