"""BERT with the head that it is trained with: a word for every place, by attention of today."""

import numpy as np

from tests.zoo.attention import Layers, tokens
from tests.zoo.gpt2 import Size
from tests.zoo.net import Case, Net

KINDS = 2
"""Kinds of tokens: of the first sentence, and of the second."""


def bert(batch: int, steps: int, size: Size) -> Case:
    """Scores of every word at every place."""
    return bert_in(Net(42), batch, steps, size)


def bert_in(net: Net, batch: int, steps: int, size: Size) -> Case:
    """`bert`, written into a net of the caller's."""
    layers = Layers(net, size.heads, batch)
    ids = tokens(net, "input_ids", size.vocabulary, batch, steps)
    kinds = tokens(net, "token_type_ids", KINDS, batch, steps)
    seen = np.arange(steps) < steps - steps // 8
    given = net.input("attention_mask", seen.astype(np.int64)[None].repeat(batch, 0))
    x = _embedded(layers, size, ids, kinds)
    mask = _hidden_away(layers, given)
    for _ in range(size.layers):
        x = _block(layers, x, mask)
    y = layers.norm(layers.gelu(layers.dense(x, layers.hidden, layers.hidden)))
    net.output(layers.dense(y, layers.hidden, size.vocabulary))
    return net.case()


def _embedded(layers: Layers, size: Size, ids: str, kinds: str) -> str:
    net, hidden = layers.net, layers.hidden
    steps = net.feeds[ids].shape[1]
    words = net("Gather", net.weight(size.vocabulary, hidden, fan_in=2), ids)
    sentences = net("Gather", net.weight(KINDS, hidden, fan_in=2), kinds)
    places = net.constant(np.arange(steps)[None])
    where = net("Gather", net.weight(size.positions, hidden, fan_in=20), places)
    return layers.norm(net("Add", net("Add", words, sentences), where))


def _hidden_away(layers: Layers, given: str) -> str:
    """Zero for a token, the least number for what fills the text up."""
    net = layers.net
    kept = net("Cast", net("Unsqueeze", given, net.ints(1, 2)), to=1)
    return net("Mul", net("Sub", net.scalar(1), kept), net.scalar(np.finfo(np.float32).min))


def _block(layers: Layers, x: str, mask: str) -> str:
    net, hidden = layers.net, layers.hidden
    query, key, value = (layers.apart(layers.dense(x, hidden, hidden)) for _ in range(3))
    mixed = layers.mixed(layers.scores(query, key, mask), value)
    x = layers.norm(net("Add", layers.dense(mixed, hidden, hidden), x))
    inner = layers.gelu(layers.dense(x, hidden, 4 * hidden))
    return layers.norm(net("Add", layers.dense(inner, 4 * hidden, hidden), x))
