"""Managers of primitives' memory that a Python function of their resource refers to."""

import gc
import subprocess
import sys
import weakref

import numpy as np
import pytest

from tests.engine.graphs import static_graph
from tests.engine.run.test_stepwise import NAME, Runner, cache_of
from tests.engine.test_primitive_cache import UNBOUNDED, eltwise
from tests.engine.test_primitive_memory import manager_of
from tightship import _core
from tightship._core import NativeProgram, PoolManager
from tightship.engine.run.stepwise import FIRST_EXTERNAL, NativeStepwise, Pattern
from tightship.resource import CallbackResource, HostResource

HOST = HostResource()
SIZE = 1 << 12
ONEDNN = pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")


class Owner:
    """Object that a resource's functions refer to, and that refers to a user of the resource."""

    def __init__(self):
        self.held, self.host = None, HOST
        self.memory = CallbackResource(self.allocate, self.deallocate)

    def allocate(self, size, alignment):
        return self.host.allocate(size, alignment)

    def deallocate(self, address, size, alignment):
        self.host.deallocate(address, size, alignment)


def free_pools(memory):
    pools = PoolManager(UNBOUNDED)
    manager = manager_of(SIZE, pools)
    manager.populate(memory, 2)
    manager.destroy_resource(manager.create_resource(memory))
    return pools


def reserved_pools(memory):
    manager = manager_of(SIZE, PoolManager(UNBOUNDED))
    manager.reserve_pools(memory, 3)
    return manager


def used_pool(memory):
    return manager_of(SIZE, PoolManager(UNBOUNDED)).create_resource(memory)


def cache(memory):
    made = cache_of()
    for length in (64, 65):
        manager = made.obtain(eltwise(length)).memory
        manager.destroy_resource(manager.create_resource(memory))
    return made


def cached_primitive(memory):
    use = cache_of().obtain(eltwise(64))
    use.memory.destroy_resource(use.memory.create_resource(memory))
    return use


def stepwise(grouping):
    def make(memory):
        runner = Runner(static_graph(NAME), cache_of(), Pattern(grouping=grouping), memory)
        runner()
        return runner

    return make


MAKERS = [
    pytest.param(free_pools, id="free pools"),
    pytest.param(reserved_pools, id="reserved pools"),
    pytest.param(used_pool, id="a pool in use"),
    pytest.param(cache, id="cache", marks=ONEDNN),
    pytest.param(cached_primitive, id="cached primitive", marks=ONEDNN),
    pytest.param(stepwise("value"), id="stepwise", marks=ONEDNN),
    pytest.param(stepwise("blob"), id="stepwise in groups", marks=ONEDNN),
]


def seen_of(make):
    owner = Owner()
    owner.held = make(owner.memory)
    return weakref.ref(owner)


@pytest.mark.parametrize("make", MAKERS)
def test_a_manager_that_its_memory_refers_to_is_collected(make):
    before = HOST.statistics().current_count
    seen = [seen_of(make) for _ in range(50)]
    gc.collect()
    assert [each for each in seen if each() is not None] == []
    assert HOST.statistics().current_count == before


@pytest.mark.parametrize("make", MAKERS)
def test_what_is_in_use_stays(make):
    owner = Owner()
    cycle = [make(owner.memory)]
    cycle.append(cycle)
    del cycle
    kept = make(owner.memory)
    for _ in range(3):
        gc.collect()
        assert owner.memory.allocate_block(SIZE).size_bytes == SIZE
        make(owner.memory)
    del kept
    gc.collect()
    assert owner.memory.statistics().current_count == 0


@ONEDNN
def test_an_array_that_primitives_own_is_collected():
    class Array(np.ndarray):
        pass

    def made():
        array = np.zeros(SIZE, np.uint8).view(Array)
        array.native = NativeStepwise(NativeProgram(), cache_of(), HOST, [], 0)
        array.native.bind_persistent(FIRST_EXTERNAL, array)
        return weakref.ref(array)

    seen = [made() for _ in range(10)]
    gc.collect()
    assert [each for each in seen if each() is not None] == []


AT_EXIT = """
from tests.engine.test_collected import MAKERS, Owner
owner = Owner()
owner.held = [maker.values[0](owner.memory) for maker in MAKERS]
{rest}
"""
IN_PROCESS_CACHE = """
from tests.engine.test_collected import eltwise
from tightship.engine.primitive_cache import process_cache
manager = process_cache().obtain(eltwise(99)).memory
manager.destroy_resource(manager.create_resource(owner.memory))
"""


@ONEDNN
@pytest.mark.parametrize("rest", ["", IN_PROCESS_CACHE])
def test_nothing_is_said_to_leak_at_exit(rest):
    script = AT_EXIT.format(rest=rest)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
