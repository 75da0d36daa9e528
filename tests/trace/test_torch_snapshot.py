import datetime
import os
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightship.errors import FormatError
from tightship.trace.events import Event
from tightship.trace.torch_snapshot import read_snapshot

ALLOC = {"action": "alloc", "addr": 16, "size": 512, "stream": 0, "frames": []}
FREE = {"action": "free_completed", "addr": 16, "size": 512, "stream": 0}


@pytest.fixture
def read(tmp_path):
    def read_pickle(content):
        path = tmp_path / "snapshot.pickle"
        path.write_bytes(content if isinstance(content, bytes) else pickle.dumps(content))
        return read_snapshot(path).events

    return read_pickle


def snapshot(*traces):
    return {"segments": [], "device_traces": [list(trace) for trace in traces]}


def test_blocks_come_and_go_by_address(read):
    asked = {**FREE, "action": "free_requested"}
    grown = {"action": "segment_alloc", "addr": 0, "size": 1 << 21, "stream": 0}
    events = read(snapshot([grown, ALLOC, asked, FREE, ALLOC]))
    assert events == (Event(16, 512, True), Event(16, 0, False), Event(16, 512, True))


def test_a_block_from_before_recording_is_left_out(read):
    assert read(snapshot([FREE, ALLOC])) == (Event(16, 512, True),)


def test_the_device_with_the_most_events_is_read(read):
    assert len(read(snapshot([], [ALLOC, FREE], [ALLOC]))) == 2


class Executes:
    def __init__(self, function, *arguments):
        self.call = (function, arguments)

    def __reduce__(self):
        return self.call


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (Executes(os.mkdir, "made"), "posix.mkdir"),
        (Executes(eval, "1"), "builtins.eval"),
        (datetime.date(2020, 1, 1), "datetime.date"),
        ({1, 2} and complex(1, 2), "builtins.complex"),
    ],
)
def test_a_pickle_that_names_anything_is_refused(read, tmp_path, monkeypatch, value, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FormatError, match=f"is refused: it names `{name}`"):
        read({**snapshot([ALLOC]), "more": value})
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([], "has no `device_traces`"),
        ({"device_traces": 5}, "has no `device_traces`"),
        ({"device_traces": [5]}, "has no `device_traces`"),
        (snapshot([5]), "event 0 is not a dictionary"),
        (snapshot([{"action": "alloc", "size": 1}]), "event 0: `addr` is not an integer"),
        (snapshot([{**ALLOC, "size": -1}]), "event 0: `size` is not an integer"),
        (snapshot([{**ALLOC, "size": 1.5}]), "event 0: `size` is not an integer"),
        (snapshot([ALLOC, ALLOC]), "event 1: block 0x10 is allocated twice"),
        (b"", "is not a pickle"),
        (b"PK\x03\x04", "is not a pickle"),
    ],
)
def test_what_is_no_snapshot_is_refused(read, content, words):
    with pytest.raises(FormatError) as error:
        read(content)
    assert words in str(error.value)


@given(st.binary(max_size=40), st.integers(0, 200), st.integers(0, 255))
def test_damaged_pickles_are_read_or_refused(tmp_path_factory, tail, place, byte):
    whole = bytearray(pickle.dumps(snapshot([ALLOC, FREE])))
    whole[place % len(whole)] = byte
    for content in (bytes(whole), tail):
        path = tmp_path_factory.mktemp("damaged") / "snapshot.pickle"
        path.write_bytes(content)
        try:
            read_snapshot(path)
        except FormatError:
            continue
