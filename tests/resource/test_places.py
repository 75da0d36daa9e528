import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tightship.plug
from tests.at_once import at_once
from tightship.errors import InputError, OutOfMemoryError
from tightship.resource import HostResource, main_memory, scratchpad
from tightship.resource.places import GROWTH_BYTES, Places, make_main_memory, make_scratchpad
from tightship.resource.settings import Settings
from tightship.resource.topology import Node, Topology, parse_cpus, read_topology

TWO = Topology((
    Node(0, frozenset({0, 1}), 1 << 30, (10, 21, 31)),
    Node(2, frozenset({2, 3}), 1 << 30, (21, 10, 17)),
    Node(5, frozenset({4}), 0, (31, 17, 10)),
))  # fmt: skip


class OnCpu:
    """Processor of the calling thread, set by a test."""

    def __init__(self, number=0):
        self.number = number

    def __call__(self):
        return self.number


def places(cpu):
    """Over a topology that the machine does not have: the nodes' names are bound to no memory."""
    made = []

    def make(kind):
        def place(node, settings):
            made.append((kind, node.number))
            unbound = Node(node.number, frozenset(), node.memory_bytes, node.distances)
            return make_scratchpad(unbound, settings)

        return place

    settings = Settings(scratchpad_bytes=1 << 20)
    return Places(TWO, settings, cpu, make("main"), make("scratch")), made


def test_a_thread_gets_the_memory_of_its_node_the_same_object_each_time():
    cpu = OnCpu()
    simulated, made = places(cpu)
    found = []
    for cpu.number in (0, 1, 2, 3, 0):
        found.append(simulated.main_memory())
    assert found[0] is found[1] is found[4]
    assert found[2] is found[3]
    assert found[0] is not found[2]
    assert found[0] != found[2]
    assert made == [("main", 0), ("main", 2)]


def test_the_scratchpad_is_another_resource_of_the_same_node():
    cpu = OnCpu(3)
    simulated, made = places(cpu)
    assert simulated.scratchpad() is simulated.scratchpad()
    assert simulated.scratchpad() is not simulated.main_memory()
    assert made == [("scratch", 2), ("main", 2)]


def test_a_node_without_memory_is_served_by_the_nearest():
    assert TWO.nearest(4).number == 2
    assert TWO.nearest(99).number == 0


def test_threads_that_ask_at_once_get_one_object():
    simulated, made = places(OnCpu())
    found = at_once(lambda _: simulated.main_memory(), range(8))
    assert len(set(map(id, found))) == 1
    assert made == [("main", 0)]


def test_this_machine_has_its_places():
    assert main_memory() is main_memory()
    assert scratchpad() is scratchpad()
    assert main_memory() != scratchpad()
    block = scratchpad().allocate_block(1000, 64)
    block.array()[:] = 1
    assert scratchpad().owns(block.address)
    assert not main_memory().owns(block.address)


def test_a_topology_is_read_from_the_systems_files(tmp_path):
    for number, cpus, kilobytes, distance in ((0, "0-1,4", 1000, "10 20"), (3, "2", 50, "20 10")):
        folder = tmp_path / f"node{number}"
        folder.mkdir()
        (folder / "cpulist").write_text(cpus + "\n")
        (folder / "meminfo").write_text(f"Node {number} MemTotal:  {kilobytes} kB\nNode 0 x: 1 kB")
        (folder / "distance").write_text(distance + "\n")
    (tmp_path / "possible").write_text("0-3")
    assert read_topology(tmp_path) == Topology((
        Node(0, frozenset({0, 1, 4}), 1_024_000, (10, 20)),
        Node(3, frozenset({2}), 51_200, (20, 10)),
    ))  # fmt: skip


def test_a_machine_that_tells_no_nodes_is_one(tmp_path):
    topology = read_topology(tmp_path, machine_bytes=123)
    assert [node.memory_bytes for node in topology.nodes] == [123]
    assert topology.nearest(7) is topology.nodes[0]


def test_an_only_node_has_the_memory_of_the_machine(tmp_path):
    folder = tmp_path / "node0"
    folder.mkdir()
    (folder / "cpulist").write_text("0-1\n")
    (folder / "distance").write_text("10\n")
    (folder / "meminfo").write_text("Node 0 MemTotal:  1000 kB\nNode 0 MemFree: 1 kB")
    assert read_topology(tmp_path, machine_bytes=3 << 20).nodes[0].memory_bytes == 3 << 20
    assert read_topology(tmp_path, machine_bytes=1).nodes[0].memory_bytes == 1000 << 10


def test_this_machines_topology_has_every_processor_once():
    nodes = read_topology(machine_bytes=1).nodes
    cpus = [cpu for node in nodes for cpu in node.cpus]
    assert len(cpus) == len(set(cpus))
    assert not cpus or os.sched_getaffinity(0) <= set(cpus)


@pytest.mark.parametrize(("text", "cpus"), [("", ()), ("3\n", (3,)), ("0-2,7-8", (0, 1, 2, 7, 8))])
def test_lists_of_processors_are_read(text, cpus):
    assert parse_cpus(text) == frozenset(cpus)


def test_a_node_that_is_not_there_is_refused_with_its_number():
    with pytest.raises(InputError, match=r"`node` \(= 1000\) is not a NUMA node"):
        HostResource(node=1000)


UNBOUND = Node(0, frozenset(), 1 << 30, (10,))
MIB = 1 << 20


def test_main_memory_holds_little_until_it_is_asked_for_more():
    memory = make_main_memory(UNBOUND, Settings())
    assert memory.statistics().reserved_bytes == (1 << 30) // 16
    blocks = [memory.allocate(40 * MIB) for _ in range(4)]
    reserved_bytes = memory.statistics().reserved_bytes
    assert reserved_bytes == (1 << 30) // 16 + 3 * GROWTH_BYTES
    for block in blocks:
        memory.deallocate(block, 40 * MIB)
    assert memory.trim() >= 3 * GROWTH_BYTES
    assert memory.statistics().current_count == 0


def test_main_memory_grows_up_to_its_bound_and_names_the_setting():
    memory = make_main_memory(UNBOUND, Settings(main_bytes=256 * MIB))
    largest = 256 * MIB - 16 * MIB
    for size in (100 * MIB, largest, 150 * MIB, largest):  # each after the last went back
        memory.deallocate(memory.allocate(size), size)
    with pytest.raises(OutOfMemoryError, match="`TIGHTSHIP_RESOURCE_MAIN_BYTES`"):
        memory.allocate(largest + 1)
    assert memory.statistics().reserved_bytes <= 256 * MIB
    assert memory.statistics().current_count == 0


def test_small_blocks_that_find_their_slab_used_up_are_of_the_rest():
    memory = make_main_memory(UNBOUND, Settings(main_bytes=256 * MIB))
    blocks = memory.allocate_many(300_000, 64)
    assert len(set(blocks.tolist())) == 300_000
    memory.deallocate_many(blocks, 64)
    assert memory.statistics().current_count == 0


def test_slabs_that_are_asked_for_are_parts_of_the_bound():
    settings = Settings(main_bytes=400 * MIB, slabs=((64, 0.01), (256, 0.05)))
    memory = make_main_memory(UNBOUND, settings)
    slabs = memory.upstream.slabs
    assert [slab.block_bytes for slab in slabs] == [64, 256]
    assert [round(slab.capacity_bytes / MIB) for slab in slabs] == [4, 20]
    assert memory.statistics().reserved_bytes == 30 * MIB
    held = memory.allocate(300 * MIB)
    memory.deallocate(held, 300 * MIB)


@pytest.mark.parametrize("shares", [(), ((64, 0.9),)])
def test_any_division_of_it_works(shares):
    memory = make_main_memory(UNBOUND, Settings(main_bytes=8 * MIB, slabs=shares))
    assert memory.statistics().reserved_bytes in {MIB, 8 * MIB}
    for size in (1, 64, 5000, MIB // 2):
        memory.deallocate(memory.allocate(size), size)


@pytest.mark.skipif(
    Path("/proc/sys/vm/overcommit_memory").read_text().strip() == "2",
    reason="the system counts memory before it is touched",
)
def test_numpy_gets_most_of_the_memory_that_the_machine_has():
    size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 10 * 6
    with tightship.plug.numpy.use(main_memory()):
        array = np.empty(size, np.uint8)
        array[-1] = 1
        del array
        array = np.empty(size + size // 4, np.uint8)
        del array
        with pytest.raises(MemoryError):
            np.empty(1 << 46, np.uint8)
    main_memory().trim()


LITTLE_DATA = """
import mmap, resource
import numpy as np
import tightship.plug
from tightship.errors import OutOfMemoryError
from tightship.resource import main_memory

data = next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if "VmData" in line)
resource.setrlimit(resource.RLIMIT_DATA, (data + (300 << 20),) * 2)
memory = main_memory()
with tightship.plug.numpy.use(memory):
    arrays = [np.ones(1 << 20, np.uint8) for _ in range(100)]
    try:
        np.empty(400 << 20, np.uint8)
    except MemoryError:
        print("refused")
mmap.mmap(-1, 64 << 20, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
print(sum(int(array.sum()) for array in arrays) == 100 << 20)
"""


def test_main_memory_works_within_little_data():
    done = subprocess.run(
        [sys.executable, "-c", LITTLE_DATA], capture_output=True, text=True, check=False
    )
    assert (done.stderr, done.stdout) == ("", "refused\nTrue\n")
