"""Clients of a server that ask, hang up, time out and lie, one kind and endpoint a process.

    python -m benchmarks.soak_clients ENDPOINT ROLE PLACE SECONDS SEED

ENDPOINT is `http`, `grpc` or `native`; ROLE is `honest`, whose answers are checked and for whom
each refusal is a failure, or `hostile`. PLACE is HOST:PORT, or the path of the native socket.
Prints JSON: how often each action was taken, and what honest clients did not get.
"""

import json
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from benchmarks.soak_hostile import hostile_grpc, hostile_http, hostile_native
from benchmarks.soak_models import FAST, FAST_SHAPE, LARGE, LARGE_SHAPE, TEXT
from numpy.typing import NDArray
from tritonclient.utils import InferenceServerException

from tightship.driver import Client
from tightship.errors import TightshipError

PAUSE_S = 0.02
"""Most that a client waits between two actions."""
FAILURES_MAX = 20
FAILURES = (InferenceServerException, TightshipError, OSError, ValueError)

Action = Callable[[], None]


def numbers(chance: random.Random, shape: Sequence[int]) -> NDArray[np.float32]:
    """Random float32 numbers in a shape."""
    return np.random.default_rng(chance.getrandbits(32)).random(shape, np.float32)


def check(found: NDArray[np.float32], given: NDArray[np.float32]) -> None:
    """Raise ValueError unless a model that adds one has done so."""
    if not np.array_equal(found, given + 1):
        raise ValueError(f"a wrong answer for {given.shape}")


def honest_protocol(module: Any, place: str, chance: random.Random) -> Mapping[str, Action]:
    """Actions of a client that uses `tritonclient.http` or `tritonclient.grpc` as it should."""
    kept = module.InferenceServerClient(place)

    def ask(client: Any, model: str, shape: Sequence[int]) -> None:
        x = numbers(chance, shape)
        given = module.InferInput("x", list(shape), "FP32")
        given.set_data_from_numpy(x)
        check(client.infer(model, [given]).as_numpy("y"), x)

    def come() -> None:
        with module.InferenceServerClient(place) as client:
            ask(client, FAST, FAST_SHAPE)

    def text() -> None:
        ask(kept, TEXT, (chance.randint(1, 4), chance.randint(1, 512)))

    def health() -> None:
        if not (kept.is_server_ready() and kept.is_model_ready(FAST)):
            raise ValueError("the server is not ready")

    return {
        "ask": lambda: ask(kept, FAST, FAST_SHAPE),
        "ask_large": lambda: ask(kept, LARGE, LARGE_SHAPE),
        "come": come,
        "text": text,
        "health": health,
    }


def honest_native(place: str, chance: random.Random) -> Mapping[str, Action]:
    """Actions of a native client whose calls are valid."""
    kept = Client(place)
    model = kept.prepare_named(FAST)

    def ask(model: Any, shape: Sequence[int]) -> None:
        x = numbers(chance, shape)
        check(model.execute([x])[0], x)

    def come() -> None:
        with Client(place) as client, client.prepare_named(LARGE) as large:
            ask(large, LARGE_SHAPE)

    def memory() -> None:
        size = chance.randint(1, 1 << 20)
        with kept.segment(size) as segment:
            segment.place((size,), "u1").array[...] = 1
        kept.allocate(inputs=[(model, 0)]).close()

    return {"ask": lambda: ask(model, FAST_SHAPE), "come": come, "memory": memory}


def actions(endpoint: str, role: str, place: str, chance: random.Random) -> Mapping[str, Action]:
    """Choose the actions of a kind of client."""
    if endpoint == "native":
        return (honest_native if role == "honest" else hostile_native)(place, chance)
    if role == "honest":
        return honest_protocol(import_module(f"tritonclient.{endpoint}"), place, chance)
    if endpoint == "grpc":
        return hostile_grpc(place, chance)
    return hostile_http(place, chance)


def main(endpoint: str, role: str, place: str, seconds: str, seed: str) -> None:
    """Act at random until the time is over; print what was done."""
    chance = random.Random(f"{endpoint} {role} {seed}")
    known = actions(endpoint, role, place, chance)
    done, failures = Counter[str](), []
    end = time.monotonic() + float(seconds)
    while time.monotonic() < end and len(failures) < FAILURES_MAX:
        name = chance.choice(list(known))
        try:
            known[name]()
        except FAILURES as error:
            if role == "honest":
                failures.append(f"{name}: {type(error).__name__}: {error}")
        done[name] += 1
        time.sleep(chance.random() * PAUSE_S)
    print(json.dumps({"done": done, "failures": failures}))


if __name__ == "__main__":
    main(*sys.argv[1:])
