"""Whisper: an encoder of sound, and a decoder of one token at a time."""

from tests.zoo.attention import DYNAMO, Heads, Layers, tokens
from tests.zoo.net import Case, Net

TINY = Heads(6, 64)
MELS, VOCABULARY = 80, 51865


def whisper_encoder(
    batch: int = 1, frames: int = 3000, layers: int = 4, heads: Heads = TINY, opset: int = DYNAMO
) -> Case:
    """Two convolutions over time, the second with stride 2, then the layers."""
    net = Net(43, opset)
    write, hidden = Layers(net, heads, batch), heads.hidden
    x = net.normal("input_features", batch, MELS, frames)
    for before, stride in ((MELS, 1), (hidden, 2)):
        x = write.gelu(net("Conv", x, net.weight(hidden, before, 3), net.bias(hidden),
                           kernel_shape=[3], pads=[1, 1], strides=[stride]))  # fmt: skip
    x = net("Transpose", x, perm=[0, 2, 1])
    x = net("Add", x, net.bias(frames // 2, hidden))
    for _ in range(layers):
        y = write.norm(x)
        query, key, value = projected(write, y), kept(write, y, bias=False), kept(write, y)
        x = _after(write, x, _mixed(write, query, key, value))
    net.output(write.norm(x))
    return net.case()


def whisper_decoder(
    batch: int = 1, past: int = 64, layers: int = 4, heads: Heads = TINY, opset: int = DYNAMO,
    sound: int = 1500, vocabulary: int = VOCABULARY,
) -> Case:  # fmt: skip
    """Logits of one token after `past` others and `sound` encoded frames, and what to keep.

    Keys and values of the sound are inputs, as they are the same for every token.
    """
    net = Net(44, opset)
    write = Layers(net, heads, batch)
    ids = tokens(net, "input_ids", vocabulary, batch, 1)
    words = net("Gather", net.weight(vocabulary, heads.hidden, fan_in=2), ids)
    x, outputs = net("Add", words, net.bias(1, heads.hidden)), []
    for index in range(layers):
        own, other = (f"past_key_values.{index}.{of}" for of in ("decoder", "encoder"))
        y = write.norm(x)
        query = projected(write, y)
        shape = (batch, heads.count, past, heads.length)
        key = net("Concat", net.normal(f"{own}.key", *shape), kept(write, y, bias=False), axis=-2)
        value = net("Concat", net.normal(f"{own}.value", *shape), kept(write, y), axis=-2)
        outputs += [key, value]
        x = net("Add", x, write.dense(_mixed(write, query, key, value), write.hidden, write.hidden))
        shape = (batch, heads.count, sound, heads.length)
        key, value = (net.normal(f"{other}.{what}", *shape) for what in ("key", "value"))
        x = _after(write, x, _mixed(write, projected(write, write.norm(x)), key, value))
    net.output(write.dense(write.norm(x), heads.hidden, vocabulary, bias=False), *outputs)
    return net.case()


def projected(write: Layers, x: str) -> str:
    """Queries by heads, scaled before."""
    y = write.dense(x, write.hidden, write.hidden)
    return write.apart(write.net("Mul", y, write.net.scalar(write.heads.length**-0.5)))


def kept(write: Layers, x: str, *, bias: bool = True) -> str:
    """Keys or values by heads; keys have no bias."""
    return write.apart(write.dense(x, write.hidden, write.hidden, bias=bias))


def _mixed(write: Layers, query: str, key: str, value: str) -> str:
    """Attention without a scale: queries have it already."""
    net, count, length = write.net, write.heads.count, write.heads.length
    if write.is_decomposed:
        turned = net("Transpose", key, perm=[0, 1, 3, 2])
    else:
        flat = write.shaped(key, write.batch * count, -1, length)
        turned = write.shaped(
            net("Transpose", flat, perm=[0, 2, 1]), write.batch, count, length, -1
        )
    return write.mixed(net("Softmax", net("MatMul", query, turned), axis=-1), value)


def _after(write: Layers, x: str, mixed: str) -> str:
    """The rest of a layer: the projection, then the two dense layers."""
    net, hidden = write.net, write.hidden
    x = net("Add", x, write.dense(mixed, hidden, hidden))
    inner = write.gelu(write.dense(write.norm(x), hidden, 4 * hidden))
    return net("Add", x, write.dense(inner, 4 * hidden, hidden))
