"""Arrays of outputs that later runs write into once callers have released them."""

import numpy as np
import pytest

from tests.at_once import at_once
from tests.zoo.net import Case, Net
from tightship import load
from tightship.engine.run.output_buffer_pool import LARGE_BYTES, OutputBufferPool

SHAPE = (LARGE_BYTES // 4,)
FLOAT = np.dtype(np.float32)


def taken(kept: OutputBufferPool, name: str = "y", shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    return kept.array(name, shape, FLOAT)


def test_an_array_that_was_released_is_taken_again() -> None:
    kept = OutputBufferPool()
    address = taken(kept).ctypes.data
    assert taken(kept).ctypes.data == address


@pytest.mark.parametrize(
    "hold",
    [
        lambda array: array,
        lambda array: array[3:5],
        lambda array: array.reshape(2, -1)[:, ::2].T,
        memoryview,
        lambda array: np.frombuffer(array, np.uint8),
    ],
    ids=["itself", "a slice", "a view of a view", "a buffer", "an array of a buffer"],
)
def test_an_array_with_a_reader_is_not(hold) -> None:
    kept = OutputBufferPool()
    held = hold(taken(kept))
    again = taken(kept)
    assert not np.shares_memory(np.asarray(held), again)


def test_released_arrays_are_kept_no_longer_and_arrays_with_readers_live_on() -> None:
    kept = OutputBufferPool()
    held = taken(kept)
    held[:] = 3
    kept.release()
    taken(kept)[:] = 4
    assert (held == 3).all()
    assert len(kept._arrays) == 1
    kept.release()
    assert not kept._arrays


def test_an_array_of_another_size_replaces_the_one_before() -> None:
    kept = OutputBufferPool()
    address = taken(kept).ctypes.data
    assert taken(kept, shape=(2, LARGE_BYTES // 8)).ctypes.data == address
    assert taken(kept, shape=(2 * LARGE_BYTES,)).shape == (2 * LARGE_BYTES,)
    assert [each.nbytes for each in kept._arrays.values()] == [8 * LARGE_BYTES]


def test_small_arrays_and_other_outputs_are_apart() -> None:
    kept = OutputBufferPool()
    one, other = taken(kept), taken(kept, "z")
    small = [taken(kept, shape=(LARGE_BYTES // 4 - 1,)) for _ in range(2)]
    assert not np.shares_memory(one, other)
    assert not np.shares_memory(*small)
    assert not kept._arrays.keys() - {"y", "z"}


def doubled() -> Case:
    net = Net()
    net.output(net("Add", net.normal("x", *SHAPE), "x"))
    return net.case()


def test_results_of_threads_are_their_own() -> None:
    case = doubled()
    wrong: list[int] = []

    def run(seed: int) -> None:
        x = np.full(SHAPE, seed, np.float32)
        for _ in range(20):
            result = next(iter(model.run({"x": x}).values()))
            if not (result == 2 * seed).all():
                wrong.append(seed)

    with load(case.model) as model:
        at_once(run, range(4))
    assert not wrong


def test_a_result_stays_valid_while_it_is_held_and_makes_room_after() -> None:
    case = doubled()
    with load(case.model) as model:
        first = model(np.ones(SHAPE, np.float32))
        second = model(np.zeros(SHAPE, np.float32))
        assert (first == 2).all()
        assert not second.any()
        address = second.ctypes.data
        del second
        assert model(np.ones(SHAPE, np.float32)).ctypes.data == address
