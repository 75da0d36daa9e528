"""Rows taken before the head of a model."""

import numpy as np

from tests import decoders
from tests.engine.state.loops import FixedCaches, decoder
from tests.zoo import decoder as zoo


def test_the_head_computes_one_row() -> None:
    made = decoder(decoders.llama(), 16)
    graph = made.graph(8, last=True)
    (head,) = [node for node in graph.nodes if "logits" in node.outputs]
    assert graph.value("logits").shape == (1, 1, 50)
    assert graph.value(head.inputs[0]).shape == (1, 1, 32)


def test_a_single_step_is_left_alone() -> None:
    made = decoder(decoders.llama(), 16)
    operators = [[n.operator for n in made.graph(1, last=last).nodes] for last in (False, True)]
    assert operators[0] == operators[1]


def test_a_head_in_blocks_computes_one_row() -> None:
    """The weights are nodes over constants, which no row depends on."""
    for is_tied in (False, True):
        data = zoo.decoder(zoo.SMALL, past=3, is_tied=is_tied).model
        graph = decoder(data, 16).graph(8, last=True)
        (gather,) = [node for node in graph.nodes if "last_row" in node.outputs[0]][:1]
        assert gather.operator == "Gather"
        (head,) = [node for node in graph.nodes if gather.outputs[0] in node.inputs]
        assert head.operator == "MatMul"
        assert graph.value("logits").shape == (1, 1, zoo.SMALL.vocabulary)
        session = FixedCaches(data, 16, last=True)
        found = session.step([3, 1, 4, 1, 5, 9, 2, 6])
        whole = FixedCaches(data, 16).step([3, 1, 4, 1, 5, 9, 2, 6])
        np.testing.assert_allclose(found, whole[:, -1:], rtol=1e-5, atol=1e-6)
