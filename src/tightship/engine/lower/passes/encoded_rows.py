"""Makes constant matrices of encoded rows of the constants that a node dequantizes."""

from functools import partial

import numpy as np

from tightship.engine.kernels.encoded_rows import decode
from tightship.engine.lower.passes.blocks import BlockWeights, EncodedRows
from tightship.engine.lower.passes.reshaped import reshaped
from tightship.graph import Constant, DType, Node
from tightship.graph.constant import Array


def rows_of(node: Node, stored: Constant | None, dtype: DType) -> BlockWeights | None:
    """Return the result of a DequantizeRows, which the frontend has checked, on a constant."""
    if stored is None:
        return None
    rows, depth = (int(str(node.attributes[name])) for name in ("rows", "depth"))
    stored = reshaped(stored, (rows, stored.shape[1]))
    encoded = EncodedRows(str(node.attributes["type"]), rows, depth, stored)
    return encoded_weights(encoded, dtype, is_turned=False)


def encoded_weights(encoded: EncodedRows, dtype: DType, *, is_turned: bool) -> BlockWeights:
    """Return the constant matrix of encoded rows, or its transpose."""
    rows, depth = encoded.rows, encoded.depth
    shape = (depth, rows) if is_turned else (rows, depth)
    recipe = "encoded rows", encoded.type, depth, is_turned
    compute = partial(_computed, encoded, dtype, is_turned)
    return BlockWeights(
        dtype, shape, compute, encoded.constants, recipe, blocks=encoded, is_turned=is_turned
    )


def _computed(encoded: EncodedRows, dtype: DType, is_turned: bool) -> Array:  # noqa: FBT001
    found = np.empty((encoded.rows, encoded.depth), dtype.numpy)
    decode(encoded.type, encoded.stored.array().view(np.uint8), found)
    return found.T if is_turned else found
