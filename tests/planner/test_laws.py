"""Laws that hold for every plan, whatever the constraints."""

from dataclasses import replace

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.planner.constrained.problems import constrained_problems
from tests.planner.problems import problems
from tightship.planner.constraints import FREE, ForbiddenRange
from tightship.planner.portfolio import place
from tightship.planner.problem import Problem

EFFORT = 10**9
SMALL = settings(max_examples=60, deadline=None)

any_problems = problems(count_max=7) | constrained_problems(
    count_max=6, parts="gaps windows groups forbidden"
)


def best(made: Problem) -> tuple[int, str]:
    """The smallest peak, which is found and proved."""
    plan = place(made, goal="minimize", effort=EFFORT)
    assert plan.status == "optimal"
    return plan.peak_bytes


def part(values, order):
    return None if values is None else values[order]


@SMALL
@given(any_problems, st.integers(2, 2**40))
def test_scaled_sizes_scale_the_peak(drawn, factor):
    factor = 2 ** factor.bit_length()  # so that offsets stay aligned
    limits = drawn.constraints
    if limits is not None:
        limits = replace(
            limits,
            forbidden=tuple(
                replace(one, start_byte=factor * one.start_byte, stop_byte=factor * one.stop_byte)
                for one in limits.forbidden
            ),
            group_offset_bytes=factor * limits.group_offset_bytes,
            gap_window_bytes=factor * limits.gap_window_bytes,
        )
    scaled = replace(
        drawn, size_bytes=factor * drawn.size_bytes, alignment=factor * drawn.alignment,
        constraints=limits,
    )  # fmt: skip
    assert best(scaled) == factor * best(drawn)


@SMALL
@given(any_problems, st.randoms())
def test_relabelled_buffers_have_the_same_peak(drawn, chance):
    order = np.array(chance.sample(range(drawn.count), drawn.count), np.int64)
    limits = drawn.constraints
    if limits is not None:
        gaps = limits.gaps.copy()
        gaps[:, 0] = np.argsort(order)[gaps[:, 0]]
        limits = replace(
            limits,
            gaps=gaps,
            group=limits.group[order],
            group_offset_bytes=limits.group_offset_bytes[order],
        )
    columns = [column[order] for column in drawn.columns()]
    assert best(Problem(*columns, constraints=limits)) == best(drawn)


@SMALL
@given(any_problems)
def test_time_that_runs_backwards_has_the_same_peak(drawn):
    last = int(drawn.stop_step.max(initial=0)) + 8
    limits = drawn.constraints
    if limits is not None:
        gaps = limits.gaps.copy()
        gaps[:, 1:] = last - gaps[:, 2:0:-1]
        limits = replace(
            limits,
            gaps=gaps,
            forbidden=tuple(
                ForbiddenRange(
                    one.start_byte, one.stop_byte, last - min(one.stop_step, last),
                    last - one.start_step,
                )
                for one in limits.forbidden
            ),
        )  # fmt: skip
    mirrored = replace(
        drawn, start_step=last - drawn.stop_step, stop_step=last - drawn.start_step,
        constraints=limits,
    )  # fmt: skip
    assert best(mirrored) == best(drawn)


@SMALL
@given(constrained_problems(count_max=6, parts="gaps windows groups"), st.data())
def test_a_pin_where_a_best_plan_has_a_buffer_raises_no_peak(drawn, data):
    plan = place(drawn, effort=EFFORT)
    assume(plan.status == "optimal")
    chosen = np.array([data.draw(st.booleans()) for _ in range(drawn.count)])
    pins = replace(drawn.constraints, pinned_offset_bytes=np.where(chosen, plan.offset_bytes, FREE))
    assert best(replace(drawn, constraints=pins)) == plan.peak_bytes
