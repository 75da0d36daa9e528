import functools

import pytest

from tests.models import parse
from tests.planner.oracles import Replay
from tests.planner.scheme.graphs import replay
from tests.zoo.catalogue import FULL, SMALL
from tests.zoo.inception_bn import inception_bn
from tests.zoo.networks import DYNAMIC, STATIC
from tests.zoo.resnet import resnet
from tightship.cost import arena_and_rest_bytes, cost_of
from tightship.cost.schedule import schedule_of
from tightship.frontend.onnx import read_bytes
from tightship.planner import place_schedule
from tightship.planner.coarse import in_blocks
from tightship.planner.scheme import colour, search_match_range, walk

MIB = 2**20
NOTED = ("inception_bn", "resnet50", "bert", "gpt2")
"""The models of the note's table."""


@functools.cache
def noted(name, *, full=False):
    if name == "inception_bn":
        model = inception_bn(32) if full else inception_bn(2, 96, 4)
        return read_bytes(model.model)
    if name == "resnet50":
        size = {} if full else {"size": 64, "blocks": (1, 2), "width": 16}
        return read_bytes(resnet(4, folded=False, **size).model)
    return read_bytes((FULL if full else SMALL)[name](4).model)


def pairwise_of(columns):
    return zip(columns[::2], columns[1::2], strict=True)


def check_table(cost):
    for row in cost.rows:
        columns = row.columns
        assert columns.arena_bytes == columns.lower_bound_in_place_bytes, row
        assert columns.arena_bytes <= columns.both_bytes <= columns.naive_bytes / 2, row
    assert [row.pass_name for row in cost.rows] == ["inference"] * 2 + ["training"] * 2
    for nodes, blocks in pairwise_of([row.columns for row in cost.rows]):
        assert blocks.naive_bytes <= nodes.naive_bytes
        assert blocks.both_bytes / blocks.naive_bytes >= nodes.both_bytes / nodes.naive_bytes
    inference, training = cost.rows[0].columns, cost.rows[2].columns
    assert training.lower_bound_bytes > inference.lower_bound_bytes


@pytest.mark.parametrize("name", NOTED)
def test_the_notes_models_reach_their_bound_and_bear_its_claims_out(name):
    check_table(cost_of(noted(name), name))


@pytest.mark.slow
@pytest.mark.parametrize("name", NOTED)
def test_so_they_do_in_their_real_sizes(name):
    check_table(cost_of(noted(name, full=True), name))


@pytest.mark.slow
def test_inception_bn_in_batches_of_32_has_the_bound_of_two_activations_of_its_first_layer():
    cost = cost_of(noted("inception_bn", full=True), "")
    columns = cost.cost.columns
    first = 32 * 64 * 112 * 112 * 4
    assert columns.lower_bound_bytes == 2 * first == 196 * MIB
    assert columns.arena_bytes == first + first // 4
    training = cost.rows[2].columns
    assert training.lower_bound_bytes < 1337 * MIB
    assert training.arena_bytes == training.lower_bound_bytes


def test_the_total_is_arena_inputs_and_weights():
    graph = noted("gpt2")
    cost = cost_of(graph, "gpt2")
    outside = cost.graph.input_bytes + cost.graph.weight_bytes
    assert cost.total_bytes == cost.cost.columns.arena_bytes + outside
    assert arena_and_rest_bytes(graph) == cost.total_bytes


def test_a_donated_input_saves_what_is_written_over_it():
    text = "net (float[64] x) => (float[64] z) { y = Relu (x) z = Sqrt (y) }"
    graph = read_bytes(parse(text).SerializeToString())
    assert cost_of(graph, "").cost.columns.arena_bytes == 256
    assert cost_of(graph, "", donate_inputs=True).cost.columns.arena_bytes == 0


@pytest.mark.parametrize("name", [*STATIC, *DYNAMIC])
def test_every_plan_of_every_small_network_keeps_values_whole(name):
    case = {**STATIC, **DYNAMIC}[name]()
    fine = schedule_of(read_bytes(case.model), donate_inputs=True).schedule
    for schedule in (fine, in_blocks(fine)):
        planned = place_schedule(schedule)
        Replay(schedule, planned.buffers, planned.plan.offset_bytes).run()
        for blocks in (
            walk(schedule),
            walk(schedule, in_place=False),
            search_match_range(schedule),
            colour(schedule),
        ):
            replay(schedule, blocks)
