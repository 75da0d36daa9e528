"""ViT: an image in patches through an encoder."""

import numpy as np

from tests.zoo.attention import DYNAMO, Heads, Layers
from tests.zoo.net import Case, Net

B_16 = Heads(12, 64)


def vit(
    batch: int = 1, size: int = 224, layers: int = 12, heads: Heads = B_16, opset: int = DYNAMO
) -> Case:
    """Patches of 16 x 16; normalization before each half of a layer; the first token pooled."""
    net = Net(42, opset)
    write, hidden = Layers(net, heads, batch), heads.hidden
    patches = (size // 16) ** 2
    weight = net.weight(hidden, 3, 16, 16, fan_in=2 * 3 * 16**2)
    x = net("Conv", net.normal("pixel_values", batch, 3, size, size), weight, net.bias(hidden),
            kernel_shape=[16, 16], strides=[16, 16])  # fmt: skip
    x = net("Transpose", write.shaped(x, batch, hidden, patches), perm=[0, 2, 1])
    first = net.constant(
        net.random.standard_normal((1, 1, hidden)).astype(np.float32).repeat(batch, 0)
    )
    x = net("Add", net("Concat", first, x, axis=1), net.bias(1, patches + 1, hidden))
    mask = (
        ""
        if write.is_decomposed
        else net.constant(np.zeros((1, 1, patches + 1, patches + 1), np.float32))
    )
    for _ in range(layers):
        x = _layer(write, x, mask)
    pooled = net("Gather", write.norm(x), net.constant(np.int64(0)), axis=1)
    net.output(
        net("Gemm", pooled, net.weight(1000, hidden, fan_in=2 * hidden), net.bias(1000), transB=1)
    )
    return net.case()


def _layer(write: Layers, x: str, mask: str) -> str:
    net, hidden = write.net, write.hidden
    y = write.norm(x)
    query, key, value = (write.apart(write.dense(y, hidden, hidden)) for _ in range(3))
    mixed = write.mixed(write.scores(query, key, mask), value)
    x = net("Add", write.dense(mixed, hidden, hidden), x)
    inner = write.gelu(write.dense(write.norm(x), hidden, 4 * hidden))
    return net("Add", write.dense(inner, 4 * hidden, hidden), x)
