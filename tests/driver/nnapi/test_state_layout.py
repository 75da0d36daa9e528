"""A convolutional state goes from run to run in the layout that its convolutions like."""

import numpy as np
import pytest

from tests.driver.native_driver import driver
from tests.driver.nnapi import reference
from tests.processor import HAS_AVX512
from tightship._core import HAS_ONEDNN
from tightship.driver import ModelBuilder, tensor_type
from tightship.driver.client.assembling import assembled
from tightship.driver.nnapi import graph_of
from tightship.driver.nnapi.operation_type import OperationType
from tightship.engine.compile.compile_graph import Settings, prepare
from tightship.graph import MappedFile

IMAGE = tensor_type("f4", (1, 8, 8, 16))
RANDOM = np.random.default_rng(2)
WEIGHTS = [RANDOM.standard_normal((16, 3, 3, 16)).astype(np.float32) / 12 for _ in range(2)]
STATE, *INPUTS = [RANDOM.standard_normal(IMAGE.dimensions, np.float32) for _ in range(6)]
SAME = (3, 3), (1, 1), (1, 1), ((1, 1), (1, 1))


def cell():
    """tanh(conv(input) + conv(state))."""
    builder = ModelBuilder()
    parts = []
    for weights in WEIGHTS:
        names = [builder.input(IMAGE), builder.constant(weights)]
        names += [builder.constant(np.zeros(16, np.float32))]
        names += [builder.constant(value) for value in (1, 1, 1, 0)]
        parts.append(builder.temporary(IMAGE))
        builder.operation(OperationType.CONV_2D, names, [parts[-1]])
    total = builder.temporary(IMAGE)
    builder.operation(OperationType.ADD, [*parts, builder.constant(0)], [total])
    builder.operation(OperationType.TANH, [total], [builder.output(IMAGE)])
    return builder


def wanted(state, image):
    sums = [
        reference.convolution(each, weights, 0, *SAME)
        for each, weights in zip((image, state), WEIGHTS, strict=True)
    ]
    return np.tanh(sums[0] + sums[1])


@pytest.mark.skipif(not HAS_ONEDNN, reason="without oneDNN there is one layout")
def test_a_run_changes_no_layout():
    found = assembled(cell())
    graph = graph_of(found.model(1), [MappedFile.of_bytes(found.gathered, "a pool")])
    steps = prepare(graph, "cell", Settings()).placement.lowered.steps
    if not HAS_AVX512:
        pytest.skip("what convolutions like here is not channels last, as NNAPI's images are")
    assert sorted(step.operator for step in steps) == ["Add", "Conv", "Conv", "Tanh"]


def test_a_convolutional_state_is_carried_in_buffers(tmp_path):
    with driver(tmp_path) as running, running.client() as client:
        model = client.prepare(cell())
        states = [client.allocate(inputs=[(model, 1)], outputs=[(model, 0)]) for _ in range(2)]
        states[0].copy_from(STATE)
        state = STATE
        for step, image in enumerate(INPUTS):
            model.execute([image, states[step % 2].of()], [states[1 - step % 2].of()])
            state = wanted(state, image)
        result = np.empty_like(STATE)
        states[len(INPUTS) % 2].copy_to(result)
    np.testing.assert_allclose(result, state, 1e-4, 1e-5)
