"""Shapes to load a decoder with if its caller gives none: one token after some others."""

from tightship.engine.state.decoder import CONTEXT_MIN, Declared, decoder_of
from tightship.engine.state.encoder import encoder_shapes
from tightship.engine.state.pairs import may_have_caches
from tightship.errors import GraphError
from tightship.frontend.onnx import OnnxFile
from tightship.graph import DType
from tightship.loading.input_shapes import Given, divided

ENCODER_ROWS = 4
"""Rows of an encoder that a decoder is loaded with; sessions take any number."""


def decoder_shapes(file: OnnxFile, given: Given) -> dict[str, tuple[int, ...]] | None:
    """Return shapes of a single step; None if the model is not a decoder that sessions know.

    The lengths of a decoder change with each call, so that those of loading decide little.

    Args:
        file: The model's file.
        given: Shapes and lengths that the caller gives; the batch, at most.
    """
    if not may_have_caches(file.declared):
        return None
    types = dict.fromkeys(file.declared, DType.FLOAT32)  # shapes do not depend on them
    declared = Declared(file.declared, file.declared_outputs, types)
    shapes, named = divided(declared.inputs, given)
    batch = 1
    for name, length in named.items():
        if not any(shape and shape[0] == name for shape in declared.inputs.values()):
            return None
        batch = length
    if shapes or len(named) > 1 or batch < 1:
        return None
    try:
        extra = encoder_shapes(declared.inputs, batch, {}, ENCODER_ROWS)
        found = decoder_of(file.graph, declared, CONTEXT_MIN, batch, extra=extra)
        return found.file_shapes(1)
    except GraphError:
        return None
