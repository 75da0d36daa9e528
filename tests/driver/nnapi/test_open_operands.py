"""Models of operands whose inputs have the dimensions that a request says, in another process."""

import itertools
from dataclasses import replace

import numpy as np
import onnxruntime
import pytest
from onnx import TensorProto, helper

from tests.driver.nnapi import reference
from tests.driver.nnapi.cases import CASES, Case, built
from tests.driver.nnapi.test_control import COUNT, FLAG, W
from tests.driver.nnapi.test_native_operands import TYPES
from tests.driver.nnapi.test_translate import UNKNOWN_OPERATION
from tightship.driver import ModelBuilder, tensor_type
from tightship.driver.client.remote import COPIES_MAX
from tightship.driver.models.open_subgraph_sequence import CHAINS_MAX
from tightship.driver.models.running import OFTEN
from tightship.driver.nnapi.operation_type import OperationType
from tightship.driver.types.model import Lifetime
from tightship.driver.types.status import ErrorStatus
from tightship.engine.cache.bounds import Bounds
from tightship.errors import DriverError, InputError

PROGRAMS_MAX = Bounds().programs
ROWS = tensor_type("f4", (0, 3))
KNOWN = frozenset({Lifetime.CONSTANT_COPY, Lifetime.CONSTANT_REFERENCE})
OPENINGS = {
    "unknown lengths": lambda kind: (0,) * len(kind.dimensions),
    "unknown rank": lambda _: (),
}


@pytest.mark.parametrize("opening", OPENINGS.values(), ids=OPENINGS.keys())
@pytest.mark.parametrize("operand_type", TYPES.values(), ids=TYPES.keys())
@pytest.mark.parametrize("make", CASES.values(), ids=CASES.keys())
def test_an_operation_gives_what_it_is_for_dimensions_of_a_request(
    client, make, operand_type, opening
):
    network, wanted, kind = make(Case(operand_type))
    for index, operand in enumerate(network.operands):
        if operand.lifetime not in KNOWN:
            found = replace(operand.value_type, dimensions=opening(operand.value_type))
            network.operands[index] = replace(operand, value_type=found)
    builder = built(network)
    assert client.supported_operations(builder) == (True,)
    with client.prepare(builder) as model:
        assert model.interface.outputs[0].dimensions == opening(kind)
        (result,) = model.execute(network.feeds)
    reference.assert_close(result, wanted, kind)


def image_network(weights, matrix):
    """A convolution, a pool over what is there, and a layer; height, width and batch are open."""
    builder, image = ModelBuilder(), tensor_type("f4", (0, 0, 0, 3))
    value, between = builder.input(image), tensor_type("f4", None)
    bias = builder.constant(np.zeros(len(weights), np.float32))
    scalars = [builder.constant(value) for value in (1, 1, 1, 1)]
    first = builder.temporary(between)
    builder.operation(
        OperationType.CONV_2D, [value, builder.constant(weights), bias, *scalars], [first]
    )
    second = builder.temporary(between)
    scalars = [builder.constant(value) for value in (2, 2, 2, 2, 2, 0)]
    builder.operation(OperationType.MAX_POOL_2D, [first, *scalars], [second])
    rows = builder.temporary(between)
    lengths = builder.constant(np.array([-1, len(weights)], np.int32))
    builder.operation(OperationType.RESHAPE, [second, lengths], [rows])
    names = [rows, builder.constant(matrix), builder.constant(np.zeros(len(matrix), np.float32))]
    output = builder.output(tensor_type("f4", (0, len(matrix))))
    builder.operation(OperationType.FULLY_CONNECTED, [*names, builder.constant(0)], [output])
    return builder


def image_session(weights, matrix):
    """The same for onnxruntime, in whose models images have channels first."""
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], auto_pad="SAME_UPPER"),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("MaxPool", ["b"], ["c"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Transpose", ["c"], ["d"], perm=[0, 2, 3, 1]),
        helper.make_node("Reshape", ["d", "s"], ["e"]),
        helper.make_node("Gemm", ["e", "m"], ["y"], transB=1),
    ]
    constants = {"w": weights.transpose(0, 3, 1, 2), "m": matrix}
    constants["s"] = np.array([-1, len(weights)])
    ends = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, "h", "w_"]),
        helper.make_tensor_value_info("y", TensorProto.FLOAT, ["r", len(matrix)]),
    ]
    kinds = {"f": TensorProto.FLOAT, "i": TensorProto.INT64}
    stored = [
        helper.make_tensor(name, kinds[array.dtype.kind], array.shape, array.flatten())
        for name, array in constants.items()
    ]
    graph = helper.make_graph(nodes, "images", ends[:1], ends[1:], stored)
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    return onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )


def test_a_network_of_images_of_any_size_gives_what_onnxruntime_gives(client):
    rng = np.random.default_rng(2)
    weights = rng.standard_normal((8, 3, 3, 3)).astype(np.float32)
    matrix = rng.standard_normal((5, 8)).astype(np.float32)
    session = image_session(weights, matrix)
    with client.prepare(image_network(weights, matrix)) as model:
        for shape in [(1, 6, 8, 3), (2, 5, 4, 3), (1, 6, 8, 3), (3, 12, 2, 3)]:
            x = rng.standard_normal(shape).astype(np.float32)
            (wanted,) = session.run(None, {"x": x.transpose(0, 3, 1, 2)})
            (result,) = model.execute([x])
            np.testing.assert_allclose(result, wanted, 1e-4, 1e-4)


def open_loop():
    """tanh(x W) as often as the second input says, x of any number of rows."""
    condition, body, builder = is_before_rows(), ModelBuilder(), ModelBuilder()
    count, value, _ = (body.input(kind) for kind in (COUNT, ROWS, COUNT))
    none = body.constant(0)
    body.operation(
        OperationType.ADD, [count, body.constant([1], COUNT), none], [body.output(COUNT)]
    )
    product = body.temporary(tensor_type("f4", None))
    names = [value, body.constant(W), body.constant(np.zeros(3, np.float32)), none]
    body.operation(OperationType.FULLY_CONNECTED, names, [product])
    body.operation(OperationType.TANH, [product], [body.output(ROWS)])
    x, limit = builder.input(ROWS), builder.input(COUNT)
    names = [builder.subgraph(condition), builder.subgraph(body), builder.constant([0], COUNT)]
    outputs = [builder.temporary(COUNT), builder.output(ROWS)]
    builder.operation(OperationType.WHILE, [*names, x, limit], outputs)
    return builder


def is_before_rows():
    builder = ModelBuilder()
    count, _, limit = (builder.input(kind) for kind in (COUNT, ROWS, COUNT))
    builder.operation(OperationType.LESS, [count, limit], [builder.output(FLAG)])
    return builder


def test_a_loop_runs_for_more_dimensions_than_stay_loaded(client):
    rng = np.random.default_rng(4)
    with client.prepare(open_loop()) as model:
        for rows in [*range(1, CHAINS_MAX + 3), 2, 1]:
            x = rng.standard_normal((rows, 3)).astype(np.float32)
            wanted = x
            for _ in range(3):
                wanted = np.tanh(wanted @ W.T)
            (result,) = model.execute([x, np.array([3], np.int32)])
            np.testing.assert_allclose(result, wanted, 1e-5, 1e-5)


def sum_of_rows():
    """Two inputs of any number of rows, added."""
    builder = ModelBuilder()
    names = [builder.input(ROWS), builder.input(ROWS), builder.constant(0)]
    builder.operation(OperationType.ADD, names, [builder.output(ROWS)])
    return builder


def test_an_error_in_all_dimensions_is_refused_before_they_are_known(client):
    builder = ModelBuilder()
    value, between = builder.input(ROWS), builder.temporary(ROWS)
    builder.operation(OperationType.RELU, [value], [between])
    builder.operation(UNKNOWN_OPERATION, [between], [builder.output(ROWS)])
    assert client.supported_operations(builder) == (True, False)
    with pytest.raises(DriverError, match="type 5"):
        client.prepare(builder)
    loop = open_loop()
    (inner,) = (each for each in loop.subgraphs.values() if len(each.operations) > 1)
    inner.operations[-1] = replace(inner.operations[-1], operation_type=UNKNOWN_OPERATION)
    assert client.supported_operations(loop) == (False,)
    with pytest.raises(DriverError, match="type 5"):
        client.prepare(loop)


def test_inputs_whose_dimensions_do_not_go_together_break_a_rule(client):
    with client.prepare(sum_of_rows()) as model:
        two, three = np.zeros((2, 3), np.float32), np.zeros((3, 3), np.float32)
        with pytest.raises(DriverError) as caught:
            model.execute([two, three])
        assert caught.value.status == ErrorStatus.INVALID_ARGUMENT
        with pytest.raises(
            InputError, match=r"shape \[2, 4\]; the model takes float32 and \[0, 3\]"
        ):
            model.execute([np.zeros((2, 4), np.float32), two])
        assert model.execute([three, three])[0].shape == (3, 3)


def test_weights_are_there_once_for_all_dimensions(client):
    """A layer of 1 MiB, run with several numbers of rows."""
    builder = ModelBuilder()
    weights = np.random.default_rng(0).standard_normal((512, 512)).astype(np.float32)
    names = [builder.input(tensor_type("f4", (0, 512))), builder.constant(weights)]
    names += [builder.constant(np.zeros(512, np.float32)), builder.constant(0)]
    output = builder.output(tensor_type("f4", (0, 512)))
    builder.operation(OperationType.FULLY_CONNECTED, names, [output])
    with client.prepare(builder) as model:
        for rows in (8, 16, 24, 32):
            x = np.ones((rows, 512), np.float32)
            np.testing.assert_allclose(model.execute([x])[0], x @ weights.T, 1e-3, 1e-3)
        (share,) = client.inspect().clients[0].models
    assert weights.nbytes <= share.weights_bytes < 2 * weights.nbytes


def test_a_burst_and_reusable_executions_take_dimensions_likewise(client):
    with client.prepare(sum_of_rows()) as model, model.burst() as burst:
        for rows in (1, 4, 1, 2, 5, 6, 7):
            x = np.full((rows, 3), rows, np.float32)
            np.testing.assert_array_equal(burst.execute([x, x])[0], 2 * x)
            np.testing.assert_array_equal(model.execute([x, x])[0], 2 * x)
            with model.reusable([x, x]) as reusable:
                np.testing.assert_array_equal(reusable.execute()[0], 2 * x)
        held = [pool for pool in client.inspect().clients[-1].pools if pool.is_registered]
        assert len(held) <= COPIES_MAX + 2  # with that of the burst, and that of the model


def test_an_output_may_be_placed_where_the_driver_writes_it(client):
    with client.prepare(sum_of_rows()) as model, client.segment(1 << 12) as segment:
        for rows in (2, 3):
            x, y = (segment.place((rows, 3), "f4") for _ in range(2))
            x.array[...] = rows
            for _ in range(5):
                model.execute([x, x], [y])
                np.testing.assert_array_equal(y.array, 2 * x.array)
                y.array[...] = 0


def test_placed_arrays_of_more_dimensions_than_programs_stay_are_run_again_and_again(client):
    """The runs need no service, and partly no Python, while programs come and go."""
    with client.prepare(sum_of_rows()) as model, client.segment(1 << 17) as segment:
        placed = [
            [segment.place((count, 3), "f4") for _ in range(2)]
            for count in range(1, PROGRAMS_MAX + 8)
        ]
        for (x, y), _ in itertools.product(placed + placed, range(2 * OFTEN)):
            x.array[...] += 1
            model.execute([x, x], [y])
            np.testing.assert_array_equal(y.array, 2 * x.array)
