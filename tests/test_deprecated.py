"""Every spelling of an earlier version works, and warns once, at the line that uses it."""

import subprocess
import sys
import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import tightship
from tests.models import conv_net
from tests.small_models import dense
from tests.training.nets import mlp
from tightship import Problem, Sgd, TightshipError
from tightship.deprecated import RENAMED, Renamed
from tightship.driver import Client, FallbackModel
from tightship.engine.lower.pipeline import pass_names
from tightship.engine.plan.memory_plan import PlannedStep
from tightship.frontend.onnx import read_bytes
from tightship.frontend.torch import training_graph
from tightship.gradients import with_cross_entropy, with_squared_error
from tightship.graph import Graph
from tightship.planner import PlanStatus, place
from tightship.resource import HostResource, divide, pool
from tightship.resource.spec import resource_from
from tightship.resource.virtual import HostDevice, StealingVirtualResource, virtual_resource

PROBLEM = Problem(*(np.array(column) for column in ([128, 64], [0, 1], [2, 2], [64, 64])))
NET = dense(batch=4)[0]
STEP = PlannedStep("a", "Relu", "native", "", 5)
OWNERS = {"Problem": PROBLEM, "PlannedStep": STEP}
CALLS: Mapping[tuple[str, str], Callable[[str], object]] = {
    ("pool", "chunk_bytes"): lambda name: type(pool(HostResource(), **{name: 4096})),
    ("pool", "max_bytes"): lambda name: type(pool(HostResource(), **{name: 1 << 20})),
    ("divide", "size_bytes"): lambda name: divide({64: 100}, **{name: 1 << 20}),
    ("StealingVirtualResource", "idle_s"): lambda name: stealing(**{name: 2.0}),
    ("StealingVirtualResource", "patience_s"): lambda name: stealing(**{name: 2.0}),
    ("Client", "socket"): lambda name: refusal(lambda: Client(**{name: "/nowhere"})),
    ("FallbackModel", "socket"): lambda name: fallback(**{name: "/nowhere"}),
    ("with_cross_entropy", "labels"): lambda name: ending(with_cross_entropy, **{name: "labels"}),
    ("with_cross_entropy", "classes_axis"): lambda name: ending(with_cross_entropy, **{name: 1}),
    ("with_squared_error", "labels"): lambda name: ending(with_squared_error, **{name: "labels"}),
    ("training_graph", "labels"): lambda name: refusal(lambda: training(**{name: ()})),
}
"""Calls that pass a renamed parameter by the given name."""


def stealing(**options: float) -> type:
    return type(StealingVirtualResource(HostDevice(), **options))


def fallback(**options: str) -> int:
    with FallbackModel(NET, **options) as model:
        assert model.refusal is not None
        return model.refusal.status


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises((TightshipError, ImportError, AttributeError)) as caught:
        call()
    return str(caught.value)


def ending(loss: Callable[..., Graph], **options: object) -> tuple[str, ...]:
    graph = loss(read_bytes(NET), "y", **options)
    return (*graph.inputs, *graph.outputs)


def training(**options: object) -> object:
    return training_graph(None, (), **options)


def test_the_table_leads_from_a_word_to_one_that_is_not_old() -> None:
    keys = [(row.kind, row.where, row.old) for row in RENAMED]
    assert len(set(keys)) == len(keys) > 10
    assert {(row.kind, row.where, row.new) for row in RENAMED}.isdisjoint(keys)


@pytest.mark.parametrize("row", RENAMED, ids=lambda row: f"{row.kind}-{row.where}-{row.old}")
def test_an_old_spelling_works_and_warns_once(row: Renamed, tmp_path: Path) -> None:
    if row.kind == "command":
        check_command(tmp_path)
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        old = USES[row.kind](row, row.old)
    assert [(each.category, each.filename) for each in caught] == [(DeprecationWarning, __file__)]
    said = str(caught[0].message)
    assert f"`{row.old}`" in said
    assert f"`{row.new}`" in said
    assert f"version {row.until}" in said
    assert old == USES[row.kind](row, row.new)


def name(row: Renamed, spelled: str) -> object:
    module = import_module(row.where)
    namespace: dict[str, object] = {}
    exec(compile(f"from {row.where} import {spelled} as found", __file__, "exec"), namespace)
    assert spelled == row.old or getattr(module, spelled) is namespace["found"]
    return namespace["found"]


def attribute(row: Renamed, spelled: str) -> object:
    found = getattr(OWNERS[row.where], spelled)
    return found(2).tolist() if callable(found) else found


def graph_pass(row: Renamed, spelled: str) -> object:
    if row.new in pass_names():
        return tightship.plan(conv_net().SerializeToString(), without=[spelled]).to_json()
    net = mlp()
    with tightship.train(net.model, net.loss, Sgd(0.1), without=[spelled]) as trainer:
        return trainer.memory


USES: Mapping[str, Callable[[Renamed, str], object]] = {
    "name": name,
    "attribute": attribute,
    "pass": graph_pass,
    "policy": lambda _, spelled: type(virtual_resource(policy=spelled)),
    "root": lambda _, spelled: type(resource_from(f"{spelled}:4MiB")),
    "parameter": lambda row, spelled: CALLS[row.where, row.new](spelled),
}


def check_command(folder: Path) -> None:
    """`tightship plan BUFFERS` is the only one, and says so on standard error of a process."""
    path = folder / "buffers.csv"
    path.write_text("id,lower,upper,size\na,0,3,512\n")
    command = [sys.executable, "-m", "tightship.cli"]
    done = [
        subprocess.run([*command, verb, path], capture_output=True, text=True, check=True)
        for verb in ("plan", "place")
    ]
    first, second = (run.stdout.partition("placed by")[0] for run in done)
    assert first == second
    assert done[0].stderr.count("is now `tightship place BUFFERS`") == 1
    assert done[1].stderr == ""


def test_an_old_pass_warns_on_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(conv_net().SerializeToString())
    command = [sys.executable, "-m", "tightship.cli", "plan", path, "--without", "drop_repeats"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr.count("is now `common_subexpressions`") == 1


def test_both_spellings_of_a_parameter_are_one_too_many() -> None:
    with pytest.raises(TypeError, match="got both `maximum_bytes` and `max_bytes`"):
        pool(HostResource(), maximum_bytes=1, max_bytes=2)
    with pytest.raises(TypeError, match="no parameter `idle_minutes`"):
        StealingVirtualResource(HostDevice(), idle_minutes=1)


def test_other_words_do_not_warn() -> None:
    with pytest.raises(AttributeError, match="no attribute `loaded_bytes`"):
        getattr(PROBLEM, "loaded_bytes")  # noqa: B009 - as a program with a wrong name
    with pytest.raises(ImportError):
        exec("from tightship.planner import solved")
    assert place(PROBLEM).status in PlanStatus.__args__


@pytest.mark.parametrize("without", ["onednn", [1], ["magic"]])
def test_passes_are_a_list_of_names(without: object) -> None:
    with pytest.raises(tightship.InputError, match=r"give a list|Unknown pass `magic`"):
        tightship.plan(conv_net().SerializeToString(), without=without)
