"""Stacks of two and three resources that Hypothesis puts together, and memory that runs out."""

import gc

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.resource.conformance import OverUpstream
from tests.resource.stacks import LAYERS, TOP_BYTES, stacked
from tightship.errors import InputError, OutOfMemoryError
from tightship.resource import (
    FailingResource,
    FreeListResource,
    HostResource,
    RegionResource,
    TrackingResource,
)


def frees_all_or_nothing(names):
    """Return whether a stack frees all blocks or none; bins over a bump free only some."""
    return not ("bump" in names and "binning" in names[names.index("bump") :])


STACKS = st.lists(st.sampled_from(sorted(LAYERS)), min_size=2, max_size=3).filter(
    frees_all_or_nothing
)

SHORT = settings(
    max_examples=3, stateful_step_count=25, deadline=None, derandomize=True,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip


def room():
    """Memory for a stack of three, and what each adds."""
    return FreeListResource(RegionResource(bytearray(TOP_BYTES << 4)))


def is_legal(names):
    try:
        stacked(names)(room())
    except (InputError, OutOfMemoryError):
        return False
    return True


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(STACKS)
def test_a_stack_conforms_or_is_refused_when_it_is_built(names):
    if is_legal(names):
        run_state_machine_as_test(lambda: OverUpstream(stacked(names), room), settings=SHORT)


@pytest.mark.parametrize("name", LAYERS)
def test_most_layers_stack_on_each_other(name):
    """A slab, whose blocks are small, and a bump, which frees nothing, stack under fewer layers."""
    assert sum(is_legal((other, name)) for other in LAYERS) > 0.8 * len(LAYERS)
    least = 0.6 if name in ("slab", "large slab", "bump") else 1
    assert sum(is_legal((name, other)) for other in LAYERS) >= least * len(LAYERS)


def use(resource):
    """Ask for blocks of several sizes; give back all. What is refused is left out."""
    blocks = []
    for size in (8, 100, 700, 100, 3000, 40):
        try:
            blocks.append((resource.allocate(size), size))
        except OutOfMemoryError:
            continue
    before = resource.statistics()
    assert before.current_bytes >= sum(size for _, size in blocks)
    for address, size in blocks[::2] + blocks[1::2]:
        resource.deallocate(address, size)


@pytest.mark.parametrize(
    "names",
    [
        *([name] for name in LAYERS),
        ["composite", "free list", "statistics"],
        ["free list", "guarded", "tracking"],
        ["slab", "limiting", "binning"],
    ],
    ids=str,
)
def test_whichever_allocation_fails_nothing_is_lost(names):
    for number in range(1, 60):
        upstream = TrackingResource(HostResource())
        failing = FailingResource(upstream, number)
        try:
            resource = stacked(names)(failing)
        except OutOfMemoryError:
            assert upstream.live() == []
            continue
        use(resource)
        del resource
        gc.collect(0)
        assert upstream.live() == []
        if failing.allocation_count < number:
            return
    pytest.fail("a resource asks for more and more")
