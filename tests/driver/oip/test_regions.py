"""Table 2.8: regions of the inference protocol, as far as they need no memory."""

import pytest

from tightship.driver.oip.regions import (
    Code,
    Region,
    RegionError,
    Regions,
    check_input_bytes,
    check_output_bytes,
)

PAGE = 4096


@pytest.fixture
def regions():
    return Regions(is_enabled=True)


def region(name="dummy_data", key="/dummy_data", offset=0, size=64):
    return Region(name, key, offset, size)


def registered(regions, *names):
    for name in names:
        regions.register(region(name, f"/{name}"), 64)
    return regions


def names(regions):
    return [each.name for each in regions.status()]


def refusal(call, *arguments):
    with pytest.raises(RegionError) as caught:
        call(*arguments)
    return caught.value.code.name, str(caught.value)


def test_client_shm_disabled_by_default():
    regions = Regions(is_enabled=False)
    assert regions.status() == []
    for call, arguments in (
        (regions.register, (region(), 64)),
        (regions.check_key, (region(),)),
        (regions.unregister, ("dummy_data",)),
        (regions.unregister_all, ()),
    ):
        code, text = refusal(call, *arguments)
        assert code == "UNIMPLEMENTED"
        assert "Client shared memory is disabled" in text
    assert regions.status() == []
    assert Code.UNIMPLEMENTED.http_status == 501


def test_valid_create_set_register(regions):
    assert names(registered(regions, "dummy_data")) == ["dummy_data"]


def test_unregister_after_register(regions):
    registered(regions, "dummy_data")
    assert regions.unregister("dummy_data") == [region()]
    assert regions.status() == []


def test_unregister_before_register(regions):
    assert regions.unregister("dummy_data") == []
    assert regions.status() == []


def test_reregister_after_register(regions):
    registered(regions, "dummy_data")
    code, text = refusal(regions.register, region(), 64)
    assert (code, text) == (
        "ALREADY_EXISTS",
        "shared memory region 'dummy_data' already in manager",
    )
    assert Code.ALREADY_EXISTS.http_status == 400
    assert names(regions) == ["dummy_data"]


def test_unregister_and_register_after_inference(regions):
    registered(regions, "in0", "in1", "out0", "out1")
    used = [regions.begin_use(name, 0, 64) for name in names(regions)]
    assert [regions.end_use(each) for each in used] == [[], [], [], []]
    assert names(regions) == ["in0", "in1", "out0", "out1"]
    regions.unregister("out0")
    assert names(regions) == ["in0", "in1", "out1"]
    registered(regions, "out0", "more")
    assert len(names(regions)) == 5


def test_unregisterall(regions):
    registered(regions, "a", "b", "c", "d")
    assert [each.name for each in regions.unregister_all()] == ["a", "b", "c", "d"]
    assert regions.status() == []


def test_too_big_shm():
    _, text = refusal(check_input_bytes, "simple", "INPUT1", 64, 128)
    assert text == (
        "input byte size mismatch for input 'INPUT1' for model 'simple'. Expected 64, got 128"
    )
    check_input_bytes("simple", "INPUT1", 64, 64)


def test_too_small_shm():
    code, text = refusal(check_output_bytes, "OUTPUT0", 16, 8)
    assert code == "INTERNAL"
    assert "'OUTPUT0' (8 bytes) should be at least 16 bytes to hold the results" in text
    check_output_bytes("OUTPUT0", 16, 16)
    check_output_bytes("OUTPUT0", 16, 17)


def test_large_shm_register_offset(regions):
    regions.register(region(offset=1023 * PAGE, size=PAGE), 1024 * PAGE)
    assert regions.begin_use("dummy_data", 0, PAGE).offset_bytes == 1023 * PAGE


@pytest.mark.parametrize("offset", [2**64 - 32, 64, -1])
def test_infer_offset_out_of_bound(regions, offset):
    registered(regions, "dummy_data")
    _, text = refusal(regions.begin_use, "dummy_data", offset, 32)
    assert "Invalid offset for shared memory region" in text


@pytest.mark.parametrize(("offset", "size"), [(1, 64), (0, 65), (63, 2), (0, -1)])
def test_infer_byte_size_out_of_bound(regions, offset, size):
    registered(regions, "dummy_data")
    _, text = refusal(regions.begin_use, "dummy_data", offset, size)
    assert "Invalid offset + byte size for shared memory region" in text


def test_infer_integer_overflow(regions):
    registered(regions, "dummy_data")
    _, text = refusal(regions.begin_use, "dummy_data", 32, 2**64 - 32)
    assert f"Integer overflow detected: byte_size ({2**64 - 32})" in text


@pytest.mark.parametrize(
    ("offset", "size"),
    [(0, PAGE + 1), (1, PAGE - 1), (PAGE, 1), (PAGE + 1, 0), (0, 0), (0, -1), (-PAGE, PAGE)],
)
def test_register_out_of_bound(regions, offset, size):
    _, text = refusal(regions.register, region("r9", offset=offset, size=size), PAGE)
    assert text == "failed to register shared memory region 'r9': invalid args"
    assert regions.status() == []


@pytest.mark.parametrize("slashes", ["", "/", "///"])
@pytest.mark.parametrize("own", ["triton_python_backend_shm_region_1", "tightship_7"])
def test_register_reserved_names(regions, slashes, own):
    code, text = refusal(regions.check_key, region(key=slashes + own))
    assert code == "INVALID_ARGUMENT"
    assert "contains the reserved prefix" in text


@pytest.mark.parametrize(
    "key", ["", "/", "///", "/..", ".", "//a", "/a/b", "a/../b", "/a\0", "/" + "a" * 255]
)
def test_invalid_keys(regions, key):
    _, text = refusal(regions.check_key, region(key=key))
    assert text.endswith("invalid shm key")


@pytest.mark.parametrize("requests", [1, 2])
def test_unregister_during_inference(regions, requests):
    registered(regions, "dummy_data")
    used = [regions.begin_use("dummy_data", 0, 64) for _ in range(requests)]
    assert regions.unregister("dummy_data") == []
    for each in used[:-1]:
        assert regions.end_use(each) == []
    assert names(regions) == ["dummy_data"]
    assert refusal(regions.register, region(), 64)[0] == "ALREADY_EXISTS"
    assert regions.end_use(used[-1]) == [region()]
    assert regions.status() == []
    registered(regions, "dummy_data")


def test_unregisterall_during_inference(regions):
    registered(regions, "in", "out")
    used = regions.begin_use("in", 0, 8)
    assert [each.name for each in regions.unregister_all()] == ["out"]
    assert names(regions) == ["in"]
    assert regions.end_use(used) == [used]


def test_what_is_not_there(regions):
    for call, arguments in ((regions.status, ("x",)), (regions.begin_use, ("x", 0, 1))):
        code, text = refusal(call, *arguments)
        assert (code, text) == ("NOT_FOUND", "Unable to find shared memory region: 'x'")
