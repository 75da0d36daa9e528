"""Opens model files of ONNX or GGUF, by the letters that they begin with."""

import os

from tightship.errors import FormatError
from tightship.frontend.gguf_letters import begins_as_gguf
from tightship.frontend.onnx import OnnxFile, file

SUFFIX = ".gguf"


def open_model_file(path: str | os.PathLike[str]) -> OnnxFile:
    """Open a model file of ONNX or GGUF; other files of the model are beside it.

    Raises:
        FormatError: The file is neither.
        GraphError: It is a GGUF file of a model that is not supported.
        InputError: The file does not exist.
    """
    if not begins_as_gguf(path):
        try:
            return file.open_file(path)
        except FormatError:
            if not os.fsdecode(path).endswith(SUFFIX):
                raise
            raise FormatError(
                f"`{os.path.basename(os.fsdecode(path))}` is not a GGUF file: it does not begin "
                "with the letters GGUF; is the download what it should be?"
            ) from None
    from tightship.frontend import gguf  # few models are such

    return gguf.open_file(path)


def open_model_bytes(data: bytes) -> OnnxFile:
    """Open the bytes of a model file of ONNX or GGUF, which must not change.

    Raises:
        FormatError: The bytes are neither.
        GraphError: They are a GGUF file of a model that is not supported.
    """
    if not begins_as_gguf(data):
        return file.open_bytes(data)
    from tightship.frontend import gguf

    return gguf.open_bytes(data)
