"""The ONNX target."""
