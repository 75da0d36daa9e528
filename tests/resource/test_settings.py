import pytest

from tightship._core import default_slabs
from tightship.errors import InputError
from tightship.resource import CompositeResource, HostResource, divide
from tightship.resource.settings import Settings, parse_shares, settings_from


def test_an_empty_environment_gives_the_defaults():
    assert settings_from({}) == settings_from({"TIGHTSHIP_MAX_MEMORY": "1"}) == Settings()


def test_every_variable_is_read():
    given = {
        "TIGHTSHIP_RESOURCE_MAIN_BYTES": "64MiB",
        "TIGHTSHIP_RESOURCE_SCRATCHPAD_BYTES": "1MiB",
        "TIGHTSHIP_RESOURCE_SLABS": "64:2%,256:12.5",
        "TIGHTSHIP_RESOURCE_ORDER": "seed",
        "TIGHTSHIP_RESOURCE_FIT": "first",
    }
    assert settings_from(given) == Settings(
        main_bytes=64 << 20,
        scratchpad_bytes=1 << 20,
        slabs=((64, 0.02), (256, 0.125)),
        best_fit=False,
        free_list_last=True,
    )


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("MAIN_BYTES", "much", "much"),
        ("SLABS", "64", "`64` is not a share"),
        ("SLABS", "a:2%", "`a:2%` is not a share"),
        ("ORDER", "last", "`free_list_first` or `seed`"),
        ("FIT", "worst", "`best` or `first`"),
        ("MIAN_BYTES", "1", "Unknown setting `TIGHTSHIP_RESOURCE_MIAN_BYTES`"),
    ],
)
def test_a_value_that_is_none_is_refused(name, value, said):
    with pytest.raises(InputError, match=said):
        settings_from({f"TIGHTSHIP_RESOURCE_{name}": value})


def test_no_slabs_at_all_are_a_division():
    assert parse_shares("") == ()
    composite = CompositeResource(HostResource(), 1 << 20, slabs=[])
    assert composite.slabs == []
    assert composite.owns(composite.allocate(8))


@pytest.mark.parametrize(
    "slabs",
    [
        [(64, 0.5), (64, 0.1)], [(64, 0.5), (32, 0.1)], [(12, 0.1)], [(1 << 20, 0.1)],
        [(64, 0.0)], [(64, -0.1)], [(64, 1.5)], [(64, 0.5), (128, 0.5)], [(64, float("nan"))],
    ],
)  # fmt: skip
def test_a_division_that_is_none_is_refused(slabs):
    with pytest.raises(InputError, match=r"[Ss]labs?"):
        CompositeResource(HostResource(), 1 << 20, slabs=slabs)


def test_the_default_division_leaves_nine_tenths_to_larger_blocks():
    assert sum(share for _, share in default_slabs()) == pytest.approx(0.1)
    composite = CompositeResource(HostResource(), 64 << 20)
    assert [slab.block_bytes for slab in composite.slabs] == [size for size, _ in default_slabs()]


def test_a_division_from_a_profile_holds_what_the_profile_held():
    peaks = {24: 5000, 100: 3000, 128: 10, 900: 40, 1 << 20: 3}
    composite = CompositeResource(HostResource(), 16 << 20, slabs=divide(peaks, 16 << 20))
    for size, count in peaks.items():
        blocks = composite.allocate_many(count, size).tolist()
        in_slabs = sum(slab.owns(block) for block in blocks for slab in composite.slabs)
        assert in_slabs == (count if size <= 1024 else 0)


def test_a_profile_larger_than_the_region_leaves_room_for_larger_blocks():
    shares = divide({64: 1000, 256: 1000}, 1000)
    assert sum(share for _, share in shares) == pytest.approx(0.9)
    assert divide({}, 1000) == divide({4096: 10}, 1000) == ()
