"""Programs with lengths that `dynamic_shapes` leaves open."""

import functools

import numpy as np
import pytest

import tightship
from tests.frontend.torch.case import OF_TORCH, Function, array, check_types, torch
from tests.frontend.torch.test_models import Language
from tightship.errors import GraphError, InputError
from tightship.frontend.torch import TorchProgram, read

nn = torch.nn
Dim = torch.export.Dim
pytestmark = OF_TORCH


class Sequences(nn.Module):
    """Views, positions, masks and slices that follow from two lengths."""

    def __init__(self):
        super().__init__()
        self.layer, self.places = nn.Linear(8, 8), nn.Embedding(32, 8)

    def forward(self, x, bias):
        batch, time, _ = x.shape
        heads = self.layer(x).view(batch, time, 2, 4).transpose(1, 2)
        mixed = nn.functional.scaled_dot_product_attention(heads, heads, heads, is_causal=True)
        y = mixed.transpose(1, 2).reshape(batch, time, 8) + self.places(torch.arange(time))
        y = y * torch.full((batch, 1, 1), 1 / time) + bias[:time]
        return y[:, -1], y.flatten(0, 1), torch.cat([y, y], 1)[:, 1:-1], y.sum(1) / (time * 2)


SHAPES = [(3, 6), (2, 9), (5, 6), (3, 31)]


@functools.cache
def sequences():
    batch, time = Dim("batch", min=2, max=16), Dim("time", min=3, max=32)
    shapes = ({0: batch, 1: time}, None)
    inputs = (torch.randn(3, 6, 8), torch.randn(32, 8))
    module = Sequences().eval()
    return module, torch.export.export(module, inputs, dynamic_shapes=shapes)


def test_open_lengths_have_the_names_that_they_were_given():
    _, program = sequences()
    assert TorchProgram(program).declared == {"x": ("batch", "time", 8), "bias": (32, 8)}


def test_one_program_serves_every_shape_as_torch_does():
    module, program = sequences()
    with tightship.load(program, shapes={"x": (3, 6, 8)}) as model:
        assert model.takes_other_shapes
        for batch, time in (*SHAPES, *SHAPES):
            x, bias = torch.randn(batch, time, 8), torch.randn(32, 8)
            found = model.run({"x": array(x), "bias": array(bias)})
            with torch.no_grad():
                wanted = module(x, bias)
            for one, other in zip(found.values(), wanted, strict=True):
                np.testing.assert_allclose(one, array(other), 1e-4, 1e-5)


@pytest.mark.parametrize(("batch", "time"), SHAPES)
def test_types_are_those_of_the_operators(batch, time):
    _, program = sequences()
    graph = read(program, {"x": (batch, time, 8)})
    check_types(graph)
    assert graph.values["x"].shape == (batch, time, 8)


def test_a_language_model_takes_texts_of_every_length():
    module = Language().eval()
    length = Dim("length", min=2, max=64)
    ids = torch.randint(0, 50, (2, 11))
    program = torch.export.export(module, (ids,), dynamic_shapes=({1: length},))
    plans = [tightship.plan(program, shapes={"ids": (2, each)}) for each in (5, 40)]
    assert plans[0].arena_bytes < plans[1].arena_bytes
    with tightship.load(program, shapes={"ids": (2, 11)}) as model:
        for count in (11, 7, 40):
            ids = torch.randint(0, 50, (2, count))
            (found,) = model.run({"ids": array(ids)}).values()
            with torch.no_grad():
                np.testing.assert_allclose(found, array(module(ids)), 1e-4, 1e-4)


def test_parameters_of_all_shapes_are_one_constant():
    _, program = sequences()
    source = TorchProgram(program)
    first, second = (source.graph({"x": (3, time, 8)}) for time in (6, 9))
    assert first.constants["layer.weight"] is second.constants["layer.weight"]


def test_lengths_that_follow_from_others_are_understood():
    half = Dim("half", min=2, max=9)
    program = torch.export.export(
        Function(lambda x, y: (x[::2] + y, x.view(-1, 2, 3))),
        (torch.randn(8, 3), torch.randn(4, 3)),
        dynamic_shapes=({"inputs": ({0: 2 * half}, {0: half})}),
    )
    declared = TorchProgram(program).declared
    assert list(declared.values()) == [("2*half", 3), ("half", 3)]
    name, other = declared
    assert read(program, {name: (10, 3)}).values[other].shape == (5, 3)
    with pytest.raises(InputError, match="where `half` cannot be 4"):
        read(program, {name: (10, 3), other: (4, 3)})
    with pytest.raises(InputError, match=r"where `2\*half` cannot be 7"):
        read(program, {name: (7, 3)})


def test_shapes_that_do_not_fit_are_refused():
    _, program = sequences()
    for shape, why in {
        (3, 40, 8): "`time` from 3 to 32, but it is 40",
        (1, 6, 8): "`batch` from 2 to 16, but it is 1",
        (3, 6, 9): "where `8` cannot be 9",
        (3, 6): "of another rank",
    }.items():
        with pytest.raises(InputError, match=why):
            tightship.plan(program, shapes={"x": shape})
    with pytest.raises(InputError, match=r"\['batch', 'time', 8\], in which a length is open"):
        tightship.plan(program)
    with pytest.raises(InputError, match="no input `z`"):
        tightship.plan(program, shapes={"z": (3, 6, 8)})


def test_a_prepared_program_has_the_shapes_that_it_was_prepared_for(tmp_path):
    module, program = sequences()
    sets = [{"x": (3, 6, 8)}, {"x": (2, 9, 8)}]
    tightship.prepare(program, tmp_path / "model.tship", shapes=sets)
    with tightship.load(tmp_path / "model.tship") as model:
        for batch, time in SHAPES[:2]:
            x, bias = torch.randn(batch, time, 8), torch.randn(32, 8)
            found = model.run({"x": array(x), "bias": array(bias)})
            with torch.no_grad():
                for one, other in zip(found.values(), module(x, bias), strict=True):
                    np.testing.assert_allclose(one, array(other), 1e-4, 1e-5)


def test_a_length_that_depends_on_data_is_refused():
    def function(x):
        count = x.sum().int().item()
        torch._check(count >= 2)
        torch._check(count < 9)
        return torch.ones(count)

    with pytest.raises(GraphError, match="depends on data"):
        read(torch.export.export(Function(function), (torch.ones(3),)))


def test_an_open_number_is_refused():
    program = torch.export.export(
        Function(lambda x, n: x * n),
        (torch.ones(3), 4),
        dynamic_shapes={"inputs": (None, Dim.DYNAMIC)},
    )
    with pytest.raises(InputError, match="is an open number"):
        read(program)
