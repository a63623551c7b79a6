"""Random NumPy functions as source text, for `python -m tests.runtime.fuzz_numpy_functions`."""
