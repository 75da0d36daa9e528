"""Files of weights: mapped in place if sealed against changes, else copied at once."""

import fcntl
import os

import pytest

from tightship.driver.memory.file_prober import FileProber
from tightship.driver.memory.mappings import Mappings
from tightship.driver.memory.pool_file import is_steady, steady_file
from tightship.driver.types.pools import Pool, PoolMode
from tightship.driver.types.request import Extent

PAGE = 4096
SHRINK = fcntl.F_SEAL_SHRINK
WRITE = fcntl.F_SEAL_WRITE


@pytest.fixture
def mappings():
    kept = Mappings(FileProber())
    yield kept
    kept.close()


def new_pool(seals, mode):
    file = os.memfd_create("weights", os.MFD_ALLOW_SEALING)
    os.write(file, b"a" * PAGE)
    if seals:
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)
    return Pool(file, "mmap_fd", Extent((1, file), 0, PAGE), 1, mode, file, is_decodable=True)


@pytest.mark.parametrize(
    ("seals", "mode", "is_copied"),
    [
        (SHRINK | WRITE, PoolMode.SEALED, False),
        (0, PoolMode.SEALED, False),  # of a trusted folder, or it would not have been taken
        (SHRINK, PoolMode.SEALED, True),
        (0, PoolMode.COPY, True),
        (SHRINK | WRITE, PoolMode.COPY, True),
        (0, PoolMode.ISOLATED, True),
    ],
)
def test_what_a_client_may_still_change_is_copied(mappings, seals, mode, is_copied):
    pool = new_pool(seals, mode)
    file = steady_file(mappings, pool)
    assert is_steady(pool) is not is_copied
    assert mode is PoolMode.SEALED or not mappings.places()
    if not seals & WRITE:
        os.pwrite(pool.handle, b"b" * PAGE, 0)
        assert bytes(file.bytes_at(0, 2)) == (b"aa" if is_copied else b"bb")
    mappings.drop(pool)
