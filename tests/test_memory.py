import gc
import subprocess
import sys
import threading

import numpy as np
import pytest

import tightship
from tests.small_models import dense
from tests.zoo.open_lengths import sentences

MIB = 1 << 20


def rows(count):
    return np.random.default_rng(count).standard_normal((count, 32), np.float32)


@pytest.fixture
def model():
    with tightship.load(dense(hidden=512)[0], shapes={"x": (4, 32)}) as opened:
        yield opened


def test_unused_memory_goes_back_and_is_had_again(model):
    wanted = model(rows(9)).copy()
    model(rows(2000))
    before = model.memory_stats()
    assert before.programs == 2  # of the first shapes, and of those that came last
    released = model.release_unused_memory()
    after = model.memory_stats()
    assert released == before.arena_bytes + before.weights_bytes - after.weights_bytes
    assert (after.arena_bytes, after.programs) == (0, 1)
    assert after.program_bytes < before.program_bytes
    np.testing.assert_array_equal(model(rows(9)), wanted)
    assert model.memory_stats().arena_bytes > 0


def test_a_run_that_goes_on_keeps_what_it_has(model):
    stop = threading.Event()
    wanted = {count: model(rows(count)).copy() for count in (3, 700)}
    faults = []

    def work(count):
        while not stop.is_set():
            if not np.array_equal(model(rows(count)), wanted[count]):
                faults.append(count)

    threads = [threading.Thread(target=work, args=(count,)) for count in wanted]
    for thread in threads:
        thread.start()
    for _ in range(60):
        model.release_unused_memory()
        assert model.memory_stats().arena_used_bytes <= model.memory_stats().arena_peak_bytes
    stop.set()
    for thread in threads:
        thread.join()
    assert faults == []


def test_memory_of_the_process_is_the_sum_over_its_models(model):
    gc.collect()
    alone = tightship.memory_stats()
    assert alone == model.memory_stats()
    with tightship.load(dense()[0], shapes={"x": (4, 32)}) as other:
        assert tightship.memory_stats() == model.memory_stats() + other.memory_stats()
        other(rows(3000))
        model(rows(3000))
        arenas = tightship.memory_stats().arena_bytes
        assert tightship.release_unused_memory() >= arenas > MIB
        assert tightship.memory_stats().arena_bytes == 0
    assert tightship.memory_stats() == model.memory_stats()
    with pytest.raises(tightship.InputError, match="closed"):
        other.memory_stats()


def test_a_model_keeps_as_much_as_it_was_set_to():
    shapes = {"x": (4, 32)}
    with tightship.load(dense()[0], shapes=shapes, idle_s=0.0, idle_memory="64KiB") as model:
        model(rows(5000))
        model(rows(4))
        small = model.memory_stats().arena_bytes
        assert small < 512 << 10
    with tightship.load(dense()[0], shapes=shapes, idle_s=0.0, idle_memory="1GiB") as model:
        model(rows(5000))
        model(rows(4))
        assert model.memory_stats().arena_bytes > 4 * small


CHILD = """
import sys
import numpy as np
import tightship

def rss():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

def run(batch, steps):
    ids = np.random.default_rng(steps).integers(0, 1000, (batch, steps))
    model.run({"ids": ids, "mask": np.ones((batch, steps), np.int64)})

shapes = {"ids": (1, 16), "mask": (1, 16)}
model = tightship.load(sys.argv[1], shapes=shapes)
"""
RATCHET = """
run(1, 16), run(1, 16)
before = rss()
for batch, steps in [(16, 500), (9, 384), (14, 460), (3, 100), (12, 511), (16, 300)]:
    run(batch, steps)
large = rss()
for _ in range(10):
    run(1, 16)
print(before, large, rss())
"""
LENGTHS = """
run(1, 400), run(1, 400)
before = rss()
for steps in range(20, 400, 5):
    run(1, steps)
print(before, before, rss())
"""
RELOAD = """
def once():
    global model
    model = tightship.load(sys.argv[1], shapes=shapes)
    run(1, 16), run(4, 128)
    model.close()
model.close()
once(), once()
before = rss()
for _ in range(10):
    once()
print(before, before, rss())
"""


def resident(folder, script):
    """Return the resident bytes that a process prints."""
    path = folder / "sentences.onnx"
    path.write_bytes(sentences(2, 192, 4, 1000, 512))
    done = subprocess.run([sys.executable, "-c", CHILD + script, str(path)],
                          capture_output=True, text=True, check=True)  # fmt: skip
    return tuple(map(int, done.stdout.split()))


@pytest.mark.slow
def test_a_process_is_as_small_after_large_requests_as_before(tmp_path):
    before, large, after = resident(tmp_path, RATCHET)
    assert large > before + 12 * MIB
    assert after < before + 6 * MIB


@pytest.mark.slow
def test_a_process_does_not_grow_with_the_lengths_it_has_seen(tmp_path):
    before, _, after = resident(tmp_path, LENGTHS)
    assert after < before + 10 * MIB


@pytest.mark.slow
def test_a_process_does_not_grow_by_loading_and_closing(tmp_path):
    before, _, after = resident(tmp_path, RELOAD)
    assert abs(after - before) < 2 * MIB
