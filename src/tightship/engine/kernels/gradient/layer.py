"""Opaque layers: their callables, on planned operands."""

from collections.abc import Mapping

from tightship.engine.kernels.kernel import Array, Kernel, Operands
from tightship.engine.kernels.site import Builder, Site
from tightship.graph import Layer


def _layer_of(site: Site) -> Layer:
    layer = site.node.attributes["layer"]
    assert isinstance(layer, Layer), site.node.name
    return layer


def _forward(site: Site) -> Kernel:
    forward = _layer_of(site).forward

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        forward(inputs, outputs)

    return Kernel("Layer", run)


def _backward(site: Site) -> Kernel:
    layer = _layer_of(site)
    backward = layer.backward
    assert backward is not None, site.node.name
    count = len(site.inputs) - len(layer.reads_inputs) - len(layer.reads_outputs)

    def run(inputs: Operands, outputs: Operands, _: Array | None) -> None:
        backward(inputs[:count], inputs[count:], outputs)

    return Kernel("LayerGrad", run)


LAYERS: Mapping[str, Builder] = {"Layer": _forward, "LayerGrad": _backward}
