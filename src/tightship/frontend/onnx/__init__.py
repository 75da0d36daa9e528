"""ONNX models as graphs; onnx itself is imported when the first model is read."""

from tightship.frontend.onnx.file import OnnxFile, open_bytes, open_file, read, read_bytes

__all__ = ["OnnxFile", "open_bytes", "open_file", "read", "read_bytes"]
