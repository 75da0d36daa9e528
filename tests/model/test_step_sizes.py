"""Bytes of all programs of a decoder's sessions, told from a few."""

from dataclasses import replace

import pytest

import tightship
from tests import decoders
from tightship.engine.compile.compile_graph import Settings
from tightship.engine.weights.weight_store import aligned_offsets
from tightship.loading.session_plan import session_planner
from tightship.model import step_programs
from tightship.model.session_options import SessionOptions
from tightship.model.step_programs import StepPrograms

SHAPES = {"batch_size": 1, "sequence_length": 1, "past_sequence_length": 3}
TINY = decoders.Size(layers=1, positions=512)
WIDE = replace(TINY, heads=8, shared=4, length=32)
MODELS = {
    "llama": (decoders.llama(TINY), SHAPES),
    "shared heads": (decoders.llama(WIDE), SHAPES),
    "gpt2": (decoders.gpt2(replace(WIDE, shared=8)), SHAPES),
    "genai": (decoders.genai(TINY), SHAPES | {"total_sequence_length": 4}),
}
SIZES = tuple(1 << bit for bit in range(8))
ROUNDED = 64 * 8
"""Bytes by which constants of programs that a plan does not lower may be rounded up."""


@pytest.mark.parametrize("kind", MODELS)
def test_a_plan_counts_the_programs_of_all_sizes(kind: str) -> None:
    """Programs do not depend on the chunk of the session that has them."""
    data, shapes = MODELS[kind]
    with tightship.load(data, shapes=shapes) as model:
        programs = model.session(256, chunk=128)._programs
        arenas = {size: programs.program(size).first_plan.arena_bytes for size in SIZES}
        packed = aligned_offsets(copy.weight for copy in programs.packed)[1]
        for chunk in (8, 16, 32, 128):
            planner = session_planner(data, None, Settings())
            planner.chunk = chunk
            planned = planner.plan(256)
            largest = max(arena for size, arena in arenas.items() if size <= chunk)
            assert planned.arena_bytes == model.plan.arena_bytes + largest
        assert packed <= planned.weights_bytes <= packed + ROUNDED
    assert sorted(arenas.values()) != list(arenas.values())  # the most tokens do not tell


def test_the_limit_of_loading_counts_the_programs_of_all_sizes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(step_programs, "session_bytes", lambda *_: 0)
    data, shapes = MODELS["gpt2"]
    with tightship.load(data, shapes=shapes) as model:
        choices = SessionOptions(256, chunk=32).choices()
        programs = model._opened().of(choices)
        planned, before = programs.planned_bytes(), len(programs.packed)
        plans = [programs.program(size).first_plan for size in choices.sizes]
        largest = max(plan.arena_bytes for plan in plans)
        assert largest > plans[0].arena_bytes
        io_bytes = max(plan.io_bytes for plan in plans) - 2 * programs.decoder.state_bytes
        new = aligned_offsets(copy.weight for copy in programs.packed[before:])[1]
        assert 0 <= planned - largest - io_bytes - new <= ROUNDED


def test_programs_that_were_planned_are_those_that_run(monkeypatch: pytest.MonkeyPatch) -> None:
    data, shapes = MODELS["llama"]
    lowered: list[int] = []
    own = StepPrograms._lowered
    monkeypatch.setattr(
        StepPrograms, "_lowered", lambda self, steps, before: (
            lowered.append(steps) or own(self, steps, before)
        )
    )  # fmt: skip
    with tightship.load(data, shapes=shapes, max_memory="1GiB") as model:
        model.session(512, chunk=128)
        assert sorted(lowered) == sorted(set(lowered))
        assert {128, 1} <= set(lowered)
