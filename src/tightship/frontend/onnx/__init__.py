"""Reading of ONNX models as graphs; onnx itself is imported with the first model."""

from tightship.frontend.onnx.file import OnnxFile, open_bytes, open_file, read, read_bytes

__all__ = ["OnnxFile", "open_bytes", "open_file", "read", "read_bytes"]
