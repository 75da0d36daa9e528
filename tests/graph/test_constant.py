from pathlib import Path

import numpy as np
import pytest

from tightship.errors import FormatError
from tightship.graph import Derived, DType, Fill, Inline, Mapped, MappedFile
from tightship.graph.constant import READ_BYTES_MAX
from tightship.graph.symbolic import constant_key

MIB = 1 << 20


def written(path, array):
    path.write_bytes(array.tobytes())
    return MappedFile(path)


def resident_file_kib():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssFile"))


@pytest.fixture
def numbers(tmp_path):
    return written(tmp_path / "numbers.bin", np.arange(100, dtype=np.float32))


def test_a_mapped_constant_is_the_bytes_of_the_file(numbers):
    constant = Mapped(numbers, 40, DType.FLOAT32, (3, 5))
    np.testing.assert_array_equal(constant.array(), 10 + np.arange(15.0).reshape(3, 5))
    assert constant.array().dtype == np.float32


def test_a_large_constant_is_not_copied(tmp_path):
    numbers = written(tmp_path / "large.bin", np.arange((READ_BYTES_MAX >> 2) + 1, dtype=np.int32))
    constant = Mapped(numbers, 0, DType.INT32, (numbers.size_bytes // 4,))
    first, second = constant.array(), constant.array()
    assert first.ctypes.data == second.ctypes.data
    assert not first.flags.owndata
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 1


def test_a_small_constant_brings_no_page_of_its_file_in(tmp_path):
    numbers = written(tmp_path / "numbers.bin", np.arange(READ_BYTES_MAX >> 1, dtype=np.int32))
    before_kib = resident_file_kib()
    constant = Mapped(numbers, 4 << 10, DType.INT32, (100,))
    assert constant.array().tolist() == list(range(1 << 10, (1 << 10) + 100))
    assert resident_file_kib() - before_kib < 64
    with pytest.raises(ValueError, match="read-only"):
        constant.array()[0] = 1


def test_bytes_in_memory_serve_as_a_file(numbers):
    data = np.arange(6, dtype=np.int16).tobytes()
    constant = Mapped(MappedFile.of_bytes(data, Path("given")), 2, DType.INT16, (2, 2))
    assert constant.array().tolist() == [[1, 2], [3, 4]]
    assert constant.array().ctypes.data == np.frombuffer(data, np.int16).ctypes.data + 2
    constant.release()
    assert constant.array().tolist() == [[1, 2], [3, 4]]
    assert numbers.size_bytes == 400


@pytest.mark.parametrize(("offset", "size"), [(397, 4), (-4, 4), (0, 401), (400, 1), (8, -4)])
def test_a_range_outside_the_file_is_named_with_the_file(numbers, offset, size):
    with pytest.raises(FormatError) as refused:
        numbers.bytes_at(offset, size)
    text = str(refused.value)
    assert f"`{numbers.path}` has 400 bytes" in text
    assert f"[{offset}, {offset + size})" in text


def test_a_tensor_that_leaves_its_file_is_refused(numbers):
    Mapped(numbers, 0, DType.FLOAT32, (100,)).array()
    with pytest.raises(FormatError, match=r"numbers\.bin.*\[4, 404\)"):
        Mapped(numbers, 4, DType.FLOAT32, (100,)).array()


def test_an_empty_file_holds_empty_tensors_only(tmp_path):
    file = written(tmp_path / "empty.bin", np.empty(0))
    constant = Mapped(file, 0, DType.FLOAT32, (3, 0))
    assert constant.array().shape == (3, 0)
    constant.release()
    with pytest.raises(FormatError, match=r"empty\.bin` has 0 bytes"):
        file.bytes_at(0, 1)


def test_releasing_bytes_in_memory_changes_none_of_them():
    data = np.random.default_rng(1).bytes(3 * 4096 + 17)
    file = MappedFile.of_bytes(data, Path("given"))
    file.release()
    assert bytes(file.bytes_at(0, len(data))) == data


def test_a_released_constant_leaves_memory_and_comes_back(tmp_path):
    size = 64 * MIB
    values = np.arange(size // 8, dtype=np.int64)
    constant = Mapped(written(tmp_path / "large.bin", values), 0, DType.INT64, values.shape)
    before = resident_file_kib()
    total = int(constant.array().sum())
    held = resident_file_kib() - before
    constant.release()
    kept = resident_file_kib() - before
    assert held * 1024 > 0.9 * size
    assert kept * 1024 < 0.05 * size
    assert int(constant.array().sum()) == total


def test_releasing_a_part_drops_its_neighbours_too(tmp_path):
    """Reading a page brings in those around it, which would otherwise stay."""
    size = 64 * MIB
    file = written(tmp_path / "large.bin", np.ones(size, np.uint8))
    before = resident_file_kib()
    Mapped(file, 0, DType.UINT8, (size,)).array().sum()
    Mapped(file, size // 2, DType.UINT8, (1,)).release()
    assert (resident_file_kib() - before) * 1024 < 0.05 * size


def test_an_inline_constant_is_its_array():
    array = np.arange(6, dtype=np.uint8).reshape(2, 3)
    constant = Inline(array)
    assert constant.array() is array
    assert (constant.dtype, constant.shape) == (DType.UINT8, (2, 3))
    constant.release()


def test_a_fill_takes_the_memory_of_one_element():
    constant = Fill(np.asarray(2.5, np.float32), (1 << 20, 1 << 20))
    array = constant.array()
    assert (array.shape, array.strides) == ((1 << 20, 1 << 20), (0, 0))
    assert array[123, 456] == 2.5
    assert constant.dtype is DType.FLOAT32
    constant.release()


@pytest.mark.parametrize("value", [np.float32(3), np.array([3], np.float32)])
def test_a_fill_repeats_a_scalar_or_a_single_element(value):
    np.testing.assert_array_equal(Fill(value, (2, 2)).array(), np.full((2, 2), 3, np.float32))


def derived(shape, *sources):
    return Derived(DType.FLOAT32, shape, lambda: np.ones(shape, np.float32), sources)


def test_a_derived_constant_is_computed_each_time_it_is_asked_for():
    calls = []
    constant = Derived(DType.INT8, (2,), lambda: calls.append(1) or np.zeros(2, np.int8))
    assert calls == []
    constant.array()
    constant.array()
    assert calls == [1, 1]


def test_a_derived_constant_of_another_shape_is_a_defect():
    constant = Derived(DType.INT8, (2,), lambda: np.zeros(3, np.int8))
    with pytest.raises(AssertionError):
        constant.array()


def test_what_computing_holds_is_the_result_and_the_largest_chain_of_sources():
    small, large = derived((10,)), derived((1000,), derived((5,)))
    inline = Inline(np.zeros(10**4, np.float32))
    assert derived((3,)).transient_bytes == 12
    assert derived((3,), inline).transient_bytes == 12
    assert derived((3,), small, large, inline).transient_bytes == 12 + 4000 + 20


def test_releasing_a_derived_constant_releases_its_sources():
    class Source(Inline):
        released = 0

        def release(self):
            type(self).released += 1

    source = Source(np.zeros(1, np.float32))
    derived((1,), derived((1,), source), source).release()
    assert Source.released == 2


def doubled(depth):
    """A constant that is added to itself again and again: two to the power of `depth` paths."""
    made = Inline(np.ones(2, np.float32))
    for _ in range(depth):
        made = Derived(DType.FLOAT32, (2,), made.array, (made, made), "twice")
    return made


def test_keys_of_a_constant_that_is_used_often_are_made_and_compared_at_once():
    first, second = constant_key(doubled(64)), constant_key(doubled(64))
    assert first == second
    assert hash(first) == hash(second)
    assert first != constant_key(doubled(63))
