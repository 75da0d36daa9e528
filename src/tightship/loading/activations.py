"""`activations` of `load`, `plan` and `prepare`, which is for GGUF files."""

from collections.abc import Collection
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tightship.engine.activations import activations_of, with_activations
from tightship.errors import InputError
from tightship.frontend.gguf_letters import begins_as_gguf

if TYPE_CHECKING:
    from tightship.engine.compile.compile_graph import ModelSource

Activations = Literal["float32", "int8"]
"""Types of the activations that matrices in blocks are multiplied by."""


def chosen_passes(
    model: "ModelSource", without: Collection[str], activations: str | None
) -> tuple[str, ...]:
    """Return the passes to leave out of a model that is not prepared, for a type of activations.

    Raises:
        InputError: The type is unknown, or int8 for a model that is not a GGUF file.
    """
    chosen = with_activations(without, activations)
    if activations_of(chosen) == "float32":
        return chosen
    if not (isinstance(model, str | PathLike | bytes) and begins_as_gguf(model)):
        name = f"`{Path(model).name}`" if isinstance(model, str | PathLike) else "the model"
        raise InputError(
            f"`activations` is `int8`, and {name} is not a GGUF file; leave it out. An ONNX file "
            "says itself how activations are rounded, by `accuracy_level` of its `MatMulNBits`."
        )
    return chosen
