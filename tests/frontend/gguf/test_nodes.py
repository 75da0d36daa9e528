"""Nodes under construction."""

import numpy as np

from tightship.frontend.gguf.nodes import Nodes
from tightship.graph import Fill


def test_nodes_have_names_domains_and_equal_numbers_once() -> None:
    nodes = Nodes()
    one = nodes.numbers([1])
    assert nodes.numbers([1]) == one
    assert nodes.numbers([1], np.float32) != one
    nodes.prefix = "blk.0."
    found = nodes("DequantizeBlocks", one)
    assert (found, nodes.nodes[0].domain) == ("blk.0.DequantizeBlocks.0", "tightship")
    assert nodes.many("Add", ["y"], found, one) == ["y"]
    stored = Fill(np.zeros((), np.float16), (2, 3))
    assert nodes.constant("w", stored) == "w"
    assert nodes.stored == {"w": stored}
    assert [list(each.dims) for each in nodes.tensors] == [[1], [1], [2, 3]]
