import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightship.errors import FormatError
from tightship.trace.events import Event, Trace, read_trace, trace_text

HEAD = '{"format": "tightship-trace", "version": 1}\n'


@st.composite
def traces(draw):
    """Blocks that come and go; a number may be given again."""
    live, events = set(), []
    for _ in range(draw(st.integers(0, 20))):
        number = draw(st.integers(1, 5))
        if number in live:
            live.remove(number)
            events.append(Event(number, 0, is_allocation=False))
        else:
            live.add(number)
            events.append(Event(number, draw(st.integers(0, 2**63 - 1)), is_allocation=True))
    return Trace(tuple(events))


@given(traces())
def test_what_is_written_is_read(tmp_path_factory, trace):
    path = tmp_path_factory.mktemp("trace") / "trace.jsonl"
    path.write_text(trace_text(trace))
    assert read_trace(path) == trace


@given(traces())
def test_pairs_say_the_same(tmp_path_factory, trace):
    sizes, pairs = {}, []
    for event in trace.events:
        if event.is_allocation:
            sizes[event.number] = event.size_bytes
        sign = 1 if event.is_allocation else -1
        pairs.append([sign * event.number, sizes[event.number]])
    path = tmp_path_factory.mktemp("trace") / "trace.json"
    path.write_text(json.dumps(pairs))
    assert read_trace(path) == trace


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("", "is not a trace: its first line"),
        ('{"format": "tightship-trace", "version": 2}', "is not a trace: its first line"),
        ("{", "line 1 is not JSON"),
        (HEAD + '{"allocate": 1}', "line 2: .* is not an event"),
        (HEAD + '{"allocate": 1, "size_bytes": 2, "more": 3}', "line 2: .* is not an event"),
        (HEAD + "7", "line 2: 7 is not an event"),
        (HEAD + '{"allocate": 1, "size_bytes": -2}', "line 2, `size_bytes`: -2 is not an integer"),
        (HEAD + '{"allocate": true, "size_bytes": 2}', "line 2, `allocate`: true is not"),
        (HEAD + '{"allocate": 1, "size_bytes": NaN}', "line 2 is not JSON"),
        (HEAD + '\n{"deallocate": 1}', "line 3: block 1 is deallocated, but not allocated"),
        (HEAD + '{"allocate": 1, "size_bytes": 2}\n' * 2, "line 3: block 1 is allocated twice"),
    ],
)
def test_a_malformed_line_is_named(tmp_path, lines, words):
    path = tmp_path / "trace.jsonl"
    path.write_text(lines)
    with pytest.raises(FormatError, match=words):
        read_trace(path)


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        ("[[1, 2], [1, 2]]", "pair 1: block 1 is allocated twice"),
        ("[[1, 2], [-1, 3]]", "pair 1: block 1 was allocated with another size"),
        ("[[-1, 2]]", "pair 0: block 1 is deallocated, but not allocated"),
        ("[[0, 2]]", "pair 0: 0 is not a block"),
        ("[[1, 2.5]]", "pair 0, size: 2.5 is not an integer"),
        ("[[1]]", r"pair 0: \[1\] is not a pair"),
        ("[1]", "pair 0: 1 is not a pair"),
        ("[[1, 2]", "is not JSON"),
        (f"[[1, {2**63}]]", "pair 0, size"),
    ],
)
def test_a_malformed_pair_is_named(tmp_path, pairs, words):
    path = tmp_path / "trace.json"
    path.write_text(pairs)
    with pytest.raises(FormatError, match=words):
        read_trace(path)


def test_what_is_no_text_is_refused(tmp_path):
    path = tmp_path / "trace.jsonl"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FormatError, match="is not UTF-8"):
        read_trace(path)
