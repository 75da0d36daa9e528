"""GPT-2: a whole text at once, and one token after keys and values that are kept."""

from dataclasses import dataclass

import numpy as np

from tests.zoo.attention import DYNAMO, Heads, Layers, causal_mask, tokens
from tests.zoo.net import Case, Net


@dataclass(frozen=True, slots=True)
class Size:
    """Layers, heads, the vocabulary, and the most positions."""

    layers: int
    heads: Heads
    vocabulary: int
    positions: int


GPT2 = Size(12, Heads(12, 64), 50257, 1024)


def gpt2(batch: int = 1, steps: int = 128, size: Size = GPT2, opset: int = DYNAMO) -> Case:
    """Logits of every step; by opset as today's exporter writes it, or decomposed."""
    return gpt2_in(Net(40, opset), batch, steps, size)


def gpt2_in(net: Net, batch: int, steps: int, size: Size) -> Case:
    """`gpt2`, written into a net of the caller's."""
    layers = Layers(net, size.heads, batch)
    x = _embedded(layers, size, tokens(net, "input_ids", size.vocabulary, batch, steps), 0)
    mask = causal_mask(net, steps)
    for _ in range(size.layers):
        query, key, value = _projected(layers, x)
        mixed = layers.mixed(layers.scores(query, key, mask), value)
        x = _after(layers, x, mixed)
    net.output(_logits(layers, size, x))
    return net.case()


def gpt2_decode(batch: int = 1, past: int = 128, size: Size = GPT2, opset: int = DYNAMO) -> Case:
    """Logits of one token after `past` others, and the keys and values of all."""
    net = Net(41, opset)
    layers = Layers(net, size.heads, batch)
    ids = tokens(net, "input_ids", size.vocabulary, batch, 1)
    x, kept = _embedded(layers, size, ids, past), []
    for index in range(size.layers):
        query, key, value = _projected(layers, x)
        shape = (batch, size.heads.count, past, size.heads.length)
        key = net("Concat", net.normal(f"past_key_values.{index}.key", *shape), key, axis=-2)
        value = net("Concat", net.normal(f"past_key_values.{index}.value", *shape), value, axis=-2)
        kept += [key, value]
        x = _after(layers, x, layers.mixed(layers.scores(query, key), value))
    net.output(_logits(layers, size, x), *kept)
    return net.case()


def _embedded(layers: Layers, size: Size, ids: str, first: int) -> str:
    net = layers.net
    steps = net.feeds[ids].shape[1]
    words = net("Gather", net.weight(size.vocabulary, layers.hidden, fan_in=2), ids)
    places = net.constant(np.arange(first, first + steps)[None])
    where = net("Gather", net.weight(size.positions, layers.hidden, fan_in=20), places)
    return net("Add", words, where)


def _projected(layers: Layers, x: str) -> list[str]:
    """Queries, keys and values, by heads."""
    y = layers.gemm(layers.norm(x), layers.hidden, 3 * layers.hidden)
    if layers.is_decomposed:
        parts = layers.net.many("Split", 3, y, layers.net.ints(*[layers.hidden] * 3), axis=2)
    else:
        parts = layers.net.many("Split", 3, y, axis=2, num_outputs=3)
    return [layers.apart(part) for part in parts]


def _after(layers: Layers, x: str, mixed: str) -> str:
    """The rest of a block: its projection, then the two layers in between."""
    net, hidden = layers.net, layers.hidden
    x = net("Add", layers.gemm(mixed, hidden, hidden), x)
    y = layers.gelu_by_tanh(layers.gemm(layers.norm(x), hidden, 4 * hidden))
    return net("Add", x, layers.gemm(y, 4 * hidden, hidden))


def _logits(layers: Layers, size: Size, x: str) -> str:
    return layers.dense(layers.norm(x), layers.hidden, size.vocabulary, bias=False)
