import numpy as np
import pytest

from tests.engine.graphs import graph_of, lowered, static_placement
from tests.models import filled
from tests.processor import needs_avx512
from tests.zoo.networks import STATIC
from tightship import _core
from tightship._core import MemoryDesc, Reorderer
from tightship.engine.lower.passes.affine import Scaled
from tightship.engine.program.program import PackedWeight
from tightship.engine.weights import pack
from tightship.graph import Derived, DType, Fill, Inline, Mapped, MappedFile

ONEDNN = pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")
GUARD = 64
UNTOUCHED = 0xA5


def packed(weight):
    """The packed bytes, checked to need no more staging than was said."""
    needed = pack.staging_bytes([weight])
    staging = np.full(needed + GUARD, UNTOUCHED, np.uint8)
    room = np.zeros(weight.size_bytes + GUARD, np.uint8)
    pack.Packer(staging[:needed]).pack(weight, room[: weight.size_bytes])
    assert (staging[needed:] == UNTOUCHED).all()
    assert not room[weight.size_bytes :].any()
    return room[: weight.size_bytes]


def moved(array, source, target):
    """`array`, laid out as `source` says, laid out as `target` does: all of it in one go."""
    held, room = np.ascontiguousarray(array), np.zeros(target.size_bytes, np.uint8)
    Reorderer().run(source, held.ctypes.data, target, room.ctypes.data)
    return room


def logical(weight):
    """A reordered constant under the kernel's own dimensions."""
    strides = [4 * stride for stride in weight.source.strides]
    array = np.ascontiguousarray(weight.constant.array(), np.float32)
    return np.lib.stride_tricks.as_strided(array, weight.source.dims, strides)


def check(weight):
    """Check that packing by parts equals one reorder of the whole, and unpacks to the weight."""
    found = packed(weight)
    if weight.desc is None:
        np.testing.assert_array_equal(found, weight.constant.array().reshape(-1).view(np.uint8))
        return
    dense = MemoryDesc(weight.source.dims)
    back = moved(found, weight.desc, dense).view(np.float32).reshape(dense.dims)
    np.testing.assert_array_equal(back, logical(weight))
    whole = moved(weight.constant.array(), weight.source, weight.desc)
    np.testing.assert_array_equal(found, whole)


def conv(outputs, inputs, kernel=3, groups=1):
    graph = graph_of(
        f"""g (float[1, {inputs}, 8, 8] x) => (float[1, {outputs}, h, v] y) {{
            y = Conv <group = {groups}> (x, w, b) }}""",
        w=filled(outputs, inputs // groups, kernel, kernel), b=filled(outputs),
    )  # fmt: skip
    return lowered(graph).weights


def gemm(rows, depth, columns, *, transposed=False):
    graph = graph_of(
        f"""g (float[{rows}, {depth}] x) => (float[{rows}, {columns}] y) {{
            y = Gemm <transB = {int(transposed)}> (x, w, b) }}""",
        w=filled(*((columns, depth) if transposed else (depth, columns))), b=filled(columns),
    )  # fmt: skip
    return lowered(graph).weights


WEIGHTS = {
    "1 channel": lambda: conv(16, 1),
    "1 output": lambda: conv(1, 16),
    "3 to 17": lambda: conv(17, 3),
    "17 to 17": lambda: conv(17, 17),
    "17 to 1000": lambda: conv(1000, 17, 1),
    "1000 to 17": lambda: conv(17, 1000, 1),
    "64 to 64": lambda: conv(64, 64),
    "4 groups": lambda: conv(32, 32, 3, 4),
    "narrow groups": lambda: conv(6, 6, 3, 3),
    "odd groups": lambda: conv(34, 34, 3, 2),
    "depthwise": lambda: conv(32, 32, 3, 32),
    "depthwise of 17": lambda: conv(17, 17, 3, 17),
    "matrix": lambda: gemm(4, 64, 96),
    "transposed matrix": lambda: gemm(4, 64, 96, transposed=True),
    "odd transposed matrix": lambda: gemm(3, 17, 1000, transposed=True),
    "narrow matrix": lambda: gemm(4, 300, 2),
    "narrow transposed matrix": lambda: gemm(4, 300, 3, transposed=True),
    "column": lambda: gemm(4, 33, 1),
    "row": lambda: gemm(1, 1, 33),
}


@ONEDNN
@pytest.mark.parametrize("piece_bytes", [1, 9000])
@pytest.mark.parametrize("make", WEIGHTS.values(), ids=WEIGHTS)
def test_weights_are_packed_as_if_in_one_go_however_they_are_cut(make, piece_bytes, monkeypatch):
    monkeypatch.setattr(pack, "PIECE_BYTES", piece_bytes)
    for weight in make():
        check(weight)


@ONEDNN
@pytest.mark.parametrize("name", STATIC)
def test_so_are_those_of_whole_networks(name, monkeypatch):
    monkeypatch.setattr(pack, "PIECE_BYTES", 3000)
    for weight in static_placement(name).lowered.weights:
        check(weight)


@ONEDNN
@pytest.mark.parametrize("piece_bytes", [1, 2000, 1 << 20])
@pytest.mark.parametrize("make", WEIGHTS.values(), ids=WEIGHTS)
def test_a_scaled_weight_is_packed_as_its_product(make, piece_bytes, monkeypatch):
    monkeypatch.setattr(pack, "PIECE_BYTES", piece_bytes)
    weight = max(make(), key=lambda weight: weight.size_bytes)
    factor = filled(weight.constant.shape[0])
    check(PackedWeight("w", Scaled(weight.constant, Inline(factor)), weight.size_bytes,
                       weight.source, weight.desc))  # fmt: skip


@needs_avx512
def test_a_large_weight_is_cut_and_each_part_given_back():
    class Counted(Inline):
        calls = 0

        def release(self):
            type(self).calls += 1

    constant = Counted(filled(1024, 2048))
    desc = max(gemm(128, 1024, 2048), key=lambda weight: weight.size_bytes).desc
    weight = PackedWeight("w", constant, desc.size_bytes, MemoryDesc([1024, 2048]), desc)
    assert pack.staging_bytes([weight]) <= 1.1 * pack.PIECE_BYTES
    check(weight)
    assert Counted.calls >= 8


@ONEDNN
@pytest.mark.parametrize("piece_bytes", [1, 100, 1 << 20])
def test_axes_may_be_stored_in_any_order(piece_bytes, monkeypatch):
    monkeypatch.setattr(pack, "PIECE_BYTES", piece_bytes)
    source = MemoryDesc([4, 5, 6], "float32", [1, 24, 4])
    check(PackedWeight("w", Inline(filled(5, 6, 4)), 480, source, MemoryDesc([4, 5, 6])))


@ONEDNN
def test_few_long_rows_are_cut_along_the_rows(monkeypatch):
    monkeypatch.setattr(pack, "PIECE_BYTES", 1000)
    target = MemoryDesc([2, 900], "float32", [1, 2])
    weight = PackedWeight("w", Inline(filled(2, 900)), 7200, MemoryDesc([2, 900]), target)
    assert pack.staging_bytes([weight]) <= 1000
    check(weight)


def test_staging_is_for_the_largest_part_of_any_weight():
    small, large = conv(16, 16), conv(64, 64)
    assert pack.staging_bytes((*small, *large)) == pack.staging_bytes(large)
    assert pack.staging_bytes(()) == 0


@pytest.mark.parametrize("piece_bytes", [1, 30, 1 << 20])
@pytest.mark.parametrize(
    "array",
    [
        np.arange(60, dtype=np.int64).reshape(5, 4, 3),
        np.arange(7, dtype=np.float16),
        np.array(3.5),
        np.empty((0, 3), np.float32),
        np.empty((3, 0), np.float32),
        np.array([[True, False]] * 9),
        np.asfortranarray(filled(6, 5)),
    ],
    ids=lambda array: f"{array.dtype}{list(array.shape)}",
)
def test_what_is_not_reordered_is_copied_row_major(array, piece_bytes, monkeypatch):
    monkeypatch.setattr(pack, "PIECE_BYTES", piece_bytes)
    weight = PackedWeight("w", Inline(array), array.nbytes)
    assert pack.staging_bytes([weight]) == 0
    np.testing.assert_array_equal(packed(weight), np.frombuffer(array.tobytes(), np.uint8))


def kinds(tmp_path):
    values = filled(9, 4)
    (tmp_path / "w.bin").write_bytes(bytes(12) + values.tobytes())
    return {
        "mapped": Mapped(MappedFile(tmp_path / "w.bin"), 12, DType.FLOAT32, (9, 4)),
        "inline": Inline(values),
        "fill": Fill(np.float32(2), (9, 4)),
        "derived": Derived(DType.FLOAT32, (9, 4), lambda: values * 2),
        "scaled": Scaled(Inline(values), Inline(filled(9))),
        "scaled derived": Scaled(Derived(DType.FLOAT32, (9, 4), lambda: values),
                                 Derived(DType.FLOAT32, (9,), lambda: filled(9))),
    }  # fmt: skip


@pytest.mark.parametrize(
    "kind", ["mapped", "inline", "fill", "derived", "scaled", "scaled derived"]
)
def test_every_kind_of_constant_is_packed(kind, tmp_path, monkeypatch):
    monkeypatch.setattr(pack, "PIECE_BYTES", 40)
    constant = kinds(tmp_path)[kind]
    wanted = np.ascontiguousarray(constant.array())
    copied = packed(PackedWeight("w", constant, 144))
    np.testing.assert_array_equal(copied.view(np.float32).reshape(9, 4), wanted)
    if _core.HAS_ONEDNN:
        swapped = MemoryDesc([9, 4], "float32", [1, 9])
        found = packed(PackedWeight("w", constant, 144, MemoryDesc([9, 4]), swapped))
        np.testing.assert_array_equal(found.view(np.float32).reshape(4, 9), wanted.T)


@ONEDNN
def test_a_constant_that_is_computed_is_computed_once(monkeypatch):
    monkeypatch.setattr(pack, "PIECE_BYTES", 40)
    calls = []
    constant = Derived(DType.FLOAT32, (9, 4), lambda: calls.append(1) or filled(9, 4))
    swapped = MemoryDesc([9, 4], "float32", [1, 9])
    packed(PackedWeight("w", constant, 144, MemoryDesc([9, 4]), swapped))
    packed(PackedWeight("w", constant, 144))
    factor = Derived(DType.FLOAT32, (9,), lambda: calls.append(2) or filled(9))
    scaled = Scaled(Inline(filled(9, 4)), factor)
    packed(PackedWeight("w", scaled, 144, MemoryDesc([9, 4]), swapped))
    assert calls == [1, 1, 2]


@ONEDNN
def test_integers_that_are_computed_are_reordered_from_where_they_are() -> None:
    shape = [64, 48, 3, 3]
    integers = np.random.default_rng(0).integers(-128, 128, shape, np.int8)
    source, target = MemoryDesc(shape, "int8"), MemoryDesc.named(shape, "int8", "Acdb16a")
    computed = Derived(DType.INT8, tuple(shape), lambda: integers)
    weight = PackedWeight("w", computed, target.size_bytes, source, target)
    assert pack.staging_bytes([weight]) == 0
    np.testing.assert_array_equal(packed(weight), moved(integers, source, target))
