"""Opaque layers: their callables, on planned operands."""

from tightship.engine.kernels.kernel import Array, Kernel, Operands
from tightship.engine.kernels.kernel_context import KernelContext
from tightship.graph import Layer


def _layer_of(context: KernelContext) -> Layer:
    layer = context.node.attributes["layer"]
    assert isinstance(layer, Layer), context.node.name
    return layer


def forward_kernel(context: KernelContext) -> Kernel:
    forward = _layer_of(context).forward

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        forward(inputs, outputs)

    return Kernel("Layer", run)


def layer_grad(context: KernelContext) -> Kernel:
    layer = _layer_of(context)
    backward = layer.backward
    assert backward is not None, context.node.name
    count = len(context.inputs) - len(layer.reads_inputs) - len(layer.reads_outputs)

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        backward(inputs[:count], inputs[count:], outputs)

    return Kernel("LayerGrad", run)
