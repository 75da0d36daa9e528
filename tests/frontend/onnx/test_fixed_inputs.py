"""`fixes_all_shapes` agrees with the reader of ONNX files, which needs onnx."""

from pathlib import Path

import pytest
from onnx import ModelProto, TypeProto

from tests.models import conv_net, filled, loop_model, mlp, parse
from tightship.frontend.onnx import OnnxFile, open_bytes
from tightship.frontend.onnx.fixed_inputs import fixes_all_shapes


def fixes(model: ModelProto | bytes, folder: Path) -> bool:
    path = folder / "model.onnx"
    path.write_bytes(model if isinstance(model, bytes) else model.SerializeToString())
    return fixes_all_shapes(str(path))


def reads_as_fixed(file: OnnxFile) -> bool:
    return all(
        shape is not None and all(isinstance(length, int) for length in shape)
        for shape in file.declared.values()
    )


MODELS = {
    "all fixed": conv_net(),
    "scalar": loop_model(),
    "a name": mlp(),
    "unknown": parse("g (float[?, 2] x) => (float[?, 2] y) { y = Neg (x) }"),
    "any rank": parse("g (float[] x) => (float[] y) { y = Neg (x) }"),
    "no inputs": parse("g () => (float[2] y) { y = Neg (w) }", w=filled(2)),
    "constant among the inputs": parse(
        "g (float[2] x, float[2] w) => (float[2] y) { y = Add (x, w) }", w=filled(2)
    ),
    "empty axis": parse("g (float[0, 2] x) => (float[0, 2] y) { y = Neg (x) }"),
}


@pytest.mark.parametrize("name", MODELS)
def test_it_says_what_the_reader_says(name: str, tmp_path: Path) -> None:
    model = MODELS[name]
    assert fixes(model, tmp_path) == reads_as_fixed(open_bytes(model.SerializeToString()))
    assert fixes(model, tmp_path) == (name not in ("a name", "unknown", "any rank"))


def test_sequences_and_negative_lengths_are_open(tmp_path: Path) -> None:
    model = conv_net()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    assert not fixes(model, tmp_path)
    sequence = TypeProto()
    sequence.sequence_type.elem_type.CopyFrom(conv_net().graph.input[0].type)
    model.graph.input[0].type.CopyFrom(sequence)
    assert not fixes(model, tmp_path)


def test_what_is_not_understood_fixes_nothing(tmp_path: Path) -> None:
    whole = conv_net().SerializeToString()
    for cut in range(1, len(whole), 7):
        assert not fixes(whole[:-cut], tmp_path)
    assert not fixes(b"\x38\x01", tmp_path)  # a graph that is a number
    assert not fixes(b"# a text\n", tmp_path)
