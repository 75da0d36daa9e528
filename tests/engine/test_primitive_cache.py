"""The cache of compiled primitives, against a list in the order of use."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tightship
from tests.models import conv_net
from tightship import _core
from tightship._core import Attributes, MemoryDesc, PoolManager, PrimitiveDesc
from tightship.engine.library import open_library
from tightship.engine.primitive_cache import VARIABLE, process_cache
from tightship.errors import InputError

pytestmark = pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")
UNBOUNDED = 1 << 40


def eltwise(length):
    """A primitive for each length, quickly compiled."""
    open_library()
    desc = MemoryDesc([length])
    return PrimitiveDesc.eltwise("relu", desc, desc, (0.0, 0.0), Attributes())


def cache_of(entries, idle_bytes=UNBOUNDED, budget_bytes=UNBOUNDED):
    return _core.PrimitiveCache(entries, idle_bytes, PoolManager(budget_bytes))


@pytest.fixture
def process():
    """The process's cache, empty at first and afterwards."""
    open_library()
    cache = process_cache()
    before = cache.entries, cache.idle_bytes
    cache.release_idle()
    yield cache
    cache.set_capacity(*before)
    cache.release_idle()


class Oracle:
    """Model of a cache in lists: keys by use, the last first, and their holders."""

    def __init__(self, entries, idle_bytes, cost):
        self.entries, self.idle_bytes, self.cost = entries, idle_bytes, cost
        self.recent, self.users = [], []
        self.hits = self.misses = self.evictions = 0

    def obtain(self, key):
        if key in self.recent:
            self.hits += 1
            self.recent.remove(key)
        else:
            self.misses += 1
        self.users.append(key if self.entries else None)
        if self.entries:
            self.recent.insert(0, key)
        self.shrink()

    def drop(self, index):
        del self.users[index]
        self.shrink()

    def idle(self):
        return [key for key in self.recent if key not in self.users]

    def shrink(self):
        while len(self.recent) > self.entries:
            self.release(self.recent[-1])
        while len(self.idle()) * self.cost > self.idle_bytes:
            self.release(self.idle()[-1])

    def release(self, key):
        self.recent.remove(key)
        self.evictions += 1
        self.users = [None if user == key else user for user in self.users]


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("obtain"), st.integers(1, 6)),
        st.tuples(st.just("drop"), st.integers(0, 5)),
        st.tuples(st.just("entries"), st.integers(0, 5)),
        st.tuples(st.just("idle"), st.integers(0, 4)),
    ),
    max_size=40,
)


def applied(operation, number, cache, oracle, held):
    """One operation on both."""
    if operation == "obtain":
        held.append(cache.obtain(eltwise(number)))
        oracle.obtain(number)
    elif operation == "drop" and number < len(held):
        del held[number]
        oracle.drop(number)
    elif operation == "entries":
        oracle.entries = number
    elif operation == "idle":
        oracle.idle_bytes = number * oracle.cost
    cache.set_capacity(oracle.entries, oracle.idle_bytes)
    oracle.shrink()


@settings(deadline=None, max_examples=60)
@given(OPERATIONS)
def test_it_holds_and_counts_what_an_oracle_does(operations):
    cost = cache_of(1).obtain(eltwise(1)).size_bytes
    oracle, held = Oracle(3, 2 * cost, cost), []
    cache = cache_of(oracle.entries, oracle.idle_bytes)
    for operation, number in operations:
        applied(operation, number, cache, oracle, held)
        found = cache.statistics()
        assert (found.hits, found.misses) == (oracle.hits, oracle.misses)
        assert found.evictions == oracle.evictions
        assert (found.entries, found.bytes) == (len(oracle.recent), len(oracle.recent) * cost)
        assert found.idle_entries == len(oracle.idle())
        assert found.idle_bytes == len(oracle.idle()) * cost
        assert found.waits == found.failures == 0


def test_equal_descriptions_are_one_primitive_and_others_are_not():
    cache = cache_of(9)
    first, again, other = (cache.obtain(eltwise(length)) for length in (64, 64, 65))
    assert first.is_same(again)
    assert not first.is_same(other)
    assert not first.is_same(cache.obtain(eltwise(64), 2))


def test_layouts_that_differ_in_what_follows_their_elements_are_distinguished():
    open_library()
    operands = [
        MemoryDesc.any(dims, dtype)
        for dims, dtype in (
            ([1, 16, 8, 8], "uint8"),
            ([16, 16, 3, 3], "int8"),
            ([1, 16, 8, 8], "float32"),
        )
    ]
    signed = [MemoryDesc.any([1, 16, 8, 8], "int8"), *operands[1:]]
    window = ([1, 1], [0, 0], [1, 1], [1, 1])
    shifted = Attributes()
    shifted.zero_point(1, 0)
    weights = [
        PrimitiveDesc.convolution([src, mid, None, dst], window, False, attributes).operand(33)
        for (src, mid, dst), attributes in
        ((operands, Attributes()), (signed, Attributes()), (operands, shifted))
    ]  # fmt: skip
    plain = MemoryDesc([16, 16, 3, 3])
    reorders = {PrimitiveDesc.reorder(plain, desc, Attributes()).signature for desc in weights}
    assert len(reorders) == len([a for i, a in enumerate(weights) if a not in weights[:i]]) > 1


def test_a_capacity_of_one_keeps_the_last_and_of_zero_none():
    cache = cache_of(1)
    first = cache.obtain(eltwise(1))
    second = cache.obtain(eltwise(2))
    assert cache.statistics().entries == 1
    assert second.is_same(cache.obtain(eltwise(2)))
    assert not first.is_same(cache.obtain(eltwise(1)))
    cache.set_capacity(0, UNBOUNDED)
    assert cache.statistics().entries == 0
    assert not second.is_same(cache.obtain(eltwise(2)))


def test_threads_that_ask_for_one_primitive_have_it_compiled_once():
    cache, start = cache_of(9), threading.Barrier(8)

    def obtained(_):
        start.wait()
        return cache.obtain(desc)

    desc = eltwise(4096)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(obtained, range(8)))
    statistics = cache.statistics()
    assert statistics.misses == 1
    assert statistics.hits + statistics.waits == 7
    assert all(found[0].is_same(other) for other in found)


@pytest.mark.parametrize("numbers", [(-1, 0), (0, -1)])
def test_negative_capacities_are_refused(numbers):
    with pytest.raises(InputError, match="must be from 0"):
        cache_of(1).set_capacity(*numbers)


def loaded():
    return tightship.load(conv_net().SerializeToString())


def test_models_share_primitives_and_leave_them_to_the_next(process):
    before = process.statistics()
    with loaded() as first, loaded() as second:
        between = process.statistics()
        image = np.ones(first.input_types[first.input_names[0]][1], "float32")
        np.testing.assert_array_equal(first(image), second(image))
    compiled = between.misses - before.misses
    assert compiled > 0
    assert between.hits - before.hits >= compiled
    with loaded():
        assert process.statistics().misses == between.misses


def test_a_disabled_cache_leaves_models_as_they_are(process):
    with loaded() as model:
        image = np.ones(model.input_types[model.input_names[0]][1], "float32")
        wanted = model(image)
        tightship.set_primitive_cache_capacity(0)
        assert process.statistics().entries == 0
        np.testing.assert_array_equal(model(image), wanted)
    with loaded() as model:
        np.testing.assert_array_equal(model(image), wanted)
    assert process.statistics().bytes == 0


def test_the_capacity_is_had_as_it_was_set(process):
    tightship.set_primitive_cache_capacity(7, idle_bytes=100)
    assert tightship.get_primitive_cache_capacity() == 7
    assert process.idle_bytes == 100
    tightship.set_primitive_cache_capacity(8)
    assert (process.entries, process.idle_bytes) == (8, 100)
    assert tightship.primitive_cache_statistics().entries <= 8


SCRIPT = "import tightship; print(tightship.get_primitive_cache_capacity())"


@pytest.mark.parametrize(("value", "printed"), [("12", "12"), ("0", "0"), (None, "1024")])
def test_the_environment_says_the_capacity(value, printed, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "5")
    if value is not None:
        monkeypatch.setenv(VARIABLE, value)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [printed]


@pytest.mark.parametrize("value", ["", "-1", "many", "1.5"])
def test_a_capacity_in_the_environment_that_is_no_number_is_named(value):
    script = "import tightship; tightship.get_primitive_cache_capacity()"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False,
        env={**os.environ, VARIABLE: value},
    )  # fmt: skip
    assert f"InputError: `{VARIABLE}` (= `{value}`) must be a number" in done.stderr


def test_a_process_that_looked_at_the_cache_ends_without_a_word():
    script = "import tightship; print(tightship.primitive_cache_statistics().entries)"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("0\n", "")
