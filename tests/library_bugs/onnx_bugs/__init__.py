"""Ten ONNX programs with a public dtype bug."""
