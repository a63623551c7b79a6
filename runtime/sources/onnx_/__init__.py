"""The source ONNX: graphs of models."""
