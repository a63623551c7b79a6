"""The source JAX: graphs of jaxprs."""
