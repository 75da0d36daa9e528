"""Table 2.1: what a buffer may be allocated for; 15 rows for each of 4 types."""

import itertools
import math
from dataclasses import replace

import pytest

from tests.driver.fake_server import FakeServer
from tests.driver.small_models import (
    GF,
    IA,
    NONE,
    QUANTIZED,
    SHAPE,
    TYPES,
    Client,
    add,
    conv,
    shaped,
)
from tightship.driver.protocol import messages as m
from tightship.driver.protocol.messages import Role
from tightship.driver.protocol.replies import Allocated
from tightship.driver.types.operand_type import OperandType, ValueType
from tightship.driver.types.per_channel import PerChannel
from tightship.driver.types.quota import Resource
from tightship.driver.types.settings import CONNECTION_LIMITS, Settings
from tightship.driver.types.status import ErrorStatus

PERSISTENT = ErrorStatus.RESOURCE_EXHAUSTED_PERSISTENT
TRANSIENT = ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT
BOTH = ("inputs", "outputs")
PAIRS = (  # roles of the first and of the second model
    {"inputs": (Role(0, 0), Role(1, 0))},
    {"inputs": (Role(0, 0),), "outputs": (Role(1, 0),)},
    {"outputs": (Role(0, 0), Role(1, 0))},
)


@pytest.fixture
def client():
    return Client()


@pytest.fixture(params=TYPES.values(), ids=TYPES.keys())
def kind(request):
    return request.param


def status(client, models, **terms):
    reply = client.allocate(models, **terms)
    return NONE if isinstance(reply, Allocated) else reply.status


def both(client, models, role, **terms):
    return [status(client, models, **{side: (role,)}, **terms) for side in BOTH]


def test_a1_without_a_role(client, kind):
    assert status(client, ()) is IA
    assert status(client, (client.model(conv(kind)),)) is IA


def test_a2_without_a_model(client, kind):
    client.model(conv(kind))
    assert both(client, (0,), 0) == [IA, IA]


def test_a3_with_the_model_of_another_client(client, kind):
    foreign = Client(client.server).model(conv(kind))
    assert both(client, (foreign,), 0) == [IA, IA]


def test_a4_with_a_model_index_too_large(client, kind):
    assert both(client, (client.model(conv(kind)),), Role(1, 0)) == [IA, IA]


def test_a5_with_an_argument_index_too_large(client, kind):
    assert both(client, (client.model(conv(kind)),), 1) == [IA, IA]


def test_a6_with_a_probability_that_is_none(client, kind):
    model = client.model(conv(kind))
    for probability in (10.0, 0.0, -0.5, math.nan, math.inf):
        assert both(client, (model,), Role(0, 0, probability)) == [IA, IA]


def test_a7_with_a_role_given_twice(client, kind):
    model = client.model(conv(kind))
    for side, second in itertools.product(BOTH, (0, 1)):
        roles = (Role(0, 0), Role(second, 0))
        assert status(client, (model, model), **{side: roles}) is IA


def test_a8_with_roles_whose_channels_are_quantized_otherwise(client):
    one, other = (
        ValueType(
            OperandType.TENSOR_QUANT8_SYMM_PER_CHANNEL,
            SHAPE,
            extra_params=PerChannel(0, (scale,)).encoded(),
        )
        for scale in (0.5, 1.0)
    )
    assert conflicts(client, conv(one), conv(one)) == [NONE] * 3
    assert conflicts(client, conv(one), conv(other)) == [IA] * 3


def conflicts(client, one, other):
    models = client.model(one), client.model(other)
    return [status(client, models, **roles) for roles in PAIRS]


def test_a8_with_roles_of_different_types(client, kind):
    kinds = list(TYPES.values())
    other = kinds[kinds.index(kind) - 1]
    assert conflicts(client, conv(kind), conv(other)) == [IA, IA, IA]


def test_a9_with_roles_of_different_scales(client, kind):
    if kind not in [TYPES[name] for name in QUANTIZED]:
        kind = ValueType(OperandType.TENSOR_INT32, SHAPE, 0.5)
    assert conflicts(client, conv(kind), conv(replace(kind, scale=1.0))) == [IA, IA, IA]


def test_a10_with_roles_of_different_zero_points(client, kind):
    if kind not in [TYPES[name] for name in QUANTIZED]:
        kind = ValueType(OperandType.TENSOR_QUANT16_ASYMM, SHAPE, 0.5)
    assert conflicts(client, conv(kind), conv(replace(kind, zero_point=10))) == [IA, IA, IA]


def test_a11_with_roles_of_different_ranks(client, kind):
    assert conflicts(client, add(kind), add(shaped(kind, *SHAPE[:3]))) == [IA, IA, IA]


def test_a12_with_roles_of_different_dimensions(client, kind):
    assert conflicts(client, conv(kind), conv(shaped(kind, 4, 32, 32, 8))) == [IA, IA, IA]


def test_a13_with_a_rank_that_no_role_has(client, kind):
    model = client.model(conv(kind))
    assert both(client, (model,), 0, dimensions=SHAPE[:3]) == [IA, IA]


def test_a14_with_dimensions_that_no_role_has(client, kind):
    model = client.model(conv(kind))
    assert both(client, (model,), 0, dimensions=(4, 32, 32, 8)) == [IA, IA]


def test_a15_with_dimensions_for_a_scalar(client, kind):
    model = client.model(add(kind))
    assert status(client, (model,), inputs=(2,), dimensions=(1,)) is IA
    assert status(client, (model,), inputs=(2,)) is NONE


def test_a16_whatever_the_rules_allow(client, kind):
    model, other = client.model(conv(kind)), client.model(conv(shaped(kind, 0, 32, 32, 8)))
    for roles in ({"inputs": (0,)}, {"outputs": (0,)}, {"inputs": (0,), "outputs": (0,)}):
        assert status(client, (model,), **roles) is NONE
    for roles in PAIRS:
        assert status(client, (model, other), **roles) is NONE
    assert status(client, (client.model(conv(shaped(kind))),), inputs=(0,)) is NONE


def test_a16_with_indexes_below_zero(client, kind):
    model = client.model(conv(kind))
    assert both(client, (model,), Role(-1, 0)) == [IA, IA]
    assert both(client, (model,), Role(0, -1)) == [IA, IA]
    assert both(client, (model,), 0, dimensions=(-1, 32, 32, 8)) == [IA, IA]


def test_a16_with_dimensions_whose_product_overflows(client):
    model = client.model(conv(ValueType(OperandType.TENSOR_FLOAT32, (0, 0, 0))))
    huge = (2**31 - 1,) * 3
    assert both(client, (model,), 0, dimensions=huge) == [PERSISTENT, PERSISTENT]


def test_a_driver_without_buffers_says_so():
    client = Client(FakeServer(Settings(features=frozenset())))
    assert status(client, (client.model(conv(TYPES["float32"])),), inputs=(0,)) is GF


@pytest.mark.parametrize(
    "times", [3000, pytest.param(100_000, marks=pytest.mark.slow)], ids=["some", "many"]
)
def test_a16_tokens_are_positive_and_never_given_twice(client, times):
    model = client.model(conv(TYPES["float32"]))
    seen = set()
    for _ in range(times):
        token = client.buffer((model,), inputs=(0,))
        assert 0 < token < 2**31
        seen.add(token)
        assert client.status(m.Free(token)) is NONE
        assert client.status(m.Free(token)) is IA
    assert len(seen) == times
    assert not client.server.buffers


def test_too_many_buffers_are_refused_until_one_is_freed():

    limits = dict(CONNECTION_LIMITS) | {Resource.BUFFERS: 2}
    client = Client(FakeServer(Settings(connection_limits=limits)))
    model = client.model(conv(TYPES["float32"]))
    tokens = [client.buffer((model,), inputs=(0,)) for _ in range(2)]
    assert status(client, (model,), inputs=(0,)) is TRANSIENT
    client(m.Free(tokens[0]))
    assert status(client, (model,), inputs=(0,)) is NONE


def test_an_allocation_that_fails_leaves_nothing(client):
    model = client.model(conv(TYPES["float32"]))
    client.server.engine.status = TRANSIENT
    assert status(client, (model,), inputs=(0,)) is TRANSIENT
    assert not client.server.buffers
