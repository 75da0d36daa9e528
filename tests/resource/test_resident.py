"""Figures of the kernel for a process, read exactly."""

import mmap
from itertools import pairwise
from pathlib import Path

from tightship.resource.resident import mapped, resident_bytes

SIZE = 32 << 20


def test_mappings_have_addresses_amounts_and_a_file(tmp_path):
    path = tmp_path / "smaps"
    path.write_text(
        "1000-3000 r--p 00000000 fe:00 7 /a/file\nSize: 8 kB\nPss: 4 kB\n"
        "ff000-ff800 rw-p 00000000 00:00 0\nPss: 0 kB\n"
    )
    first, second = mapped(path)
    assert (first.start, first.stop, second.start, second.stop) == (4096, 12288, 0xFF000, 0xFF800)
    assert first.header.endswith("/a/file")
    assert first.lines == ("Size: 8 kB", "Pss: 4 kB")
    assert second.lines == ("Pss: 0 kB",)


def test_own_mappings_are_in_order():
    found = list(mapped(Path("/proc/self/smaps")))
    assert all(one.stop <= other.start for one, other in pairwise(found))


def test_what_is_touched_is_resident():
    before = resident_bytes()
    with mmap.mmap(-1, SIZE) as memory:
        memory[:] = bytes([1]) * SIZE
        assert resident_bytes() >= before + SIZE - (8 << 20)


def test_a_process_that_has_ended_has_no_mappings(tmp_path):
    path = tmp_path / "smaps"
    path.write_text("")
    assert list(mapped(path)) == []
