"""Log records as JSON."""

import json
import logging
import sys

from tightship.cli.log_format import JsonLines


def test_a_record_is_one_line_whatever_it_says():
    text = 'two\nlines "quoted" ä\u2028'
    record = logging.LogRecord("a.b", logging.WARNING, __file__, 1, "%s", (text,), None)
    record.fields = {"request_id": "seven"}
    line = JsonLines().format(record)
    assert len(line.splitlines()) == 1
    assert line.isascii()
    said = json.loads(line)
    assert said.pop("time").endswith("+00:00")
    assert said == {"level": "warning", "logger": "a.b", "message": text, "request_id": "seven"}


def test_an_exception_is_within_the_line():
    try:
        int("wrong")
    except ValueError:
        found = sys.exc_info()
    record = logging.LogRecord("a", logging.ERROR, __file__, 1, "failed", (), found)
    said = json.loads(JsonLines().format(record))
    assert said["exception"].endswith("'wrong'")
