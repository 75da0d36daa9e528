"""Prepared models with wrong values and right checksums, each loaded and run by a child process.

    python -m tests.engine.stored.fuzz FILE COUNT SEED

Prints how the children ended: `refused` and `ran` are right, a signal never is.
"""

import collections
import contextlib
import json
import os
import random
import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

import tightship
from tests.engine.stored.files import Parts, changed_part, parts_of
from tightship.errors import TightshipError

NUMBERS = [0, 1, 2, 3, 7, 15, 16, 63, 64, 65, 255, 4096, 1 << 20, 1 << 31, (1 << 31) - 1, 1 << 40]
NUMBERS += [1 << 46, 1 << 62, (1 << 63) - 1, -1, -64, -(1 << 31)]
NEAR = [-64, -8, -1, 1, 8, 64]
CPU_SECONDS = 5
ADDRESS_BYTES = 24 << 30
REFUSED, RAN, OTHER = 10, 11, 12
NAMES = {REFUSED: "refused", RAN: "ran", OTHER: "other"}
TIMED_OUT = {signal.SIGXCPU, signal.SIGKILL}
Place = tuple[str | int, ...]


def leaves(value: Any, path: Place = ()) -> Iterator[Place]:
    """Yield the places of the values and lists of a JSON text."""
    if path and not isinstance(value, dict):
        yield path
    if isinstance(value, dict | list):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        for key, each in inner:
            yield from leaves(each, (*path, key))


def mutated(parts: Parts, random: random.Random) -> Parts:
    """The same with one to three values wrong."""
    changed = Parts(parts.weights, json.loads(json.dumps(parts.text)), parts.recipes)
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        if parts.text.get("sessions") and random.random() < 0.8:
            changed = wrong_session(changed, random)
        elif random.random() < 0.5 and changed.recipes:
            changed.recipes = wrong_recipes(changed.recipes, random)
        else:
            make_value_wrong(changed.text, random)
    return changed


def wrong_session(parts: Parts, random: random.Random) -> Parts:
    """Another value in the description of programs of sessions, or in one of these programs."""

    def change(described: Any) -> None:
        if random.random() < 0.5:
            make_value_wrong(described, random)
            return
        row = random.choice(described["programs"])
        start, size = row["program"]
        program = json.loads(parts.recipes[start : start + size])
        make_value_wrong(program, random)
        text = json.dumps(program).encode()
        row["program"] = [len(parts.recipes), len(text)]
        parts.recipes += text

    with contextlib.suppress(KeyError, IndexError, TypeError, ValueError):  # wrong already
        return changed_part(parts, 0, change)
    return parts


def wrong_recipes(recipes: bytes, random: random.Random) -> bytes:
    """Another byte, or another number of eight bytes."""
    content, place = bytearray(recipes), random.randrange(len(recipes))
    if random.random() < 0.4 or len(content) < 8:
        content[place] ^= 1 << random.randrange(8)
        return bytes(content)
    place = min(place, len(content) - 8)
    number = int.from_bytes(content[place : place + 8], "little", signed=True)
    near = number + random.choice(NEAR)
    new = random.choice([random.choice(NUMBERS), near if abs(near) < 1 << 62 else 0])
    content[place : place + 8] = new.to_bytes(8, "little", signed=True)
    return bytes(content)


def make_value_wrong(text: Any, random: random.Random) -> None:
    """Another value where one was, or a list that is longer, shorter or in another order."""
    *outer, last = random.choice(list(leaves(text)))
    holder = text
    for key in outer:
        holder = holder[key]
    old = holder[last]
    if isinstance(old, bool):
        holder[last] = not old
    elif isinstance(old, int):
        holder[last] = random.choice([random.choice(NUMBERS), old + random.choice(NEAR)])
    elif isinstance(old, list) and old:
        new = json.loads(json.dumps(old))
        random.choice([new.pop, lambda: new.append(new[0]), new.reverse])()
        holder[last] = new
    else:
        holder[last] = random.choice(["", None, "float64", -1, [], {}])


def run(path: Path) -> None:
    """Load and run a file, and a session if it is a decoder."""
    with tightship.load(path) as model:
        feeds = {n: np.ones(s, d.numpy) for n, (d, s) in model.input_types.items()}
        model.run(feeds, timeout_s=CPU_SECONDS)
        if "input_ids" in feeds:
            session = model.session(16, chunk=4)
            for tokens in ([[1, 2, 3, 4, 5, 6, 7]], [[1]], [[2]]):
                session.step(np.array(tokens))


def attempt(path: Path) -> NoReturn:
    """Load and run a file in this process, which ends by it."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_BYTES, ADDRESS_BYTES))
    code = OTHER
    try:
        run(path)
        code = RAN
    except (TightshipError, MemoryError):
        code = REFUSED
    finally:
        os._exit(code)


def main(source: Path, count: int, seed: int) -> None:
    """Print how many children ended how."""
    generator, parts = random.Random(seed), parts_of(source.read_bytes())
    run(source)  # so that children have the modules
    path, ends = source.with_suffix(".fuzzed"), collections.Counter[str]()
    for _ in range(count):
        path.write_bytes(mutated(parts, generator).assembled())
        child = os.fork()
        if child == 0:
            attempt(path)
        status = os.waitpid(child, 0)[1]
        if not os.WIFSIGNALED(status):
            ends[NAMES[os.WEXITSTATUS(status)]] += 1
        elif os.WTERMSIG(status) not in TIMED_OUT:
            ends[f"signal {os.WTERMSIG(status)}"] += 1
    sys.stdout.write(json.dumps(ends))


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
