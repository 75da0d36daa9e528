"""Reading of GGUF models as the ONNX decoders that they stand for."""

from typing import TYPE_CHECKING

from tightship.late_names import late_names

if TYPE_CHECKING:
    from tightship.frontend.gguf.file import GgufFile, open_bytes, open_file
else:  # the vocabulary of a file is read without what makes graphs
    __getattr__ = late_names(__name__, file="GgufFile open_bytes open_file")

__all__ = ["GgufFile", "open_bytes", "open_file"]
