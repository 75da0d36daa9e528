"""ONNX models as graphs; onnx itself is imported when the first model is read."""

from tightship.frontend.onnx.file import read, read_bytes

__all__ = ["read", "read_bytes"]
