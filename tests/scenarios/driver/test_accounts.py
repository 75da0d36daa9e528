"""One account for each user of a driver, whichever endpoint he comes by."""

import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.driver.fake_server import FakeServer
from tests.driver.small_models import NONE, Client
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.region_files import RegionFiles
from tightship.driver.oip.regions import Region, RegionError
from tightship.driver.protocol import messages as m
from tightship.driver.service import events as ev
from tightship.driver.service.service import Service
from tightship.driver.types.quota import Account, Accounts, Resource
from tightship.driver.types.settings import USER_LIMITS, Settings
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError

PAGE = 4096
OWN = 5


@pytest.fixture
def accounts():
    limits = dict(USER_LIMITS) | {Resource.POOL_BYTES: 2 * PAGE, Resource.POOLS: 2}
    return Accounts(limits, kept={OWN})


@pytest.fixture
def server(accounts):
    native = FakeServer()
    native.service = Service(Settings(), random.Random(0), accounts)
    return native


@pytest.fixture
def regions(accounts, tmp_path):
    for name in ("one", "other"):
        (tmp_path / name).write_bytes(bytes(2 * PAGE))
    files = RegionFiles(is_enabled=True, folder=tmp_path, account=accounts.of(OWN))
    yield files
    files.unregister(None)


def test_what_native_clients_have_counts_for_the_other_endpoint(server, regions):
    client = Client(server, user=OWN)
    pool = client.pool(PAGE)
    regions.register(Region("r", "one", 0, PAGE))
    with pytest.raises(OipError, match="bytes of pools"):
        regions.register(Region("s", "other", 0, PAGE))
    assert client.status(m.UnregisterPool(pool)) is NONE
    regions.register(Region("s", "other", 0, PAGE))
    refused = client.status(m.RegisterPool("ashmem", PAGE, 3, 0), server.file())
    assert refused is ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT
    regions.unregister("r")
    assert client.status(m.RegisterPool("ashmem", PAGE, 3, 0), server.file()) is NONE


def test_another_user_has_an_account_of_his_own(server, regions):
    regions.register(Region("r", "one", 0, 2 * PAGE))
    assert Client(server, user=OWN + 1).pool(2 * PAGE)


@pytest.mark.parametrize(("key", "size"), [("none", PAGE), ("one", 3 * PAGE), ("one", 2 * PAGE)])
def test_a_region_that_is_refused_takes_nothing(accounts, regions, key, size):
    regions.register(Region("held", "other", 0, PAGE))
    before = dict(accounts.of(OWN).used)
    with pytest.raises((OipError, RegionError)):
        regions.register(Region("r", key, 0, size))
    assert accounts.of(OWN).used == before
    assert [each.name for each in regions.status(None)] == ["held"]
    regions.unregister(None)
    assert not any(accounts.of(OWN).used.values())


def test_an_account_that_others_hold_is_kept(server, accounts):
    mine = accounts.of(OWN)
    for user in (OWN, OWN + 1):
        client = Client(server, user=user)
        server.happen(ev.Disconnected(client.number))
    assert accounts.users == {OWN: mine}


def test_threads_never_take_more_than_there_is():
    user = Account(dict.fromkeys(Resource, 50))
    shares = [Account(dict.fromkeys(Resource, 50), user) for _ in range(4)]

    def take(account):
        for _ in range(500):
            try:
                account.charge(Resource.POOLS, 20)
            except DriverError:  # as it should be now and then
                continue
            assert 20 <= user.used[Resource.POOLS] <= 50
            account.refund(Resource.POOLS, 20)

    with ThreadPoolExecutor(4) as threads:
        for future in [threads.submit(take, account) for account in shares]:
            future.result(60)
    assert user.used[Resource.POOLS] == 0
