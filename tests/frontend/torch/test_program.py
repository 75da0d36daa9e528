"""The entry: what is an input, a constant, an output, or refused."""

import re

import numpy as np
import pytest

import tightship
from tests.frontend.torch.case import OF_TORCH, Function, array, check, exported, results_of, torch
from tightship.errors import FormatError, GraphError, InputError
from tightship.frontend.torch import read
from tightship.loading.reading_process import ReadingProcess

nn = torch.nn
pytestmark = OF_TORCH


class Cache(nn.Module):
    """Counts its calls, and keeps what it was given."""

    def __init__(self):
        super().__init__()
        self.register_buffer("kept", torch.zeros(4, 3))
        self.register_buffer("offset", torch.ones(3))

    def forward(self, x):
        self.kept[1:3] = x
        return self.kept.sum(0) + self.offset


def test_parameters_are_where_torch_has_them():
    module = nn.Linear(64, 32)
    graph = read(exported(module, torch.randn(2, 64)))
    held = graph.constants["weight"].array()
    assert held.ctypes.data == module.weight.data_ptr()
    assert not held.flags.writeable
    assert module.weight.requires_grad


def test_a_strided_parameter_is_gathered_when_it_is_read():
    module = nn.Linear(64, 32, bias=False)
    module.weight = nn.Parameter(torch.randn(64, 32).T)
    check(module, torch.randn(2, 64))


def test_a_bfloat16_parameter_keeps_its_bits():
    class Scaled(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(40, 10).bfloat16())

        def forward(self, x):
            return x * self.weight.float()

    module = Scaled()
    graph = check(module, torch.randn(40, 10))
    assert graph.constants["weight"].array().ctypes.data == module.weight.data_ptr()


def test_a_buffer_that_changes_is_an_input_and_an_output():
    module, x = Cache(), torch.randn(2, 3)
    program = exported(module, x)
    graph = read(program)
    assert graph.inputs == ("x", "kept")
    assert graph.outputs[1:] == ("kept.updated",)
    assert "offset" in graph.constants
    state = torch.randn(4, 3)
    module.kept.copy_(state)
    first, updated = results_of(program, x, state).values()
    np.testing.assert_allclose(first, array(module(x)), rtol=1e-5)
    np.testing.assert_array_equal(updated, array(module.kept))


def test_an_input_that_changes_is_also_an_output():
    x = torch.randn(3, 4)
    program = exported(Function(lambda x: x.mul_(2).sum(1)), x.clone())
    results = results_of(program, x)
    name = next(iter(read(program).inputs))
    assert list(results)[1] == f"{name}.updated"
    np.testing.assert_array_equal(results[f"{name}.updated"], array(x * 2))


def test_what_is_written_in_place_on_a_view_shows_in_the_whole():
    def function(x):
        y = x.clone()
        y[:, 1:3].add_(1)
        y.view(-1)[5] = 7
        y.t()[0].zero_()
        return y, y[::2].relu_()

    check(Function(function), torch.randn(3, 4))


def test_an_input_given_back_is_an_output_of_its_own():
    graph = check(Function(lambda x: (x, x, x + 0)), torch.randn(3))
    assert len(set(graph.outputs) | set(graph.inputs)) == 4


class Bessel(nn.Module):
    def forward(self, x):
        return torch.special.bessel_j0(x) + 1


def test_an_operator_without_translation_is_reported_with_its_line():
    with pytest.raises(GraphError, match=r"`aten.special_bessel_j0.default`, ") as error:
        read(exported(Bessel(), torch.randn(3)))
    line = r"test_program\.py:\d+: `return torch.special.bessel_j0\(x\) \+ 1`"
    assert re.search(line, str(error.value))


class Bags(nn.Module):
    def __init__(self):
        super().__init__()
        self.bags = nn.EmbeddingBag(5, 3)

    def forward(self, ids):
        return self.bags(ids)


def test_an_operator_within_a_module_of_torch_is_reported_with_the_line_that_calls_it():
    with pytest.raises(GraphError, match=r"test_program\.py:\d+: `return self.bags\(ids\)`"):
        read(exported(Bags(), torch.tensor([[0, 1]])))


def test_a_tensor_made_empty_and_written_is_what_was_written():
    check(Function(lambda x: torch.empty(2, 3).copy_(x) * 2), torch.randn(2, 3))


def test_a_shape_that_depends_on_data_is_refused():
    with pytest.raises(GraphError, match=r"`torch.where` with three operands"):
        read(exported(Function(torch.nonzero), torch.randn(3)))


def test_a_normalization_in_training_is_refused():
    module = nn.BatchNorm2d(3).train()
    with pytest.raises(GraphError, match=r"model\.eval\(\)"):
        read(torch.export.export(module, (torch.randn(2, 3, 4, 4),)))


def test_shapes_can_only_repeat_those_of_the_export():
    program = exported(nn.Linear(4, 2), torch.randn(3, 4))
    plan = tightship.plan(program, shapes={"input": (3, 4)})
    assert plan.model == "exported program"
    with pytest.raises(InputError, match="was exported with the shape"):
        tightship.plan(program, shapes={"input": (4, 4)})
    with pytest.raises(InputError, match="no input `x`"):
        tightship.plan(program, shapes={"x": (4, 4)})


def test_a_program_has_no_file_to_share():
    with pytest.raises(InputError, match=r"leave `share` out"):
        tightship.load(exported(nn.Linear(4, 2), torch.randn(3, 4)), share=True)


def test_a_limit_that_the_plan_exceeds_is_reported_before_loading():
    program = exported(nn.Linear(4, 2), torch.randn(3, 4))
    with pytest.raises(tightship.CapacityError):
        tightship.load(program, shapes={"input": (3, 4)}, max_memory=100)


def test_a_prepared_program_gives_the_same_bits(tmp_path):
    program, x = exported(nn.Linear(4, 2), torch.randn(3, 4)), torch.randn(3, 4)
    tightship.prepare(program, tmp_path / "linear.tship")
    (direct,) = results_of(program, x).values()
    (prepared,) = results_of(tmp_path / "linear.tship", x).values()
    np.testing.assert_array_equal(prepared, direct)


def test_a_saved_program_is_read_by_its_path(tmp_path, monkeypatch):
    monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", str(tmp_path / "cache"))
    module, x = nn.Linear(4, 2), torch.randn(3, 4)
    torch.export.save(exported(module, x), tmp_path / "linear.pt2")
    (found,) = results_of(tmp_path / "linear.pt2", x).values()
    np.testing.assert_allclose(found, array(module(x)), rtol=1e-5)
    monkeypatch.setattr(ReadingProcess, "call", None)  # it may not know the program's operators
    with tightship.load(tmp_path / "linear.pt2", share=True) as model:
        (shared,) = model.run({"input": array(x)}).values()
    np.testing.assert_array_equal(shared, found)
    (tmp_path / "other.pt2").write_bytes(b"no archive")
    with pytest.raises(FormatError, match=r"other.pt2` is not what `torch.export.save` writes"):
        tightship.plan(tmp_path / "other.pt2")
