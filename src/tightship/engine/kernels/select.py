"""Finds the kernel of a node."""

from collections.abc import Mapping, Sequence

import numpy as np

from tightship.engine.kernels.activation import ACTIVATIONS
from tightship.engine.kernels.cast import CAST
from tightship.engine.kernels.convolution import CONVOLUTION
from tightship.engine.kernels.elementwise import ELEMENTWISE
from tightship.engine.kernels.gather import GATHER
from tightship.engine.kernels.generate import GENERATE
from tightship.engine.kernels.kernel import Array, Kernel, Run
from tightship.engine.kernels.matmul import MATMUL
from tightship.engine.kernels.movement import MOVEMENT
from tightship.engine.kernels.normalization import NORMALIZATION
from tightship.engine.kernels.padding import PADDING
from tightship.engine.kernels.pooling import POOLING
from tightship.engine.kernels.quantize import QUANTIZE
from tightship.engine.kernels.recurrent import RECURRENT
from tightship.engine.kernels.reduction import REDUCTION
from tightship.engine.kernels.resize import RESIZE
from tightship.engine.kernels.site import Builder, NotCoveredError, Site
from tightship.engine.kernels.softmax import SOFTMAX
from tightship.graph import Constant, Node, Value

BUILDERS: Mapping[str, Builder] = {
    **ACTIVATIONS,
    **CAST,
    **CONVOLUTION,
    **ELEMENTWISE,
    **GATHER,
    **GENERATE,
    **MATMUL,
    **MOVEMENT,
    **NORMALIZATION,
    **PADDING,
    **POOLING,
    **QUANTIZE,
    **RECURRENT,
    **REDUCTION,
    **RESIZE,
    **SOFTMAX,
}


def numpy_kernel(
    node: Node,
    inputs: Sequence[Value | None],
    outputs: Sequence[Value | None],
    constants: Mapping[str, Constant],
) -> Kernel | None:
    """The NumPy kernel of a node; None where this tier does not cover it.

    Operator, attributes, opset version, dtypes, or a parameter that is known only while
    running (`starts` of a Slice) can each be the reason for None.

    Args:
        node: The operator; its `version` gives it its meaning.
        inputs: Types, positional as `node.inputs`, None where absent.
        outputs: Types, positional as `node.outputs`, None where absent.
        constants: Values known before the run, by name.
    """
    builder = BUILDERS.get(node.operator)
    if builder is None or node.domain not in ("", "ai.onnx"):
        return None
    if not all(value is None or value.is_static for value in (*inputs, *outputs)):
        return None
    try:
        kernel = builder(Site(node, tuple(inputs), tuple(outputs), constants))
    except NotCoveredError:
        return None
    run = _without_warnings(kernel.run)
    return Kernel(f"numpy:{kernel.name}", run, kernel.scratch_bytes, kernel.in_place)


def _without_warnings(run: Run) -> Run:
    """ONNX gives infinities and NaN for what NumPy also warns of."""

    def quiet(
        inputs: Sequence[Array | None], outputs: Sequence[Array | None], scratch: Array | None
    ) -> None:
        with np.errstate(all="ignore"):
            run(inputs, outputs, scratch)

    return quiet
