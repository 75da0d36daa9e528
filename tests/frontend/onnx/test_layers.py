"""Equal layers of a file are found, and a model without some of them is the model of fewer."""

from collections.abc import Callable

import onnx
import pytest
from onnx import TensorProto, helper

from tests import decoders
from tightship.frontend.onnx import OnnxFile, open_bytes

LAYERS = 7
SHAPES = {"input_ids": (1, 1), "attention_mask": (1, 4), "position_ids": (1, 1)}


def written(
    change: Callable[[onnx.GraphProto, list[onnx.NodeProto]], object] = lambda *_: None,
    make: Callable[..., bytes] = decoders.llama,
) -> OnnxFile:
    """A decoder of seven layers with a change, which is told of the nodes that add to a layer."""
    model = onnx.load_from_string(make(decoders.Size(layers=LAYERS)))
    softmax = [node for node in model.graph.node if node.op_type == "Softmax"]
    change(model.graph, softmax)
    return open_bytes(model.SerializeToString())


def graph_of(file: OnnxFile) -> list[str]:
    """Operators of the graph after three tokens."""
    caches = {name: (1, 2, 3, 8) for name in file.declared if name.startswith("past")}
    return [node.operator for node in file.graph({**SHAPES, **caches}).nodes]


@pytest.mark.parametrize("make", [decoders.llama, decoders.gpt2, decoders.genai])
def test_layers_are_found_in_the_files_of_exporters(make: Callable[..., bytes]) -> None:
    assert LAYERS - 1 <= written(make=make).layer_count() <= LAYERS


def test_a_model_without_layers_is_the_model_of_fewer() -> None:
    file = written()
    fewer = file.with_layers(file.layer_count() - 3)
    smaller = open_bytes(decoders.llama(decoders.Size(layers=LAYERS - 3)))
    assert len(fewer.declared) == len(smaller.declared)
    assert len(fewer.declared_outputs) == len(smaller.declared_outputs)
    assert graph_of(fewer) == graph_of(smaller)
    assert graph_of(fewer) == graph_of(fewer), "its messages are kept"
    assert len(graph_of(file)) > len(graph_of(fewer))


def test_weights_of_layers_that_are_left_out_are_left_out() -> None:
    file = written()
    assert file.layer_count() >= LAYERS - 1
    fewer = file.with_layers(2)._parsed().model.graph
    read = {name for node in fewer.node for name in node.input}
    unread = {tensor.name for tensor in fewer.initializer} - read
    whole = file._parsed().model.graph
    before = {tensor.name for tensor in whole.initializer} - {
        name for node in whole.node for name in node.input
    }
    assert unread <= before
    assert len(fewer.initializer) < len(whole.initializer)


def tie(graph: onnx.GraphProto, _: list[onnx.NodeProto]) -> None:
    """Let two of the layers have one weight."""
    products = [node for node in graph.node if node.op_type == "MatMul" and node.input[1][0] == "c"]
    per_layer = len(products) // LAYERS
    products[3 * per_layer].input[1] = products[4 * per_layer].input[1]


def read_middle(graph: onnx.GraphProto, softmax: list[onnx.NodeProto]) -> None:
    """Let a node after the layers read one in the middle."""
    graph.node.append(helper.make_node("Identity", [softmax[3].output[0]], ["middle"]))
    graph.output.append(helper.make_tensor_value_info("middle", TensorProto.FLOAT, None))


def read_far(graph: onnx.GraphProto, softmax: list[onnx.NodeProto]) -> None:
    """Let each layer read the layer before the one before it."""
    for node, before in zip(softmax[4:], softmax[2:], strict=False):
        place = list(graph.node).index(node)
        added = helper.make_node("Add", [node.input[0], before.output[0]], [f"far{place}"])
        node.input[0] = added.output[0]
        graph.node.insert(place, added)


def branch(graph: onnx.GraphProto, _: list[onnx.NodeProto]) -> None:
    """Add a node with graphs."""
    inner = helper.make_graph(
        [helper.make_node("Constant", [], ["k"], value_int=1)], "branch", [],
        [helper.make_tensor_value_info("k", TensorProto.INT64, [])],
    )  # fmt: skip
    graph.initializer.append(helper.make_tensor("flag", TensorProto.BOOL, [], [True]))
    graph.node.append(
        helper.make_node("If", ["flag"], ["unused"], then_branch=inner, else_branch=inner)
    )


def differ(_: onnx.GraphProto, softmax: list[onnx.NodeProto]) -> None:
    """Let one layer have another attribute."""
    softmax[3].attribute[0].i = 3


@pytest.mark.parametrize("change", [tie, read_middle, read_far, branch, differ])
def test_layers_that_differ_or_are_read_otherwise_are_none(
    change: Callable[[onnx.GraphProto, list[onnx.NodeProto]], object],
) -> None:
    assert written(change).layer_count() == 0


def test_tables_are_compared_by_their_elements() -> None:
    def change(graph: onnx.GraphProto, _: list[onnx.NodeProto]) -> None:
        tables = [t for t in graph.initializer if t.data_type == TensorProto.BOOL]
        assert len(tables) == LAYERS
        tables[3].raw_data = bytes([1 - tables[3].raw_data[0]]) + tables[3].raw_data[1:]

    assert written(change, decoders.gpt2).layer_count() == 0


def cast_before(to: int) -> Callable[..., None]:
    """Return a change that reads a float16 vector through a cast in each layer."""

    def change(graph: onnx.GraphProto, softmax: list[onnx.NodeProto]) -> None:
        for layer, node in enumerate(softmax):
            values = helper.make_tensor(f"half{layer}", TensorProto.FLOAT16, [2], [layer, 1.0])
            graph.initializer.append(values)
            cast = helper.make_node("Cast", [values.name], [f"whole{layer}"], to=to)
            graph.node.insert(list(graph.node).index(node), cast)
            back = helper.make_node("CastLike", [cast.output[0], node.input[0]], [f"like{layer}"])
            graph.node.insert(list(graph.node).index(node), back)
            least = helper.make_node("ReduceMin", [back.output[0]], [f"least{layer}"], keepdims=0)
            graph.node.insert(list(graph.node).index(node), least)
            added = helper.make_node("Add", [node.input[0], least.output[0]], [f"more{layer}"])
            node.input[0] = added.output[0]
            graph.node.insert(list(graph.node).index(node), added)

    return change


@pytest.mark.parametrize(
    ("to", "is_found"),
    [(TensorProto.FLOAT, True), (TensorProto.BFLOAT16, True), (TensorProto.INT64, False)],
)
def test_constants_that_stay_real_are_not_compared(to: int, *, is_found: bool) -> None:
    """Halves of each layer are widened; those that become integers may be shapes."""
    assert (written(cast_before(to)).layer_count() > 0) == is_found
