"""Ten JAX programs with a public dtype bug."""
