"""Copies for models are charged to the account that prepares the model, before they are made."""

import pytest

from tests.driver.fake_server import FakeServer
from tests.driver.small_models import NONE, Client
from tightship.driver.protocol import messages as m
from tightship.driver.protocol.replies import Failed
from tightship.driver.service import events as ev
from tightship.driver.service.model_calls import copied_bytes
from tightship.driver.types.model import ExternalFile, FileFormat, ModelFile, ModelName
from tightship.driver.types.pools import Pool, PoolMode
from tightship.driver.types.quota import Resource
from tightship.driver.types.request import Extent
from tightship.driver.types.settings import CONNECTION_LIMITS, USER_LIMITS, Settings
from tightship.driver.types.status import ErrorStatus

PAGE = 4096
LIMIT = 4 * PAGE
FULL = ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT


@pytest.fixture
def server():
    own = dict(CONNECTION_LIMITS) | {Resource.COPY_BYTES: LIMIT}
    return FakeServer(Settings(connection_limits=own, user_limits=dict(USER_LIMITS) | {
        Resource.COPY_BYTES: LIMIT + PAGE
    }))  # fmt: skip


def pool_of(client, pages, mode=PoolMode.COPY, **facts):
    file = client.server.file(pages * PAGE, **facts)
    return client(m.RegisterPool("mmap_fd", pages * PAGE, 1, 0, 0, mode), file).pool


def onnx(pool, pages, *externals):
    files = tuple(ExternalFile(f"{number}", each) for number, each in enumerate(externals))
    return m.Prepare(ModelFile(FileFormat.ONNX, pool, 0, pages * PAGE, files))


def used(client):
    account = client.server.service.ledger.connections[client.number].account
    return account.used[Resource.COPY_BYTES]


def test_an_onnx_model_and_its_external_data_are_charged_until_it_is_released(server):
    client = Client(server)
    prepared = client(onnx(pool_of(client, 2), 1, pool_of(client, 2)))
    assert used(client) == 3 * PAGE
    assert client.status(m.ReleaseModel(prepared.model)) is NONE
    assert used(client) == 0


def test_what_stays_as_it_is_is_not_copied(server):
    client = Client(server)
    sealed = pool_of(client, 2, PoolMode.SEALED, is_write_sealed=True)
    trusted = pool_of(client, 2, PoolMode.SEALED, is_shrink_sealed=False, is_trusted=True)
    assert client(onnx(sealed, 2, trusted)).model
    assert used(client) == 0
    assert client(onnx(pool_of(client, 2, PoolMode.SEALED), 2)).model
    assert used(client) == 2 * PAGE


def test_what_does_not_fit_is_refused_with_its_numbers_before_it_is_copied(server):
    client = Client(server)
    assert client(onnx(pool_of(client, 3), 3)).model
    refused = client(onnx(pool_of(client, 2), 2))
    assert isinstance(refused, Failed)
    assert refused.status is FULL
    assert f"{2 * PAGE} bytes of copies for models" in refused.message
    assert f"{PAGE} of {LIMIT} are left" in refused.message
    assert used(client) == 3 * PAGE
    assert not server.asked
    too_large = client(onnx(pool_of(client, 5), 5))
    assert too_large.status is ErrorStatus.RESOURCE_EXHAUSTED_PERSISTENT


def test_a_users_clients_have_one_account(server):
    first, second = Client(server, user=5), Client(server, user=5)
    assert first(onnx(pool_of(first, 4), 4)).model
    assert second(onnx(pool_of(second, 2), 2)).status is FULL
    server.happen(ev.Disconnected(first.number))
    assert second(onnx(pool_of(second, 2), 2)).model


def test_a_prepare_that_fails_gives_all_back(server):
    client = Client(server)
    server.engine.status = ErrorStatus.GENERAL_FAILURE
    assert client.status(onnx(pool_of(client, 4), 4)) is ErrorStatus.GENERAL_FAILURE
    assert used(client) == 0


def bare_pool(number, mode, *, is_steady=False):
    extent = Extent((1, number), 0, 10 * PAGE)
    return Pool(number, "mmap_fd", extent, 1, mode, number, True, is_steady=is_steady)


def test_a_file_of_operands_may_need_all_that_it_names():
    pools = [
        bare_pool(1, PoolMode.COPY),
        bare_pool(2, PoolMode.SEALED),
        bare_pool(3, PoolMode.ISOLATED),
    ]
    externals = (ExternalFile("", 2), ExternalFile("", 3))
    source = ModelFile(FileFormat.OPERANDS, 1, 0, 5, externals)
    assert copied_bytes(source, pools) == 5 + 10 * PAGE


def test_what_is_mapped_whole_or_there_already_is_not_charged():
    prepared = ModelFile(FileFormat.PREPARED, 1, 0, 5)
    assert copied_bytes(prepared, [bare_pool(1, PoolMode.SEALED, is_steady=True)]) == 0
    assert copied_bytes(ModelName("m"), []) == 0
