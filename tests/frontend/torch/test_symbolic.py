"""One translation of a program with open lengths serves every length."""

import numpy as np
import pytest

import tightship
from tests.frontend.torch.case import OF_TORCH, Function, array, torch
from tests.frontend.torch.test_lengths import SHAPES, Sequences, sequences
from tests.frontend.torch.test_models import Language, encoder, resnet
from tightship.errors import InputError
from tightship.frontend.torch import TorchProgram
from tightship.frontend.torch.translate import Translator

nn = torch.nn
pytestmark = OF_TORCH

LENGTHS = (6, 2, 13, 31, 40, 61)


class Pixels(nn.Module):
    """Images of open height and width, padded to a multiple of four."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Conv2d(3, 4, 3, 2, 1)

    def forward(self, x):
        y = nn.functional.interpolate(self.layer(x), x.shape[2:])
        wide = nn.functional.pad(y, (0, -x.shape[3] % 4, 0, -x.shape[2] % 4), value=1.0)
        return wide.mean((2, 3)) / x.shape[3]


FUNCTIONS = {
    "apart": lambda x: (x[:, : x.shape[1] - 2], x[:, x.shape[1] - 2 :], x.view(-1, 2)),
    "last": lambda x: x[:, -1] + x[:, x.shape[1] - 2],
    "scaled": lambda x: x / torch.sym_sqrt(x.shape[1]) + x.shape[1] * 0.5,
    "spread": lambda x: x.var(1) + x.std((0, 1)),
    "mask": lambda x: x[:, :, 0].masked_fill(torch.arange(x.shape[1]) % 3 == 0, x.shape[1]),
    "hidden": lambda x: torch.ones(x.shape[1], x.shape[1]).triu(1) @ x,
    "written": lambda x: torch.slice_scatter(x, x[:, 1:] * 2, 1, 0, x.shape[1] - 1),
    "joined": lambda x: torch.cat([x, x.new_zeros(2, x.shape[1], 1)], -1).flatten(1),
    "picked": lambda x: x[:, torch.arange(x.shape[1] - 1, -1, -1)],
    "turned": lambda x: x.flip(1) * torch.arange(0, 2 * x.shape[1], 2)[:, None],
    "repeated": lambda x: x.repeat(2, 1, 1).view(2, 2, -1).sum(-1),
    "ordered": lambda x: x.sort(1)[0].cumsum(1).topk(2, 1)[0],
}


@pytest.fixture
def translations(monkeypatch):
    """Programs that have been translated."""
    found, graph = [], Translator.graph

    def counted(self):
        found.append(self)
        return graph(self)

    monkeypatch.setattr(Translator, "graph", counted)
    return found


def check(module, dynamic, runs):
    """Hold every run of one model against torch; the first shapes are those of loading."""
    module = module.eval()
    program = torch.export.export(module, runs[0], dynamic_shapes=dynamic)
    names = list(TorchProgram(program).declared)
    shapes = {name: each.shape for name, each in zip(names, runs[0], strict=True)}
    with tightship.load(program, shapes=shapes) as model:
        for inputs in runs:
            feeds = {name: array(each) for name, each in zip(names, inputs, strict=True)}
            found = model.run(feeds)
            with torch.no_grad():
                wanted = module(*inputs)
            wanted = wanted if isinstance(wanted, tuple) else (wanted,)
            for one, other in zip(found.values(), wanted, strict=True):
                np.testing.assert_allclose(one, array(other), 1e-4, 1e-4)


def test_a_language_model_is_translated_once(translations):
    dynamic = ({0: torch.export.Dim("batch"), 1: torch.export.Dim("length", max=64)},)
    runs = [(torch.randint(0, 50, (2 + n % 3, n)),) for n in LENGTHS]
    check(Language(), dynamic, runs)
    assert len(translations) == 1


def test_an_encoder_is_translated_once(translations):
    dynamic = ({0: torch.export.Dim("batch"), 1: torch.export.Dim("length")},)
    check(encoder(), dynamic, [(torch.randn(2 + n % 3, n, 24),) for n in LENGTHS])
    assert len(translations) == 1


def test_a_convolutional_network_is_translated_once(translations):
    dynamic = ({0: torch.export.Dim("batch")},)
    check(resnet(), dynamic, [(torch.randn(n, 3, 64, 64),) for n in (3, 2, 5, 8, 13)])
    assert len(translations) == 1


def test_images_of_every_size_are_translated_once(translations):
    dynamic = ({2: torch.export.Dim("height", min=4), 3: torch.export.Dim("width", min=4)},)
    sizes = ((17, 23), (9, 31), (30, 11), (41, 6))
    check(Pixels(), dynamic, [(torch.randn(2, 3, *size),) for size in sizes])
    assert len(translations) == 1


def test_views_masks_and_slices_are_translated_once(translations):
    batch, time = torch.export.Dim("batch", min=2), torch.export.Dim("time", min=3, max=32)
    runs = [(torch.randn(n, m, 8), torch.randn(32, 8)) for n, m in SHAPES]
    check(Sequences(), ({0: batch, 1: time}, None), runs)
    assert len(translations) == 1


@pytest.mark.parametrize("name", FUNCTIONS)
def test_arithmetic_with_lengths_is_followed(name, translations):
    dynamic = {"inputs": ({1: torch.export.Dim("n", min=4)},)}
    runs = [(torch.randn(2, n, 4),) for n in (7, 9, 16, 33)]
    check(Function(FUNCTIONS[name]), dynamic, runs)
    assert len(translations) == 1


class Padded(nn.Module):
    """A convolution of what was padded to a multiple of four."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Conv1d(3, 4, 3)

    def forward(self, x):
        return self.layer(nn.functional.pad(x, (0, -x.shape[2] % 4)))


def test_what_a_pass_decides_by_is_translated_once_for_each_decision(translations):
    runs = [(torch.randn(2, 3, n),) for n in (20, 31, 24, 47, 60)]
    check(Padded(), ({2: torch.export.Dim("n", min=8)},), runs)
    assert len(translations) == 2


def test_a_length_out_of_the_range_is_refused_by_a_model_that_runs(translations):
    _, program = sequences()
    with tightship.load(program, shapes={"x": (3, 6, 8)}) as model:
        for shape, why in {(3, 40, 8): "`time` from 3 to 32", (1, 6, 8): "`batch` from 2"}.items():
            with pytest.raises(InputError, match=why):
                model.run({"x": np.zeros(shape, np.float32), "bias": np.zeros((32, 8), np.float32)})
    assert len(translations) == 1
