"""Table 2.6: the compilation cache, as far as it needs no files."""

import random

import pytest

from tests.driver.fake_server import FakeServer
from tests.driver.small_models import GF, IA, NONE, TYPES, Client, conv
from tightship.driver.protocol.messages import CacheFiles, Capabilities, Prepare, PrepareFromCache
from tightship.driver.service import effects as fx
from tightship.driver.service.cache import HEAD_BYTES, cache_head, opened_head
from tightship.driver.types.settings import Settings
from tightship.errors import DriverError

SECRET = bytes(range(32))
TOKEN = bytes(range(100, 132))
SEEDS = range(10)
KINDS = {name: TYPES[name] for name in ("float32", "quant8_asymm")}


@pytest.fixture(params=KINDS.values(), ids=KINDS.keys())
def kind(request):
    return request.param


def payload_of(seed):
    return random.Random(seed).randbytes(200 + seed)


INTERFACE, SOURCES = b"what it takes", b"where it was read"


def sealed_cache(secret, token, payload):
    """The content of a model file."""
    head = cache_head(secret, token, INTERFACE, SOURCES, payload)
    return head + INTERFACE + SOURCES + payload


def opened_cache(secret, token, content):
    """Return the payload of an opened cache."""
    head = opened_head(secret, token, content[:HEAD_BYTES], len(content))
    rest = content[HEAD_BYTES:]
    stops = head.interface_bytes, head.interface_bytes + head.sources_bytes
    parts = rest[: stops[0]], rest[stops[0] : stops[1]], rest[stops[1] :]
    head.check_body(*parts)
    return parts[2]


def refusal(content, token=TOKEN, secret=SECRET):
    with pytest.raises(DriverError) as caught:
        opened_cache(secret, token, content)
    return caught.value.status


@pytest.mark.parametrize("seed", SEEDS)
def test_cache_saving_and_retrieval(seed):
    payload = payload_of(seed)
    assert opened_cache(SECRET, TOKEN, sealed_cache(SECRET, TOKEN, payload)) == payload


def test_an_empty_payload_is_one():
    assert opened_cache(SECRET, TOKEN, sealed_cache(SECRET, TOKEN, b"")) == b""


@pytest.mark.parametrize("seed", SEEDS)
def test_corrupted_model_cache(seed):
    content = sealed_cache(SECRET, TOKEN, payload_of(seed))
    for position in random.Random(seed).sample(range(8 * len(content)), 60):
        changed = bytearray(content)
        changed[position // 8] ^= 1 << position % 8
        assert refusal(bytes(changed)) is GF


@pytest.mark.parametrize("seed", SEEDS)
def test_wrong_length_model_cache(seed):
    content = sealed_cache(SECRET, TOKEN, payload_of(seed))
    for wrong in (content + b"\0", content[:-1], content[:40], content[:HEAD_BYTES], b""):
        assert refusal(wrong) is GF


@pytest.mark.parametrize("seed", SEEDS)
def test_wrong_token(seed):
    content = sealed_cache(SECRET, TOKEN, payload_of(seed))
    position = random.Random(seed).randrange(256)
    token = bytearray(TOKEN)
    token[position // 8] ^= 1 << position % 8
    assert refusal(content, bytes(token)) is GF


@pytest.mark.parametrize("seed", SEEDS)
def test_replace_security_sensitive_cache(seed):
    """The content of another model's cache, even with this one's head, is not taken."""
    mine = sealed_cache(SECRET, TOKEN, payload_of(seed))
    others = sealed_cache(SECRET, TOKEN[::-1], payload_of(seed))
    assert refusal(others) is GF
    assert refusal(mine[:50] + others[50:]) is GF
    assert refusal(mine, secret=SECRET[::-1]) is GF


def prepared(client, kind, cache, *files):
    """Return whether the server is asked to save, and the status."""
    number = client.server.post(client.number, Prepare(conv(kind), cache=cache), *files)
    (asked,) = client.server.asked
    is_saved = asked.cache is not None
    client.server.answer_all()
    assert not client.server.open_files
    return is_saved, getattr(client.server.replies[client.number, number], "status", NONE)


COUNTS = {"model +1": (2, 1), "model -1": (0, 1), "data +1": (1, 2), "data -1": (1, 0)}


def files_of(client, models, datas, **facts):
    files = [client.server.file(0, **facts) for _ in range(models + datas)]
    indexes = range(models), range(models, models + datas)
    return CacheFiles(*map(tuple, indexes), TOKEN), files


@pytest.mark.parametrize(("models", "datas"), COUNTS.values(), ids=COUNTS.keys())
def test_save_to_cache_invalid_num_cache(kind, models, datas):
    client = Client()
    cache, files = files_of(client, models, datas)
    assert prepared(client, kind, cache, *files) == (False, NONE)


MODES = [{"is_writable": False}, {"is_readable": False}, {"is_regular": False}]


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("facts", MODES, ids=repr)
def test_save_to_cache_invalid_access_mode(kind, which, facts):
    client = Client()
    cache, files = files_of(client, 1, 1)
    files[which] = client.server.file(0, **facts)
    assert prepared(client, kind, cache, *files) == (False, NONE)
    assert client.status(PrepareFromCache(cache), *files) is IA


@pytest.mark.parametrize("indexes", [((0,), (0,)), ((0,), (2,)), ((-1,), (0,))])
def test_files_that_did_not_come_are_no_cache(kind, indexes):
    client = Client()
    _, files = files_of(client, 1, 1)
    cache = CacheFiles(*indexes, TOKEN)
    assert prepared(client, kind, cache, *files) == (False, NONE)
    assert client.status(PrepareFromCache(cache), *files) is IA


def test_saving_and_reading_use_the_files_that_came(kind):
    client = Client()
    cache, files = files_of(client, 1, 1)
    assert prepared(client, kind, cache, *files) == (True, NONE)
    handles = tuple((file.handle,) for file in files)
    client.server.post(client.number, PrepareFromCache(cache), *files)
    (asked,) = client.server.asked
    assert isinstance(asked, fx.PrepareModel)
    assert asked.source is None
    assert (asked.cache.model_files, asked.cache.data_files) == handles
    assert asked.cache.token == TOKEN
    client.server.answer_all()
    assert not client.server.open_files


@pytest.mark.parametrize(("models", "datas"), COUNTS.values(), ids=COUNTS.keys())
def test_prepare_model_from_cache_invalid_num_cache(kind, models, datas):
    client = Client()
    cache, files = files_of(client, models, datas)
    assert client.status(PrepareFromCache(cache), *files) is IA
    assert client.status(Prepare(conv(kind))) is NONE


def test_a_cache_that_the_server_cannot_read_gives_no_model():
    client = Client()
    cache, files = files_of(client, 1, 1)
    client.server.engine.status = GF
    assert client.status(PrepareFromCache(cache), *files) is GF
    assert not client.server.models
    assert not client.server.open_files


def test_a_driver_without_a_cache_says_so():
    client = Client(FakeServer(Settings(model_cache_files=0, data_cache_files=0)))
    said = client(Capabilities())
    assert (said.model_cache_files, said.data_cache_files) == (0, 0)
    cache, files = files_of(client, 1, 1)
    assert client.status(PrepareFromCache(cache), *files) is GF
    assert prepared(client, KINDS["float32"], cache, *files) == (False, NONE)


def test_without_files_the_token_means_nothing(kind):
    client = Client()
    assert prepared(client, kind, CacheFiles(token=TOKEN)) == (False, NONE)
    assert client.status(PrepareFromCache(CacheFiles(token=TOKEN))) is IA
