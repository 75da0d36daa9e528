import numpy as np
import pytest

from tests.engine.graphs import assert_close, expected, graph_of, operators, run
from tests.models import filled
from tightship.engine.lower.passes.affine import Scaled
from tightship.engine.lower.passes.fold_batch_norm import fold_batch_norm, is_per_channel

NORM = "BatchNormalization <epsilon = 0.01>"


def weights(channels, **more):
    """Scale, shift, mean and variance of a normalization, each of its own numbers."""
    s, b, m, v = filled(4, channels)
    return {"s": s, "b": b, "m": m, "v": np.abs(v) + 0.1, **more}


def net(body, channels=4, **more):
    """A convolution `c` of the input with weights `w`, then `body` up to `y`."""
    given = weights(channels, w=filled(channels, 3, 3, 3), **more)
    return graph_of(
        f"g (float[2, 3, 6, 6] x) => (float[2, {channels}, 4, 4] y) {{ {body} }}", **given
    )


def folded(graph, *kept):
    """`graph` folded, checked to give what it gave and to keep these operators."""
    result = fold_batch_norm(graph)
    assert operators(result) == list(kept)
    assert_close(run(result, ("fold_batch_norm",)), expected(graph))
    return result


CHAINS = {
    "no bias": f"c = Conv (x, w) y = {NORM} (c, s, b, m, v)",
    "a bias": f"c = Conv (x, w, b) y = {NORM} (c, s, b, m, v)",
    "an empty bias": f"c = Conv (x, w, ) y = {NORM} (c, s, b, m, v)",
    "then scaled and shifted": f"c = Conv (x, w) n = {NORM} (c, s, b, m, v)"
    " k = Mul (n, each) y = Add (k, each)",
    "shifted then scaled": "c = Conv (x, w, b) k = Add (c, each) y = Mul (k, each)",
    "constants first": "c = Conv (x, w, b) k = Add (each, c) y = Mul (each, k)",
    "scalars": "c = Conv (x, w) k = Mul (c, two) n = Add (two, k) y = Mul (n, one)",
    "two normalizations": f"c = Conv (x, w) n = {NORM} (c, s, b, m, v) k = Mul (n, each)"
    f" y = {NORM} (k, b, s, m, v)",
}
CONSTANTS = {
    "each": filled(4, 1, 1),
    "two": np.array(2, np.float32),
    "one": np.full((1, 1, 1), 1.5, np.float32),
}


@pytest.mark.parametrize("body", CHAINS.values(), ids=CHAINS)
def test_what_follows_a_convolution_goes_into_it(body):
    result = folded(net(body, **CONSTANTS), "Conv")
    assert isinstance(result.constants[result.nodes[0].inputs[1]], Scaled)


def test_the_weights_are_not_read_while_they_are_folded():
    graph = net(CHAINS["a bias"])
    weight = graph.constants["w"]
    result = fold_batch_norm(graph)
    assert result.constants[result.nodes[0].inputs[1]].source is weight


@pytest.mark.parametrize(("groups", "channels"), [(3, 6), (3, 3)])
def test_a_grouped_convolution_takes_it_in(groups, channels):
    body = f"c = Conv <group = {groups}> (x, k, b) y = {NORM} (c, s, b, m, v)"
    folded(net(body, channels, k=filled(channels, 3 // groups, 3, 3)), "Conv")


def test_a_normalization_behind_no_convolution_takes_in_what_follows():
    graph = graph_of(
        f"""g (float[2, 4, 3, 3] x) => (float[2, 4, 3, 3] y) {{
            n = {NORM} (x, s, b, m, v)
            k = Mul (n, each)
            y = Add (k, two)
        }}""",
        **weights(4), each=CONSTANTS["each"], two=CONSTANTS["two"],
    )  # fmt: skip
    folded(graph, "BatchNormalization")


def test_a_lone_normalization_stays_as_it_is():
    graph = graph_of(
        f"g (float[2, 4, 3, 3] x) => (float[2, 4, 3, 3] y) {{ y = {NORM} (x, s, b, m, v) }}",
        **weights(4),
    )
    assert folded(graph, "BatchNormalization").nodes == graph.nodes


ONE_DIMENSION = {"rank 3": ("2, 3, 8", "2, 4, 6", (4, 3, 3)), "rank 5": (
    "1, 3, 4, 4, 4", "1, 4, 2, 2, 2", (4, 3, 3, 3, 3))}  # fmt: skip


@pytest.mark.parametrize("shapes", ONE_DIMENSION.values(), ids=ONE_DIMENSION)
def test_any_number_of_spatial_axes_will_do(shapes):
    before, after, kernel = shapes
    graph = graph_of(
        f"""g (float[{before}] x) => (float[{after}] y) {{
            c = Conv (x, w) y = {NORM} (c, s, b, m, v) }}""",
        **weights(4, w=filled(*kernel)),
    )
    folded(graph, "Conv")


def test_a_result_that_others_read_is_not_folded_away():
    graph = net(f"c = Conv (x, w) n = {NORM} (c, s, b, m, v) y = Div (n, c)")
    folded(graph, "Conv", "BatchNormalization", "Div")


def test_a_result_read_twice_by_one_node_is_not_folded_away():
    folded(net("c = Conv (x, w) k = Add (c, c) y = Mul (k, c)"), "Conv", "Add", "Mul")


def test_a_result_that_is_an_output_is_not_folded_away():
    graph = graph_of(
        f"""g (float[2, 3, 6, 6] x) => (float[2, 4, 4, 4] y, float[2, 4, 4, 4] c) {{
            c = Conv (x, w) y = {NORM} (c, s, b, m, v) }}""",
        **weights(4, w=filled(4, 3, 3, 3)),
    )
    folded(graph, "Conv", "BatchNormalization")


def test_folding_ends_where_the_chain_forks():
    graph = net(f"c = Conv (x, w) n = {NORM} (c, s, b, m, v) k = Mul (n, two) y = Sub (k, n)",
                two=CONSTANTS["two"])  # fmt: skip
    folded(graph, "Conv", "Mul", "Sub")


@pytest.mark.parametrize("line", ["y = Sub (c, each)", "y = Sub (each, c)", "y = Div (c, each)"])
def test_differences_and_quotients_are_not_folded(line):
    folded(net(f"c = Conv (x, w) {line}", each=CONSTANTS["each"]), "Conv", line.split()[2])


UNFIT = {
    "along the height": filled(4, 1),
    "along the width": filled(4),
    "a number for each element": filled(4, 4, 4),
    "along the batch": filled(2, 1, 1, 1),
}


@pytest.mark.parametrize("other", UNFIT.values(), ids=UNFIT)
def test_what_is_not_one_number_a_channel_is_not_folded(other):
    folded(net("c = Conv (x, w) y = Add (c, other)", other=other), "Conv", "Add")


def test_an_operand_that_raises_the_rank_is_not_folded():
    graph = graph_of(
        "g (float[2, 3, 6, 6] x) => (float[1, 2, 4, 4, 4] y) { c = Conv (x, w) y = Mul (c, k) }",
        w=filled(4, 3, 3, 3), k=filled(1, 1, 1, 1, 1),
    )  # fmt: skip
    folded(graph, "Conv", "Mul")


def test_an_operand_that_the_run_gives_is_not_folded():
    graph = graph_of(
        """g (float[2, 3, 6, 6] x, float[4, 1, 1] k) => (float[2, 4, 4, 4] y) {
            c = Conv (x, w) y = Mul (c, k) }""",
        w=filled(4, 3, 3, 3),
    )
    folded(graph, "Conv", "Mul")


def test_weights_that_the_run_gives_take_nothing_in():
    graph = graph_of(
        f"""g (float[2, 3, 6, 6] x, float[4, 3, 3, 3] w) => (float[2, 4, 4, 4] y) {{
            c = Conv (x, w) y = {NORM} (c, s, b, m, v) }}""",
        **weights(4),
    )
    folded(graph, "Conv", "BatchNormalization")


def test_a_normalization_in_training_is_not_folded():
    graph = net(CHAINS["no bias"])
    graph.nodes[1].attributes["training_mode"] = 1
    assert operators(fold_batch_norm(graph)) == ["Conv", "BatchNormalization"]


@pytest.mark.parametrize(
    ("shape", "rank", "fits"),
    [((), 4, True), ((1,), 4, True), ((7, 1, 1), 4, True), ((1, 7, 1, 1), 4, True),
     ((7,), 4, False), ((7, 1), 4, False), ((7, 1, 1, 1), 4, False), ((6, 1, 1), 4, False),
     ((1, 1, 1, 1, 1), 4, False), ((7,), 2, True), ((1, 7), 2, True), ((7, 1), 2, False)],
)  # fmt: skip
def test_a_shape_is_per_channel_where_it_broadcasts_along_axis_1_alone(shape, rank, fits):
    assert is_per_channel(shape, rank, 7) == fits
