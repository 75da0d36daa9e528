"""Models loaded for several workers: the same bits, from a plan of their own."""

import contextlib
import threading

import numpy as np
import pytest

import tightship
from tests.at_once import at_once
from tests.engine.run.test_step_graph import branched
from tests.model.priced import priced
from tests.zoo.arena import LARGE, NOT_A_NUMBER, poison
from tests.zoo.decoder import SMALL, decoder
from tests.zoo.net import Net
from tests.zoo.networks import DYNAMIC, STATIC, network
from tests.zoo.oracle import assert_same_bits
from tightship import CapacityError, FormatError, InputError, StopFlag, StoppedError
from tightship.prepared_cache import entries
from tightship.resource import SharedArenaPool
from tightship.sample import sample


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of prepared models."""
    monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", str(tmp_path / "prepared"))
    return tmp_path / "prepared"


@pytest.mark.parametrize("name", [*STATIC, *DYNAMIC])
def test_a_network_has_the_bits_of_one_worker(name):
    case, _ = network(name)
    with tightship.load(case.model) as model, tightship.load(case.model, workers=3) as planned:
        assert_same_bits(planned.run(case.feeds), model.run(case.feeds))
        assert planned.plan.concurrency.workers == 3
        assert planned.plan.key["workers"] == "3"


@pytest.mark.parametrize("byte", [NOT_A_NUMBER, LARGE])
def test_many_runs_depend_on_nothing_that_memory_held(byte):
    case = branched()
    with tightship.load(case.model) as model, tightship.load(case.model, workers=4) as planned:
        wanted = model.run(case.feeds)
        for turn in range(60):
            poison(planned, byte)
            workers = None if turn % 3 else 1 + turn % 4
            assert_same_bits(planned.run(case.feeds, workers=workers), wanted)


def test_runs_at_once_have_an_arena_each():
    case = branched()
    with tightship.load(case.model, workers=2) as planned:
        wanted = planned.run(case.feeds, workers=1)
        for results in at_once(lambda _: planned.run(case.feeds), range(6)):
            assert_same_bits(results, wanted)


def test_the_price_is_stated_and_a_bound_refuses_it():
    case = priced()
    serial = tightship.plan(case.model)
    free = tightship.plan(case.model, workers=2)
    bound = tightship.plan(case.model, workers=2, workers_memory=0)
    assert free.arena_bytes == serial.arena_bytes + free.concurrency.added_bytes
    assert free.concurrency.added_bytes > 0
    assert bound.arena_bytes == serial.arena_bytes
    assert free.peak_bytes > bound.peak_bytes > serial.peak_bytes  # the worker's stack is in it
    assert "2 workers" in free.table()
    said = free.to_json()["concurrency"]
    assert len(said["edges"]) == said["plans"][said["chosen"]]["added_edges"]
    assert len(bound.to_json()["concurrency"]["edges"]) > 0
    assert "concurrency" not in serial.to_json()


def test_a_limit_falls_back_to_fewer_bytes():
    case = priced(8)
    free = tightship.plan(case.model, workers=2)
    lean = tightship.plan(case.model, workers=2, workers_memory=0)
    limit = free.peak_bytes - 1
    with (
        tightship.load(case.model, workers=2, max_memory=limit) as model,
        tightship.load(case.model) as one,
    ):
        assert model.plan.peak_bytes <= limit
        assert (
            model.plan.peak_bytes
            == tightship.plan(case.model, workers=2, max_memory=limit).peak_bytes
        )
        assert_same_bits(model.run(case.feeds), one.run(case.feeds))
    with pytest.raises(CapacityError):
        tightship.load(case.model, workers=2, max_memory=lean.peak_bytes - 1)


def test_a_prepared_file_has_the_plan_for_its_workers(tmp_path):
    case, path = priced(), tmp_path / "model.tship"
    written = tightship.prepare(case.model, path, workers=2)
    wanted = tightship.plan(case.model, workers=2)
    assert written.concurrency == wanted.concurrency
    assert written.arena_bytes == wanted.arena_bytes
    with tightship.load(path) as model, tightship.load(case.model) as one:
        assert model.plan.concurrency == wanted.concurrency
        assert_same_bits(model.run(case.feeds), one.run(case.feeds))
        assert_same_bits(model.run(case.feeds, workers=3), one.run(case.feeds))
    with pytest.raises(FormatError, match=r"2 worker\(s\); here it is 3.*--workers 3"):
        tightship.load(path, workers=3)
    with pytest.raises(FormatError, match="1 asked for"):
        tightship.plan(path, workers=1)
    for call in (tightship.load, tightship.plan):
        with pytest.raises(InputError, match="`workers_memory` is for a model that is not"):
            call(path, workers_memory="1MiB")


def test_shared_files_are_apart_by_workers(folder, tmp_path):
    case, path = priced(), tmp_path / "model.onnx"
    path.write_bytes(case.model)
    with tightship.load(path, share=True) as one:
        wanted = one.run(case.feeds)
    for _ in range(2):
        with tightship.load(path, share=True, workers=2) as two:
            assert_same_bits(two.run(case.feeds), wanted)
            assert two.plan.concurrency.workers == 2
    assert len(entries(folder)) == 2
    with tightship.load(path, share=True, workers=2, workers_memory=0) as lean:
        assert lean.plan.concurrency.added_bytes == 0
        limit = lean.plan.peak_bytes
    assert len(entries(folder)) == 3
    with tightship.load(path, share=True, workers=2, max_memory=limit) as limited:
        assert limited.plan.concurrency.added_bytes == 0
        assert_same_bits(limited.run(case.feeds), wanted)


def test_plans_for_other_workers_share_a_pool_of_arenas(tmp_path):
    case = priced()
    pool = SharedArenaPool("workers", slots=2, folder=tmp_path / "pool")
    with (
        tightship.load(case.model, arena_pool=pool) as one,
        tightship.load(case.model, workers=2, arena_pool=pool) as two,
    ):
        wanted = {name: value.copy() for name, value in one.run(case.feeds).items()}
        for results in at_once(lambda model: model.run(case.feeds), [one, two] * 4):
            assert_same_bits(results, wanted)


def test_other_lengths_are_planned_for_the_workers_too():
    source = sample("inception_bn")
    x = np.random.default_rng(0).standard_normal((2, 3, 224, 224)).astype(np.float32)
    with (
        tightship.load(source, shapes={"batch": 1}, workers=2) as two,
        tightship.load(source, shapes={"batch": 1}) as one,
    ):
        for batch in (2, 1, 2):
            assert np.array_equal(two(x[:batch]), one(x[:batch]))
        assert two.plan_for({"x": x.shape}).concurrency.workers == 2


def test_a_bound_run_has_the_workers_of_its_model():
    case = branched()
    with tightship.load(case.model, workers=2) as model:
        wanted = model.run(case.feeds, workers=1)
        outputs = {name: np.zeros_like(value) for name, value in wanted.items()}
        bound = model.bind(case.feeds, outputs)
        for _ in range(3):
            bound.run(StopFlag())
            assert_same_bits(outputs, wanted)


def test_a_run_can_be_stopped_by_another_thread():
    case = branched(4, 400)
    with tightship.load(case.model, workers=2) as model:
        wanted = model.run(case.feeds)
        for delay in (0, 0.0005, 0.002):
            stop = StopFlag()
            timer = threading.Timer(delay, stop.set)
            timer.start()
            with contextlib.suppress(StoppedError):
                assert_same_bits(model.run(case.feeds, stop=stop), wanted)
            timer.join()
        assert_same_bits(model.run(case.feeds), wanted)


def test_an_error_on_a_worker_leaves_the_model_usable():
    net = Net(3)
    x = net.normal("x", 4, 4)
    index = net.input("index", np.array([9], np.int64))
    net.output(net("Gather", x, index), net("Sin", x))
    case = net.case()
    with tightship.load(case.model, workers=2) as model:
        for _ in range(5):
            case.feeds["index"][:] = 9
            with pytest.raises(InputError):
                model.run(case.feeds)
            case.feeds["index"][:] = 1
            assert_same_bits(model.run(case.feeds), model.run(case.feeds, workers=1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": 2, "threads": 2}, "one thread each"),
        ({"workers": 0}, "from 1 to 1024"),
        ({"workers_memory": "1MiB"}, "give `workers` too"),
        ({"workers": 2, "tune": "tuned.json"}, "`tune` does not go with"),
    ],
)
def test_what_does_not_go_with_workers_is_refused(options, message):
    model = branched(1, 2).model
    for call in (tightship.load, tightship.plan):
        with pytest.raises(InputError, match=message):
            call(model, **options)


def test_sessions_and_training_are_refused_by_name(tmp_path):
    model = decoder(SMALL).model
    with (
        tightship.load(model, workers=2) as loaded,
        pytest.raises(InputError, match="loaded for 2 workers; sessions"),
    ):
        loaded.session(64)
    with pytest.raises(InputError, match="`context` does not go with `workers=2`"):
        tightship.prepare(model, tmp_path / "x.tship", workers=2, context=64)
    with pytest.raises(InputError, match="`workers` has no effect on a training step"):
        tightship.plan(branched(1, 1).model, optimizer=tightship.Sgd(0.1), workers=2)
