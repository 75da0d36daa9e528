"""Reading of GGUF models as the ONNX decoders that they stand for."""

from tightship.frontend.gguf.file import GgufFile, open_bytes, open_file

__all__ = ["GgufFile", "open_bytes", "open_file"]
