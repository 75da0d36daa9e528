"""Runs one node once on arrays, for constants computed from constants."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tightship.engine.kernels.kernel import Array, Kernel
from tightship.engine.kernels.product import without_blas
from tightship.engine.kernels.reference import reference_kernel
from tightship.engine.kernels.select import numpy_kernel
from tightship.graph import DType, Inline, Node, Value


def evaluate(
    node: Node,
    arrays: Sequence[Array | None],
    outputs: Sequence[Value | None] | None = None,
) -> list[Any]:
    """Compute the outputs of a node in order, None for those left out, in new arrays.

    Args:
        node: Tensor operator without subgraphs that capture values.
        arrays: Inputs in order, None for those left out.
        outputs: Output types, if known; NumPy kernels need them.

    Raises:
        GraphError: No tier can run the node on these arrays.
    """
    kernel = None if outputs is None else _kernel(node, arrays, outputs)
    if kernel is None or outputs is None:
        return reference_kernel(node)(arrays)
    results = [
        None
        if value is None or value.dtype is None
        else np.empty(value.static_shape, value.dtype.numpy)
        for value in outputs
    ]
    scratch = np.empty(kernel.scratch_bytes, np.uint8) if kernel.scratch_bytes else None
    dense = [
        None if array is None else np.ascontiguousarray(array).reshape(array.shape)
        for array in arrays
    ]
    with without_blas():
        kernel.run(dense, results, scratch)
    return results


def _kernel(
    node: Node, arrays: Sequence[Array | None], outputs: Sequence[Value | None]
) -> Kernel | None:
    inputs = [
        None if array is None else Value(name, DType.of(array.dtype), array.shape)
        for name, array in zip(node.inputs, arrays, strict=True)
    ]
    constants = {
        name: Inline(array)
        for name, array in zip(node.inputs, arrays, strict=True)
        if array is not None
    }
    return numpy_kernel(node, inputs, outputs, constants)
