import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightship.driver.protocol.snapshot_form import decode_snapshot, encode_snapshot
from tightship.driver.types.snapshot import (
    BufferShare,
    Caller,
    Holdings,
    ModelShare,
    PoolShare,
    Snapshot,
)
from tightship.errors import FormatError

NUMBERS = st.integers(-(2**63), 2**63 - 1)
NAMES = st.text(max_size=20)
CALLERS = st.builds(Caller, NUMBERS, NUMBERS, NUMBERS, NAMES)
HOLDINGS = st.builds(
    Holdings,
    CALLERS,
    st.booleans(),
    st.lists(st.builds(PoolShare, NUMBERS, NAMES, NAMES, NUMBERS, st.booleans(), NUMBERS)).map(
        tuple
    ),
    st.lists(st.builds(BufferShare, NUMBERS, NUMBERS, st.booleans())).map(tuple),
    st.lists(st.builds(ModelShare, NUMBERS, NAMES, NUMBERS, NUMBERS)).map(tuple),
)
SNAPSHOTS = st.builds(Snapshot, HOLDINGS, st.lists(HOLDINGS).map(tuple), NUMBERS, NUMBERS)


@given(SNAPSHOTS)
def test_a_snapshot_comes_back_from_its_bytes(snapshot):
    assert decode_snapshot(encode_snapshot(snapshot)) == snapshot


@given(SNAPSHOTS, st.data())
def test_bytes_that_are_cut_or_too_many_are_refused(snapshot, data):
    written = encode_snapshot(snapshot)
    shorter = written[: data.draw(st.integers(0, len(written) - 1))]
    for other in (shorter, written + b"\0"):
        with pytest.raises(FormatError):
            decode_snapshot(other)
