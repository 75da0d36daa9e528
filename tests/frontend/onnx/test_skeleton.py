import onnx
import pytest
from onnx import ModelProto, TensorProto

from tests import models
from tightship.errors import FormatError
from tightship.frontend.onnx.skeleton import PAYLOAD_BYTES_MIN, TensorField, read_skeleton


def test_large_tensors_leave_only_their_place() -> None:
    model = models.mlp(64)
    raw = model.SerializeToString()
    skeleton = read_skeleton(memoryview(raw), "model")
    assert skeleton.model.ByteSize() < 1000 < len(raw)
    for tensor, whole in zip(
        skeleton.model.graph.initializer, model.graph.initializer, strict=True
    ):
        if tensor.HasField("segment"):
            begin, end = tensor.segment.begin, tensor.segment.end
            assert raw[begin:end] == whole.raw_data
            assert skeleton.payloads[begin, end] is TensorField.RAW_DATA


def test_a_skeleton_with_its_payloads_put_back_is_the_model() -> None:
    model = models.mlp(64)
    raw = model.SerializeToString()
    skeleton = read_skeleton(memoryview(raw), "model")
    for tensor in skeleton.model.graph.initializer:
        if tensor.HasField("segment"):
            tensor.raw_data = raw[tensor.segment.begin : tensor.segment.end]
            tensor.ClearField("segment")
    assert skeleton.model == model
    assert len(skeleton.payloads) == 2


def test_tensors_within_subgraphs_and_functions_leave_their_place() -> None:
    big = models.numpy_helper.from_array(models.filled(512), "big")
    constant = onnx.helper.make_node("Constant", [], ["c"], value=big)
    graph = onnx.helper.make_graph([constant], "inner", [], [])
    outer = onnx.helper.make_node("If", ["f"], ["y"], then_branch=graph, else_branch=graph)
    function = onnx.helper.make_function("local", "F", [], ["c"], [constant], [])
    model = onnx.helper.make_model(
        onnx.helper.make_graph([outer], "outer", [], []), functions=[function]
    )
    skeleton = read_skeleton(memoryview(model.SerializeToString()), "model")
    assert len(skeleton.payloads) == 3
    assert skeleton.model.ByteSize() < 3 * PAYLOAD_BYTES_MIN


def test_documentation_is_dropped_where_it_is_long() -> None:
    model = models.mlp()
    model.doc_string = model.graph.doc_string = model.graph.node[0].doc_string = "x" * 10_000
    skeleton = read_skeleton(memoryview(model.SerializeToString()), "model")
    assert skeleton.model.ByteSize() < 1000
    assert [node.op_type for node in skeleton.model.graph.node] == ["Gemm", "Relu", "MatMul"]


def test_segments_are_refused() -> None:
    model = models.mlp(64)
    model.graph.initializer[0].segment.end = 7
    with pytest.raises(FormatError, match="segments"):
        read_skeleton(memoryview(model.SerializeToString()), "model")


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "it is empty"),
        (ModelProto(ir_version=8).SerializeToString(), "no graph"),
        (ModelProto(graph=onnx.GraphProto()).SerializeToString(), "no IR version"),
        (TensorProto(name="t", dims=[3] * 40).SerializeToString(), "not an ONNX model"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "not an ONNX model"),
        (b"PK\x03\x04" + bytes(range(200)), "not an ONNX model"),
        (models.mlp(64).SerializeToString()[:-1], "truncated"),
        (models.mlp(64).SerializeToString()[:5000], "truncated"),
    ],
)
def test_what_is_no_model_is_refused(raw: bytes, reason: str) -> None:
    with pytest.raises(FormatError, match=reason):
        read_skeleton(memoryview(raw), "model")


def test_messages_nested_too_deep_are_refused() -> None:
    raw = b"\x12" + bytes(600)
    for _ in range(150):
        for number in (6, 5, 1):
            raw = bytes([number << 3 | 2]) + _length(raw) + raw
    with pytest.raises(FormatError, match="nested"):
        read_skeleton(memoryview(b"\x3a" + _length(raw) + raw), "model")


def _length(raw: bytes) -> bytes:
    return models.head(1, len(raw))[1:]
