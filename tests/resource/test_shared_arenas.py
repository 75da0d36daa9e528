import errno
import fcntl
import multiprocessing
import os
import pickle
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tightship.errors import CapacityError, InputError, OutOfMemoryError
from tightship.resource import SharedArenaPool
from tightship.resource.private_folder import private, runtime_folder
from tightship.resource.slot_file import LEAST_BYTES, SLOTS_MAX, open_slots, set_lock

PAGE = os.sysconf("SC_PAGE_SIZE")
PATIENCE_S = 30
SPAWN = multiprocessing.get_context("spawn")


@pytest.fixture
def folder(tmp_path):
    return private(tmp_path / "run")


@pytest.fixture
def pool(folder):
    with SharedArenaPool(slots=2, folder=folder) as opened:
        yield opened


def other(folder, script):
    """Return the output of another process that has the pool of `slots=2` in a folder."""
    start = (
        "import os, sys, signal\n"
        "from tightship.resource import SharedArenaPool\n"
        "pool = SharedArenaPool(slots=2, folder=sys.argv[1])\n"
    )
    return subprocess.Popen([sys.executable, "-c", start + script, str(folder)],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)  # fmt: skip


def test_slots_are_exclusive_and_the_first_free_one_comes_first(pool):
    first, second = pool.take(100), pool.take(5 * PAGE)
    assert (first.index, second.index) == (0, 1)
    assert pool.take(1) is None
    pool.give(first)
    assert pool.take(1) is first
    pool.give(first)
    pool.give(second)
    assert pool.take(1) is first


def test_the_file_takes_what_slots_grew_to(pool):
    assert pool.size_bytes <= PAGE
    header = PAGE
    for size in (3 * PAGE, 40 * PAGE - 5, PAGE):
        pool.give(pool.take(size))
    assert pool.size_bytes == 40 * PAGE + header
    first, second = pool.take(1), pool.take(7 * PAGE)
    assert pool.size_bytes == 47 * PAGE + header
    pool.give(second)
    pool.release_unused()
    assert pool.size_bytes == 40 * PAGE + header
    pool.give(first)
    pool.release_unused()
    assert pool.size_bytes == header


def used(pool, size_bytes, now_ns):
    """A run of that time."""
    slot = pool.take(size_bytes)
    slot.note_run(size_bytes, now_ns)
    pool.give(slot)


def test_what_no_run_has_needed_for_a_while_goes_back_and_not_before(pool):
    used(pool, 64 * LEAST_BYTES, now_ns=0)
    used(pool, 9 * LEAST_BYTES, now_ns=500)
    assert pool.give_idle(999, 1000, kept_bytes=0) == (0, True)
    assert pool.give_idle(1000, 1000, kept_bytes=0) == (55 * LEAST_BYTES, True)
    assert pool.size_bytes == 9 * LEAST_BYTES + PAGE
    used(pool, 2 * LEAST_BYTES, now_ns=1500)
    assert pool.give_idle(2000, 1000, kept_bytes=4 * LEAST_BYTES) == (5 * LEAST_BYTES, False)
    assert pool.give_idle(2999, 1000, kept_bytes=0) == (0, True)
    assert pool.give_idle(3000, 1000, kept_bytes=0) == (4 * LEAST_BYTES, False)


def test_a_slot_that_runs_need_all_of_again_and_again_keeps_it(pool):
    for now_ns in range(0, 9000, 900):
        used(pool, 64 * LEAST_BYTES, now_ns)
        used(pool, PAGE, now_ns + 1)
        assert pool.give_idle(now_ns + 899, 1000, kept_bytes=0) == (0, True)


def test_what_a_run_has_is_not_idle(pool):
    slot = pool.take(64 * LEAST_BYTES)
    assert pool.give_idle(10**18, 1000, kept_bytes=0) == (0, False)
    slot.mapping.array()[:] = 7
    assert set(slot.mapping.array()) == {7}
    pool.give(slot)
    assert pool.give_idle(10**18, 1000, kept_bytes=0) == (64 * LEAST_BYTES, False)


def test_a_slot_that_shrank_is_filled_again(pool):
    used(pool, 64 * LEAST_BYTES, now_ns=0)
    pool.give_idle(5000, 1000, kept_bytes=PAGE)
    slot = pool.take(64 * LEAST_BYTES)
    assert pool.size_bytes == 64 * LEAST_BYTES + PAGE
    assert not slot.mapping.array()[PAGE:].any()
    pool.give(slot)


def test_a_slot_that_grows_keeps_no_smaller_mapping(pool):
    slot = pool.take(PAGE)
    slot.mapping.array()[:] = 1
    pool.give(slot)
    slot = pool.take(9 * PAGE)
    assert slot.mapping.size_bytes == 9 * PAGE
    slot.mapping.array()[:] = 2
    pool.give(slot)
    mapping = slot.mapping
    assert pool.take(2 * PAGE).mapping is mapping


def test_the_file_is_private_and_removed_after_its_last_user(folder):
    first, second = (SharedArenaPool(slots=2, folder=folder) for _ in range(2))
    status = first.path.stat()
    assert stat.S_IMODE(status.st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    first.close()
    first.close()
    assert second.path.exists()
    second.close()
    assert list(folder.iterdir()) == []
    with pytest.raises(InputError, match="closed"):
        second.take(1)


def test_pools_of_one_process_exclude_each_other(pool, folder):
    with SharedArenaPool(slots=2, folder=folder) as same:
        first = pool.take(1)
        second = same.take(1)
        assert (first.index, second.index) == (0, 1)
        assert pool.take(1) is same.take(1) is None
        pool.give(first)
        assert same.take(1).index == 0


def test_threads_exclude_each_other(pool):
    taken, lock = set(), __import__("threading").Lock()

    def work():
        for _ in range(200):
            slot = pool.take(PAGE)
            if slot is not None:
                with lock:
                    assert slot.index not in taken
                    taken.add(slot.index)
                with lock:
                    taken.remove(slot.index)
                pool.give(slot)

    with ThreadPoolExecutor(4) as threads:
        for future in [threads.submit(work) for _ in range(4)]:
            future.result(PATIENCE_S)


def test_a_slot_of_a_killed_process_is_free(pool, folder):
    child = other(folder, "slot = pool.take(4096); print(slot.index, flush=True); input()")
    assert child.stdout.readline() == "0\n"
    assert pool.take(1).index == 1
    assert pool.take(1) is None
    child.send_signal(signal.SIGKILL)
    child.wait(PATIENCE_S)
    assert pool.take(1).index == 0
    child.communicate()


def test_what_a_killed_process_left_is_taken_over_or_removed(folder):
    child = other(folder, "pool.take(1 << 20); print(1, flush=True); input()")
    child.stdout.readline()
    child.kill()
    child.communicate()
    (left,) = folder.iterdir()
    assert left.stat().st_blocks * 512 > 1 << 20
    with SharedArenaPool("else", slots=2, folder=folder):
        assert not left.exists()


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_of_a_fork_has_no_slot_of_its_parents_and_keeps_none_from_others(pool):
    mine = pool.take(3 * PAGE)
    mine.mapping.array()[:] = 7
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        theirs = pool.take(PAGE)
        is_right = theirs.index == 1 and pool.take(1) is None
        theirs.mapping.array()[:] = 9
        os.write(writing, b"y" if is_right else b"n")
        signal.pause()
    assert os.read(reading, 1) == b"y"
    assert pool.take(1) is None
    assert np.all(mine.mapping.array() == 7)
    pool.give(mine)
    assert pool.take(1) is mine  # the child, which still lives, has no part in its lock
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert pool.take(1).index == 1


def test_a_slot_of_a_killed_process_is_free_though_its_child_lives(pool, folder):
    script = (
        "slot = pool.take(1)\n"
        "if not os.fork(): print(os.getpid(), flush=True)\n"  # it has released what it inherited
        "else: os.wait()\n"
        "signal.pause()\n"
    )
    parent = other(folder, script)
    child = int(parent.stdout.readline())
    assert pool.take(1).index == 1
    parent.kill()
    parent.wait(PATIENCE_S)
    freed = pool.take(1)
    os.kill(child, signal.SIGKILL)
    assert freed is not None
    parent.communicate()


def test_a_pool_goes_to_spawned_processes(pool):
    same = pickle.loads(pickle.dumps(pool))
    assert (same.path, same.slot_count) == (pool.path, pool.slot_count)
    slot = pool.take(1)
    assert same.take(1).index == 1
    pool.give(slot)
    same.close()


@pytest.mark.parametrize("left", [0, PAGE])
def test_a_file_that_is_cut_short_is_filled_again_without_a_signal(pool, left):
    slot = pool.take(16 * PAGE)
    slot.mapping.array()[:] = 1
    pool.give(slot)
    os.truncate(pool.path, left)
    slot = pool.take(16 * PAGE)
    assert pool.size_bytes >= 16 * PAGE
    slot.mapping.array()[:] = 2


def test_a_file_that_is_removed_or_replaced_is_left_for_the_new_one(pool, folder):
    slot = pool.take(PAGE)
    pool.path.unlink()
    slot.mapping.array()[:] = 1
    assert pool.take(1) is None  # a pool that opens the path anew cannot know of these slots
    pool.give(slot)
    with SharedArenaPool(slots=2, folder=folder) as newcomer:
        assert newcomer.take(1).index == 0
        assert pool.take(1).index == 1


def test_a_full_file_system_is_an_error_and_no_signal(pool, monkeypatch):
    def refuse(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", refuse)
    with pytest.raises(OutOfMemoryError, match="No space left") as refused:
        pool.take(5 * PAGE)
    assert refused.value.requested_bytes == 5 * PAGE
    monkeypatch.undo()
    assert pool.take(5 * PAGE).index == 0


def test_an_arena_beyond_the_limit_is_refused(folder):
    with SharedArenaPool(folder=folder, slots=1, max_arena="1MiB") as pool:
        with pytest.raises(CapacityError, match="max_arena") as refused:
            pool.take((1 << 20) + 1)
        assert (refused.value.needed_bytes, refused.value.limit_bytes) == ((1 << 20) + 1, 1 << 20)
        assert pool.take(1 << 20) is not None


@pytest.mark.parametrize("slots", [0, -1, SLOTS_MAX + 1])
def test_there_are_one_to_sixty_four_slots(folder, slots):
    with pytest.raises(InputError, match="slots"):
        SharedArenaPool(slots=slots, folder=folder)


@pytest.mark.parametrize("name", ["", "../x", ".hidden", "a/b", "a\n"])
def test_a_name_stays_in_its_folder(folder, name):
    with pytest.raises(InputError, match="cannot name a pool"):
        SharedArenaPool(name, folder=folder)


def test_what_others_can_enter_or_read_is_refused(folder, tmp_path):
    path = folder / "default.arenas"
    path.touch(mode=0o644)
    path.chmod(0o644)
    with pytest.raises(InputError, match="mode 0644"):
        open_slots(path)
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="cannot be opened"):
        SharedArenaPool(folder=folder)
    path.unlink()
    folder.chmod(0o755)
    with pytest.raises(InputError, match="mode 0755"):
        SharedArenaPool(folder=folder)
    (tmp_path / "link").symlink_to(folder)
    folder.chmod(0o700)
    with pytest.raises(InputError, match="no link"):
        SharedArenaPool(folder=tmp_path / "link")
    with pytest.raises(InputError, match="cannot be made"):
        SharedArenaPool(folder=tmp_path / "a" / "b")


def test_the_runtime_folder_is_the_systems_or_one_of_the_users_own(tmp_path):
    assert runtime_folder({"XDG_RUNTIME_DIR": str(tmp_path)}) == tmp_path / "tightship"
    assert stat.S_IMODE((tmp_path / "tightship").stat().st_mode) == 0o700
    for given in ({}, {"XDG_RUNTIME_DIR": "relative"}, {"XDG_RUNTIME_DIR": str(tmp_path / "no")}):
        assert runtime_folder(given).name == f"tightship-{os.geteuid()}"


def test_one_that_opens_while_the_last_user_removes_finds_a_file_of_its_own(folder):
    path = folder / "race.arenas"
    last = open_slots(path)
    assert set_lock(last.users, 0, fcntl.F_WRLCK)
    with ThreadPoolExecutor(1) as threads:
        opening = threads.submit(open_slots, path)
        with pytest.raises(TimeoutError):
            opening.result(0.05)
        last.close()
        found = opening.result(PATIENCE_S)
    assert found.is_there
    found.close()


def _open_and_close(folder, count):
    for _ in range(count):
        with SharedArenaPool("busy", slots=2, folder=folder) as pool:
            slot = pool.take(PAGE)
            if slot is not None:
                slot.mapping.array()[:] = os.getpid() & 0xFF
                if not np.all(slot.mapping.array() == os.getpid() & 0xFF):
                    os._exit(1)
                pool.give(slot)
    os._exit(0)


@pytest.mark.slow
def test_processes_that_come_and_go_never_have_one_slot_twice(folder):
    children = [SPAWN.Process(target=_open_and_close, args=(folder, 200)) for _ in range(4)]
    for child in children:
        child.start()
    for child in children:
        child.join(PATIENCE_S)
    assert [child.exitcode for child in children] == [0, 0, 0, 0]
    assert list(folder.iterdir()) == []
