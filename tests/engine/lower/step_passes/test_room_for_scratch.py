"""Room for the scratch of convolutions by Winograd's algorithm."""

import pytest

from tests.engine.lower.native.test_winograd import CASES
from tests.processor import needs_avx2
from tightship.engine.library import open_library
from tightship.engine.lower.selection import lower
from tightship.engine.lower.step_passes.elide_concat import live_bytes
from tightship.engine.lower.step_passes.room_for_scratch import room_for_scratch
from tightship.engine.program.program import Lowered
from tightship.frontend.onnx import read_bytes

pytestmark = needs_avx2


def with_scratch(lowered: Lowered, size: int) -> Lowered:
    """The program whose convolution has this much scratch."""
    return lowered._replace(steps=tuple(
        step._replace(scratch_bytes=size) if step.implementation == "winograd" else step
        for step in lowered.steps
    ))  # fmt: skip


@pytest.fixture
def lowered() -> Lowered:
    open_library()
    return lower(read_bytes(CASES["plain"]().model))


def test_scratch_below_the_peak_has_all_the_room_it_wants(lowered: Lowered) -> None:
    assert "winograd" in [step.implementation for step in lowered.steps]
    assert room_for_scratch(lowered) == {}


def test_the_room_ends_at_the_peak(lowered: Lowered) -> None:
    peak = live_bytes(with_scratch(lowered, 0))
    ((name, room),) = room_for_scratch(with_scratch(lowered, 1 << 30)).items()
    assert name in [step.name for step in lowered.steps]
    assert live_bytes(with_scratch(lowered, room)) == peak
    assert live_bytes(with_scratch(lowered, room + 64)) == peak + 64
    assert room_for_scratch(with_scratch(lowered, room)) == {}


def test_a_program_without_the_algorithm_needs_none(lowered: Lowered) -> None:
    assert room_for_scratch(lowered._replace(steps=())) == {}
