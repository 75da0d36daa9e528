import inspect
import os

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.resource.conformance import RESOURCES, ROOTS, UPSTREAMS, Conformance, OverUpstream
from tightship import resource as public
from tightship.resource import HostResource, MemoryResource

SHORT = settings(
    max_examples=8, stateful_step_count=30, deadline=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
LONG = settings(SHORT, max_examples=150, stateful_step_count=80)


@pytest.fixture(autouse=True)
def _one_processor():
    """A bump's parts go by processor: on one of them the same calls have the same outcome."""
    every = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(every)})
    yield
    os.sched_setaffinity(0, every)


def test_every_class_of_resource_is_in_a_table():
    bases = {"Adaptor", "MemoryResource", "PageResource", "SharedResource"}
    things = {name: getattr(public, name) for name in public.__all__}
    classes = {
        name
        for name, thing in things.items()
        if inspect.isclass(thing) and issubclass(thing, MemoryResource)
    }
    made = {type(make()).__name__ for make in ROOTS.values()}
    for make in RESOURCES.values():
        made |= {each.__name__ for each in type(make(HostResource())).__mro__}
    assert classes - bases - made == set()


@pytest.mark.parametrize("root", ROOTS)
def test_a_root_conforms(root):
    run_state_machine_as_test(lambda: Conformance(ROOTS[root]), settings=SHORT)


@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("resource", RESOURCES)
def test_a_resource_conforms_over_an_upstream(resource, upstream):
    run_state_machine_as_test(
        lambda: OverUpstream(RESOURCES[resource], UPSTREAMS[upstream]), settings=SHORT
    )


@pytest.mark.slow
@pytest.mark.parametrize("upstream", UPSTREAMS)
@pytest.mark.parametrize("resource", RESOURCES)
def test_a_resource_conforms_for_long(resource, upstream):
    run_state_machine_as_test(
        lambda: OverUpstream(RESOURCES[resource], UPSTREAMS[upstream]), settings=LONG
    )
