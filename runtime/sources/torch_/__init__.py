"""The source PyTorch: graphs of functions and modules, recorded as they run."""
