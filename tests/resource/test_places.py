import os
import threading

import pytest

from tightship.errors import InputError
from tightship.resource import CompositeResource, HostResource, main_memory, scratchpad
from tightship.resource.places import Places, make_scratchpad
from tightship.resource.settings import Settings
from tightship.resource.topology import Node, Topology, parse_cpus, read_topology

TWO = Topology((
    Node(0, frozenset({0, 1}), 1 << 30, (10, 21, 31)),
    Node(2, frozenset({2, 3}), 1 << 30, (21, 10, 17)),
    Node(5, frozenset({4}), 0, (31, 17, 10)),
))  # fmt: skip


class OnCpu:
    """Where the calling thread runs, as a test says."""

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
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(simulated.main_memory())) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(map(id, found))) == 1
    assert made == [("main", 0)]


def test_this_machine_has_its_places():
    assert main_memory() is main_memory()
    assert scratchpad() is scratchpad()
    assert main_memory() != scratchpad()
    assert isinstance(main_memory(), CompositeResource)
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
