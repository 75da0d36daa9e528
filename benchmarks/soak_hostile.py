"""Actions of hostile clients: hang up, drip, time out, die and lie; see `soak_clients`."""

import json
import os
import random
import socket
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import numpy as np
import tritonclient.grpc as triton
from benchmarks.soak_models import FAST, FAST_SHAPE, LARGE, SLOW, SLOW_SHAPE
from tests.driver.oip import raw_grpc
from tritonclient.utils import InferenceServerException

from tightship.driver import Client
from tightship.errors import DriverError

Address = tuple[str, int]
TIMEOUT_S = 60.0
STALLED_MAX = 8
"""Calls that a client of gRPC leaves unfinished at once; fewer than the server's slots."""


def address_of(place: str) -> Address:
    """Split HOST:PORT."""
    host, _, port = place.rpartition(":")
    return host, int(port)


def connected(address: Address) -> socket.socket:
    """Connect a socket that waits at most `TIMEOUT_S`."""
    made = socket.create_connection(address, TIMEOUT_S)
    made.settimeout(TIMEOUT_S)
    return made


def request(model: str, body: bytes, length: int | None = None, **headers: object) -> bytes:
    """Write an HTTP request to infer, whose stated length may be a lie."""
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    size = len(body) if length is None else length
    head = [f"POST /v2/models/{model}/infer HTTP/1.1", "Host: localhost",
            f"Content-Length: {size}", *lines]  # fmt: skip
    return "\r\n".join([*head, "", ""]).encode() + body


def json_body(size: int, **changes: object) -> bytes:
    """Write a request's body for `size` zeros in a row, with fields of the tensor replaced."""
    tensor = {"name": "x", "shape": [1, size], "datatype": "FP32", "data": [0.0] * size}
    return json.dumps({"inputs": [{**tensor, **changes}]}).encode()


def lies(chance: random.Random) -> bytes:
    """Choose a request that a server must refuse, or garbage."""
    return chance.choice(
        [
            request("absent", json_body(FAST_SHAPE[1])),
            request("absent", bytes(1 << 22)),
            request(FAST, json_body(FAST_SHAPE[1], datatype="INT64")),
            request(FAST, json_body(FAST_SHAPE[1], shape=[1 << 40, 1 << 40])),
            request(FAST, json_body(FAST_SHAPE[1], data=[[[[]]]])),
            request(FAST, b"{" * 10_000),
            request(FAST, b"[]", Inference_Header_Content_Length=1 << 40),
            request(FAST, b"", length=1 << 50),
            request(FAST, b"", Transfer_Encoding="chunked") + b"zzz\r\n",
            b"PUT /v2/models/fast/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
            b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 20_000 + b"\r\n",
            chance.randbytes(chance.randint(1, 5_000)),
        ]
    )


def hostile_http(place: str, chance: random.Random) -> Mapping[str, Callable[[], None]]:
    """Actions of HTTP clients that hang up, drip, stop halfway and lie."""
    address = address_of(place)

    def send(message: bytes, *, wait: bool) -> None:
        with connected(address) as made, suppress(OSError):
            made.sendall(message)
            if wait:
                made.settimeout(1.0)
                made.recv(1 << 16)

    def reset() -> None:
        with connected(address) as made, suppress(OSError):
            made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            made.sendall(request(LARGE, bytes(chance.randint(0, 1 << 22)), length=1 << 22))

    def drip() -> None:
        with connected(address) as made, suppress(OSError):
            for letter in b"POST /v2/models/fast/infer HTTP/1.1\r\nHost: loc"[:20]:
                made.send(bytes([letter]))
                time.sleep(0.01)

    slow = request(SLOW, json_body(SLOW_SHAPE[1]))
    return {
        "hang_up": lambda: send(slow, wait=False),
        "half_body": lambda: send(request(LARGE, bytes(1 << 20), length=1 << 22), wait=False),
        "lie": lambda: send(lies(chance), wait=True),
        "reset": reset,
        "drip": drip,
        "idle": lambda: send(b"", wait=True),
    }


def hostile_grpc(place: str, chance: random.Random) -> Mapping[str, Callable[[], None]]:
    """Actions of gRPC clients that time out, hang up and lie."""
    kept = triton.InferenceServerClient(place)

    def infer(client: object, model: str, shape: Sequence[int], timeout_s: float | None) -> None:
        given = triton.InferInput("x", list(shape), "FP32")
        given.set_data_from_numpy(np.zeros(shape, np.float32))
        with suppress(InferenceServerException):
            client.infer(model, [given], client_timeout=timeout_s)

    def hang_up() -> None:
        client = triton.InferenceServerClient(place)
        given = triton.InferInput("x", list(SLOW_SHAPE), "FP32")
        given.set_data_from_numpy(np.zeros(SLOW_SHAPE, np.float32))
        client.async_infer(SLOW, [given], lambda **_: None)
        time.sleep(chance.random() * 0.1)
        client.close()

    def garbage() -> None:
        with connected(address_of(place)) as made, suppress(OSError):
            preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" if chance.random() < 0.5 else b""
            made.sendall(preface + chance.randbytes(chance.randint(1, 5_000)))
            made.settimeout(0.5)
            made.recv(1 << 16)

    def stall(window_bytes: int, message_bytes: int) -> None:
        """Leave calls without the rest of their messages, or their answers unread."""
        with connected(address_of(place)) as made, suppress(OSError):
            made.sendall(raw_grpc.opening(window_bytes))
            for stream in range(1, 2 * chance.randint(1, STALLED_MAX), 2):
                made.sendall(raw_grpc.call_head("ServerLive", stream))
                made.sendall(raw_grpc.half_message(message_bytes, stream))
            time.sleep(chance.random())

    return {
        "half_message": lambda: stall(65535, 64),
        "read_nothing": lambda: stall(0, 0),
        "time_out": lambda: infer(kept, SLOW, SLOW_SHAPE, 0.03),
        "hang_up": hang_up,
        "absent": lambda: infer(kept, "absent", FAST_SHAPE, None),
        "wrong_shape": lambda: infer(kept, FAST, (3, 3), None),
        "garbage": garbage,
    }


def hostile_native(place: str, chance: random.Random) -> Mapping[str, Callable[[], None]]:
    """Actions of native clients that die with calls under way, time out and lie."""
    x = np.zeros(SLOW_SHAPE, np.float32)

    def time_out() -> None:
        with Client(place) as client, client.prepare_named(SLOW) as model, suppress(DriverError):
            model.execute([x], timeout_s=0.03)

    def die() -> None:
        child = os.fork()
        if child == 0:
            with suppress(BaseException):
                client = Client(place)
                client.allocate(inputs=[(client.prepare_named(LARGE), 0)])
                client.prepare_named(SLOW).execute([x])
            os._exit(0)
        time.sleep(chance.random() * 0.2)
        os.kill(child, 9)
        os.waitpid(child, 0)

    def garbage() -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as made, suppress(OSError):
            made.connect(place)
            made.settimeout(0.5)
            for _ in range(chance.randint(1, 5)):
                made.sendall(chance.randbytes(chance.randint(1, 3_000)))
            made.recv(1 << 16)

    return {"time_out": time_out, "die": die, "garbage": garbage}
