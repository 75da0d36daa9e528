"""Representations of statistics, and sizes of resources that are given as text."""

import pytest

from tightship._core import PoolManager, PrimitiveCache
from tightship.errors import InputError
from tightship.resource import BinningResource, HostResource, StatisticsResource
from tightship.resource.virtual import HostDevice, virtual_resource


def fields(found):
    """The public fields of an object, in the order of their definition."""
    return {name: getattr(found, name) for name in vars(type(found)) if not name.startswith("_")}


def statistics():
    pools = PoolManager(1 << 20)
    return [
        HostResource().statistics(),
        StatisticsResource(HostResource()).counters(),
        virtual_resource(HostDevice()).virtual_statistics(),
        pools.statistics(),
        PrimitiveCache(4, 0, pools).statistics(),
    ]


@pytest.mark.parametrize("found", statistics(), ids=lambda found: type(found).__name__)
def test_statistics_show_their_fields(found):
    shown = ", ".join(f"{name}={value}" for name, value in fields(found).items())
    assert repr(found) == f"{type(found).__name__}({shown})"
    assert len(fields(found)) >= 4


def test_counters_show_what_is_live():
    resource = StatisticsResource(HostResource())
    address = resource.allocate(100)
    assert repr(resource.counters()).startswith(
        "ResourceCounters(current_bytes=100, current_count=1, peak_bytes=100,"
    )
    resource.deallocate(address, 100)


def test_sizes_of_bins_are_numbers_or_texts():
    small, rest = HostResource(), HostResource()
    resource = BinningResource(rest, [("1KiB", small)])
    for size, part in ((1024, small), (1025, rest)):
        address = resource.allocate(size)
        assert part.owns(address)
        resource.deallocate(address, size)
    with pytest.raises(InputError, match="`size_bytes`: `much` is not an amount of memory"):
        BinningResource(rest, [("much", small)])
