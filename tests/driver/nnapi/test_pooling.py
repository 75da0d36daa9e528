"""Pooling against its definition."""

import numpy as np
import pytest
from hypothesis import given

from tests.driver.nnapi import reference
from tests.driver.nnapi.network import F32, U8, kind_of, of_one
from tests.driver.nnapi.tensors import ACTIVATIONS, LENGTHS, SEEDS, TYPES, tensor
from tests.driver.nnapi.windows import geometries
from tightship.driver.nnapi import graph_of
from tightship.errors import DriverError

KINDS = {"MAX_POOL_2D": reference.max_pool, "AVERAGE_POOL_2D": reference.average_pool}


def shaped(kind, shape):
    return kind_of(kind.operand_type, shape, kind.scale, kind.zero_point)


@pytest.mark.parametrize("name", KINDS)
@given(geometries(is_dilated=False), TYPES, SEEDS, LENGTHS, ACTIVATIONS)
def test_a_pool_takes_its_windows_without_their_padding(
    name, geometry, operand_type, seed, depth, activation
):
    rng = np.random.default_rng(seed)
    image, kind = tensor(rng, operand_type, (2, *geometry.image, depth))
    wanted = reference.activated(
        KINDS[name](reference.real(image, kind), *geometry.terms), activation
    )
    if geometry.is_channels_first:
        image, wanted = image.transpose(0, 3, 1, 2), wanted.transpose(0, 3, 1, 2)
    output = shaped(kind, wanted.shape)
    middle = geometry.kernel[1], geometry.kernel[0]
    arguments = [(image, shaped(kind, image.shape)), *geometry.arguments(middle, activation)]
    reference.assert_close(of_one(name, arguments, output).run(), wanted, output)


def test_a_window_that_lies_in_the_padding_is_refused():
    image = tensor(np.random.default_rng(0), F32, (1, 4, 4, 1))
    arguments = [image, 2, 0, 0, 0, 1, 1, 2, 2, 0]
    network = of_one("MAX_POOL_2D", arguments, kind_of(F32, (1, 3, 5, 1)))
    with pytest.raises(
        DriverError, match=r"\(MAX_POOL_2D\) cannot be translated: its padding is 2"
    ):
        graph_of(network.model())


def test_a_pool_that_changes_the_scale_is_refused():
    image = tensor(np.random.default_rng(0), U8, (1, 4, 4, 1))
    network = of_one("MAX_POOL_2D", [image, 2, 1, 1, 2, 2, 0], kind_of(U8, (1, 3, 3, 1), 0.5))
    with pytest.raises(DriverError, match=r"operand 7 \(output 0\) has scale 0.5"):
        graph_of(network.model())
