"""Sizes are numbers or texts with a unit, and paths are texts or objects, in every parameter."""

from collections.abc import Callable
from pathlib import Path

import pytest

import tightship
from tightship.resource import (
    AlignedResource,
    BumpResource,
    CompositeResource,
    FileResource,
    FreeListResource,
    GuardedResource,
    GuardPageResource,
    HostResource,
    LimitingResource,
    SharedArenaPool,
    SlabResource,
    TracingResource,
    divide,
    pool,
)
from tightship.resource.virtual import (
    ChunkedVirtualResource,
    HostDevice,
    StealingVirtualResource,
    virtual_resource,
    write_snapshot,
)

HOST = HostResource()
MIB = 1 << 20
Make = Callable[[int | str], object]
SIZES: dict[str, Make] = {
    "AlignedResource(threshold_bytes)": lambda size: AlignedResource(HOST, 64, size),
    "BumpResource(size_bytes)": lambda size: BumpResource(HOST, size),
    "ChunkedVirtualResource(chunk_bytes)": lambda size: ChunkedVirtualResource(HostDevice(), size),
    "CompositeResource(size_bytes)": lambda size: CompositeResource(HOST, size),
    "FreeListResource(chunk_bytes)": lambda size: FreeListResource(HOST, chunk_bytes=size),
    "GuardPageResource(quarantine_bytes)": lambda size: GuardPageResource(
        HOST, quarantine_bytes=size
    ),
    "GuardedResource(quarantine_bytes)": lambda size: GuardedResource(HOST, quarantine_bytes=size),
    "LimitingResource(limit_bytes)": lambda size: LimitingResource(HOST, size),
    "SlabResource(block_bytes)": lambda size: SlabResource(HOST, 1 << 24, size),
    "SlabResource(size_bytes)": lambda size: SlabResource(HOST, size, 64),
    "StealingVirtualResource(keep_bytes)": lambda size: StealingVirtualResource(
        HostDevice(), keep_bytes=size
    ),
    "StealingVirtualResource(max_bytes)": lambda size: StealingVirtualResource(
        HostDevice(), max_bytes=size, page_bytes=4096
    ),
    "divide(size_bytes)": lambda size: divide({64: 100}, size),
    "pool(chunk_bytes)": lambda size: pool(HOST, chunk_bytes=size),
    "pool(initial_bytes)": lambda size: pool(HOST, initial_bytes=size),
    "pool(max_bytes)": lambda size: pool(HOST, max_bytes=size),
    "set_primitive_cache_capacity(idle_bytes)": lambda size: tightship.set_primitive_cache_capacity(
        1024, idle_bytes=size
    ),
    "virtual_resource(max_bytes)": lambda size: virtual_resource(max_bytes=size, page_bytes=4096),
    "virtual_resource(page_bytes)": lambda size: virtual_resource(page_bytes=size),
    "virtual_resource(small_bytes)": lambda size: virtual_resource(small_bytes=size),
}
"""Calls with a size, which may be 1 MiB."""


@pytest.mark.parametrize("make", SIZES.values(), ids=SIZES)
def test_a_size_is_a_number_or_a_text(make: Make) -> None:
    if make is SIZES["set_primitive_cache_capacity(idle_bytes)"] and not tightship._core.HAS_ONEDNN:
        pytest.skip("built without oneDNN")
    numbered, worded = make(MIB), make("1MiB")
    assert type(numbered) is type(worded)
    for name in ("capacity_bytes", "limit_bytes", "block_bytes", "chunk_bytes"):
        assert getattr(numbered, name, None) == getattr(worded, name, None)


@pytest.mark.parametrize("name", SIZES)
def test_the_error_of_a_size_names_parameter_and_remedy(name: str) -> None:
    parameter = name.partition("(")[2].rstrip(")")
    for wrong in ("a lot", "1QiB", ""):
        with pytest.raises(tightship.InputError, match=f"`{parameter}`: .*not an amount") as said:
            SIZES[name](wrong)
        assert "as in `64MiB`" in str(said.value)
    with pytest.raises(tightship.InputError, match=f"`{parameter}`"):
        SIZES[name](-1)
    with pytest.raises(TypeError):
        SIZES[name](1.5)  # type: ignore[arg-type]


def test_a_pool_of_a_text_is_that_of_the_number(tmp_path: Path) -> None:
    with SharedArenaPool("sized", max_arena="1MiB", folder=str(tmp_path / "arenas")) as made:
        assert made.max_arena_bytes == MIB
    with pytest.raises(tightship.InputError, match="`max_arena`: `big` is not an amount"):
        SharedArenaPool("sized", max_arena="big", folder=tmp_path / "arenas")


@pytest.mark.parametrize("kind", [str, Path])
def test_a_path_is_a_text_or_an_object(kind: type, tmp_path: Path) -> None:
    tracing = TracingResource(HOST, kind(tmp_path / "trace.csv"))
    tracing.deallocate(tracing.allocate(64), 64)
    tracing.flush()
    assert (tmp_path / "trace.csv").read_text().count("\n") == 3
    FileResource(kind(tmp_path))
    write_snapshot(StealingVirtualResource(HostDevice()), kind(tmp_path / "snapshot.pickle"))
    assert (tmp_path / "snapshot.pickle").stat().st_size > 0
