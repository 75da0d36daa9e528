"""Whole networks against torch, and their plans against those of the same graphs as files."""

import pytest

import tightship
from tests.frontend.torch.case import OF_TORCH, check, exported, onnx_model, torch
from tightship.frontend.torch import read

nn = torch.nn
functional = nn.functional
pytestmark = OF_TORCH


class Block(nn.Module):
    """A residual block of ResNet-18."""

    def __init__(self, before, after, stride):
        super().__init__()
        self.first = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.first_norm = nn.BatchNorm2d(after)
        self.second = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.second_norm = nn.BatchNorm2d(after)
        self.shortcut = nn.Conv2d(before, after, 1, stride, bias=False) if stride > 1 else None

    def forward(self, x):
        y = torch.relu_(self.first_norm(self.first(x)))
        y = self.second_norm(self.second(y))
        y += x if self.shortcut is None else self.shortcut(x)
        return torch.relu_(y)


def resnet():
    stem = [nn.Conv2d(3, 8, 7, 2, 3), nn.BatchNorm2d(8), nn.ReLU(inplace=True)]
    blocks = [Block(8, 8, 1), Block(8, 16, 2), Block(16, 16, 1), Block(16, 32, 2)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(), nn.Linear(32, 10)]
    return nn.Sequential(*stem, nn.MaxPool2d(3, 2, 1), *blocks, *head)


def perceptron():
    return nn.Sequential(nn.Linear(12, 40), nn.GELU(), nn.Linear(40, 7), nn.LogSoftmax(-1))


def encoder():
    layer = nn.TransformerEncoderLayer(24, 4, 48, batch_first=True)
    return nn.TransformerEncoder(layer, 2)


class CausalBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.projection, self.joined = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        batch, length, width = x.shape
        shape = batch, length, self.heads, width // self.heads
        parts = self.projection(self.before(x)).split(width, dim=2)
        q, k, v = (part.view(shape).transpose(1, 2) for part in parts)
        mixed = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.joined(mixed.transpose(1, 2).reshape(batch, length, width))
        return x + self.narrow(functional.gelu(self.wide(self.after(x)), approximate="tanh"))


class Language(nn.Module):
    """GPT-2, small, its output weights tied to the embedding."""

    def __init__(self, vocabulary=50, width=32, heads=4, layers=2):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(64, width)
        self.blocks = nn.ModuleList(CausalBlock(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)

    def forward(self, ids):
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return functional.linear(self.norm(x), self.tokens.weight)


MODELS = {
    "resnet": (resnet, lambda: torch.randn(2, 3, 64, 64)),
    "perceptron": (perceptron, lambda: torch.randn(5, 12)),
    "encoder": (encoder, lambda: torch.randn(2, 9, 24)),
    "language": (Language, lambda: torch.randint(0, 50, (2, 11))),
}


@pytest.mark.parametrize("name", MODELS)
def test_a_network_gives_what_torch_gives(name):
    module, inputs = MODELS[name]
    check(module(), inputs(), tolerance=1e-4)


@pytest.mark.parametrize("name", MODELS)
def test_a_network_is_planned_as_the_same_graph_from_a_file(name):
    module, inputs = MODELS[name]
    program = exported(module(), inputs())
    direct = tightship.plan(program)
    through_onnx = tightship.plan(onnx_model(read(program)).SerializeToString())
    assert direct.is_exact
    assert direct.arena_bytes == through_onnx.arena_bytes
    # The file has the turned table of `language` as a constant of its own, so that a product that
    # packs it in blocks of rows cannot lend it to the embedding.
    table_bytes = 50 * 32 * 4 if name == "language" else 0
    assert through_onnx.weights_bytes - direct.weights_bytes in (0, table_bytes)


def test_attention_is_written_whole():
    graph = read(exported(Language(), torch.randint(0, 50, (2, 11))))
    operators = [node.operator for node in graph.nodes]
    assert operators.count("Attention") == 2
    assert "Softmax" not in operators
