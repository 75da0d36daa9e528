"""Places for replicas on nodes as plain data; `test_replica_group` has real ones."""

from dataclasses import replace

from tests.cluster.test_allotment import MIB, WORKER, demand, node
from tightship.cluster.allotment import allot
from tightship.cluster.booking import ANCHOR_BYTES
from tightship.cluster.held_nodes import _places, anchor_bytes


def test_a_type_of_node_has_a_place_for_each_node_of_it():
    kind = replace(node("large", 300), count=2, is_running=False)
    nodes, wanted = [node("a", 300), kind], demand(8)
    assert _places(wanted, nodes, allot(wanted, nodes)) == [(nodes[0], 3), (kind, 3), (kind, 2)]


def test_an_anchor_takes_an_idle_worker_of_its_node_and_its_threads():
    wanted = replace(demand(), workers={"a": WORKER, "b": WORKER + MIB})
    found = anchor_bytes(wanted, [node("a", 1), node("b", 1)])
    assert found == {"a": WORKER + ANCHOR_BYTES, "b": WORKER + MIB + ANCHOR_BYTES}
