"""Lines of the log name the client, and one client cannot fill it."""

import logging
import socket
from pathlib import Path

import pytest

from tightship.driver.protocol.replies import Failed
from tightship.driver.server.client_log import ClientLog, turned_away
from tightship.driver.server.listening import caller_of
from tightship.driver.types.quota import LINES_MAX
from tightship.driver.types.snapshot import Caller
from tightship.driver.types.status import ErrorStatus

CALLER = Caller(7, 1001, 4242, "trainer")


@pytest.fixture
def log(caplog):
    caplog.set_level(logging.INFO)
    kept = ClientLog()
    kept.connected(CALLER)
    caplog.clear()
    return kept


@pytest.mark.parametrize(
    ("status", "level"),
    [
        (ErrorStatus.INVALID_ARGUMENT, logging.INFO),
        (ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT, logging.WARNING),
        (ErrorStatus.MISSED_DEADLINE_PERSISTENT, logging.WARNING),
    ],
)
def test_a_refusal_names_the_client_and_the_status(log, caplog, status, level):
    log.refused(7, Failed(status, "The reason."))
    (line,) = caplog.records
    assert line.levelno == level
    for part in ("client 7", "trainer", "pid 4242", "uid 1001", status.name, "The reason."):
        assert part in line.getMessage()


def test_a_client_that_does_nothing_but_fail_fills_a_few_lines(log, caplog):
    for _ in range(10 * LINES_MAX):
        log.refused(7, Failed(ErrorStatus.INVALID_ARGUMENT, "No."))
    assert len(caplog.records) == LINES_MAX + 1
    log.gone(7, held_count=3)
    assert f"{10 * LINES_MAX} of its calls failed, 3 pools" in caplog.text


def test_one_client_is_counted_apart_from_another(log, caplog):
    log.connected(Caller(8, 1001, 4243, "other"))
    for _ in range(2 * LINES_MAX):
        log.refused(7, Failed(ErrorStatus.INVALID_ARGUMENT, "No."))
    caplog.clear()
    log.refused(8, Failed(ErrorStatus.INVALID_ARGUMENT, "No."))
    assert "pid 4243" in caplog.text
    log.gone(8, held_count=0)
    caplog.clear()
    log.refused(8, Failed(ErrorStatus.INVALID_ARGUMENT, "Too late."))
    assert caplog.records == []


def test_who_is_turned_away_is_named(caplog):
    turned_away(CALLER)
    assert "uid 1001" in caplog.text


def test_what_clients_write_begins_no_line_and_colours_none(log, caplog):
    log.refused(7, Failed(ErrorStatus.INVALID_ARGUMENT, "No `x\n2026 client 1\x1b[31m`."))
    assert "No `x?2026 client 1?[31m`." in caplog.text


def test_nor_do_names_of_programs():
    path = Path("/proc/self/comm")
    before = path.read_text()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    path.write_text("a\n\x1b[31mb")
    try:
        assert caller_of(ours, 3).name == "a??[31mb"
    finally:
        path.write_text(before.strip())
        ours.close()
        theirs.close()
