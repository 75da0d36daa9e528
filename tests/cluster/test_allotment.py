"""Replicas by node, and refusals, over nodes as plain data."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightship.cluster.allotment import Demand, allot, replicas_on
from tightship.cluster.nodes import Node
from tightship.cluster.replica_memory import Requirements
from tightship.errors import CapacityError, InputError

MIB = 1 << 20
NEEDS = Requirements("net", 24 * MIB, 5 * MIB, MIB, 14 * MIB, 24 * MIB)
WORKER = 50 * MIB
REPLICA, ONCE = 70 * MIB, 90 * MIB


def node(name, memory_mib, free_mib=None, cpus=8.0):
    free = memory_mib if free_mib is None else free_mib
    return Node(name, memory_mib * MIB, free * MIB, cpus, cpus)


def demand(count=None, **others):
    return Demand(NEEDS, {"a": WORKER}, count, **others)


def test_a_node_holds_the_weights_once_and_its_replicas_exactly():
    assert replicas_on(demand(), node("a", 90 + 3 * 70)) == 3
    assert replicas_on(demand(), node("a", 90 + 3 * 70 - 1)) == 2
    assert replicas_on(demand(held={"a": NEEDS.weights_bytes}), node("a", 210)) == 3
    assert replicas_on(demand(held={"a": 0}), node("a", 24 + 210)) == 3
    assert replicas_on(demand(held={"a": 0}), node("a", 24 + 210 - 1)) == 2
    assert replicas_on(demand(), node("a", 10_000, cpus=2.0)) == 2
    assert replicas_on(demand(), node("a", 50)) == 0


def test_a_node_whose_workers_are_larger_holds_fewer():
    wanted = Demand(NEEDS, {"a": WORKER, "b": 2 * WORKER})
    assert replicas_on(wanted, node("a", 400)) == 4
    assert replicas_on(wanted, node("b", 400)) == 2
    assert replicas_on(wanted, node("unmeasured", 400)) == 2


def test_few_nodes_get_the_replicas():
    nodes = [node("a", 200), node("b", 400), node("c", 300)]
    assert allot(demand(4), nodes) == {"b": 4}
    assert allot(demand(5), nodes) == {"b": 4, "c": 1}
    assert allot(demand(), nodes) == {"b": 4, "c": 3, "a": 1}


def test_more_than_the_nodes_hold_is_refused_with_the_numbers():
    nodes = [node("a" * 40, 200), node("b" * 40, 400, free_mib=100)]
    with pytest.raises(CapacityError) as refused:
        allot(demand(4), nodes)
    text = str(refused.value)
    assert "4 replica(s) do not fit; the nodes hold 1" in text
    assert "A replica takes 70.0 MiB (worker process 50.0 MiB, arena 5.00 MiB" in text
    assert "a node 90.0 MiB once (anchor process 66.0 MiB, weights 24.0 MiB)" in text
    assert "Node aaaaaaaaaaaa has 200.0 MiB free of 200.0 MiB" in text
    assert "Node bbbbbbbbbbbb has 100.0 MiB free of 400.0 MiB" in text
    assert text.endswith("Ask for at most 1, or add nodes.")


def test_a_refusal_says_whether_others_hold_the_memory():
    with pytest.raises(CapacityError, match="without what others have booked"):
        allot(demand(1), [node("a", 400, free_mib=100)])
    with pytest.raises(CapacityError, match=r"would hold one has 160\.0MiB of memory and 1") as it:
        allot(demand(1, stages=lambda _, worker: worker // MIB), [node("a", 159)])
    assert "; 50 stage(s) of `tightship.cluster.split` and" in str(it.value)
    assert (it.value.needed_bytes, it.value.limit_bytes) == (160 * MIB, 159 * MIB)


def test_a_refusal_before_workers_are_measured_says_so():
    with pytest.raises(CapacityError) as refused:
        allot(Demand(NEEDS, count=1), [node("a", 59)])
    text = str(refused.value)
    assert "the nodes hold at most 0" in text
    assert "(worker process not measured yet, arena" in text
    assert "has more than 60.0MiB of memory" in text
    with pytest.raises(CapacityError, match="Ask for at most 2, or add nodes"):
        allot(Demand(NEEDS, count=9), [node("a", 80)])


def test_processors_count():
    threaded = replace(demand(1), requirements=replace(NEEDS, threads=4))
    with pytest.raises(CapacityError, match="and 4 processor"):
        allot(threaded, [node("a", 1000, cpus=2.0)])


def test_types_of_node_count_after_running_nodes():
    kind = replace(node("large", 300), count=2, is_running=False)
    assert allot(demand(2), [kind, node("a", 300)]) == {"a": 2}
    assert allot(demand(5), [kind, node("a", 300)]) == {"a": 3, "large": 2}
    assert allot(demand(), [kind, node("a", 300)]) == {"a": 3}
    with pytest.raises(CapacityError, match=r"the nodes hold 9.*2 startable node\(s\) `large`"):
        allot(demand(10), [kind, node("a", 300)])


def test_no_nodes_and_no_replicas_are_refused():
    with pytest.raises(CapacityError, match="The cluster has no nodes"):
        allot(demand(1), [])
    with pytest.raises(InputError, match="`replicas` is 0; it must be at least 1"):
        demand(0)


@given(
    st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 9)), max_size=6),
    st.one_of(st.none(), st.integers(1, 30)),
)
def test_nothing_is_booked_that_is_not_free(sizes, count):
    nodes = [
        node(str(index), max(total, free), free_mib=free, cpus=float(cpus))
        for index, (total, free, cpus) in enumerate(sizes)
    ]
    wanted = demand(count)
    try:
        found = allot(wanted, nodes)
    except CapacityError:
        assert sum(replicas_on(wanted, each) for each in nodes) < (count or 1)
        return
    assert sum(found.values()) == (
        sum(replicas_on(wanted, each) for each in nodes) if count is None else count
    )
    for each in nodes:
        got = found.get(each.node_id, 0)
        assert got <= each.free_cpus
        assert not got or ONCE + got * REPLICA <= each.free_bytes
