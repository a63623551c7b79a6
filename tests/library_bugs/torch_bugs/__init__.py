"""Ten PyTorch programs with a public dtype bug."""
