"""Finds a real model that needs no download."""

from importlib.util import find_spec
from pathlib import Path

from tightship.errors import InputError


def resnet50() -> Path:
    """Return the path of the ResNet-50 in the onnx package, with real sizes and constant weights.

    Raises:
        InputError: The onnx package has no such file.
    """
    spec = find_spec("onnx")
    folder = Path(spec.origin).parent if spec is not None and spec.origin else Path()
    path = folder / "backend" / "test" / "data" / "light" / "light_resnet50.onnx"
    if not path.is_file():
        raise InputError("The onnx package has no ResNet-50 here; name a model to run.")
    return path
