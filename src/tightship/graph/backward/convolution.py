"""Gradients of convolutions and pools."""

from collections.abc import Iterator

from tightship.graph.backward.gradient_context import GradientContext

_Gradients = Iterator[tuple[int, str]]


def conv(at: GradientContext) -> _Gradients:
    """Read the image for the weights' gradient, and the weights for the image's."""
    if at.wants(1) or at.wants(2):
        keep = (at.wants(1), at.wants(2))
        weights, bias = at.own(
            "ConvGradWeights", at.dy, at.x(0), keep=keep, shape=at.shape(at.x(1))
        )
        if bias:
            yield 2, bias
        if weights:
            yield 1, weights
    if at.wants(0):
        yield 0, at.own("ConvGradData", at.dy, at.x(1), shape=at.shape(at.x(0)))[0]


def transposed(at: GradientContext) -> _Gradients:
    """Write the gradients of a transposed convolution, with image and gradient exchanged."""
    attributes = at.node.attributes
    if {"output_shape", "auto_pad"} & attributes.keys():
        raise at.refusal("is known for explicit pads only, not for `auto_pad` or `output_shape`")
    if at.wants(2):
        others = [axis for axis in range(len(at.shape(at.dy))) if axis != 1]
        yield 2, at.reshaped(at.summed(at.dy, others), at.shape(at.x(2)))
    if at.wants(1):
        yield 1, at.own("ConvGradWeights", at.x(0), at.dy, shape=at.shape(at.x(1)))[0]
    if at.wants(0):
        kept = {name: value for name, value in attributes.items() if name != "output_padding"}
        yield 0, at.op("Conv", at.dy, at.x(1), shape=at.shape(at.x(0)), attributes=kept)


def largest(at: GradientContext) -> _Gradients:
    """Read the input: the first of equal elements has the gradient."""
    if at.wants(0):
        yield 0, at.own("MaxPoolGrad", at.dy, at.x())[0]


def global_largest(at: GradientContext) -> _Gradients:
    """Write the gradient of a window over the whole image."""
    if at.wants(0):
        yield 0, at.own("MaxPoolGrad", at.dy, at.x(), kernel_shape=at.shape(at.x())[2:])[0]


def average(at: GradientContext) -> _Gradients:
    if at.wants(0):
        yield 0, at.own("AveragePoolGrad", at.dy, shape=at.shape(at.x()))[0]


def global_average(at: GradientContext) -> _Gradients:
    if at.wants(0):
        shape = at.shape(at.x())
        count = 1
        for length in shape[2:]:
            count *= length
        yield 0, at.expanded(at.scaled(at.dy, 1 / count), shape)
