"""Calls that give another value than NumPy, on purpose: by front end and path.

The list is exact: a call that deviates and is not here fails a test, and so does a path that is
here and gives NumPy's value in all its calls.
"""

DEVIATES: dict[str, dict[str, str]] = {"jit": {}, "record": {}}
