"""Modules without memory: they plan like real ones, allocate nothing, and cannot be run."""

import subprocess
import sys

import pytest

import tightship
from tests.frontend.torch.case import OF_TORCH
from tests.frontend.torch.nets import CASES, Decoder, trained
from tightship.errors import InputError
from tightship.frontend.torch.examples import Examples
from tightship.frontend.torch.unallocated import is_unallocated, on_processor

torch = pytest.importorskip("torch", reason="needs the extra `torch`")
nn = torch.nn
pytestmark = OF_TORCH


def on_meta(make):
    with torch.device("meta"):
        return make()


def faked(make):
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        return make()


def parts(plan):
    """Amounts and offsets of a plan."""
    tensors = [(t.size_bytes, t.offset_bytes, t.start_step, t.stop_step) for t in plan.tensors]
    return plan.peak_bytes, plan.arena_bytes, plan.weights_bytes, plan.optimizer_bytes, tensors


@pytest.mark.parametrize("without_memory", [on_meta, faked])
@pytest.mark.parametrize("name", CASES)
def test_a_plan_has_the_bytes_of_the_real_modules(name, without_memory):
    make, inputs = CASES[name]
    given = inputs()
    real, found = trained(make).eval(), without_memory(make).eval()
    assert is_unallocated(found)
    assert not is_unallocated(real)
    assert parts(tightship.plan(found, given)) == parts(tightship.plan(real, given))


OPTIMIZERS = {
    "sgd": tightship.Sgd(0.1),
    "momentum": tightship.Sgd(0.1, 0.9),
    "adam": tightship.Adam(1e-3),
    "clipped": tightship.Adam(1e-3, clip_norm=1.0),
}


@pytest.mark.parametrize("how", OPTIMIZERS)
@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("name", ["classifier", "decoder"])
def test_a_planned_step_has_the_bytes_of_a_trainer(name, accumulate, how):
    make, inputs = CASES[name]
    given, axis = inputs(), -1 if name == "decoder" else None
    options = {"classes_axis": axis, "accumulate": accumulate}
    plan = tightship.plan(
        on_meta(make), given, loss="cross_entropy", optimizer=OPTIMIZERS[how], **options
    )
    with tightship.train(
        trained(make), "cross_entropy", OPTIMIZERS[how], example_inputs=given, **options
    ) as trainer:
        memory = trainer.memory
        assert plan.peak_bytes == trainer.peak_bytes
        assert plan.optimizer_bytes == memory.state_bytes
        assert plan.weights_bytes == memory.block_bytes - memory.arena_bytes + (
            memory.constants_bytes
        )
        assert tuple(plan.inputs) == trainer.input_names


def test_inputs_on_meta_serve_as_examples():
    ids = torch.zeros(2, 16, dtype=torch.int64, device="meta")
    assert parts(tightship.plan(trained(Decoder).eval(), ids)) == parts(
        tightship.plan(on_meta(Decoder).eval(), ids)
    )


def test_the_module_stays_as_it_is_and_ties_stay():
    module = on_meta(Decoder)
    before = {name: id(each) for name, each in module.named_parameters()}
    examples = Examples.of(module, torch.zeros(1, 4, dtype=torch.int64))
    copied, _, _ = on_processor(module, examples)
    assert {name: id(each) for name, each in module.named_parameters()} == before
    assert copied.scores.weight is copied.tokens.weight
    assert copied.scores.weight.device.type == "cpu"
    assert module.scores.weight.device.type == "meta"


@pytest.mark.parametrize("without_memory", [on_meta, faked])
def test_it_cannot_be_run(without_memory):
    module, ids = without_memory(Decoder), torch.zeros(1, 4, dtype=torch.int64)
    with pytest.raises(InputError, match=r"`tokens.weight` has a shape and no elements"):
        tightship.load(module.eval(), ids)
    with pytest.raises(InputError, match=r"has a shape and no elements"):
        tightship.train(
            module, "cross_entropy", tightship.Sgd(0.1), example_inputs=ids, classes_axis=-1
        )


@pytest.mark.parametrize("count", [8, 300])
def test_positions_and_masks_need_no_elements(count):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("order", torch.arange(count).flip(0))
            self.register_buffer("mask", torch.ones(count, count, dtype=torch.bool).tril())

        def forward(self, x):
            return torch.where(self.mask, x[:, self.order] @ x, torch.zeros(()))

    x = torch.randn(count, count)
    assert parts(tightship.plan(on_meta(Net), x)) == parts(tightship.plan(Net(), x))


def test_a_module_that_cannot_be_copied_is_named():
    class Net(nn.Linear):
        def __deepcopy__(self, memo):
            raise TypeError("a lock is within")

    with pytest.raises(InputError, match="`Net` cannot be copied"):
        tightship.plan(on_meta(lambda: Net(4, 4)), torch.randn(1, 4))


LARGE = """
import resource, sys
resource.setrlimit(resource.RLIMIT_DATA, (3 << 29, 3 << 29))
import torch, tightship
with torch.device("meta"):
    module = torch.nn.Sequential(*[torch.nn.Linear(1 << 15, 1 << 15) for _ in range(4)])
plan = tightship.plan(
    module, torch.empty(1, 1 << 15), loss="squared_error", optimizer=tightship.Adam(1e-3)
)
print(plan.weights_bytes - 3 * 4 * (4 << 30))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 1 << 20)
"""


def test_nothing_of_the_weights_is_allocated():
    """48 GiB of weights and their state, in a process that may have 1.5 GiB."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LARGE], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    rest, is_small = done.stdout.split()
    assert 0 < int(rest) < 8 << 20
    assert is_small == "True"
