"""Wrong arguments of public calls are errors that name the parameter, the value and the remedy."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tightship
from tests.small_models import dense
from tests.training.nets import mlp
from tightship import Problem, Sgd, TightshipError, place
from tightship.driver import FallbackModel, channels_type, tensor_type
from tightship.errors import InputTypeError
from tightship.frontend.onnx import read, read_bytes
from tightship.gradients import backward, parameters, with_cross_entropy
from tightship.planner import (
    Bank,
    Constraints,
    ReusePenalties,
    Schedule,
    ScheduledValue,
    Step,
    lower_bound,
    place_schedule,
    verify,
)
from tightship.resource import HostResource, StatisticsResource, counted, divide, pool
from tightship.resource.virtual import virtual_resource, write_snapshot
from tightship.wrong_arguments import wrong_argument

NET, STEP = dense(batch=4)[0], mlp()
INPUTS = {"x": np.ones((4, 32), np.float32)}
COLUMNS = {
    "size_bytes": np.array([64]),
    "start_step": np.array([0]),
    "stop_step": np.array([1]),
    "alignment": np.array([64]),
}
VALUES, STEPS = (ScheduledValue("a", 64),), (Step("s", "Relu", (), (0,)),)
SCHEDULE = Schedule(VALUES, STEPS, (0,))
WRONG = (
    *(None, -1, 1.5, float("nan"), 10**30, "nonsense", b"x", object(), [1], (-1,)),
    *({}, {"x": None}, {"x": (1, 2)}, {"nonsense": 1}, np.array([1.5])),
)
ENDLESS = ("repeat", "effort")
"""Parameters for which a large number is right, and takes its time."""
Call = tuple[Callable[..., object], Mapping[str, Any]]


def calls(folder: Path) -> Iterator[Call]:
    """Public calls with arguments that are right."""
    model = tightship.load(NET)
    yield tightship.plan, {"model": NET, "shapes": None, "threads": 1, "without": (), "tune": None}
    yield (
        tightship.load,
        {
            "model": NET,
            "max_memory": None,
            "dynamic_memory": None,
            "programs": 1,
            "idle_s": 2.0,
            "program_memory": 1,
            "idle_memory": 1,
            "arena_pool": None,
            "share": False,
        },
    )
    yield tightship.prepare, {"model": NET, "output": folder / "net.tship", "shapes": None}
    yield (
        tightship.train,
        {
            "model": STEP.model,
            "loss": STEP.loss,
            "optimizer": Sgd(0.1),
            "labels": "labels",
            "dropout": None,
            "seed": 0,
            "accumulate": 1,
            "recompute": 0.0,
            "weights": None,
        },
    )
    yield model.run, {"inputs": INPUTS, "outputs": None, "timeout_s": None, "stop": None}
    yield model.profile, {"inputs": INPUTS, "repeat": 1}
    yield model.plan_for, {"shapes": {"x": (4, 32)}}
    yield model.output_shapes, {"shapes": {"x": (4, 32)}}
    yield model.plan.save, {"path": folder / "plan.json"}
    yield from calls_without_a_model(folder)


def calls_without_a_model(folder: Path) -> Iterator[Call]:
    """Calls of planner, resources, driver and graphs."""
    plan, loss = place(Problem(**COLUMNS)), with_cross_entropy(read_bytes(NET), "y")
    yield place, {"problem": Problem(**COLUMNS), "goal": None, "effort": 1, "threads": 1}
    yield Problem, COLUMNS
    yield place_schedule, {"schedule": SCHEDULE}
    yield lower_bound, {"problem": Problem(**COLUMNS)}
    yield verify, {"plan": plan}
    yield Schedule, {"values": VALUES, "steps": STEPS, "outputs": (0,)}
    yield Constraints, {"gaps": None, "banks": (Bank("a"),)}
    yield ReusePenalties, {"rows": np.zeros((0, 3), np.int64)}
    yield Sgd, {"rate": 0.1, "momentum": 0.0, "clip_norm": None}
    yield pool, {"upstream": HostResource(), "initial_bytes": 0, "max_bytes": None}
    yield divide, {"peak_counts": {64: 1}, "size_bytes": 1 << 20}
    yield (
        (lambda resource: counted(resource).__enter__()),
        {"resource": StatisticsResource(HostResource())},
    )
    yield virtual_resource, {"policy": "stealing", "page_bytes": None, "small_bytes": 0}
    yield write_snapshot, {"resource": virtual_resource(), "path": folder / "snapshot"}
    yield FallbackModel, {"model": NET, "socket": "/nowhere"}
    yield tensor_type, {"dtype": np.float32, "shape": (1,), "scale": 0.0}
    yield channels_type, {"shape": (2, 1), "scales": (1.0, 1.0), "axis": 0}
    yield read, {"path": os.devnull, "shapes": None}
    yield backward, {"graph": loss}
    yield parameters, {"graph": loss}
    yield with_cross_entropy, {"graph": read_bytes(NET), "output": "y", "classes_axis": 1}


def test_no_wrong_argument_gives_a_bare_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # some wrong arguments are names of files
    bare, raised = [], 0
    for call, right in calls(tmp_path):
        for name in right:
            for wrong in WRONG:
                if name in ENDLESS and isinstance(wrong, int) and wrong > 1:
                    continue
                try:
                    made = call(**{**right, name: wrong})
                except (TightshipError, OSError):
                    raised += 1
                except (TypeError, ValueError) as error:
                    if f"`{name}`" not in str(error):
                        bare.append(f"{call} {name}={wrong!r}: {error!r}")
                except Exception as error:  # noqa: BLE001 - each is a finding
                    bare.append(f"{call} {name}={wrong!r}: {error!r}")
                else:
                    getattr(made, "close", lambda: None)()
    assert bare == []
    assert raised > 600


def test_the_message_names_parameter_value_and_what_is_taken() -> None:
    with pytest.raises(InputTypeError) as caught:
        tightship.plan(NET, threads="two")
    assert str(caught.value) == "`threads` is 'two', a `str`; give `int | None`."
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value.__cause__, TypeError)


def test_an_error_of_a_function_that_was_given_stays_as_it_is() -> None:
    def progress(*_: int) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        tightship.load(NET, progress=progress)


def test_arguments_that_match_are_not_blamed() -> None:
    def function(
        count: int,
        *,
        sizes: "Mapping[str, float] | None" = None,
        rest: "Gone" = 0,  # noqa: F821 - as a framework that is not imported
    ) -> None:
        """Have annotations of all kinds, one of which cannot be evaluated."""

    assert wrong_argument(function, (np.int64(1),), {"sizes": {"a": 1}}) is None
    assert wrong_argument(function, (True,), {"rest": object()}) is None
    assert wrong_argument(function, (1, 2), {}) is None
    said = wrong_argument(function, (1,), {"sizes": {"a": "b" * 100}})
    assert said is not None
    assert said.startswith("`sizes` is {'a': 'bbb")
    assert said.endswith("…, a `dict`; give `Mapping[str, float] | None`.")
