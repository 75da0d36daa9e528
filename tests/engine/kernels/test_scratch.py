import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tightship.engine.kernels.scratch import ScratchLayout

SHAPES = st.lists(st.integers(0, 9), max_size=3).map(tuple)


@given(st.lists(st.tuples(st.sampled_from(["u1", "f4", "f8", "?"]), SHAPES)))
def test_slots_are_aligned_disjoint_and_inside(wanted):
    layout = ScratchLayout()
    slots = [layout.slot(dtype, shape) for dtype, shape in wanted]
    scratch = np.zeros(layout.size_bytes, np.uint8)
    for slot, (dtype, shape) in zip(slots, wanted, strict=True):
        array = slot.of(scratch)
        assert array.dtype == dtype
        assert array.shape == shape
        assert slot.offset_bytes % 64 == 0
        raw = scratch[slot.offset_bytes : slot.offset_bytes + slot.size_bytes]
        assert raw.size == array.nbytes
        assert not raw.any()
        raw.fill(1)


def test_a_slot_of_nothing_needs_no_scratch():
    assert ScratchLayout().slot("f4", (0, 3)).of(None).shape == (0, 3)
