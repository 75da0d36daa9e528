"""DETR as torch exports it: a transformer asks for objects in the features of a ResNet."""

from dataclasses import dataclass

from tests.zoo.attention import Heads, Layers
from tests.zoo.backbone import backbone
from tests.zoo.net import Case, Net
from tightship.sample.convolutional import RESNET_50, convolution

HEADS = Heads(8, 32)


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of a detector, by default DETR's but for the picture.

    Attributes:
        image: Height and width in pixels, a multiple of 32.
        width: Channels of the backbone's first stage.
        blocks: Blocks of the backbone's stages.
        layers: Layers of the encoder, and of the decoder.
        heads: Division of hidden numbers.
        inner: Width within a layer.
        queries: Objects that are asked for.
        classes: Classes, that of nothing included.
    """

    image: int = 480
    width: int = 64
    blocks: tuple[int, ...] = RESNET_50
    layers: int = 6
    heads: Heads = HEADS
    inner: int = 2048
    queries: int = 100
    classes: int = 92


SMALL = Sizes(64, 8, (1, 1, 1, 1), 1, Heads(2, 8), 32, 6, 5)


def detr(batch: int = 1, sizes: Sizes | None = None) -> Case:
    """Best score and class (1, queries), and centre, width and height (1, queries, 4) of each."""
    assert batch == 1
    sizes = sizes or Sizes()
    net, hidden = Net(26), sizes.heads.hidden
    x, channels = backbone(net, sizes.image, sizes.width, sizes.blocks)[-1]
    x = convolution(net, x, channels, hidden, 1, gain=0.5)
    layers = Layers(net, sizes.heads, 1)
    count = (sizes.image // 32) ** 2
    memory = net("Transpose", layers.shaped(x, 1, hidden, count), perm=[0, 2, 1])
    places, queries = net.bias(1, count, hidden), net.bias(1, sizes.queries, hidden)
    for _ in range(sizes.layers):
        placed = net("Add", memory, places)
        memory = _attended(layers, memory, placed, placed, memory)
        memory = _transformed(layers, memory, sizes.inner)
    found, placed = queries, net("Add", memory, places)
    for _ in range(sizes.layers):
        asking = net("Add", found, queries)
        found = _attended(layers, found, asking, asking, found)
        found = _attended(layers, found, net("Add", found, queries), placed, memory)
        found = _transformed(layers, found, sizes.inner)
    found = layers.norm(found)
    scores = net("Softmax", layers.dense(found, hidden, sizes.classes), axis=-1)
    real = net("Slice", scores, net.ints(0), net.ints(sizes.classes - 1), net.ints(-1))
    box = net("Relu", layers.dense(found, hidden, hidden))
    box = net("Relu", layers.dense(box, hidden, hidden))
    box = net("Sigmoid", layers.dense(box, hidden, 4))
    best = net("ReduceMax", real, net.ints(-1), keepdims=0)
    kind = net("ArgMax", real, axis=-1, keepdims=0)
    net.output(best, kind, box)
    return net.case()


def _attended(layers: Layers, x: str, asking: str, keys: str, values: str) -> str:
    """Add what `asking` finds among keys and values to `x`, and normalize."""
    hidden = layers.hidden
    query, key, value = (
        layers.apart(layers.dense(each, hidden, hidden)) for each in (asking, keys, values)
    )
    mixed = layers.mixed(layers.scores(query, key), value)
    return layers.norm(layers.net("Add", x, layers.dense(mixed, hidden, hidden)))


def _transformed(layers: Layers, x: str, inner: int) -> str:
    """Add a layer of `inner` numbers with a ReLU, and normalize."""
    net, hidden = layers.net, layers.hidden
    y = net("Relu", layers.dense(x, hidden, inner))
    return layers.norm(net("Add", x, layers.dense(y, inner, hidden)))
