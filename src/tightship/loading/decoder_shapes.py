"""Shapes to load a decoder with if its caller gives none: one token after some others."""

from tightship.engine.state.decoder import CONTEXT_MIN, Declared, decoder_of
from tightship.engine.state.encoder import encoder_dimensions, encoder_shapes
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
        given: Shapes and lengths that the caller gives; at most the batch, and an encoder's rows.
    """
    if not may_have_caches(file.declared):
        return None
    types = dict.fromkeys(file.declared, DType.FLOAT32)  # shapes do not depend on them
    declared = Declared(file.declared, file.declared_outputs, types)
    shapes, named = divided(declared.inputs, given)
    own = encoder_dimensions(declared.inputs)
    rows = {name: length for name, length in named.items() if name in own}
    batches = {name: length for name, length in named.items() if name not in own}
    firsts = {shape[0] for shape in declared.inputs.values() if shape}
    if shapes or len(batches) > 1 or not batches.keys() <= firsts:
        return None
    if min(named.values(), default=1) < 1:
        return None
    batch = next(iter(batches.values()), 1)
    try:
        extra = encoder_shapes(declared.inputs, batch, rows, ENCODER_ROWS)
        found = decoder_of(file.graph, declared, CONTEXT_MIN, batch, extra=extra)
        return found.file_shapes(1)
    except GraphError:
        return None
