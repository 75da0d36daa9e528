import pytest

from tightship.errors import FormatError
from tightship.resource import HostResource, LimitingResource, TracingResource
from tightship.trace.events import Event
from tightship.trace.rmm_log import read_rmm_log

HEAD = "Thread,Time,Action,Pointer,Size,Stream\n"


@pytest.fixture
def read(tmp_path):
    def read_text(text):
        path = tmp_path / "log.csv"
        path.write_text(text)
        return read_rmm_log(path).events

    return read_text


def test_our_own_log_is_read_back(tmp_path):
    path = tmp_path / "log.csv"
    resource = TracingResource(LimitingResource(HostResource(), 1000), str(path))
    first, second = resource.allocate(100), resource.allocate(200)
    resource.deallocate(first, 100)
    with pytest.raises(MemoryError):
        resource.allocate(1001)
    resource.deallocate(second, 200)
    resource.flush()
    assert read_rmm_log(path).events == (
        Event(first, 100, True),
        Event(second, 200, True),
        Event(first, 0, False),
        Event(second, 0, False),
    )


def test_other_notations_are_read(read):
    rows = "7,1.5,allocate,0x10,256,0x2\n8,14:21:32.66,deallocate,0x10,256,0x2\n"
    nothing = "7,1,allocate,(nil),0,0x0\n7,1,free,0x0,0,0x0\n7,1,allocate failure,(nil),9,0\n"
    assert read(HEAD + rows + nothing) == (Event(16, 256, True), Event(16, 0, False))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n", "has no column `Action`"),
        ("", "has no column `Action`"),
        (HEAD + "1,2,resize,0x10,1,0\n", "line 2: unknown action `resize`"),
        (HEAD + "1,2,free,0x10,1,0\n", "line 2: block 0x10 is deallocated, but not allocated"),
        (HEAD + 2 * "1,2,allocate,0x10,1,0\n", "line 3: block 0x10 is allocated twice"),
        (
            HEAD + "1,2,allocate,0x10,1,0\n1,2,free,0x10,2,0\n",
            "line 3: block 0x10 was allocated with another size",
        ),
        (
            HEAD + "1,2,allocate,here,1,0\n",
            "line 2: `here` must be a hexadecimal pointer and `1` a",
        ),
        (HEAD + "1,2,allocate,0x10\n", "line 2: `0x10` must be a hexadecimal pointer and `None` a"),
        (HEAD + "1,2,allocate,0x10,-1,0\n", "line 2: pointer 0x10 or size -1 is out of range"),
    ],
)
def test_what_is_no_log_is_refused_with_the_line(read, text, words):
    with pytest.raises(FormatError) as error:
        read(text)
    assert words in str(error.value)
