"""Finds the kernel of a node."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tightship.engine.kernels.failure import named
from tightship.engine.kernels.kernel import Array, Kernel, Run
from tightship.engine.kernels.kernel_context import Builder, KernelContext, NotCoveredError
from tightship.graph import Constant, Node, Value
from tightship.graph.operators import body

RUN = "be run on these operands"
"""End of the error of a node whose kernel raises one."""


def numpy_kernel(
    node: Node,
    inputs: Sequence[Value | None],
    outputs: Sequence[Value | None],
    constants: Mapping[str, Constant],
) -> Kernel | None:
    """Return the NumPy kernel of a node; None if this tier does not cover it.

    The kernel silences NumPy's warnings of infinities and NaN, and names the node in errors.

    Args:
        node: As for `bare_kernel`.
        inputs: As for `bare_kernel`.
        outputs: As for `bare_kernel`.
        constants: As for `bare_kernel`.
    """
    kernel = bare_kernel(node, inputs, outputs, constants)
    return None if kernel is None else replace(kernel, run=_guarded(node, kernel.run))


def bare_kernel(
    node: Node,
    inputs: Sequence[Value | None],
    outputs: Sequence[Value | None],
    constants: Mapping[str, Constant],
) -> Kernel | None:
    """Return the NumPy kernel of a node as it is; None if this tier does not cover it.

    The operator, its attributes, opset version or dtypes, or a parameter known only while running
    (`starts` of a Slice), can be the reason for None.

    Args:
        node: Node; its `version` defines the operator.
        inputs: Types in the order of `node.inputs`, None for those left out.
        outputs: Types in the order of `node.outputs`, None for those left out.
        constants: Values known before the run, by name.
    """
    builder: Builder | None = body("numpy", node.operator, node.domain)
    if builder is None:
        return None
    if not all(value is None or value.is_static for value in (*inputs, *outputs)):
        return None
    context = KernelContext(node, tuple(inputs), tuple(outputs), constants)
    try:
        kernel = builder(context)
    except NotCoveredError:
        return None
    compatibility = replace(context, constants=context.consulted)
    return replace(kernel, name=f"numpy:{kernel.name}", context=compatibility)


def _guarded(node: Node, run: Run) -> Run:
    def quiet(
        inputs: Sequence[Array | None], outputs: Sequence[Array | None], scratch: Array | None
    ) -> None:
        with np.errstate(all="ignore"), named(node, RUN):
            run(inputs, outputs, scratch)

    return quiet
