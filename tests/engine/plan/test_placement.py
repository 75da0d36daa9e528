import numpy as np
import pytest

from tests.engine.graphs import graph_of, prepared, static_graph, static_placement
from tests.models import filled
from tests.zoo.networks import DYNAMIC, STATIC
from tightship import _core
from tightship.engine.plan.placement import memory_plan, place
from tightship.engine.program.program import Space
from tightship.engine.program.schedule import ALIGNMENT, schedule_of
from tightship.frontend.onnx import read_bytes
from tightship.planner import AliasKind

UNWRITTEN, SCRATCH = -1, -2
ONEDNN = pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")


def in_arena(operands):
    """Arena slots of operands, each once."""
    return list(dict.fromkeys(o.slot for o in operands if o.space is Space.ARENA))


def room_of(placement, slot):
    """The bytes of a slot, by its offset and its size."""
    offset = placement.schedule_plan.value_offset(slot)
    assert offset is not None
    assert offset % ALIGNMENT == 0
    return slice(offset, offset + placement.lowered.slots[slot].size_bytes)


def scratch_of(placement, index):
    """The bytes of a step's scratch; none where it needs none."""
    offset = placement.schedule_plan.scratch_offset(index)
    size = placement.lowered.steps[index].scratch_bytes
    assert (offset is None) == (size == 0)
    start = offset or 0
    assert start % ALIGNMENT == 0
    return slice(start, start + size)


def is_taken_over(placement, step, slot):
    """Return whether an output of the step is written over a slot, as it may be."""
    start = room_of(placement, slot).start
    return any(
        sharing.input == slot and room_of(placement, sharing.output).start == start
        for sharing in step.sharing
    )


def replay(placement):
    """Run the steps over an arena that holds, for each byte, who wrote it last."""
    writer = np.full(placement.arena_bytes, UNWRITTEN)
    for index, step in enumerate(placement.lowered.steps):
        users = np.zeros(placement.arena_bytes, np.int8)
        for slot in in_arena(step.reads):
            room = room_of(placement, slot)
            assert (writer[room] == slot).all(), f"{step.name} reads what is gone"
            users[room] += not is_taken_over(placement, step, slot)
        scratch = scratch_of(placement, index)
        backings = {slot: room_of(placement, slot) for slot in in_arena(step.writes)}
        for room in (scratch, *backings.values()):
            assert room.stop <= placement.arena_bytes
            users[room] += 1
        assert users.max(initial=0) <= 1, f"{step.name} writes over its own operands"
        writer[scratch] = SCRATCH
        for slot, room in backings.items():
            writer[room] = slot


@pytest.mark.parametrize("name", STATIC)
def test_what_a_step_reads_is_there_and_nothing_else_of_it_is_written_over(name):
    replay(static_placement(name))


@pytest.mark.parametrize("name", DYNAMIC)
def test_so_it_is_where_steps_allocate(name):
    replay(prepared(read_bytes(DYNAMIC[name]().model)).placement)


@pytest.mark.parametrize("without", ["onednn", "in_place", "library_layouts", "fuse_residual"])
@pytest.mark.parametrize("name", ["residual", "encoder"])
def test_so_it_is_without_a_pass(name, without):
    replay(prepared(static_graph(name), (without,)).placement)


@pytest.mark.parametrize("name", STATIC)
def test_the_arena_ends_where_the_highest_operand_does(name):
    placement = static_placement(name)
    slots = in_arena(o for step in placement.lowered.steps for o in step.writes)
    backings = [room_of(placement, slot) for slot in slots]
    backings += [scratch_of(placement, index) for index in range(len(placement.lowered.steps))]
    assert placement.arena_bytes == max(room.stop for room in backings)


@pytest.mark.parametrize("name", STATIC)
def test_weights_lie_apart_and_aligned(name):
    placement = static_placement(name)
    end = 0
    for weight, offset in zip(placement.lowered.weights, placement.weight_offsets, strict=True):
        assert offset % ALIGNMENT == 0
        assert offset >= end
        end = offset + weight.size_bytes
    assert end <= placement.weights_bytes < end + ALIGNMENT


def shared(placement, kind):
    """Pairs of slots that a step shares in a way: output, input."""
    return [(s.output, s.input) for step in placement.lowered.steps for s in step.sharing
            if s.kind is kind]  # fmt: skip


@ONEDNN
def test_a_tied_output_lies_in_its_residual():
    placement = static_placement("residual")
    pairs = shared(placement, AliasKind.TIED)
    assert pairs
    for output, residual in pairs:
        assert room_of(placement, output) == room_of(placement, residual)


def test_an_output_in_place_lies_in_its_input_and_one_that_may_not_elsewhere():
    placement = prepared(graph_of(
        "g (int32[99] x) => (int32[99] y) { a = Neg (x) b = Abs (a) c = Neg (b) y = Add (c, b) }"
    )).placement  # fmt: skip
    a, b, c = (room_of(placement, step.writes[0].slot) for step in placement.lowered.steps[:3])
    assert a == b
    assert c != b
    assert placement.arena_bytes == 2 * -(-99 * 4 // ALIGNMENT) * ALIGNMENT - 52


def plan_of(name):
    placement = static_placement(name)
    return placement, memory_plan(placement, "m", 1000, {"k": "v"})


@pytest.mark.parametrize("name", STATIC)
def test_a_plan_adds_up(name):
    placement, plan = plan_of(name)
    program = placement.lowered
    assert plan.arena_bytes == max(t.offset_bytes + t.size_bytes for t in plan.tensors)
    assert plan.arena_bytes == placement.arena_bytes
    assert plan.weights_bytes == placement.weights_bytes
    assert plan.io_bytes == sum(
        o.size_bytes for o in (*program.inputs.values(), *program.outputs.values())
    )
    assert plan.peak_bytes == plan.arena_bytes + plan.weights_bytes + plan.io_bytes + 1000
    assert max(step.live_bytes for step in plan.steps) <= plan.lower_bound_bytes
    assert plan.lower_bound_bytes <= plan.arena_bytes <= plan.unplanned_bytes
    assert plan.strategies["none"] == max(plan.strategies.values())
    assert plan.is_exact


@pytest.mark.parametrize("name", STATIC)
def test_tensors_of_a_plan_live_from_the_step_that_writes_them_to_the_last_that_reads_them(name):
    placement, plan = plan_of(name)
    steps = placement.lowered.steps
    uses = {}
    for index, step in enumerate(steps):
        for slot in in_arena((*step.reads, *step.writes)):
            uses.setdefault(slot, []).append(index)
    found = [(t.offset_bytes, t.size_bytes, t.start_step, t.stop_step) for t in plan.tensors
             if t.kind == "activation"]  # fmt: skip
    wanted = [
        (room_of(placement, slot).start, placement.lowered.slots[slot].size_bytes,
         indices[0], indices[-1] + 1)
        for slot, indices in sorted(uses.items())
    ]  # fmt: skip
    assert found == wanted
    scratch = [t.start_step for t in plan.tensors if t.kind == "scratch"]
    assert scratch == [index for index, step in enumerate(steps) if step.scratch_bytes]


@pytest.mark.parametrize("name", STATIC)
def test_the_load_of_a_step_covers_what_lives_while_it_runs(name):
    placement, plan = plan_of(name)
    for index, step in enumerate(plan.steps):
        live = np.zeros(placement.arena_bytes, bool)
        for tensor in plan.tensors:
            if tensor.start_step <= index < tensor.stop_step:
                live[tensor.offset_bytes : tensor.offset_bytes + tensor.size_bytes] = True
        assert live.sum() <= step.live_bytes <= plan.arena_bytes


@pytest.mark.parametrize("name", STATIC)
def test_a_tensor_that_shares_is_where_the_other_is(name):
    _, plan = plan_of(name)
    of_name = {}
    for tensor in plan.tensors:
        if tensor.shares_with is not None:
            host = of_name[tensor.shares_with]
            assert tensor.offset_bytes == host.offset_bytes
            assert host.stop_step == tensor.start_step + 1
        of_name[tensor.name] = tensor


def test_an_unread_tensor_lives_while_it_is_written():
    plan = prepared(graph_of(
        """g (int32[6] x) => (int32[3] y) {
            a = Neg (x) b, c = Split <num_outputs = 2> (a) y = Abs (c) }"""
    )).plan  # fmt: skip
    lives = {tensor.name: (tensor.start_step, tensor.stop_step) for tensor in plan.tensors}
    assert lives == {"a": (0, 2), "b": (1, 2), "c": (1, 3)}


def test_a_plan_describes_inputs_and_outputs():
    graph = graph_of(
        "g (float[2, 3] x, int64 k) => (float[3] y, int64[1, n] z) "
        "{ y = Gather (x, k) z = NonZero (y) }"
    )
    plan = prepared(graph).plan
    assert plan.inputs == {"x": "2x3 float32", "k": "scalar int64"}
    assert plan.outputs == {"y": "3 float32", "z": "dynamic"}
    assert [step.dynamic_reason for step in plan.steps] == [
        None,
        "shape depends on data; at most 24 bytes",
    ]


def test_a_program_without_weights_or_arena_takes_none():
    placement = prepared(graph_of("g (float[9] x) => (float[9] y) { y = Neg (x) }")).placement
    assert (placement.arena_bytes, placement.weights_bytes) == (0, 0)
    assert placement.io_bytes == 72


def test_the_schedule_says_what_the_steps_say():
    program = static_placement("residual").lowered
    schedule = schedule_of(program)
    for step, planned in zip(program.steps, schedule.steps, strict=True):
        places = (Space.ARENA, Space.EXTERNAL)
        assert set(planned.reads) == {o.slot for o in step.reads if o.space in places}
        assert set(planned.writes) == {o.slot for o in step.writes if o.space in places}
        assert planned.scratch_bytes == step.scratch_bytes
    assert [v.external for v in schedule.values] == [slot.external for slot in program.slots]
    assert [v.size_bytes for v in schedule.values] == [slot.size_bytes for slot in program.slots]


def test_a_weight_that_grows_moves_those_behind_it():
    program = prepared(graph_of(
        "g (int32[3] x) => (int32[3] y) { a = Add (x, v) y = Mul (a, w) }",
        v=filled(3).astype(np.int32), w=filled(3).astype(np.int32),
    )).placement.lowered  # fmt: skip
    first, second = program.weights
    assert place(program).weight_offsets == (0, ALIGNMENT)
    larger = program._replace(weights=(first._replace(size_bytes=ALIGNMENT + 1), second))
    assert place(larger).weight_offsets == (0, 2 * ALIGNMENT)
    assert place(larger).weights_bytes == 3 * ALIGNMENT
