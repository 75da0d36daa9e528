"""Stages on nodes as plain data."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightship.cluster.nodes import Node
from tightship.cluster.stage_placing import StageNeeds, place_stages
from tightship.errors import CapacityError

MIB = 1 << 20


def node(name, free_mib, cpus=8.0):
    return Node(name, free_mib * MIB, free_mib * MIB, cpus, cpus)


def needs(*sizes_mib, threads=1):
    return [StageNeeds(f"s{i}", size * MIB, threads) for i, size in enumerate(sizes_mib)]


def test_the_calling_node_is_preferred_and_then_one_node():
    nodes = [node("a", 300), node("b", 200)]
    assert [each.node_id for each in place_stages(needs(50, 60), nodes, {}, "b")] == ["b", "b"]
    assert [each.node_id for each in place_stages(needs(150, 90), nodes, {}, "b")] == ["a", "a"]
    found = place_stages(needs(150, 290), nodes, {}, "b")
    assert [each.node_id for each in found] == ["b", "a"]


def test_a_worker_is_taken_for_each_stage():
    with pytest.raises(CapacityError, match=r"s0 takes 60\.0 MiB \(plan 50\.0 MiB, worker") as it:
        place_stages(needs(50, 50), [node("a", 119)], {"a": 10 * MIB})
    assert "node a has 119.0 MiB free of 119.0 MiB and 8 of 8 processors" in str(it.value)
    assert (it.value.needed_bytes, it.value.limit_bytes) == (120 * MIB, 119 * MIB)
    assert len(place_stages(needs(50, 50), [node("a", 120)], {"a": 10 * MIB})) == 2


def test_a_cluster_without_nodes_is_refused():
    with pytest.raises(CapacityError, match="the cluster has no nodes"):
        place_stages(needs(1), [], {})


@given(
    st.lists(st.integers(1, 9), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(0, 15), st.integers(0, 3)), min_size=1, max_size=3),
)
def test_stages_are_refused_only_where_no_nodes_hold_them(sizes, rows):
    nodes = [node(str(i), size, float(cpus)) for i, (size, cpus) in enumerate(rows)]

    def holds(chosen):
        return all(
            sum(size for size, at in zip(sizes, chosen, strict=True) if at == i) <= size_mib
            and chosen.count(i) <= cpus
            for i, (size_mib, cpus) in enumerate(rows)
        )

    is_possible = any(holds(chosen) for chosen in product(range(len(rows)), repeat=len(sizes)))
    try:
        found = place_stages(needs(*sizes), nodes, {})
    except CapacityError:
        assert not is_possible
        return
    assert holds([int(each.node_id) for each in found])
