"""A model whose client stops waiting is abandoned at the next step, and leaves nothing."""

import os

import pytest

from tests.scenarios.driver.test_hostile_clients import NoNames
from tests.small_models import dense
from tightship._core import RunPermits, StopFlag
from tightship.driver.memory.file_prober import FileProber
from tightship.driver.memory.mappings import Mappings
from tightship.driver.models import loader as loaders
from tightship.driver.models import registry as models_of_driver
from tightship.driver.models.model_cache import ModelCache
from tightship.driver.models.registry import Models
from tightship.driver.protocol.messages import CacheFiles
from tightship.driver.server.effect_runner import EffectRunner
from tightship.driver.service import effects as fx
from tightship.driver.types.model import ModelFile
from tightship.driver.types.pools import Pool, PoolMode
from tightship.driver.types.request import Extent
from tightship.driver.types.status import ErrorStatus
from tightship.engine.compile import compile_graph as preparing_engine
from tightship.engine.lower import pipeline as passes
from tightship.engine.lower import selection as select

MODEL, _ = dense(batch=4)
LATE = ErrorStatus.MISSED_DEADLINE_TRANSIENT


@pytest.fixture
def file():
    made = os.memfd_create("model")
    os.write(made, MODEL)
    yield made
    os.close(made)


def asked_of(file, cache=None):
    pool = Pool(
        3, "mmap_fd", Extent((1, file), 0, len(MODEL)), 1, PoolMode.COPY, file, is_decodable=True
    )
    return fx.PrepareModel(5, ModelFile(1, 3, 0, len(MODEL)), (pool,), 1, -1, cache)


def stopping(stop, call):
    """A call during which the client that waits goes away."""

    def stopped(*arguments, **named):
        stop.set()
        return call(*arguments, **named)

    return stopped


def own_files():
    return set(os.listdir("/proc/self/fd"))


def test_what_waits_for_its_permit_is_not_begun(file, monkeypatch):
    stop = StopFlag()
    stop.set()
    models = Models(Mappings(FileProber()), NoNames(), None)
    monkeypatch.setattr(models_of_driver, "opened", None)
    assert models.prepare(asked_of(file), stop).status is LATE


def test_a_model_is_not_lowered_that_was_read_in_vain(file, monkeypatch):
    stop, memory = StopFlag(), Mappings(FileProber())
    models = Models(memory, NoNames(), None)
    monkeypatch.setattr(memory, "read", stopping(stop, memory.read))
    monkeypatch.setattr(loaders, "load_graph", None)
    assert models.prepare(asked_of(file), stop).status is LATE


@pytest.mark.parametrize("is_kept", [False, True])
def test_weights_are_not_packed_to_the_end_in_vain(file, monkeypatch, is_kept):
    stop, slow = StopFlag(), FileProber()
    client = os.memfd_create("cache")
    models = Models(Mappings(slow), NoNames(), ModelCache(bytes(32), slow))
    before = own_files()
    for name in ("load_graph", "prepare_into"):
        monkeypatch.setattr(loaders, name, stopping(stop, getattr(loaders, name)))
    cache = CacheFiles(bytes(32), (client,), ()) if is_kept else None
    assert models.prepare(asked_of(file, cache), stop).status is LATE
    assert not models._models
    assert own_files() <= before
    assert os.fstat(client).st_size == 0
    os.close(client)


@pytest.mark.parametrize("is_kept", [False, True])
@pytest.mark.parametrize("place", ["pass", "node", "last node"])
def test_lowering_is_left_at_the_next_step(file, monkeypatch, is_kept, place):
    stop, slow, nodes = StopFlag(), FileProber(), set()
    emit, (first, _, *left) = select._emit, passes.GRAPH_PASSES

    def emitted(builder, node):
        nodes.add(builder.position)  # a fused node may be lowered in parts
        if len(nodes) == (1 if place == "node" else len(builder.graph.nodes)):
            stop.set()
        emit(builder, node)

    if place == "pass":
        monkeypatch.setattr(passes, "GRAPH_PASSES", (stopping(stop, first), stopped_in_vain, *left))
        passes.GRAPH_PASSES[0].__name__ = first.__name__
    else:
        monkeypatch.setattr(select, "_emit", emitted)
    monkeypatch.setattr(preparing_engine, "place", None)
    models = Models(Mappings(slow), NoNames(), ModelCache(bytes(32), slow))
    client = os.memfd_create("cache")
    cache = CacheFiles(bytes(32), (client,), ()) if is_kept else None
    assert models.prepare(asked_of(file, cache), stop).status is LATE
    assert len(nodes) == {"pass": 0, "node": 1}.get(place, len(nodes))
    assert os.fstat(client).st_size == 0
    os.close(client)


def stopped_in_vain(graph):
    raise AssertionError(graph)


def test_a_client_that_goes_stops_what_is_prepared_for_it(file, monkeypatch):
    slow = FileProber()
    effects = EffectRunner(NoNames(), None, RunPermits(1), slow)

    def stopped(*arguments):
        effects.carry_out(fx.StopPrepare(5))
        return opened(*arguments)

    opened = models_of_driver.opened
    monkeypatch.setattr(models_of_driver, "opened", stopped)
    effects.carry_out(asked_of(file), 7)
    (event,) = effects.workers.finish()
    assert (event.model, event.status) == (5, LATE)
    effects.carry_out(fx.StopPrepare(5))
    effects.close()


def test_a_file_that_is_no_model_is_named_by_its_pool(file):
    os.pwrite(file, bytes([255]) * len(MODEL), 0)
    models = Models(Mappings(FileProber()), NoNames(), None)
    refused = models.prepare(asked_of(file), StopFlag())
    assert refused.status is ErrorStatus.GENERAL_FAILURE
    assert "pool 3" in refused.message
    assert "bytes>" not in refused.message
