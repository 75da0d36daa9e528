"""Profiles: what of them does not depend on the machine's speed."""

import json

import numpy as np
import pytest

import tightship
from tests.zoo.catalogue import SMALL
from tests.zoo.dynamic import detections
from tests.zoo.net import Net
from tightship.errors import InputError
from tightship.view.timing import Timing, taken_ns

MODELS = {"efficientnet": SMALL["efficientnet_b0"], "gpt2": SMALL["gpt2"],
          "lstm": SMALL["lstm"], "detections": lambda _: detections()}  # fmt: skip


@pytest.fixture(scope="module", params=MODELS)
def profiled(request):
    case = MODELS[request.param](1)
    with tightship.load(case.model) as model:
        return model.plan, model.profile(case.feeds, repeat=3)


def test_every_step_is_timed_in_every_run(profiled):
    plan, profile = profiled
    timing = profile.timing
    assert [step.name for step in timing.steps] == [step.name for step in plan.steps]
    assert [step.tier for step in timing.steps] == [step.kernel for step in plan.steps]
    assert all(len(step.ends_ns) == len(step.starts_ns) == 3 for step in timing.steps)


def test_a_step_starts_where_the_one_before_ends_and_none_ends_before_it_starts(profiled):
    timing = profiled[1].timing
    for run, length_ns in enumerate(timing.runs_ns):
        starts = [step.starts_ns[run] for step in timing.steps]
        ends = [step.ends_ns[run] for step in timing.steps]
        assert starts == [0, *ends[:-1]]
        assert all(end >= start for start, end in zip(starts, ends, strict=True))
        assert sum(ends) - sum(starts) == length_ns == ends[-1]


def test_shares_add_up_and_loads_are_the_plans(profiled):
    plan, profile = profiled
    timing: Timing = profile.timing
    assert sum(timing.share(step.median_ns) for step in timing.steps) == pytest.approx(1)
    reorders = taken_ns([step for step in timing.steps if step.is_reorder])
    assert timing.reorder_share == pytest.approx(timing.share(reorders))
    assert [step.live_bytes for step in timing.steps] == [step.live_bytes for step in plan.steps]


def test_segments_cover_the_steps_in_order(profiled):
    timing = profiled[1].timing
    covered = [step for first, last in timing.segments for step in range(first, last)]
    assert covered == list(range(len(timing.steps)))


def test_a_trace_nests_steps_in_segments_in_runs(profiled, tmp_path):
    profile = profiled[1]
    profile.save_trace(tmp_path / "trace.json")
    trace = json.loads((tmp_path / "trace.json").read_text())
    timing = profile.timing
    spans = [event for event in trace["traceEvents"] if event["ph"] == "X"]
    runs = [event for event in spans if event["cat"] == "run" and event["tid"] == 1]
    steps = [event for event in spans if "args" in event]
    assert len(runs) == len(timing.runs_ns)
    assert len(steps) == len(timing.runs_ns) * len(timing.steps)
    for run, (begin, end) in enumerate((r["ts"], r["ts"] + r["dur"]) for r in runs):
        own = steps[run * len(timing.steps) : (run + 1) * len(timing.steps)]
        assert all(begin - 1e-6 <= s["ts"] <= s["ts"] + s["dur"] <= end + 1e-6 for s in own)
        assert sum(s["dur"] for s in own) == pytest.approx(end - begin)
    assert all(event["dur"] >= 0 for event in spans)


def test_tracks_of_a_trace_hold_what_does_not_overlap(profiled, tmp_path):
    profiled[1].save_trace(tmp_path / "trace.json")
    spans = [e for e in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
             if e["ph"] == "X"]  # fmt: skip
    for track in {event["tid"] for event in spans}:
        open_until: list[float] = []
        mine = [event for event in spans if event["tid"] == track]
        for event in sorted(mine, key=lambda e: (e["ts"], -e["dur"])):
            while open_until and open_until[-1] <= event["ts"] + 1e-6:
                open_until.pop()
            end = event["ts"] + event["dur"]
            assert not open_until or end <= open_until[-1] + 1e-6
            open_until.append(end)


def test_the_counter_of_a_trace_follows_the_arena(profiled):
    from tightship.view.trace_events import trace_events

    timing = profiled[1].timing
    counted = [e["args"]["live bytes"] for e in trace_events(timing)["traceEvents"]
               if e["ph"] == "C"]  # fmt: skip
    loads = [step.live_bytes for step in timing.steps]
    assert counted == [*loads, 0] * len(timing.runs_ns)


@pytest.mark.parametrize("by_operator", [False, True])
def test_a_table_fits_100_columns_and_counts_what_it_leaves_out(profiled, *, by_operator):
    profile = profiled[1]
    text = profile.table(top=2, by_operator=by_operator)
    assert max(map(len, text.splitlines())) <= 100
    if not by_operator:
        assert f"and {len(profile.timing.steps) - 2} more step" in text


def test_bytes_are_those_of_the_operands():
    net = Net(1)
    x = net.normal("x", 8, 16)
    net.output(net("Relu", net("MatMul", x, net.weight(16, 32))))
    case = net.case()
    with tightship.load(case.model) as model:
        step, *rest = model.profile(case.feeds, repeat=1).timing.steps
    assert not rest
    assert (step.read_bytes, step.written_bytes) == (4 * (8 * 16 + 16 * 32), 4 * 8 * 32)


def test_a_gather_reads_what_it_writes_and_its_indices():
    net = Net(1)
    net.output(net("Gather", net.weight(100, 16), net.input("ids", np.arange(4))))
    case = net.case()
    with tightship.load(case.model) as model:
        (step,) = model.profile(case.feeds, repeat=1).timing.steps
    assert (step.read_bytes, step.written_bytes) == (4 * 4 * 16 + 4 * 8, 4 * 4 * 16)


def test_no_run_is_no_profile():
    case = MODELS["lstm"](1)
    with tightship.load(case.model) as model, pytest.raises(InputError, match="at least 1"):
        model.profile(case.feeds, repeat=0)
