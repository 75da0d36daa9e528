import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.graph.backward.differences import check, graph_of, numbers
from tightship.errors import GraphError
from tightship.graph.backward import backward

NETWORK = """net ({inputs}) => ({outputs}) {{
    {results} = {operator} <hidden_size = 3, direction = "{direction}"{more}> ({operands})
}}"""


def network(operator, direction="forward", operands="xwrbh", results="yl", more=""):
    """A cell of 3 from 2 over 4 times; `operands` and `results` name those that it has."""
    count, gates = (
        2 if direction == "bidirectional" else 1,
        {"LSTM": 4, "GRU": 3, "RNN": 1}[operator],
    )
    shapes = {
        "x": "4,2,2", "w": f"{count},{3 * gates},2", "r": f"{count},{3 * gates},3",
        "b": f"{count},{6 * gates}", "h": f"{count},2,3", "c": f"{count},2,3",
    }  # fmt: skip
    names = {"y": "y", "l": "last", "c": "cell"}
    places = [name if name in operands else "" for name in ("x", "w", "r", "b", "", "h", "c")]
    written = [names[each] if each in results else "" for each in names]
    text = NETWORK.format(
        operator=operator,
        inputs=", ".join(f"double[{shapes[name]}] {name}" for name in operands),
        outputs=", ".join(f"double {name}" for name in written if name),
        results=", ".join(written).rstrip(", "),
        operands=", ".join(places).rstrip(", "),
        direction=direction,
        more=more,
    )
    return graph_of(text)


DIRECTIONS = st.sampled_from(["forward", "reverse", "bidirectional"])


@given(
    DIRECTIONS,
    st.sampled_from(["xwr", "xwrb", "xwrh", "xwrc", "xwrbhc"]),
    st.sampled_from(["y", "l", "c", "yl", "lc", "ylc"]),
)
@settings(max_examples=25, deadline=None)
def test_operands_of_an_lstm_have_their_slopes(direction, operands, results):
    graph = network("LSTM", direction, operands, results)
    check(graph, numbers(graph), graph.inputs)


@given(
    DIRECTIONS,
    st.sampled_from(["xwr", "xwrb", "xwrh", "xwrbh"]),
    st.sampled_from(["y", "l", "yl"]),
    st.sampled_from(["", ", linear_before_reset = 1"]),
)
@settings(max_examples=25, deadline=None)
def test_operands_of_a_gru_have_their_slopes(direction, operands, results, more):
    graph = network("GRU", direction, operands, results, more)
    check(graph, numbers(graph), graph.inputs)


@given(
    DIRECTIONS,
    st.sampled_from(["xwr", "xwrb", "xwrh", "xwrbh"]),
    st.sampled_from(["y", "l", "yl"]),
    st.sampled_from(["", "Tanh", "Relu"]),
)
@settings(max_examples=25, deadline=None)
def test_operands_of_an_rnn_have_their_slopes(direction, operands, results, function):
    count = 2 if direction == "bidirectional" else 1
    names = ", ".join([f'"{function}"'] * count)
    more = f", activations = [{names}]" if function else ""
    graph = network("RNN", direction, operands, results, more)
    check(graph, numbers(graph), graph.inputs)


def test_only_what_is_wanted_is_written():
    made = backward(network("LSTM"), ["y"], ["w"])
    assert made.nodes[-1].outputs == ("", "d(w)", "", "", "", "")
    assert made.nodes[0] == network("LSTM").nodes[0]
    assert (
        backward(network("LSTM", results="l"), ["last"], ["w"]).nodes[0].outputs[0] == "last.saved0"
    )


def test_another_network_is_refused():
    with pytest.raises(GraphError, match="plain gates only"):
        backward(network("LSTM", more=", clip = 3.0"), wrt=["x"])
