"""Table 2.5: models that break a rule are refused wherever they are given."""

import math
from dataclasses import replace

import pytest

from tests.driver.small_models import GF, IA, NONE, Client, shaped
from tightship.driver.protocol.messages import Prepare, SupportedOperations, UnregisterPool
from tightship.driver.protocol.replies import ModelPrepared, Supported
from tightship.driver.types.model import (
    DataLocation,
    ExternalFile,
    Lifetime,
    Model,
    ModelFile,
    ModelName,
    Operand,
    Operation,
    Subgraph,
)
from tightship.driver.types.operand_type import OperandType, ValueType
from tightship.driver.types.pools import Image
from tightship.driver.types.status import ErrorStatus

FLOAT = ValueType(OperandType.TENSOR_FLOAT32, (2, 4))
SIZE = FLOAT.size_bytes
INPUT, TEMPORARY, OUTPUT, COPIED, REFERRED, SCALAR, NOTHING = range(7)


@pytest.fixture
def client():
    return Client()


@pytest.fixture
def pool(client):
    return client.pool(4096)


@pytest.fixture
def model(pool):
    """Two additions: of the input and a copied constant, then of that and one in a pool."""
    operands = (
        Operand(FLOAT, Lifetime.SUBGRAPH_INPUT),
        Operand(FLOAT, Lifetime.TEMPORARY_VARIABLE),
        Operand(FLOAT, Lifetime.SUBGRAPH_OUTPUT),
        Operand(FLOAT, Lifetime.CONSTANT_COPY, DataLocation(0, 4, SIZE)),
        Operand(FLOAT, Lifetime.CONSTANT_REFERENCE, DataLocation(0, 64, SIZE)),
        Operand(ValueType(OperandType.INT32), Lifetime.CONSTANT_COPY, DataLocation(0, 0, 4)),
        Operand(FLOAT, Lifetime.NO_VALUE),
    )
    operations = (
        Operation(0, (INPUT, COPIED, SCALAR), (TEMPORARY,)),
        Operation(0, (TEMPORARY, REFERRED, SCALAR, NOTHING), (OUTPUT,)),
    )
    return Model(
        Subgraph(operands, operations, (INPUT,), (OUTPUT,)),
        operand_values=bytes(4 + SIZE),
        pools=(pool,),
    )


def with_operand(model, index, **changes):
    operands = list(model.main.operands)
    operands[index] = replace(operands[index], **changes)
    return replace(model, main=replace(model.main, operands=tuple(operands)))


def with_main(model, **changes):
    return replace(model, main=replace(model.main, **changes))


def statuses(client, model):
    return {client.status(Prepare(model)), client.status(SupportedOperations(model))}


def refused(client, model):
    return statuses(client, model) == {IA}


def test_the_model_itself_is_fine(client, model):
    assert isinstance(client(Prepare(model)), ModelPrepared)
    assert client(SupportedOperations(model)) == Supported((True, True))


OWN = {INPUT: {1}, TEMPORARY: {0}, OUTPUT: {2}, COPIED: {3, 4}, REFERRED: {3, 4}, SCALAR: {3, 4}}


@pytest.mark.parametrize(
    ("index", "lifetime"),
    [(index, each) for index in OWN for each in range(-1, 8) if each not in OWN[index]],
)
def test_mutate_operand_lifetime(client, model, index, lifetime):
    grown = replace(model, operand_values=bytes(4096))
    assert refused(client, with_operand(grown, index, lifetime=lifetime))


@pytest.mark.parametrize(
    ("index", "lifetime"),
    [
        (COPIED, Lifetime.SUBGRAPH_INPUT),
        (INPUT, Lifetime.CONSTANT_COPY),
        (OUTPUT, Lifetime.TEMPORARY_VARIABLE),
        (TEMPORARY, Lifetime.SUBGRAPH_OUTPUT),
    ],
)
def test_mutate_operand_input_output(client, model, index, lifetime):
    location = DataLocation(0, 0, SIZE) if lifetime == Lifetime.CONSTANT_COPY else DataLocation()
    assert refused(client, with_operand(model, index, lifetime=lifetime, location=location))


def test_mutate_operand_add_writer_remove_write_and_execution_order(client, model):
    first, second = model.main.operations
    for operations in (
        (first, first, second),
        (second, first),
        (second,),
        (first,),
        (),
        (replace(first, outputs=()), second),
        (replace(first, outputs=(TEMPORARY, TEMPORARY)), second),
        (replace(first, outputs=(COPIED,)), second),
        (replace(first, outputs=(TEMPORARY, INPUT)), second),
        (replace(first, outputs=(TEMPORARY, COPIED)), second),
        (replace(first, operation_type=-1), second),
    ):
        assert refused(client, with_main(model, operations=operations))


@pytest.mark.parametrize("index", range(6))
@pytest.mark.parametrize("operand_type", [-1, 15, 16, 10_000, 2**16])
def test_mutate_operand_type(client, model, index, operand_type):
    value_type = replace(model.main.operands[index].value_type, operand_type=operand_type)
    assert refused(client, with_operand(model, index, value_type=value_type))


def test_mutate_operand_rank(client, model):
    for dimensions in ((1,), (0,), (2, 2)):
        scalar = ValueType(OperandType.INT32, dimensions)
        assert refused(client, with_operand(model, SCALAR, value_type=scalar))
        assert refused(client, with_operand(model, INPUT, value_type=scalar))
    scalar = ValueType(OperandType.INT32)
    assert statuses(client, with_operand(model, INPUT, value_type=scalar)) == {NONE}


SCALES = [
    (OperandType.TENSOR_QUANT8_ASYMM, 0.5, (-1, 256), (0, 255)),
    (OperandType.TENSOR_QUANT8_ASYMM_SIGNED, 0.5, (-129, 128), (-128, 127)),
    (OperandType.TENSOR_QUANT8_SYMM, 0.5, (-1, 1, 128), (0,)),
    (OperandType.TENSOR_QUANT16_SYMM, 0.5, (-1, 1), (0,)),
    (OperandType.TENSOR_QUANT16_ASYMM, 0.5, (-1, 65536), (0, 65535)),
    (OperandType.TENSOR_FLOAT32, 0.0, (-1, 1), (0,)),
    (OperandType.TENSOR_INT32, 0.5, (1,), (0,)),
]


@pytest.mark.parametrize(("operand_type", "scale", "wrong", "right"), SCALES)
def test_mutate_operand_scale_and_zero_point(client, model, operand_type, scale, wrong, right):
    def given(scale, zero_point):
        value_type = ValueType(operand_type, (2, 4), scale, zero_point)
        return with_operand(model, INPUT, value_type=value_type)

    assert all(statuses(client, given(scale, each)) == {NONE} for each in right)
    assert all(refused(client, given(scale, each)) for each in wrong)
    for bad in (-1.0, math.nan, math.inf):
        assert refused(client, given(bad, 0))
    is_quantized = operand_type not in {OperandType.TENSOR_FLOAT32, OperandType.TENSOR_INT32}
    assert refused(client, given(0.0, 0)) == is_quantized


def test_mutate_operation_operand_index(client, model):
    first, second = model.main.operations
    for index in (-1, 7, 2**20):
        for changed in (replace(first, inputs=(index,)), replace(first, outputs=(index,))):
            assert refused(client, with_main(model, operations=(changed, second)))


def test_remove_operand_input_output_and_add_them(client, model):
    assert refused(client, with_main(model, operands=model.main.operands[:-1]))
    for indexes in ((), (INPUT, INPUT), (INPUT, COPIED), (INPUT, -1), (INPUT, 99)):
        assert refused(client, with_main(model, input_indexes=indexes))
    for indexes in ((), (OUTPUT, OUTPUT), (OUTPUT, TEMPORARY), (INPUT,)):
        assert refused(client, with_main(model, output_indexes=indexes))


def test_cycle(client, model):
    first, second = model.main.operations
    looped = (replace(first, inputs=(OUTPUT, COPIED, SCALAR)), second)
    assert refused(client, with_main(model, operations=looped))


BAD_CONSTANTS = {
    "a pool that the model does not have": (REFERRED, DataLocation(1, 0, SIZE)),
    "a pool below zero": (REFERRED, DataLocation(-1, 0, SIZE)),
    "a byte too far": (REFERRED, DataLocation(0, 4096 - SIZE + 4, SIZE)),
    "an offset that wraps in 32 bits": (REFERRED, DataLocation(0, 2**32 - 4, SIZE)),
    "an offset that wraps in 64 bits": (REFERRED, DataLocation(0, 2**63 - 4, SIZE)),
    "an offset below zero": (REFERRED, DataLocation(0, -4, SIZE)),
    "a length that is not its size": (REFERRED, DataLocation(0, 0, SIZE + 4)),
    "padding": (REFERRED, DataLocation(0, 0, SIZE, 1)),
    "an offset between elements": (REFERRED, DataLocation(0, 2, SIZE)),
    "a copy beyond the values": (COPIED, DataLocation(0, 8, SIZE)),
    "a copy a byte beyond the values": (COPIED, DataLocation(0, 5, SIZE)),
    "a copy in a pool": (COPIED, DataLocation(1, 0, SIZE)),
    "a copy with padding": (COPIED, DataLocation(0, 0, SIZE, 4)),
    "no value and a length": (NOTHING, DataLocation(0, 0, 4)),
    "an input with a place": (INPUT, DataLocation(0, 0, SIZE)),
    "a temporary with an offset": (TEMPORARY, DataLocation(0, 4, 0)),
}


@pytest.mark.parametrize(("index", "location"), BAD_CONSTANTS.values(), ids=BAD_CONSTANTS.keys())
def test_a_location_with(client, model, index, location):
    assert refused(client, with_operand(model, index, location=location))


def test_a_constant_has_known_dimensions(client, model):
    for dimensions in ((), (0, 4), (2, 0), (2**31 - 1,) * 3, (2**31, 4), (-2, 4)):
        value_type = shaped(FLOAT, *dimensions)
        for length in (SIZE, 0):
            location = DataLocation(0, 0, length)
            changed = with_operand(model, COPIED, value_type=value_type, location=location)
            assert refused(client, changed)


def test_a_value_has_fewer_than_2_63_bytes(client, model):
    longest = (2**31 - 1, 2**31 - 1)
    for kind, expected in ((OperandType.TENSOR_FLOAT16, NONE), (OperandType.TENSOR_FLOAT32, IA)):
        changed = with_operand(model, INPUT, value_type=ValueType(kind, longest))
        assert statuses(client, changed) == {expected}


def test_a_pool_that_is_not_there_or_an_image(client, model):
    assert refused(client, replace(model, pools=(1,)))
    image = client.pool(4096, kind="hardware_buffer", image=Image(32, 32, 1, 128))
    assert refused(client, replace(model, pools=(image,)))


@pytest.mark.parametrize("fields", [{"kind": "what is this"}, {"protection": 0}])
def test_a_pool_that_cannot_be_read_is_a_general_failure(client, model, fields):
    pool = client.pool(4096, **fields)
    assert statuses(client, replace(model, pools=(pool,))) == {GF}


def subgraph_model(model, *links):
    """A model whose referenced subgraphs refer to others."""
    kind = ValueType(OperandType.SUBGRAPH)
    referenced = []
    for targets in links:
        operands = (
            Operand(FLOAT, Lifetime.SUBGRAPH_INPUT),
            Operand(FLOAT, Lifetime.SUBGRAPH_OUTPUT),
            *(Operand(kind, Lifetime.SUBGRAPH, DataLocation(0, each)) for each in targets),
        )
        referenced.append(Subgraph(operands, (Operation(0, (0,), (1,)),), (0,), (1,)))
    return replace(model, referenced=tuple(referenced))


def test_subgraphs_refer_to_each_other_without_a_circle(client, model):
    assert statuses(client, subgraph_model(model, (1, 2), (2,), ())) == {NONE}
    for links in (((0,),), ((1,), (0,)), ((1,), (2,), (0,)), ((1,),), ((-1,),)):
        assert refused(client, subgraph_model(model, *links))


def test_a_subgraph_is_one_by_type_and_by_lifetime(client, model):
    kind = ValueType(OperandType.SUBGRAPH)
    whole = subgraph_model(model, ())
    good = Operand(kind, Lifetime.SUBGRAPH)
    for bad in (
        replace(good, value_type=FLOAT),
        replace(good, lifetime=Lifetime.NO_VALUE),
        replace(good, location=DataLocation(1)),
        replace(good, location=DataLocation(0, 0, 4)),
    ):
        assert statuses(client, with_operand(whole, NOTHING, **fields_of(good))) == {NONE}
        assert refused(client, with_operand(whole, NOTHING, **fields_of(bad)))


def fields_of(operand):
    return {name: getattr(operand, name) for name in ("value_type", "lifetime", "location")}


def test_a_long_row_of_subgraphs_is_checked_in_no_time(client, model):
    links = [(index + 1,) for index in range(2000)]
    assert statuses(client, subgraph_model(model, *links, ())) == {NONE}


GOOD_FILE = {"file_format": 1, "offset_bytes": 16, "length_bytes": 4080, "externals": ()}
BAD_FILES = [
    {"file_format": 3},
    {"file_format": -1},
    {"offset_bytes": -1},
    {"offset_bytes": 17},
    {"length_bytes": 0},
    {"length_bytes": 2**63 - 1},
    {"externals": (ExternalFile("a", 1),)},
    {"pool": 1},
]


@pytest.mark.parametrize("wrong", BAD_FILES, ids=repr)
def test_a_model_in_a_pool(client, pool, wrong):
    client.server.engine.types = (FLOAT,), (FLOAT,)
    fields = {"pool": pool} | GOOD_FILE
    assert client.status(Prepare(ModelFile(**(fields | wrong)))) is IA
    twice = (ExternalFile("a", pool), ExternalFile("a", pool))
    assert client.status(Prepare(ModelFile(**fields | {"externals": twice}))) is IA
    reply = client(Prepare(ModelFile(**fields)))
    assert (reply.inputs, reply.outputs) == ((FLOAT,), (FLOAT,))


@pytest.mark.parametrize("kind", [Prepare, SupportedOperations])
def test_a_pool_stays_while_the_server_looks_at_a_model_in_it(client, model, pool, kind):
    client.server.post(client.number, kind(model))
    client.server.post(client.number, UnregisterPool(pool))
    assert client.server.open_files
    client.server.answer_all()
    assert bool(client.server.open_files) == (kind is Prepare)


def test_a_model_by_name_is_what_the_driver_makes_of_it(client):
    client.server.engine.types = (FLOAT,), (FLOAT,)
    assert client.status(Prepare(ModelName("resnet"))) is NONE
    client.server.engine.status = IA
    assert client.status(Prepare(ModelName("no such"))) is IA


def test_a_model_that_cannot_be_prepared_leaves_nothing(client, model, pool):
    for status in (GF, ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT):
        client.server.engine.status = status
        assert client.status(Prepare(model)) is status
    assert client.status(UnregisterPool(pool)) is NONE
    assert not client.server.models
    assert not client.server.open_files
