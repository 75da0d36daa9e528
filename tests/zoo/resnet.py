"""ResNet-50 as torchvision exports it: batch normalizations folded, one Flatten, one Gemm."""

from tests.zoo.net import Case, Net
from tightship.sample.convolutional import RESNET_50
from tightship.sample.convolutional import resnet as write


def resnet(
    batch: int = 1,
    size: int = 224,
    blocks: tuple[int, ...] = RESNET_50,
    width: int = 64,
    *,
    folded: bool = True,
) -> Case:
    """Bottleneck blocks; not folded, each convolution has its batch normalization behind it."""
    net = Net(30)
    write(net, batch, size, blocks, width, folded=folded)
    return net.case()
