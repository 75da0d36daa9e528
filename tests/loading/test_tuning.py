"""Layouts chosen by running a model: by what was measured, once, and never for more memory."""

import json

import numpy as np
import pytest
from onnx import TensorProto, helper

import tightship
from tests.engine.lower.step_passes.test_elide_concat import growing
from tests.processor import HAS_AVX512
from tests.small_models import dense, model
from tightship._core import HAS_ONEDNN
from tightship.engine.cache.bounds import Bounds
from tightship.engine.compile.compile_graph import Settings, prepare
from tightship.engine.lower.steps.options import Choice
from tightship.errors import CapacityError, FormatError, InputError
from tightship.loading import opening, tuning

pytestmark = pytest.mark.skipif(not HAS_ONEDNN, reason="layouts are oneDNN's")


@pytest.fixture(scope="module")
def case():
    return growing()


def choose(model, *, without=(), threads=1):
    graph = opening.open_model(model).graph(None)

    def prepared(choice):
        return prepare(graph, "test", Settings(None, threads, without, choice))

    return tuning.candidates(prepared(None), prepared)


def faster(layouts):
    """A stopwatch on which one family is faster."""
    return lambda model, _: 1.0 if model.plan.key["layouts"].startswith(layouts) else 2.0


def keep(path, model, choice, **settings):
    graph = opening.open_model(model).graph(None)
    tuning.Choices(path).store(tuning.choice_key(graph, Settings(**settings)), choice)


@pytest.fixture
def no_measuring(monkeypatch):
    def refuse(*_):
        raise AssertionError("it was measured")

    monkeypatch.setattr(tuning, "fastest", refuse)


def test_what_is_measured_to_be_faster_is_chosen(case):
    found = choose(case.model)
    layouts = {choice.layouts for choice in found}
    if HAS_AVX512:
        assert layouts == {"blocked"}, "channels last takes more memory"
    assert "blocked" in layouts
    other = {Choice("library", stream_weights=True): prepare_library(case)}
    both = {**found, **other}
    assert tuning.fastest(both, Bounds(), seconds=faster("library")).layouts == "library"
    assert tuning.fastest(both, Bounds(), seconds=faster("blocked")).layouts == "blocked"


def prepare_library(case):
    graph = opening.open_model(case.model).graph(None)
    return prepare(graph, "test", Settings(choice=Choice("library", stream_weights=True)))


def test_a_little_faster_is_not_enough_to_leave_the_table(case):
    usual = Choice("blocked", stream_weights=True)
    found = {**choose(case.model), Choice("library", stream_weights=True): prepare_library(case)}

    def seconds(model, _):
        return 1.0 if model.plan.key["layouts"].startswith("blocked") else 0.99

    assert tuning.fastest(found, Bounds(), seconds=seconds) == usual


def test_no_candidate_takes_more_memory_or_is_another_s_double(case):
    for without in ((), ("blocked_layouts",), ("onednn",)):
        usual, *others = choose(case.model, without=without).values()
        assert all(other.plan.peak_bytes <= usual.plan.peak_bytes for other in others)
        assert all(tuning._calls(other) != tuning._calls(usual) for other in others)
    assert len(choose(dense(batch=4)[0], without=("stream_weights",))) == 1


@pytest.mark.usefixtures("no_measuring")
def test_a_stored_choice_is_used_and_said_and_nothing_is_measured(case, tmp_path):
    path = tmp_path / "tuned.json"
    keep(path, case.model, Choice("library", stream_weights=False))
    plan = tightship.plan(case.model, tune=path)
    assert plan.key["layouts"] == "library (tuned)"
    assert plan.key["streamed_weights"] == "none (tuned)"
    with tightship.load(case.model, tune=path) as model:
        assert (model.plan.key, model.plan.tensors) == (plan.key, plan.tensors)
    assert tightship.plan(case.model).key["layouts"] == "blocked"


def test_measuring_stores_the_choice_once(case, tmp_path, monkeypatch):
    path, measured = tmp_path / "tuned.json", []

    def fastest(found, *_):
        measured.append(list(found))
        return Choice("blocked", stream_weights=True)

    monkeypatch.setattr(tuning, "fastest", fastest)
    for threads in (1, 1, 2, 2):
        plan = tightship.plan(case.model, tune=path, threads=threads)
        assert plan.key["layouts"] == "blocked (tuned)"
    tightship.plan(case.model, tune=path, without=("fuse_residual",))
    assert len(measured) == len(tuning.Choices(path).read()) == 3
    assert [file.name for file in tmp_path.iterdir()] == ["tuned.json"]


def test_the_key_is_of_structure_and_not_of_weights():
    def key(model, shapes):
        graph = opening.open_model(model).graph(shapes)
        return tuning.choice_key(graph, Settings(shapes))

    model, weights = dense()
    other = model.replace(weights["w"].tobytes(), (weights["w"] + 1).tobytes())
    assert other != model
    assert key(other, {"x": (4, 32)}) == key(model, {"x": (4, 32)})
    assert key(model, {"x": (5, 32)}) != key(model, {"x": (4, 32)})
    assert key(dense(hidden=72)[0], {"x": (4, 32)}) != key(model, {"x": (4, 32)})


def test_only_the_measured_shape_has_the_choice(tmp_path, monkeypatch):
    choice = Choice("library", stream_weights=True)
    monkeypatch.setattr(tuning, "fastest", lambda *_: choice)
    shapes = {"x": (4, 32)}
    with tightship.load(dense()[0], shapes=shapes, tune=tmp_path / "t.json") as model:
        assert model.plan.key["layouts"] == "library (tuned)"
        assert model.plan_for({"x": (7, 32)}).key["layouts"] == "library"


@pytest.mark.usefixtures("no_measuring")
def test_a_plan_that_a_limit_does_not_hold_is_not_measured(tmp_path):
    path = tmp_path / "tuned.json"
    with pytest.raises(CapacityError):
        tightship.load(dense(batch=4)[0], max_memory=1, tune=path)
    assert not path.exists()


def test_text_cannot_be_made_up_to_measure_with():
    text = ("x", TensorProto.STRING, [2])
    graph = opening.open_model(
        model([helper.make_node("Identity", ["x"], ["y"])], [text], [("y", *text[1:])])
    ).graph(None)
    found = {Choice(layouts, stream_weights=True): prepare(graph, "test", Settings())
             for layouts in tuning.LAYOUTS}  # fmt: skip
    with pytest.raises(InputError, match="Input `x` of `test` has no fixed type and shape"):
        tuning.fastest(found, Bounds())


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "null", "{", '{"format": "other", "choices": {}}',
        json.dumps({"format": tuning.FORMAT}),
        json.dumps({"format": tuning.FORMAT, "choices": {"a": {"layouts": "library"}}}),
        json.dumps({"format": tuning.FORMAT, "choices": {"a": 1}}),
        json.dumps({"format": tuning.FORMAT,
                    "choices": {"a": {"layouts": "other", "stream_weights": True}}}),
        "[" * 100_000,
    ],
)  # fmt: skip
def test_a_broken_or_foreign_file_is_refused_by_name_and_left_alone(case, tmp_path, text):
    path = tmp_path / "tuned.json"
    path.write_text(text)
    with pytest.raises(FormatError, match=r"tuned\.json` is not a file of tuned choices"):
        tightship.plan(case.model, tune=path)
    assert path.read_text() == text


def test_really_measured_a_choice_gives_the_same_results(case, tmp_path):
    path = tmp_path / "tuned.json"
    with tightship.load(case.model, tune=path) as tuned, tightship.load(case.model) as usual:
        assert tuned.plan.peak_bytes <= usual.plan.peak_bytes
        assert tuned.plan.key["layouts"].endswith("(tuned)")
        assert tuned.run(case.feeds).keys() == usual.run(case.feeds).keys()


def test_weights_not_streamed_by_choice_are_as_without_streaming():
    float32 = TensorProto.FLOAT
    one = model(
        [helper.make_node("MatMul", ["x", "w"], ["y"])],
        [("x", float32, [4, 256])],
        [("y", float32, [4, 256])],
        {"w": np.ones((256, 256), np.float32)},
    )
    graph = opening.open_model(one).graph(None)

    def kernels(**settings):
        plan = prepare(graph, "test", Settings(**settings)).plan
        return [step.implementation for step in plan.steps]

    for streams, without in ((True, ()), (False, ("stream_weights",))):
        choice = Choice("library", stream_weights=streams)
        assert kernels(choice=choice) == kernels(without=without)
    assert len(choose(one, without=("stream_weights",))) == 1
