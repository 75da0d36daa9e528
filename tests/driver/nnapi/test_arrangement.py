"""Reshapes and concatenations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.driver.nnapi import reference
from tests.driver.nnapi.network import F32, I32, RANGES, kind_of, of_one
from tests.driver.nnapi.tensors import SEEDS, TYPES, output_of, tensor
from tightship.driver.nnapi import graph_of
from tightship.errors import DriverError

SHAPES = st.lists(st.integers(1, 4), min_size=1, max_size=4)


@given(SHAPES, TYPES, SEEDS, st.integers(0, 3), st.randoms())
def test_a_reshape_keeps_every_element(shape, operand_type, seed, place, random):
    array, kind = tensor(np.random.default_rng(seed), operand_type, shape)
    lengths = random.sample(shape, len(shape))
    wanted = array.reshape(lengths)
    if place < len(lengths):
        lengths[place] = -1
    output = kind_of(operand_type, wanted.shape, kind.scale, kind.zero_point)
    named = lengths, kind_of(I32, (len(lengths),))
    result = of_one("RESHAPE", [(array, kind), named], output, (1,)).run()
    assert result.tobytes() == wanted.tobytes()
    assert result.shape == wanted.shape


@given(SHAPES, TYPES, SEEDS, st.lists(st.integers(1, 3), min_size=1, max_size=3), st.data())
def test_a_concatenation_joins_along_its_axis(shape, operand_type, seed, lengths, data):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    rng = np.random.default_rng(seed)
    tensors = []
    for length in lengths:
        shape[axis] = length
        tensors.append(tensor(rng, operand_type, shape))
    wanted = np.concatenate([reference.real(*each) for each in tensors], axis)
    output = output_of(operand_type, wanted.shape)
    if data.draw(st.booleans()):
        kind = tensors[0][1]
        output = kind_of(operand_type, wanted.shape, kind.scale, kind.zero_point)
    result = of_one("CONCATENATION", [*tensors, axis], output).run()
    reference.assert_close(result, wanted, output)


def test_integers_are_arranged_as_they_are():
    array = np.arange(-3, 3, dtype=np.int32)
    kind, lengths = kind_of(I32, (6,)), ([2, -1], kind_of(I32, (2,)))
    result = of_one("RESHAPE", [(array, kind), lengths], kind_of(I32, (2, 3)), (1,)).run()
    assert np.array_equal(result, array.reshape(2, 3))
    arguments = [(array, kind), (array, kind), -1]
    result = of_one("CONCATENATION", arguments, kind_of(I32, (12,))).run()
    assert np.array_equal(result, np.concatenate([array, array]))


@given(TYPES.filter(lambda each: each in RANGES), SEEDS)
def test_tensors_of_one_scale_are_joined_as_they_are(operand_type, seed):
    array, kind = tensor(np.random.default_rng(seed), operand_type, (3, 2))
    output = kind_of(operand_type, (6, 2), kind.scale, kind.zero_point)
    network = of_one("CONCATENATION", [(array, kind), (array, kind), 0], output)
    assert [node.operator for node in graph_of(network.model()).nodes] == ["Concat"]


@pytest.mark.parametrize("lengths", [(4,), (-1, -1), (0, 6), (-2, -3), (-1, 4), (-1, 0)])
def test_lengths_that_the_elements_cannot_take_are_refused(lengths):
    named = lengths, kind_of(I32, (len(lengths),))
    arguments = [(np.ones(6), kind_of(F32, (6,))), named]
    with pytest.raises(DriverError, match=r"RESHAPE\): operand 1 .*6 elements"):
        graph_of(of_one("RESHAPE", arguments, kind_of(F32), (1,)).model())


@pytest.mark.parametrize(
    ("other", "axis", "message"),
    [((2, 3), 2, "axis 2"), ((2, 3), -3, "axis -3"), ((3, 3), 1, "joined"), ((2,), 0, "joined")],
)
def test_tensors_that_do_not_fit_are_refused(other, axis, message):
    tensors = [(np.ones(shape), kind_of(F32, shape)) for shape in ((2, 3), other)]
    with pytest.raises(DriverError, match=message):
        graph_of(of_one("CONCATENATION", [*tensors, axis], kind_of(F32)).model())
