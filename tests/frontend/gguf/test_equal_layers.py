"""Equal layers that are read once, against graphs of which each layer was read."""

import pytest

from tests.frontend.gguf.decoders import Model, decoder
from tests.frontend.gguf.written import random_blocks
from tightship.errors import FormatError
from tightship.frontend.gguf.architectures import ARCHITECTURES
from tightship.frontend.gguf.equal_layers import stand_ins
from tightship.frontend.gguf.file import GgufFile, open_bytes
from tightship.frontend.gguf.nodes import Nodes
from tightship.frontend.gguf.parameters import read_parameters
from tightship.frontend.gguf.weights import Weights
from tightship.frontend.onnx import OnnxFile
from tightship.graph import Constant, Graph

LENGTHS = {"batch_size": 1, "sequence_length": 5, "past_sequence_length": 3,
           "total_sequence_length": 8}  # fmt: skip


def both(file: GgufFile, *, symbolic: bool) -> tuple[Graph, Graph]:
    """Return the graph, and the same with each layer read."""
    shapes = None if symbolic else {
        name: tuple([LENGTHS[d] if isinstance(d, str) else d for d in shape or () if d])
        for name, shape in file.declared.items()
    }  # fmt: skip
    return (file.graph(shapes, allow_symbolic=symbolic),
            OnnxFile.graph(file, shapes, allow_symbolic=symbolic))  # fmt: skip


def numbers(known: tuple[str, Constant]) -> tuple[object, ...]:
    name, constant = known
    return name, constant.dtype, constant.shape, constant.array().tobytes()


def check(model: Model) -> None:
    file = open_bytes(model.written())
    for symbolic in (False, True):
        found, wanted = both(file, symbolic=symbolic)
        assert (found.inputs, found.outputs) == (wanted.inputs, wanted.outputs)
        assert found.nodes == wanted.nodes
        assert dict(found.values) == dict(wanted.values)
        assert set(map(numbers, found.known.items())) == set(map(numbers, wanted.known.items()))
        assert found.constants.keys() == wanted.constants.keys()
        for name, constant in found.constants.items():
            assert constant.array().tobytes() == wanted.constants[name].array().tobytes()
    assert file.output_shapes() == {name: wanted.value(name).shape for name in wanted.outputs}


def stands(model: Model) -> tuple[int, ...]:
    file = open_bytes(model.written())
    return stand_ins(Weights(file._contents, Nodes()), read_parameters(file._contents.metadata))


@pytest.mark.parametrize("kind", ARCHITECTURES)
def test_copies_are_what_reading_each_layer_gives(kind: str) -> None:
    model = decoder(kind, "Q8_0", layers=4)
    assert stands(model) == (0, 1, 1, 3)
    check(model)


def test_layers_of_other_types_or_windows_are_read() -> None:
    mixed = decoder("llama", "Q4_1", layers=5)
    for layer in (1, 3):
        mixed.tensors[f"blk.{layer}.ffn_up.weight"] = random_blocks("Q8_0", 96, 64, layer)
    assert stands(mixed) == (0, 1, 2, 3, 4)
    check(mixed)
    windows = decoder("gemma3", "Q8_0", layers=8, **{"attention.sliding_window": 4})
    assert stands(windows) == (0, 1, 1, 1, 1, 5, 1, 7)
    check(windows)


def test_a_layer_that_lacks_a_tensor_is_refused() -> None:
    model = decoder(layers=3)
    del model.tensors["blk.1.ffn_up.weight"]
    with pytest.raises(FormatError, match=r"lacks the tensor `blk.1.ffn_up.weight`"):
        open_bytes(model.written())
