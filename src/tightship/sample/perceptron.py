"""The fully connected network of the memory note's figures."""

from itertools import pairwise

from tightship.sample.network import Length, Network

LAYERS = (784, 128, 64, 10)
"""Numbers of each layer, inputs first."""


def perceptron(net: Network, batch: Length, layers: tuple[int, ...] = LAYERS) -> None:
    """Write layers with a ReLU between them, and a softmax at the end."""
    x = net.normal("x", batch, layers[0])
    for index, (before, after) in enumerate(pairwise(layers)):
        x = net("Relu", x) if index else x
        x = net("Gemm", x, net.weight(after, before), net.bias(after), transB=1)
    net.output(net("Softmax", x, axis=-1))
