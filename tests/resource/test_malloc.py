import subprocess
import sys

import pytest

from tightship._core import MallocResource
from tightship.errors import OutOfMemoryError

MIB = 1 << 20


def test_malloc_gives_aligned_blocks_and_counts_them():
    resource = MallocResource()
    address = resource.allocate(1000, 4096)
    assert address % 4096 == 0
    assert resource.statistics().current_bytes == 1000
    assert resource.statistics().current_count == 1
    resource.deallocate(address, 1000, 4096)
    assert resource.statistics().current_count == 0


GROWTH = """
from tightship._core import MallocResource

resource = MallocResource()
blocks = [resource.allocate(100_000) for _ in range(100)]
print(resource.statistics().touched_bytes)
for block in blocks[:-1]:
    resource.deallocate(block, 100_000)
print(resource.statistics().touched_bytes, resource.statistics().current_bytes)
"""


def test_malloc_holds_what_the_heap_of_a_new_process_has_grown_by():
    done = subprocess.run(
        [sys.executable, "-c", GROWTH], capture_output=True, text=True, check=True
    )
    full, pinned, live = map(int, done.stdout.split())
    assert 100 * 100_000 <= full <= 100 * 100_000 + 4 * MIB
    assert pinned >= 9_000_000
    assert live == 100_000


def test_malloc_refuses_what_no_system_has():
    with pytest.raises(OutOfMemoryError, match="C library has no more"):
        MallocResource().allocate(1 << 55)
