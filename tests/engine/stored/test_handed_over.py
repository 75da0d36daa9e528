"""`HandedOver`: a program and its weights in memory, as the process that reads them has them."""

import os
from collections.abc import Iterator

import numpy as np
import pytest
from onnx import ModelProto

from tests.models import conv_net, filled, parse
from tightship.engine.compile.compile_graph import Settings, prepare
from tightship.engine.compile.compiled_model import CompiledModel
from tightship.engine.library import open_library
from tightship.engine.stored.compatibility import Compatibility
from tightship.engine.stored.handed_over import HandedOver
from tightship.engine.stored.model import StoredModel
from tightship.engine.stored.recipes import recording
from tightship.engine.weights.weight_store import aligned_offsets
from tightship.errors import InputError
from tightship.frontend.onnx import read_bytes
from tightship.graph import Graph
from tightship.model import Model


@pytest.fixture
def memory() -> Iterator[int]:
    """Descriptor of an empty file in memory."""
    file = os.memfd_create("test")
    yield file
    os.close(file)


def graph_of(model: ModelProto) -> Graph:
    return read_bytes(model.SerializeToString())


def compiled(model: ModelProto) -> CompiledModel:
    open_library()
    with recording():
        return prepare(graph_of(model), "model", Settings())


def written(program: CompiledModel, memory: int, progress=None) -> StoredModel:
    with recording():
        said = HandedOver.of(program, Compatibility.here(1, ()))
    with open(os.dup(memory), "r+b") as file:
        said.write(file, progress)
    return StoredModel(f"/proc/self/fd/{memory}")


def test_weights_lie_as_in_a_block(memory: int) -> None:
    program = compiled(conv_net())
    told: list[tuple[int, int]] = []
    stored = written(program, memory, lambda *figures: told.append(figures))
    weights = program.placement.lowered.weights
    assert [copy.offset_bytes for copy in stored.copies] == list(aligned_offsets(weights)[0])
    from tightship.engine.cache.bounds import Bounds

    with Model(program, Bounds()) as model:
        for copy, own in zip(stored.copies, model.packed_weights, strict=True):
            assert copy.weight.name == own.weight.name
            assert copy.array().tobytes() == own.array().tobytes()
    total = sum(weight.size_bytes for weight in weights)
    assert told[-1] == (total, total)


def test_a_model_without_weights_is_written(memory: int) -> None:
    program = compiled(parse("g (float[2] x) => (float[2] y) { y = Neg (x) }"))
    stored = written(program, memory)
    assert stored.copies == ()
    assert stored.prepared(0).plan.arena_bytes == program.plan.arena_bytes


def test_strategies_are_those_of_the_plan(memory: int) -> None:
    program = compiled(conv_net())
    assert written(program, memory).plan().strategies == program.plan.strategies


def test_a_step_that_cannot_be_stored_is_named() -> None:
    text = "g (float[3] x) => (int64[1, n] y) { y = NonZero (x) }"
    with recording(), pytest.raises(InputError, match="NonZero_y"):
        HandedOver.of(compiled(parse(text)), Compatibility.here(1, ()))


def test_memory_that_is_refused_is_an_error(memory: int) -> None:
    program = compiled(parse("g (float[2] x) => (float[2] y) { y = Add (x, w) }", w=filled(2)))
    said = HandedOver.of(program, Compatibility.here(1, ()))
    with open(f"/proc/self/fd/{memory}", "rb") as file, pytest.raises(OSError, match=r"."):
        said.write(file, None)
    assert np.asarray(os.fstat(memory).st_size) == 0
