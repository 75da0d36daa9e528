import io

import pytest

from tightship.cli.progress import Progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Clock:
    seconds = 100.0

    def __call__(self):
        return self.seconds


@pytest.fixture
def terminal():
    return Terminal()


@pytest.fixture
def clock():
    return Clock()


def shown(text):
    """The line that a terminal still shows."""
    return text.rpartition("\r\x1b[K")[2]


def test_short_work_writes_nothing(terminal, clock):
    with Progress("packing", stream=terminal, clock=clock) as progress:
        clock.seconds += 0.49
        progress(1, 2)
    assert terminal.getvalue() == ""


def test_long_work_is_shown_and_erased(terminal, clock):
    with Progress("packing", stream=terminal, clock=clock) as progress:
        clock.seconds += 0.51
        progress(1, 2)
        assert shown(terminal.getvalue()).startswith("packing [")
        assert "50%" in shown(terminal.getvalue())
    assert shown(terminal.getvalue()) == ""
    assert "\n" not in terminal.getvalue()


def test_the_line_goes_away_when_the_work_fails(terminal, clock):
    def work():
        with Progress("packing", stream=terminal, clock=clock) as progress:
            clock.seconds += 1
            progress(1, 2)
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        work()
    assert "packing" in terminal.getvalue()
    assert shown(terminal.getvalue()) == ""


def test_a_stream_that_is_no_terminal_gets_nothing(clock):
    stream = io.StringIO()
    with Progress("packing", stream=stream, clock=clock) as progress:
        clock.seconds += 10
        progress(1, 2)
    assert stream.getvalue() == ""


def test_it_writes_at_most_ten_times_a_second(terminal, clock):
    with Progress("packing", stream=terminal, clock=clock) as progress:
        clock.seconds += 1
        for done in range(1000):
            progress(done, 1000)
            clock.seconds += 0.001
        assert terminal.getvalue().count("packing") <= 11


@pytest.mark.parametrize(("done", "total"), [(0, 0), (5, 3), (0, 7)])
def test_odd_counts_stay_between_nothing_and_all(terminal, clock, done, total):
    with Progress("packing", stream=terminal, clock=clock) as progress:
        clock.seconds += 1
        progress(done, total)
        assert len(shown(terminal.getvalue())) == len("packing [] 100%") + 24
