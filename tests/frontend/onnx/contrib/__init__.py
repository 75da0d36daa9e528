"""Operators of ONNX Runtime's own domain, against ONNX Runtime."""
