"""Packets over a socket: whole, with their files, or refused without leaving anything open."""

import os
import socket
import tracemalloc

import pytest

from tightship.driver.protocol.channel import Packet, close_all, receive, send
from tightship.driver.protocol.codec import FILES_MAX, MESSAGE_BYTES_MAX
from tightship.errors import FormatError


@pytest.fixture
def ends():
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with one, other:
        yield one, other


def open_files():
    return len(os.listdir("/proc/self/fd"))


def test_a_packet_arrives_as_it_was_sent_with_files_that_no_child_gets(ends):
    file = os.memfd_create("file")
    send(ends[0], b"message", [file] * FILES_MAX)
    packet = receive(ends[1])
    assert packet.data == b"message"
    assert len(packet.files) == FILES_MAX
    for each in packet.files:
        assert os.fstat(each).st_ino == os.fstat(file).st_ino
        assert not os.get_inheritable(each)
    close_all((*packet.files, file))


def test_packets_keep_their_borders(ends):
    send(ends[0], b"one")
    send(ends[0], b"two")
    assert [receive(ends[1]), receive(ends[1])] == [Packet(b"one", ()), Packet(b"two", ())]


def test_a_packet_that_is_too_long_is_refused_and_its_files_closed(ends):
    with open(os.devnull, "rb") as file:
        before = open_files()
        send(ends[0], bytes(MESSAGE_BYTES_MAX + 1), [file.fileno()])
        with pytest.raises(FormatError, match="its end is lost"):
            receive(ends[1])
        assert open_files() <= before


def test_a_packet_whose_files_are_lost_in_part_is_refused_and_the_others_closed(ends):
    with open(os.devnull, "rb") as file:
        before = open_files()
        send(ends[0], b"message", [file.fileno()] * 5)
        with pytest.raises(FormatError, match="files of it are lost"):
            receive(ends[1], files_max=2)
        assert open_files() <= before


def test_a_closed_other_end_reads_as_no_packet(ends):
    ends[0].close()
    assert receive(ends[1]) is None


def test_what_came_before_the_other_end_hung_up_on_a_packet_is_read(ends):
    send(ends[1], b"unread")
    send(ends[0], b"last words")
    ends[0].close()
    assert [receive(ends[1]), receive(ends[1])] == [Packet(b"last words", ()), None]


def test_a_packet_without_bytes_is_an_end_and_its_files_are_closed(ends):
    with open(os.devnull, "rb") as file:
        before = open_files()
        send(ends[0], b"", [file.fileno()])
        assert receive(ends[1]) is None
        assert open_files() <= before


def test_a_packet_that_comes_to_a_room_stays_as_it_is_when_another_comes(ends):
    room = bytearray(65536)
    send(ends[0], b"first")
    send(ends[0], b"2nd")
    tracemalloc.start()
    found = [receive(ends[1], room=room) for _ in range(2)]
    peak_bytes = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak_bytes < len(room) // 4  # of which a process without memory has no more
    assert [packet.data for packet in found] == [b"first", b"2nd"]
