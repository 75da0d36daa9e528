import time

import numpy as np
import pytest

import tightship
from tests import decoders
from tests.engine.graphs import expected, inputs_of, prepared, static_graph
from tests.engine.run.programs import Loaded, loaded
from tests.models import filled
from tightship import _core
from tightship._core import StopFlag
from tightship.engine.arenas.model_pools import ModelPools
from tightship.engine.plan.placement import place
from tightship.engine.program.program import (
    Lowered,
    LoweredStep,
    Operand,
    ReferenceWork,
    Slot,
    Space,
)
from tightship.engine.run.arena import FixedArrays
from tightship.engine.run.executable import NativeSegment
from tightship.engine.run.executor import execute
from tightship.engine.run.limits import Limits
from tightship.errors import DeadlineError, GraphError, OutOfMemoryError, StoppedError
from tightship.graph import DType

MIXED = """g (float[4, 8] x) => (float[4, 8] y) {
    a = MatMul (x, w) b = Erf (a) c = MatMul (b, w) d = Erf (c) y = MatMul (d, w) }"""


@pytest.mark.parametrize("without", [(), ("onednn",)])
def test_native_and_python_steps_alternate(without):
    run, graph = loaded(MIXED, without, w=filled(8, 8))
    np.testing.assert_allclose(
        run(inputs_of(graph))["y"], expected(graph)["y"], rtol=1e-4, atol=1e-5
    )


def test_a_run_leaves_nothing_that_changes_the_next():
    run, graph = loaded(MIXED, w=filled(8, 8))
    first = run(inputs_of(graph))["y"].copy()
    run({"x": np.full((4, 8), np.nan, np.float32)})
    np.testing.assert_array_equal(run(inputs_of(graph))["y"], first)


@pytest.mark.parametrize("without", [(), ("onednn",)])
def test_a_copy_brings_an_input_to_an_output(without):
    run, _ = loaded("g (float[2, 3] x) => (float[6] y) { y = Reshape (x, s) }", without,
                    s=np.array([6]))  # fmt: skip
    np.testing.assert_array_equal(run({"x": filled(2, 3)})["y"], filled(2, 3).reshape(6))


PROGRAMS = {
    "native": "g (float[4, 8] x) => (float[4, 8] y) { y = MatMul (x, w) }",
    "python": "g (float[4, 8] x) => (float[4, 8] y) { y = Erf (x) }",
    "reference": "g (float[4, 8] x) => (int64[2, n] y) { y = NonZero (x) }",
}


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_a_stop_flag_ends_a_run_before_its_next_step(text):
    run, graph = loaded(text, w=filled(8, 8))
    stop = StopFlag()
    stop.set()
    with pytest.raises(StoppedError, match="stop flag was set"):
        run(inputs_of(graph), stop=stop)
    stop.clear()
    assert run(inputs_of(graph), stop=stop)["y"].size


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_a_deadline_that_has_passed_ends_a_run(text):
    run, graph = loaded(text, w=filled(8, 8))
    now = time.monotonic_ns()
    with pytest.raises(DeadlineError, match="its deadline passed"):
        run(inputs_of(graph), deadline_ns=now)
    assert run(inputs_of(graph), deadline_ns=now + 10**12)["y"].size


def handmade(function, shape=(3,), dtype=DType.FLOAT32):
    """A program of one reference step, whose output is planned."""
    source = Operand("x", Space.EXTERNAL, 0, DType.FLOAT32, (3,))
    target = Operand("y", Space.EXTERNAL, 1, dtype, shape)
    step = LoweredStep(
        "n", "Custom", "reference", "test", (source,), (target,),
        ReferenceWork(function, (source,), (target,)), dynamic_reason="test",
    )  # fmt: skip
    slots = tuple(Slot(o.name, o.size_bytes, external=True) for o in (source, target))
    return Loaded(place(Lowered((step,), slots, (), {"x": source}, {"y": target}, {}, 1)))


X = {"x": np.arange(3, dtype=np.float32)}


def test_what_a_reference_kernel_returns_goes_where_it_was_planned():
    assert handmade(lambda o: [o[0] + 1])(X)["y"].tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("result", "said"),
    [
        (np.zeros(4, np.float32), r"shape \(4,\) and dtype float32; the graph says \(3,\)"),
        (np.zeros((1, 3), np.float32), r"shape \(1, 3\)"),
        (np.zeros(3), "dtype float64; the graph says"),
    ],
)
def test_a_result_that_is_not_what_was_planned_is_refused(result, said):
    with pytest.raises(GraphError, match=rf"Node `n` made `y` with {said}|{said}"):
        handmade(lambda _: [result])(X)


def test_what_a_step_allocates_is_bounded():
    run = handmade(lambda o: [np.ones(10**6, np.float32)[:3] * o[0]])
    assert run(X, dynamic=ModelPools(0, 10**7))["y"].tolist() == [0, 1, 2]
    with pytest.raises(OutOfMemoryError, match=r"Step `n` \(Custom\).*dynamic_memory") as error:
        run(X, dynamic=ModelPools(0, 10**6))
    assert 4 * 10**6 <= error.value.requested_bytes <= 4 * 10**6 + 10**4
    assert error.value.available_bytes == 0
    assert np.ones(10**6).all()


def test_without_a_bound_a_refusal_is_the_systems():
    with pytest.raises(MemoryError) as error:
        handmade(lambda _: [np.ones(1 << 60, np.uint8)])(X)
    assert not isinstance(error.value, OutOfMemoryError)


def test_objects_are_dropped_after_their_last_reader_and_outputs_stay():
    run, _ = loaded(
        """g (float[3] x) => (int64[1, n] y) {
        a = NonZero (x) b = Add (a, one) c = Mul (b, a) y = Sub (c, one) }""",
        one=np.array(1),
    )
    assert run(X)["y"].tolist() == [[1, 5]]
    assert set(run.objects) == {"y"}


@pytest.mark.skipif(not _core.HAS_ONEDNN, reason="built without oneDNN")
def test_an_object_is_apart_from_planned_bytes_that_are_written_over():
    run, _ = loaded(
        """g (float[3] x, float[2, 3] z) => (float[3] y, float[2, 3] b) {
        a = Neg (x)
        s = SequenceConstruct (a)
        m = Exp (a)
        k = Exp (m)
        b = Add (k, z)
        y = SequenceAt (s, zero)
    }""",
        zero=np.array(0),
    )
    found = run({**X, "z": np.zeros((2, 3), np.float32)})
    assert found["y"].tolist() == [0, -1, -2]


def test_numbers_that_overflow_give_no_warning():
    run, _ = loaded("g (double[2] x) => (double[2] y) { a = Exp (x) y = Div (a, a) }")
    found = run({"x": np.array([1e4, 0.0])})["y"]
    assert np.isnan(found[0])
    assert found[1] == 1


def test_the_inputs_are_not_written():
    graph = static_graph("residual")
    given = inputs_of(graph)
    for array in given.values():
        array.flags.writeable = False
    before = {name: array.copy() for name, array in given.items()}
    Loaded(prepared(graph).placement)(given)
    for name, array in before.items():
        np.testing.assert_array_equal(given[name], array)


def test_fixed_arrays_are_bound_until_others_are():
    made, _ = loaded("g (float[4] a, float[4] b) => (float[4] y) { y = Add (a, b) }")
    inputs, outputs = (
        [operand.slot for operand in ports.values()]
        for ports in (made.program.inputs, made.program.outputs)
    )

    def fixed(number):
        return FixedArrays({slot: np.full(4, number, np.float32) for slot in inputs})

    def run(given, others):
        results = {slot: np.empty(4, np.float32) for slot in outputs}
        execute(made.executable, made.arena, {**others, **results}, {}, Limits(), fixed=given)
        return results[outputs[0]][0]

    one, other = fixed(1), fixed(2)
    assert [run(each, {}) for each in (one, one, other, one)] == [2, 2, 4, 2]
    for slot in inputs:
        one.arrays[slot][...] = 3  # where they are
    assert run(one, {}) == 6
    assert run(None, fixed(5).arrays) == 10
    assert run(one, {}) == 6
    del other, one  # their places may be those of the next
    assert [run(fixed(number), {}) for number in (7, 8, 9)] == [14, 16, 18]
    assert isinstance(made.executable.segments[0], NativeSegment)


@pytest.mark.parametrize("without", [(), ("native", "onednn")])
def test_sessions_in_turn_have_their_own_caches(without: tuple[str, ...]) -> None:
    """Sessions share programs and arenas, whose steps run in the native core or in Python."""
    texts = [[3, 1, 4, 1, 5], [9, 2, 6, 5, 3]]
    with tightship.load(decoders.llama(), without=without) as model:
        alone = []
        for text in texts:
            session = model.session(context=16, chunk=4)
            alone.append([session.step([token]) for token in text])
        sessions = [model.session(context=16, chunk=4) for _ in texts]
        for place, pair in enumerate(zip(*texts, strict=True)):
            for session, token, wanted in zip(sessions, pair, alone, strict=True):
                np.testing.assert_array_equal(session.step([token]), wanted[place])
