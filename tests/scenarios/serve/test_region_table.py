"""Triton's own cases of shared memory, over both endpoints; a real server is held to them too.

`TIGHTSHIP_TRITON=HTTP,GRPC` names one that has the models of `triton_models`, started with
`--model-control-mode=none`. What its release 2.51 answers otherwise is left out for it.
"""

import importlib
import os
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("tritonclient.grpc")
from tritonclient.utils import InferenceServerException, shared_memory

from tests.driver.oip.served import SIDE, running, server

REAL = os.environ.get("TIGHTSHIP_TRITON", "")
only_ours = pytest.mark.skipif(bool(REAL), reason="release 2.51 of Triton does otherwise")

A = np.arange(16, dtype=np.int32).reshape(1, 16)
B = np.ones((1, 16), np.int32)
NAMES = ("INPUT0", "INPUT1", "OUTPUT0", "OUTPUT1")
STATUSES = {
    "http": {"invalid": "400", "exists": "400", "unimplemented": "501", "not_found": "404"},
    "grpc": {
        "invalid": "StatusCode.INVALID_ARGUMENT",
        "exists": "StatusCode.ALREADY_EXISTS",
        "unimplemented": "StatusCode.UNIMPLEMENTED",
        "not_found": "StatusCode.NOT_FOUND",
    },
}


@pytest.fixture(scope="module")
def places():
    if REAL:
        yield SimpleNamespace(**dict(zip(("http", "grpc"), REAL.split(","), strict=True)))
        return
    with server("shm") as served:
        yield served


class Kit:
    """A client of one endpoint, with objects of shared memory that go when the test ends."""

    def __init__(self, endpoint, place):
        self.endpoint, self.place = endpoint, place
        self.module = importlib.import_module(f"tritonclient.{endpoint}")
        self.client = self.module.InferenceServerClient(place)
        self.made = []

    def close(self):
        self.client.unregister_system_shared_memory()
        self.client.close()
        for _, handle in self.made:
            shared_memory.destroy_shared_memory_region(handle)

    def create(self, size_bytes=64):
        """An object: its key and its handle."""
        key = f"/kit_{uuid.uuid4().hex}"
        self.made.append((key, shared_memory.create_shared_memory_region("kit", key, size_bytes)))
        return self.made[-1]

    def register_all(self):
        """An object for each tensor of `simple`, registered by the tensor's name."""
        keys = {}
        for name, content in zip(NAMES, (A, B, A * 0, A * 0), strict=True):
            keys[name], handle = self.create()
            shared_memory.set_shared_memory_region(handle, [content])
            self.client.register_system_shared_memory(name, keys[name], 64)
        return keys

    def regions(self, name=""):
        found = self.client.get_system_shared_memory_status(name)
        names = [each["name"] for each in found] if self.endpoint == "http" else list(found.regions)
        return sorted(names)

    def given(self, name, array):
        found = self.module.InferInput(name, [1, 16], "INT32")
        if isinstance(array, np.ndarray):
            found.set_data_from_numpy(array)
        else:
            found.set_shared_memory(*array)
        return found

    def wish(self, name, *place):
        found = self.module.InferRequestedOutput(name)
        found.set_shared_memory(*place)
        return found

    def infer(self, first=("INPUT0", 64), second=("INPUT1", 64), **options):
        given = [self.given("INPUT0", first), self.given("INPUT1", second)]
        return self.client.infer("simple", given, **options)

    def answered(self, run):
        """Return whether a run of `slow` found its region, before that was unregistered."""
        try:
            result = run.result()
        except InferenceServerException as error:
            assert "Unable to find shared memory region: 'slow'" in str(error)  # noqa: PT017
            return False
        assert np.array_equal(result.as_numpy("y0"), np.zeros((SIDE, SIDE)))
        return True

    @contextmanager
    def refused(self, match, kind="invalid"):
        with pytest.raises(InferenceServerException, match=match) as caught:
            yield
        if not REAL:
            assert caught.value.status() == STATUSES[self.endpoint][kind]


@pytest.fixture(params=["http", "grpc"])
def kit(request, places):
    found = Kit(request.param, getattr(places, request.param))
    yield found
    found.close()


def test_invalid_create_shm():
    with pytest.raises(shared_memory.SharedMemoryException, match="unable to create the shared"):
        shared_memory.create_shared_memory_region("kit", "/kit_dummy", -1)


def test_valid_create_set_register(kit):
    key, handle = kit.create()
    shared_memory.set_shared_memory_region(handle, [A])
    kit.client.register_system_shared_memory("dummy_data", key, 64)
    assert kit.regions() == ["dummy_data"] == kit.regions("dummy_data")


def test_unregister_before_register(kit):
    kit.client.unregister_system_shared_memory("dummy_data")
    assert kit.regions() == []


def test_unregister_after_register(kit):
    key, _ = kit.create()
    kit.client.register_system_shared_memory("dummy_data", key, 64)
    kit.client.unregister_system_shared_memory("dummy_data")
    assert kit.regions() == []


def test_status_of_a_region_there_is_not(kit):
    with kit.refused("Unable to find .*shared memory region: 'unknown'", "not_found"):
        kit.regions("unknown")


def test_reregister_after_register(kit):
    key, _ = kit.create()
    kit.client.register_system_shared_memory("dummy_data", key, 64)
    with kit.refused("shared memory region 'dummy_data' already in manager", "exists"):
        kit.client.register_system_shared_memory("dummy_data", key, 64)
    assert kit.regions() == ["dummy_data"]


def test_unregister_after_inference(kit):
    kit.register_all()
    kit.infer(outputs=[kit.wish("OUTPUT0", "OUTPUT0", 64), kit.wish("OUTPUT1", "OUTPUT1", 64)])
    sums, differences = (
        shared_memory.get_contents_as_numpy(handle, np.int32, [1, 16]) for _, handle in kit.made[2:]
    )
    assert np.array_equal(sums, A + B)
    assert np.array_equal(differences, A - B)
    kit.client.unregister_system_shared_memory("OUTPUT0")
    assert kit.regions() == ["INPUT0", "INPUT1", "OUTPUT1"]


def test_register_after_inference(kit):
    kit.register_all()
    kit.infer()
    key, _ = kit.create(128)
    kit.client.register_system_shared_memory("INPUT2", key, 128)
    assert kit.regions() == ["INPUT0", "INPUT1", "INPUT2", "OUTPUT0", "OUTPUT1"]


def test_unregisterall(kit):
    kit.register_all()
    assert len(kit.regions()) == 4
    kit.client.unregister_system_shared_memory()
    assert kit.regions() == []


def test_too_big_shm(kit):
    kit.register_all()
    key, _ = kit.create(128)
    kit.client.register_system_shared_memory("big", key, 128)
    with kit.refused(
        "input byte size mismatch for input 'INPUT1' for model 'simple'. Expected 64, got 128"
    ):
        kit.infer(second=("big", 128))


@only_ours  # the process of 2.51 ends
def test_large_shm_register_offset(kit):
    page = os.sysconf("SC_PAGE_SIZE")
    key, handle = kit.create(page * 1024)
    shared_memory.set_shared_memory_region(handle, [A], offset=page * 1023)
    kit.client.register_system_shared_memory("large", key, page, page * 1023)
    result = kit.infer(first=("large", 64), second=B)
    assert np.array_equal(result.as_numpy("OUTPUT0"), A + B)


def test_mixed_raw_shm(kit):
    kit.register_all()
    result = kit.infer(second=B * 5)
    assert np.array_equal(result.as_numpy("OUTPUT1"), A - B * 5)
    asked = [kit.wish("OUTPUT0", "OUTPUT0", 64), kit.module.InferRequestedOutput("OUTPUT1")]
    assert np.array_equal(kit.infer(second=B, outputs=asked).as_numpy("OUTPUT1"), A - B)


def test_infer_offset_out_of_bound(kit):
    kit.register_all()
    offset = 2**64 - 32 if kit.endpoint == "http" else 64
    with kit.refused("Invalid offset for shared memory region"):
        kit.infer(first=("INPUT0", 64, offset))


def test_infer_byte_size_out_of_bound(kit):
    kit.register_all()
    with kit.refused(r"Invalid offset \+ byte size for shared memory region"):
        kit.infer(first=("INPUT0", 64, 1))


@only_ours
def test_infer_integer_overflow(kit):
    kit.register_all()
    if kit.endpoint == "grpc":
        with pytest.raises(ValueError, match="out of range"):
            kit.infer(first=("INPUT0", 2**64 - 32, 32))
        return
    with kit.refused("Integer overflow detected: byte_size "):
        kit.infer(first=("INPUT0", 2**64 - 32, 32))


@pytest.mark.parametrize(("size", "offset"), [(65, 0), (64, 1), (1, 64), (0, 65)])
def test_register_out_of_bound(kit, size, offset):
    key, _ = kit.create()
    with kit.refused("invalid args|Invalid shared memory region"):
        kit.client.register_system_shared_memory("dummy_data", key, size, offset)
    assert kit.regions() == []


@only_ours
@pytest.mark.parametrize("slashes", ["", "/", "///"])
def test_register_reserved_names(kit, slashes):
    with kit.refused("reserved prefix"):
        key = f"{slashes}triton_python_backend_shm_region_1"
        kit.client.register_system_shared_memory("dummy_data", key, 8)
    if slashes:
        with kit.refused("invalid shm key"):
            kit.client.register_system_shared_memory("dummy_data", slashes, 8)


@only_ours
@pytest.mark.parametrize("request_count", [1, 2])
def test_unregister_during_inference(kit, places, request_count):
    size_bytes = 4 * SIDE * SIDE
    key, _ = kit.create(size_bytes)
    given = kit.module.InferInput("x", [SIDE, SIDE], "FP32")
    given.set_shared_memory("slow", size_bytes)
    clients = [kit.module.InferenceServerClient(kit.place) for _ in range(request_count)]
    with ThreadPoolExecutor(request_count) as threads:
        for _ in range(50):  # each a race of two calls, which a busy machine may lose
            kit.client.register_system_shared_memory("slow", key, size_bytes)
            runs = [threads.submit(client.infer, "slow", [given]) for client in clients]
            while running(places) < request_count and not any(run.done() for run in runs):
                pass
            kit.client.unregister_system_shared_memory("slow")
            during = kit.regions()
            are_running = running(places) == request_count
            met = [kit.answered(run) for run in runs]
            assert kit.regions() == []
            if are_running and all(met):
                break
    assert are_running
    assert all(met)
    assert during == ["slow"]
    for client in clients:
        client.close()


def test_python_client_leak():
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1])

    def create_and_destroy():
        handle = shared_memory.create_shared_memory_region("kit", "/kit_leak", 64)
        shared_memory.destroy_shared_memory_region(handle)

    for _ in range(200):
        create_and_destroy()
    before = resident()
    for _ in range(1000):
        create_and_destroy()
    assert resident() <= before * 1.02


def test_shared_memory_of_both_endpoints_is_one(places):
    http, grpc = Kit("http", places.http), Kit("grpc", places.grpc)
    key, handle = http.create()
    shared_memory.set_shared_memory_region(handle, [A])
    http.client.register_system_shared_memory("both", key, 64)
    assert grpc.regions() == ["both"]
    assert np.array_equal(grpc.infer(first=("both", 64), second=B).as_numpy("OUTPUT0"), A + B)
    with grpc.refused("already in manager", "exists"):
        grpc.client.register_system_shared_memory("both", key, 64)
    grpc.close()
    assert http.regions() == []
    http.close()


@only_ours
@pytest.mark.parametrize("endpoint", ["http", "grpc"])
def test_client_shm_disabled_by_default(endpoint):
    with server() as served:
        kit = Kit(endpoint, getattr(served, endpoint))
        assert kit.regions() == []
        key, _ = kit.create()
        match = "Client shared memory is disabled"
        with kit.refused(match, "unimplemented"):
            kit.client.register_system_shared_memory("dummy_data", key, 64)
        with kit.refused(match, "unimplemented"):
            kit.client.unregister_system_shared_memory("dummy_data")
        with kit.refused(match, "unimplemented"):
            kit.client.register_cuda_shared_memory("dummy_data", b"QUJD", 0, 64)
        assert kit.regions() == []
        with kit.refused(match, "unimplemented"):
            kit.close()
        for _, handle in kit.made:
            shared_memory.destroy_shared_memory_region(handle)


@only_ours
def test_cuda_answers_as_a_build_without_it(kit):
    kit.client.get_cuda_shared_memory_status()
    with kit.refused("failed to register CUDA shared memory region: 'a', GPUs not supported"):
        kit.client.register_cuda_shared_memory("a", b"QUJD", 0, 64)
    kit.client.unregister_cuda_shared_memory()
