import pytest

from tightship.errors import InputError
from tightship.resource import (
    CompositeResource,
    FallbackResource,
    FreeListResource,
    LimitingResource,
)
from tightship.resource.spec import DEFAULTS, resource_from
from tightship.resource.virtual import ChunkedVirtualResource, StealingVirtualResource


@pytest.mark.parametrize(
    "spec", [*DEFAULTS, "bump:1MiB", "bump:4KiB+host", "guarded:4KiB/tracking/host"]
)
def test_what_is_named_gives_blocks(spec):
    resource = resource_from(spec)
    resource.deallocate(resource.allocate(100), 100)


def test_names_go_from_the_outermost_to_the_root():
    resource = resource_from("statistics/limit:1MiB/pool:64KiB")
    assert isinstance(resource.upstream, LimitingResource)
    assert resource.upstream.limit_bytes == 1 << 20
    assert isinstance(resource.upstream.upstream, FreeListResource)
    address = resource.allocate(100)
    assert resource.statistics().reserved_bytes == 64 << 10
    assert resource.counters().current_bytes == 100
    resource.deallocate(address, 100)


def test_a_root_has_the_size_it_is_given():
    resource = resource_from("composite:3MiB")
    assert isinstance(resource, CompositeResource)
    assert resource.statistics().reserved_bytes == 3 << 20


def test_what_one_refuses_goes_to_the_next():
    resource = resource_from("statistics/(limit:4KiB/host+limit:8KiB/pool:64KiB+host)")
    fallback = resource.upstream
    assert isinstance(fallback, FallbackResource)
    assert isinstance(fallback.second, FallbackResource)
    blocks = [(size, resource.allocate(size)) for size in (4096, 8192, 100, 1 << 20)]
    assert (fallback.second_count, fallback.second.second_count) == (3, 2)
    for size, block in blocks:
        resource.deallocate(block, size)
    assert resource.statistics().current_count == 0


def test_virtual_roots_take_the_size_of_their_pages():
    stealing = resource_from("virtual:64KiB")
    assert isinstance(stealing, StealingVirtualResource)
    address = stealing.allocate(1)
    assert stealing.virtual_statistics().physical_bytes == 64 << 10
    stealing.deallocate(address, 1)
    seed = resource_from("virtual_chunked:4MiB")
    assert isinstance(seed, ChunkedVirtualResource)
    assert seed.chunk_bytes == 4 << 20


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("", "Unknown root ``"),
        ("heap", "Unknown root `heap` of a resource; choose from `composite`"),
        ("pool/host", "Unknown adaptor `pool` of a resource; choose from `limit`"),
        ("host/limit:1GiB", "Unknown root `limit`"),
        ("limit/host", "`limit_bytes` (= 0)"),
        ("pool:lots", "lots"),
        ("virtual:3000", "`page_bytes` (= 3000)"),
        ("guarded/bump:1MiB", "takes no block back"),
        ("limit:1MiB/(host+pool", "`limit:1MiB/(host+pool` must close each parenthesis"),
        ("host)+(pool", "must close each parenthesis"),
        ("host+", "Unknown root ``"),
    ],
)
def test_what_cannot_be_made_is_refused_in_words(spec, words):
    with pytest.raises(InputError) as error:
        resource_from(spec)
    assert words in str(error.value)
