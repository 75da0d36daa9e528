import numpy as np
import pytest

from tests.graph.backward.differences import check, graph_of, numbers
from tightship.errors import GraphError
from tightship.graph.backward import backward

OPSET = '<ir_version: 11, opset_import: ["": 23]>'
TEXT = """net (double[2,4,3,6] q, double[2,{heads},5,6] k, double[2,{heads},5,2] v{more})
          => (double y) {{ y = Attention <{how}> (q, k, v{mask}) }}"""
JOINED = """net (double[2,3,8] q, double[2,5,8] k, double[2,5,4] v) => (double y) {
    y = Attention <q_num_heads = 2, kv_num_heads = 2> (q, k, v)
}"""

HIDING = np.array([[0, -np.inf, 0, 0, 0], [-np.inf] * 5, [-np.inf, -np.inf, 0, 0, 0]])
"""The second query sees nothing; nor does the third where it may not look ahead."""


def attention(how="scale = 0.7", heads=4, more="", mask="", **weights):
    return graph_of(TEXT.format(how=how, heads=heads, more=more, mask=mask), OPSET, **weights)


CASES = {
    "plain": attention,
    "scaled by its width": lambda: attention("is_causal = 0"),
    "causal": lambda: attention("is_causal = 1"),
    "shared keys": lambda: attention("is_causal = 1", heads=2),
    "added mask": lambda: attention(more=", double[3,5] m", mask=", m"),
    "added mask of heads": lambda: attention(more=", double[2,4,3,5] m", mask=", m"),
    "mask": lambda: attention(mask=", m", m=np.array([[1, 0, 1, 0, 1]] * 3, bool)),
    "mask that hides all": lambda: attention(mask=", m", m=HIDING == 0),
    "infinite mask": lambda: attention("is_causal = 1", mask=", m", m=HIDING),
    "heads side by side": lambda: graph_of(JOINED, OPSET),
}


@pytest.mark.parametrize("name", CASES)
def test_operands_of_attention_have_their_slopes(name):
    graph = CASES[name]()
    made = check(graph, numbers(graph), graph.inputs)
    assert made.nodes[0] == graph.nodes[0]


def test_no_weights_outlive_the_forward_pass():
    graph = attention()
    made = backward(graph, ["y"], ["q", "k", "v"])
    forward = {name for node in made.nodes[: len(graph.nodes)] for name in node.writes}
    read = {name for node in made.nodes[len(graph.nodes) :] for name in node.reads}
    assert not forward & read


def test_only_what_is_wanted_is_written():
    operators = [node.operator for node in backward(attention(), ["y"], ["v"]).nodes]
    assert "SoftmaxGrad" not in operators


def test_capped_scores_are_refused():
    with pytest.raises(GraphError, match="without past keys"):
        backward(attention("softcap = 3.0"), wrt=["q"])
