"""The semantics of ops: a kernel for each op on NumPy arrays, and the evaluation of one op."""
