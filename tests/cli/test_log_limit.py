"""A log has so many lines in a time, and says how many it has left out."""

import logging

import pytest

from tightship.cli import log_limit
from tightship.cli.log_limit import LogLimit


class Kept(logging.Handler):
    """Keeps the texts of its records."""

    def __init__(self):
        super().__init__()
        self.texts = []

    def emit(self, record):
        self.texts.append(record.getMessage())


@pytest.fixture
def clock(monkeypatch):
    """Seconds that the limit sees; a test adds to them."""
    found = [50.0]
    monkeypatch.setattr(log_limit, "monotonic", lambda: found[0])
    return found


def test_lines_beyond_the_limit_are_counted_and_errors_are_written(clock):
    log, kept = logging.Logger("limited"), Kept()
    log.addHandler(kept)
    kept.addFilter(LogLimit(kept, 2, 60))
    for number in range(5):
        log.info("line %d", number)
    log.error("fault")
    assert kept.texts == ["line 0", "line 1", "fault"]
    clock[0] += 59
    log.info("still")
    clock[0] += 1
    log.info("again")
    left_out = "4 lines were left out, because of `--log-limit`."
    assert kept.texts[3:] == [left_out, "again"]
