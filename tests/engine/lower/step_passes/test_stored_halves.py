import pytest

from tests.engine.graphs import lowered as lowered_of
from tests.processor import needs_bfloat16
from tests.training.nets import cnn
from tests.training.test_precision import deep
from tightship import Sgd, train
from tightship.engine.lower import selection
from tightship.engine.lower.step_passes.stored_halves import with_stored_halves
from tightship.frontend.onnx import read_bytes
from tightship.graph import DType


def conversions(made):
    with train(made.model, made.loss, Sgd(0.1), precision="bfloat16") as trainer:
        lowered = trainer._programs[0].executable.placement.lowered
    return [step for step in lowered.steps if step.operator == "Cast"], lowered


def test_a_program_without_late_readers_stays_as_it_is():
    lowered = lowered_of(read_bytes(cnn().model))
    assert with_stored_halves(lowered) is lowered


@pytest.fixture
def in_float32(monkeypatch):
    """Products are those of a processor that multiplies no bfloat16."""
    monkeypatch.setattr(selection, "multiplies_halves", lambda: False)


@pytest.mark.usefixtures("in_float32")
def test_conversions_are_native_steps_between_slots_of_half_the_size():
    steps, lowered = conversions(deep())
    narrowing = [step for step in steps if step.writes[0].dtype is DType.BFLOAT16]
    widening = [step for step in steps if step.writes[0].dtype is DType.FLOAT32]
    assert len(narrowing) >= 14
    assert len(widening) >= len(narrowing)
    for step in steps:
        assert step.kernel == "native"
        sizes = [lowered.slots[o.slot].size_bytes for o in (*step.reads, *step.writes)]
        assert sizes in ([512 * 64 * 4, 512 * 64 * 2], [512 * 64 * 2, 512 * 64 * 4])


@needs_bfloat16
def test_what_a_product_reads_rounded_is_what_waits():
    steps, lowered = conversions(deep())
    rounding = {
        step.reads[0].slot: step.writes[0].slot
        for step in lowered.steps
        if step.operator == "Reorder" and step.writes[0].dtype is DType.BFLOAT16
    }
    names = {lowered.slots[each].name for each in rounding}
    assert names >= {f"t{i}" for i in range(1, 16)}
    narrowed = {step.reads[0].slot for step in steps if step.writes[0].dtype is DType.BFLOAT16}
    assert narrowed.isdisjoint(rounding)
    widened = [s for s in lowered.steps if s.operator == "Reorder"
               and s.reads[0].slot in rounding.values()]  # fmt: skip
    assert widened
    assert all(step.writes[0].dtype is DType.FLOAT32 for step in widened)


@pytest.mark.usefixtures("in_float32")
def test_statistics_and_gradients_of_weights_stay_float32():
    steps, _ = conversions(cnn())
    assert all(step.reads[0].shape[0] > 32 for step in steps)
