"""Inception-BN as a case."""

from tests.zoo.net import Case, Net
from tightship.sample.convolutional import inception_bn as write


def inception_bn(batch: int = 1, size: int = 224, shrink: int = 1) -> Case:
    """The network of 224 x 224; `shrink` divides every number of channels."""
    net = Net(31)
    write(net, batch, size, shrink)
    return net.case()
