"""Kernels of the native core, run outside any model."""

import ctypes

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightship._core import NativeContext, NativeKernel, NativeProgram, StopFlag


def run_kernel(kernel, *operands, threads=1):
    """Run a kernel once over arrays."""
    program = NativeProgram()
    program.add_kernel(kernel, [(2 + slot, 0) for slot in range(len(operands))])
    program.compile(threads)
    context = NativeContext(program, 0)
    for slot, operand in enumerate(operands):
        context.bind_external(slot, ctypes.c_char.from_address(operand.ctypes.data))
    assert context.run((0, 1), StopFlag()) == "done"


@st.composite
def permuted(draw):
    """An array under permuted strides, of any element size."""
    shape = tuple(draw(st.lists(st.integers(1, 5), max_size=5)))
    dtype = draw(st.sampled_from([np.int8, np.float16, np.float32, np.int64, np.complex128]))
    array = (np.arange(np.prod(shape, dtype=int)) % 127).astype(dtype).reshape(shape)
    return array.transpose(draw(st.permutations(range(len(shape)))))


@given(permuted(), st.integers(1, 3))
def test_a_copy_keeps_elements_whatever_the_strides(source, threads):
    target = np.empty(source.shape, source.dtype)
    kernel = NativeKernel.copy(
        source.itemsize, list(source.shape), list(source.strides), list(target.strides)
    )
    run_kernel(kernel, source, target, threads=threads)
    assert (target == source).all()


def test_a_large_copy_is_cut_into_parts_that_cover_it():
    source = np.arange(3 * 50_001, dtype=np.int32).reshape(3, 50_001)
    target = np.zeros((50_001, 3), np.int32).T
    kernel = NativeKernel.copy(4, [3, 50_001], list(source.strides), list(target.strides))
    run_kernel(kernel, source, target, threads=2)
    assert (target == source).all()


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("shape", [(3, 2, 40_000), (5, 9, 1000, 2), (7, 5000, 3), (40, 30, 20, 2)])
def test_blocks_cut_into_bands_among_threads_cover_everything(shape, threads):
    wide = (*shape[:-1], shape[-1] + 1)
    source = np.arange(np.prod(wide), dtype=np.int32).reshape(wide)[..., :-1].swapaxes(0, 1)
    target = np.zeros(source.shape, np.int32)
    kernel = NativeKernel.copy(4, list(source.shape), list(source.strides), list(target.strides))
    run_kernel(kernel, source, target, threads=threads)
    assert (target == source).all()


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("rows", "gap"), [(1, 0), (3, 5)])
def test_a_copy_past_the_caches_covers_everything_and_no_more(rows, gap, threads):
    length = (17 << 20) // 4 // rows + 1  # in elements of 4 bytes, more than `kStreamedBytes`
    source = np.arange(rows * (length + gap), dtype=np.int32).reshape(rows, -1)[:, :length]
    room = np.full(rows * (length + gap) + 8, -1, np.int32)
    target = room[3 : 3 + rows * (length + gap)].reshape(rows, -1)
    strides = list(source.strides)
    run_kernel(
        NativeKernel.copy(4, [rows, length], strides, strides), source, target, threads=threads
    )
    assert (target[:, :length] == source).all()
    assert (target[:, length:] == -1).all()
    assert (room[:3] == -1).all()
    assert (room[-5:] == -1).all()


def test_a_repeated_source_is_a_broadcast():
    target = np.empty((4, 3), np.int64)
    run_kernel(NativeKernel.copy(8, [4, 3], [0, 8], [24, 8]), np.array([5, 6, 7]), target)
    assert target.tolist() == [[5, 6, 7]] * 4
