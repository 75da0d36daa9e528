"""Writes a profile as JSON: its facts, and trace events for Perfetto and chrome://tracing."""

from collections.abc import Iterator

from tightship.view.timing import TimedStep, Timing

RUN, NATIVE, PYTHON = 1, 2, 3
"""Tracks of the trace: whole runs, steps of the native core, steps that Python calls."""
TRACKS = {RUN: "runs", NATIVE: "native", PYTHON: "Python"}
PROCESS = 1

Event = dict[str, object]


def timing_json(timing: Timing) -> dict[str, object]:
    """Return the profile as JSON values; times are integers named `*_ns`, amounts `*_bytes`."""
    return {
        "model": timing.title,
        "runs_ns": list(timing.runs_ns),
        "reorder_share": timing.reorder_share,
        "key": dict(timing.key),
        "steps": [
            {
                "step": index,
                "name": step.name,
                "operator": step.operator,
                "tier": step.tier,
                "implementation": step.implementation,
                "shapes": step.shapes,
                "read_bytes": step.read_bytes,
                "written_bytes": step.written_bytes,
                "live_bytes": step.live_bytes,
                "is_reorder": step.is_reorder,
                "median_ns": step.median_ns,
                "share": timing.share(step.median_ns),
                "starts_ns": list(step.starts_ns),
                "ends_ns": list(step.ends_ns),
            }
            for index, step in enumerate(timing.steps)
        ],
    }


def trace_events(timing: Timing) -> dict[str, object]:
    """Return the trace events of all runs, one run after another, in microseconds.

    Steps of a segment lie within it; a counter follows the live bytes of the arena.
    """
    events: list[Event] = [
        _metadata("process_name", 0, timing.title),
        *(_metadata("thread_name", track, name) for track, name in TRACKS.items()),
    ]
    offset_ns = 0
    for index, length_ns in enumerate(timing.runs_ns):
        events.append(_complete(f"run {index}", RUN, offset_ns, offset_ns + length_ns))
        for segment in timing.segments:
            events += _segment(timing, segment, index, offset_ns)
        end = offset_ns + length_ns
        events.append(_load(0, end))
        offset_ns = end + max(1000, length_ns // 50)  # a visible gap between two runs
    return {"traceEvents": events, "displayTimeUnit": "ns", "otherData": dict(timing.key)}


def _segment(timing: Timing, segment: tuple[int, int], run: int, offset_ns: int) -> Iterator[Event]:
    """Yield the event of a segment, and those of its steps."""
    steps = timing.steps[segment[0] : segment[1]]
    track = PYTHON if steps[0].tier in ("numpy", "reference") else NATIVE
    start, end = offset_ns + steps[0].starts_ns[run], offset_ns + steps[-1].ends_ns[run]
    if track == NATIVE:
        yield _complete(f"steps {segment[0]} to {segment[1] - 1}", track, start, end)
    for step in steps:
        start, end = offset_ns + step.starts_ns[run], offset_ns + step.ends_ns[run]
        yield _complete(step.name, track, start, end, step)
        yield _load(step.live_bytes, start)


def _complete(
    name: str, track: int, start_ns: int, end_ns: int, step: TimedStep | None = None
) -> Event:
    event: Event = {
        "name": name,
        "ph": "X",
        "pid": PROCESS,
        "tid": track,
        "ts": start_ns / 1000,
        "dur": (end_ns - start_ns) / 1000,
        "cat": "run" if step is None else step.tier,
    }
    if step is not None:
        event["args"] = {
            "operator": step.operator,
            "implementation": step.implementation,
            "shapes": step.shapes,
            "read_bytes": step.read_bytes,
            "written_bytes": step.written_bytes,
        }
    return event


def _load(live_bytes: int, at_ns: int) -> Event:
    return {
        "name": "arena", "ph": "C", "pid": PROCESS, "tid": 0, "ts": at_ns / 1000,
        "args": {"live bytes": live_bytes},
    }  # fmt: skip


def _metadata(what: str, track: int, name: str) -> Event:
    return {"name": what, "ph": "M", "pid": PROCESS, "tid": track, "args": {"name": name}}
