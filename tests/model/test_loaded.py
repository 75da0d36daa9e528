import mmap
import os
import signal
import threading

import numpy as np
import pytest
from onnx import helper

import tightship
from tests.small_models import dense, dense_result, model, nonzero, relu_chain
from tightship.engine.run.limits import Limits


@pytest.fixture(scope="module")
def loaded():
    data, weights = dense()
    with tightship.load(data, shapes={"x": (4, 32)}) as opened:
        yield opened, weights


def x_of(rows=4, seed=1):
    return np.random.default_rng(seed).standard_normal((rows, 32), np.float32)


def test_one_output_comes_as_an_array_and_by_name(loaded):
    network, weights = loaded
    expected = dense_result(x_of(), weights)
    np.testing.assert_allclose(network(x_of()), expected, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(network(x=x_of()), network.run({"x": x_of()})["y"])


def test_results_stay_valid_after_later_runs_and_after_close():
    data, _ = dense()
    with tightship.load(data, shapes={"x": (4, 32)}) as model:
        first = model(x_of(seed=1))
        kept = first.copy()
        model(x_of(seed=2))
    np.testing.assert_array_equal(first, kept)


def test_outputs_are_written_into_arrays_that_the_caller_gives(loaded):
    network, _ = loaded
    y = np.full((4, 8), np.nan, np.float32)
    results = network.run({"x": x_of()}, outputs={"y": y})
    assert results["y"] is y
    np.testing.assert_array_equal(y, network(x_of()))


@pytest.mark.parametrize("change", ["strided", "fortran", "read-only", "big-endian", "list"])
def test_any_layout_of_the_right_values_is_accepted(loaded, change):
    network, _ = loaded
    x = x_of()
    wide = np.zeros((4, 64), np.float32)
    wide[:, ::2] = x
    read_only = x.copy()
    read_only.flags.writeable = False
    variants = {
        "strided": wide[:, ::2],
        "fortran": np.asfortranarray(x),
        "read-only": read_only,
        "big-endian": x.astype(">f4"),
        "list": [list(row) for row in x],
    }
    np.testing.assert_array_equal(network(variants[change]), network(x))


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ({}, "`x` is missing"),
        ({"x": x_of(), "z": x_of()}, "Unknown input `z`"),
        ({"x": x_of().astype(np.float64)}, "dtype float64; float32 is needed"),
        ({"x": x_of()[:, :5]}, r"shape \[4, 5\]; the plan was made for \[4, 32\]"),
        ({"x": x_of()[0]}, r"shape \[32\]"),
    ],
)
def test_wrong_inputs_are_named(loaded, inputs, said):
    with pytest.raises(tightship.InputError, match=said):
        loaded[0].run(inputs)


def test_wrong_calls_are_named(loaded):
    with pytest.raises(tightship.InputError, match="2 arrays were given"):
        loaded[0](x_of(), x_of())
    with pytest.raises(tightship.InputError, match="both in order and by name"):
        loaded[0](x_of(), x=x_of())


def unfit_outputs():
    x, y = x_of(), np.empty((4, 8), np.float32)
    read_only = y.copy()
    read_only.flags.writeable = False
    shared = np.zeros((4, 40), np.float32)
    return {
        "dtype": (x, np.empty((4, 8)), "float64"),
        "shape": (x, np.empty((8, 4), np.float32), r"\[8, 4\]"),
        "strides": (x, np.empty((4, 16), np.float32)[:, ::2], "not C-contiguous"),
        "read-only": (x, read_only, "read-only"),
        "overlap": (shared.reshape(-1)[:128].reshape(4, 32),
                    shared.reshape(-1)[100:132].reshape(4, 8), "input `x`, and they are not"),
    }  # fmt: skip


@pytest.mark.parametrize("case", unfit_outputs())
def test_output_arrays_that_do_not_fit_are_refused(loaded, case):
    x, y, said = unfit_outputs()[case]
    with pytest.raises(tightship.InputError, match=said):
        loaded[0].run({"x": x}, outputs={"y": y})


def test_nan_stays_in_its_row(loaded):
    x = x_of()
    x[1, 3] = np.nan
    result = loaded[0](x)
    np.testing.assert_array_equal(result[[0, 2, 3]], loaded[0](x_of())[[0, 2, 3]])


def test_nan_goes_through_arithmetic():
    nodes = [helper.make_node("Mul", ["x", "x"], ["s"]), helper.make_node("Tanh", ["s"], ["y"])]
    types = [("x", 1, [8])], [("y", 1, [8])]
    x = np.arange(8, dtype=np.float32)
    x[3] = np.nan
    with tightship.load(model(nodes, *types)) as loaded_model:
        np.testing.assert_array_equal(np.isnan(loaded_model(x)), np.isnan(x))


def test_threads_run_one_model_at_once_each_in_its_own_arena(loaded):
    network, _ = loaded
    xs = [x_of(seed=seed) for seed in range(8)]
    expected = [network(x) for x in xs]
    wrong = []

    def work(index):
        runs = [network(xs[index]) for _ in range(50)]
        wrong.extend(run for run in runs if not np.array_equal(run, expected[index]))

    workers = [threading.Thread(target=work, args=(index,)) for index in range(len(xs))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_a_limit_with_room_for_one_arena_makes_runs_alternate():
    data, _ = dense()
    plan = tightship.plan(data, shapes={"x": (4, 32)})
    with tightship.load(data, shapes={"x": (4, 32)}, max_memory=plan.peak_bytes) as model:
        results = []
        workers = [threading.Thread(target=lambda: results.append(model(x_of()))) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert len(results) == 4
        assert model.memory_stats().arena_peak_bytes < plan.arena_bytes + mmap.PAGESIZE


def test_a_deadline_ends_a_run_between_steps():
    with (
        tightship.load(relu_chain(200)) as model,
        pytest.raises(tightship.DeadlineError, match="deadline"),
    ):
        model.run({"v0": np.zeros((1, 1 << 20), np.float32)}, timeout_s=0.005)


def run_until_ended(model, result, **options):
    """One run after another, so that whatever ends them finds one going on.

    `result` holds NaN until a run's last step.
    """
    inputs = {model.input_names[0]: np.zeros_like(result)}
    while True:
        result.fill(np.nan)
        model.run(inputs, outputs={model.output_names[0]: result}, **options)


def test_a_stop_flag_ends_a_run_from_another_thread_and_the_model_runs_again():
    flag, result = tightship.StopFlag(), np.empty((1, 1 << 20), np.float32)
    with tightship.load(relu_chain(1000)) as opened:
        threading.Timer(0.05, flag.set).start()
        with pytest.raises(tightship.StoppedError):
            run_until_ended(opened, result, stop=flag)
        assert np.isnan(result).all()
        flag.clear()
        opened.run({"v0": np.zeros_like(result)}, outputs={"v1000": result}, stop=flag)
    assert np.isfinite(result).all()


@pytest.fixture
def control_c():
    """SIGINT as at a terminal; a shell lets what it starts in the background ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("control_c")
def test_control_c_ends_a_native_run_before_its_last_step():
    result = np.empty((1, 1 << 20), np.float32)
    with tightship.load(relu_chain(1000)) as opened:
        for _ in range(3):  # one may come between two runs
            threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            with pytest.raises(KeyboardInterrupt):
                run_until_ended(opened, result)
            if np.isnan(result).all():
                break
    assert np.isnan(result).all()


def test_close_gives_everything_back_and_says_so():
    data, _ = dense()
    model = tightship.load(data, shapes={"x": (4, 32)})
    programs = model._programs
    assert programs.memory.weights_bytes > 0
    assert programs.memory.arena_bytes > 0
    model.close()
    model.close()
    assert programs.memory.weights_bytes == programs.memory.arena_bytes == 0
    assert "closed" in repr(model)
    with pytest.raises(tightship.InputError, match="closed"):
        model(x_of())


def test_a_failed_run_leaves_the_model_usable():
    with tightship.load(nonzero(), dynamic_memory="12MiB") as model:
        with pytest.raises(tightship.OutOfMemoryError, match="NonZero"):
            model.run({"x": np.ones((1000, 1000), np.float32)})
        results = model.run({"x": np.eye(1000, dtype=np.float32)})
    assert results["total"] == 2 * sum(range(1000))
    assert results["indices"].shape == (2, 1000)


def test_an_output_whose_shape_depends_on_data_cannot_be_given():
    with (
        tightship.load(nonzero()) as model,
        pytest.raises(tightship.InputError, match="depends on data"),
    ):
        model.run(
            {"x": np.eye(1000, dtype=np.float32)}, outputs={"indices": np.empty((2, 5), np.int64)}
        )


@pytest.fixture
def occupied():
    """A model whose only arena another run has."""
    data, _ = dense()
    limit = tightship.plan(data, shapes={"x": (4, 32)}).peak_bytes
    with tightship.load(data, shapes={"x": (4, 32)}, max_memory=limit) as opened:
        with opened._programs.reserved(opened._key, Limits()):
            yield opened
        assert opened(x_of()).shape == (4, 8)


def test_a_deadline_ends_the_wait_for_an_arena(occupied):
    with pytest.raises(tightship.DeadlineError):
        occupied.run({"x": x_of()}, timeout_s=0.05)


def test_a_stop_flag_ends_the_wait_for_an_arena(occupied):
    flag = tightship.StopFlag()
    threading.Timer(0.05, flag.set).start()
    with pytest.raises(tightship.StoppedError):
        occupied.run({"x": x_of()}, stop=flag)


def test_a_run_that_waits_holds_no_inputs_or_outputs_of_its_own(occupied, monkeypatch):
    """A limit counts them once for each arena."""
    bound = []
    monkeypatch.setattr("tightship.model.feeds.bind", lambda *given: bound.append(given))
    with pytest.raises(tightship.DeadlineError):
        occupied.run({"x": x_of()}, timeout_s=0.05)
    assert not bound
