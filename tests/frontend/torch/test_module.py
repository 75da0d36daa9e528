"""Modules go straight in: their plans, their results, their steps of training."""

import gc
from pathlib import Path

import numpy as np
import pytest

import tightship
from tests.frontend.torch.case import OF_TORCH, array
from tests.frontend.torch.nets import CASES, Classifier, Decoder, trained
from tightship.errors import GraphError, InputError

torch = pytest.importorskip("torch", reason="needs the extra `torch`")
nn = torch.nn
pytestmark = OF_TORCH


@pytest.mark.parametrize("name", CASES)
def test_a_loaded_module_gives_the_modules_results(name):
    make, inputs = CASES[name]
    module, given = trained(make).eval(), inputs()
    with torch.no_grad(), tightship.load(module, given) as model:
        found = model(*map(array, given))
        np.testing.assert_allclose(found, array(module(*given)), rtol=1e-4, atol=1e-5)
        assert model.plan.model == type(module).__name__
        assert tightship.plan(module, given).peak_bytes == model.plan.peak_bytes


def test_the_values_of_examples_are_not_used():
    module = trained(Decoder).eval()
    zeros, ids = torch.zeros(1, 8, dtype=torch.int64), torch.randint(0, 96, (1, 8))
    with tightship.load(module, zeros) as model:
        wanted = array(module(ids))
        np.testing.assert_allclose(model(array(ids)), wanted, rtol=1e-4, atol=1e-5)


def test_inputs_have_the_names_of_arguments():
    class Net(nn.Module):
        def forward(self, image, scale, *, mask=None, extra):
            return image * scale + extra["shift"] * mask

    x = torch.randn(2, 3)
    given = {"image": x, "scale": x, "mask": x, "extra": {"shift": x}}
    assert list(tightship.plan(Net(), given).inputs) == ["image", "scale", "mask", "extra_shift"]
    with tightship.load(Net(), given) as model:
        found = model.run({name: array(x) for name in model.input_types})
        np.testing.assert_allclose(*found.values(), array(x * x + x * x), rtol=1e-6)


def test_a_length_stays_open_under_a_name():
    module = trained(Classifier).eval()
    shapes = {"image": ("batch", 3, 16, 16)}
    with tightship.load(module, torch.randn(1, 3, 16, 16), shapes=shapes) as model:
        for count in (1, 4, 1):
            image = torch.randn(count, 3, 16, 16)
            wanted = array(module(image))
            np.testing.assert_allclose(model(array(image)), wanted, rtol=1e-4, atol=1e-5)
    more = tightship.plan(module, torch.randn(1, 3, 16, 16), shapes={**shapes, "batch": 8})
    assert more.inputs == {"image": "8x3x16x16 float32"}
    assert more.arena_bytes == tightship.plan(module, torch.randn(8, 3, 16, 16)).arena_bytes


def test_shapes_replace_those_of_examples():
    module, x = nn.Linear(6, 2), torch.randn(1, 6)
    assert tightship.plan(module, x, shapes={"input": (5, 6)}).inputs == {"input": "5x6 float32"}


def test_what_is_wrapped_for_compilation_is_the_module_within():
    module, x = nn.Linear(6, 2), np.ones((1, 6), np.float32)
    wrapped = torch.compile(module, backend="eager")
    assert tightship.plan(wrapped, x).peak_bytes == tightship.plan(module, x).peak_bytes


def test_a_module_is_prepared_for_other_processes(tmp_path):
    module, image = trained(Classifier).eval(), torch.randn(2, 3, 16, 16)
    path = tmp_path / "net.tship"
    tightship.prepare(module, path, example_inputs=image)
    with tightship.load(path) as model:
        wanted = array(module(image))
        np.testing.assert_allclose(model(array(image)), wanted, rtol=1e-4, atol=1e-5)
    with pytest.raises(InputError, match="one mapping"):
        tightship.prepare(module, path, example_inputs=image, shapes=[{"image": (1, 3, 16, 16)}])


def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_one_copy_is_left_of_a_module_that_is_deleted():
    module, x = nn.Linear(4096, 4096), torch.randn(1, 4096)
    size, wanted = module.weight.nbytes, array(module(x))
    with tightship.load(module, x) as model:
        before = resident_bytes()
        del module
        gc.collect()
        assert before - resident_bytes() > 0.9 * size
        np.testing.assert_allclose(model(array(x)), wanted, rtol=1e-3, atol=1e-4)


def test_later_changes_of_the_module_change_nothing():
    module, x = nn.Linear(512, 4), torch.randn(2, 512)
    wanted = array(module(x))
    with tightship.load(module, x) as model, torch.no_grad():
        for parameter in module.parameters():
            parameter.zero_()
        np.testing.assert_allclose(model(array(x)), wanted, rtol=1e-4, atol=1e-5)


def steps_of(module, inputs, labels, optimizer, loss, count=4):
    found = []
    for _ in range(count):
        optimizer.zero_grad()
        found.append(loss(module(*inputs), labels))
        found[-1].backward()
        optimizer.step()
    return [each.item() for each in found]


@pytest.mark.parametrize("by_name", [True, False])
def test_a_step_of_a_module_is_that_of_torch(by_name):
    module, image = trained(Classifier).train(), torch.randn(4, 3, 16, 16)
    labels = torch.randint(0, 10, (4,))
    given = {} if by_name else {"example_labels": labels}
    loss = "cross_entropy" if by_name else nn.CrossEntropyLoss()
    optimizer = tightship.Adam(1e-3)
    with tightship.train(module, loss, optimizer, example_inputs=image, **given) as trainer:
        assert trainer.input_names == ("image", "labels" if by_name else "target")
        feeds = dict(zip(trainer.input_names, map(array, (image, labels)), strict=True))
        losses = [trainer.step(feeds) for _ in range(4)]
        statistics = trainer.weights()["norm.running_var"].copy()
    theirs = torch.optim.Adam(module.parameters(), 1e-3)
    wanted = steps_of(module, (image,), labels, theirs, nn.functional.cross_entropy)
    np.testing.assert_allclose(losses, wanted, rtol=1e-4)
    np.testing.assert_allclose(statistics, array(module.norm.running_var), rtol=1e-4)


def test_scores_of_texts_have_their_classes_on_the_last_axis():
    module, ids = trained(Decoder), torch.randint(0, 96, (2, 16))
    with pytest.raises(InputError, match="`classes_axis`"):
        tightship.train(module, "cross_entropy", tightship.Sgd(0.1), example_inputs=ids)
    with tightship.train(
        module, "cross_entropy", tightship.Sgd(0.1), example_inputs=ids, classes_axis=-1
    ) as trainer:
        found = trainer.step({"ids": array(ids), "labels": array(ids)})
    wanted = nn.functional.cross_entropy(module(ids).flatten(0, 1), ids.flatten())
    assert found == pytest.approx(wanted.item(), rel=1e-4)


def test_a_module_that_returns_its_loss_needs_none():
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 1)

        def forward(self, x):
            return self.layer(x).square().mean()

    module, x = trained(Net), torch.randn(3, 4)
    with tightship.train(module, None, tightship.Sgd(0.1), example_inputs=x) as trainer:
        assert trainer.step({"x": array(x)}) == pytest.approx(module(x).item(), rel=1e-5)


def test_layers_share_masks_and_positions():
    """Each layer of a decoder computes the same mask; the plan of a step holds it once."""
    ids = torch.zeros(1, 16, dtype=torch.int64)

    def weights(layers):
        made = tightship.plan(
            Decoder(layers=layers), ids, loss="cross_entropy", optimizer=tightship.Sgd(0.1),
            classes_axis=-1,
        )  # fmt: skip
        return [each for each in made.weights if each.type == "16x16 float32"]

    assert len(weights(1)) == len(weights(3)) == 1


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda m, _: tightship.plan(m), InputError, "give `example_inputs`"),
        (lambda m, x: tightship.plan(m, (x, x)), InputError, "do not fit `Linear.forward"),
        (lambda m, _: tightship.load(m, torch.randn(2, 5)), InputError, "`input` 2x5 float32"),
        (lambda m, x: tightship.plan(m, {"y": x}), InputError, "unexpected|missing"),
        (lambda _, x: tightship.plan("model.onnx", x), InputError, "for modules and functions"),
        (lambda _, x: tightship.plan(nn.Dropout().train(), x), GraphError, "`model.eval"),
        (lambda m, x: tightship.plan(m, x, loss="squared_error"), InputError, "`optimizer` too"),
        (
            lambda m, x: tightship.train(m, "nll", tightship.Sgd(1), example_inputs=x),
            InputError, "Unknown loss `nll`",
        ),
        (
            lambda m, _: tightship.train(m, "squared_error", tightship.Sgd(1)),
            InputError, "give `example_inputs`",
        ),
        (
            lambda m, x: tightship.train(
                m, "squared_error", tightship.Sgd(1), example_inputs=x, weights=["bias"]
            ),
            InputError, "`requires_grad`",
        ),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call(nn.Linear(6, 2), torch.randn(1, 6))


def test_torchscript_is_refused():
    scripted = torch.jit.script(nn.Linear(6, 2))
    with pytest.raises(InputError, match="TorchScript"):
        tightship.plan(scripted, torch.randn(1, 6))
