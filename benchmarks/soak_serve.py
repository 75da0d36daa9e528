"""A server under clients that come, ask, hang up, time out and lie: what it holds afterwards.

    python -m benchmarks.soak_serve --record
    python -m benchmarks.soak_serve --minutes 2

`tightship serve` runs models over HTTP, gRPC and its native socket for honest and hostile clients.
After the first minute the clients leave, and its anonymous memory, descriptors and threads are
counted; then clients come for the rest of the time, leave, and the same is counted again. Exits
with 1 if it holds more, or if an honest client was refused or got a wrong answer. Of threads it may
hold more as far as its pools may still start some: a pool starts one when all that it has are busy,
and keeps it. `--max-connections` bounds these pools, and is low, so that a leak soon shows.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import record
from benchmarks.soak_models import write_models

from tightship.driver.oip.grpc.connections import room_for
from tightship.driver.oip.http.serving import LOADS_MAX
from tightship.driver.oip.limits import EndpointLimits
from tightship.driver.server.effect_runner import WORKERS_MIN
from tightship.view.table import Column, table

MINUTES = 10.0
FIRST_S = 60.0
SETTLE_S = 20.0
"""Time for the server to release what idle threads and arenas hold."""
GROWTH_MAX_BYTES = 8 << 20
CONNECTIONS_MAX, RUNS = 16, 2
"""`--max-connections` and `--threads` of the server."""
POOLS = {
    "http": CONNECTIONS_MAX,
    "loads": LOADS_MAX,
    "grpc": room_for(EndpointLimits(connections_max=CONNECTIONS_MAX)),
    "prepare": max(WORKERS_MIN, RUNS),
}
"""Most threads of each pool of the server; each has one from the beginning."""
RAISED = re.compile(r"^Traceback .*\n(?:[ \t].*\n)*(.{1,90})", re.MULTILINE)
"""The last line of a traceback in a log."""
KINDS = [(end, role) for end in ("http", "grpc", "native") for role in ("honest", "hostile")]

Found = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Held:
    """Anonymous memory, open descriptors and threads of a process."""

    anonymous_bytes: int
    descriptors: int
    threads: int


@dataclass(frozen=True, slots=True)
class Server:
    """A server's process, and its places by endpoint."""

    process: int
    places: Mapping[str, str]


def held(process: int) -> Held:
    """Count what a process holds now.

    Raises:
        ProcessLookupError: It has ended.
    """
    folder = Path(f"/proc/{process}")
    lines = (folder / "smaps_rollup").read_text(encoding="ascii").splitlines()
    anonymous = next(int(line.split()[1]) for line in lines if line.startswith("Anonymous:"))
    return Held(
        anonymous * 1024,
        len(list((folder / "fd").iterdir())),
        len(list((folder / "task").iterdir())),
    )


@contextmanager
def server(folder: Path) -> Iterator[Server]:
    """Serve the models over all endpoints, until the block ends."""
    write_models(folder)
    path, log = folder / "driver.sock", folder / "log"
    listening = ["--socket", path, "--http", "0", "--grpc", "0"]
    bounds = ["--threads", str(RUNS), "--max-connections", str(CONNECTIONS_MAX)]
    command = ["serve", folder, *listening, *bounds]
    with log.open("w", encoding="utf-8") as lines, subprocess.Popen(
        [sys.executable, "-m", "tightship.cli", *command],
        cwd=record.ROOT, stdout=subprocess.PIPE, stderr=lines, text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            said = process.stdout.readline().rpartition(" at ")[2].strip().split(", ")
            if len(said) != 3:
                raise SystemExit(f"The server did not start: {log.read_text(encoding='utf-8')}")
            places = dict(each.split("://") for each in said[1:])
            yield Server(process.pid, {**places, "native": str(path)})
        except ProcessLookupError:
            said = log.read_text(encoding="utf-8")[-2000:]
            raise SystemExit(f"The server ended with {process.wait()}: {said}") from None
        finally:
            process.terminate()


def soak(server: Server, seconds: float, seed: int) -> tuple[Counter[str], list[str]]:
    """Let clients of every kind act; count what they did, and name what honest ones missed."""
    clients = [
        (f"{endpoint} {role}", subprocess.Popen(
            [sys.executable, "-m", "benchmarks.soak_clients", endpoint, role,
             server.places[endpoint], str(seconds), str(seed)],
            cwd=record.ROOT, stdout=subprocess.PIPE, text=True,
        )) for endpoint, role in KINDS
    ]  # fmt: skip
    done, failures = Counter[str](), []
    for name, client in clients:
        said, _ = client.communicate()
        if client.returncode:
            failures.append(f"{name}: its process ended with {client.returncode}")
            continue
        found = json.loads(said)
        done.update({f"{name} {action}": count for action, count in found["done"].items()})
        failures += [f"{name} {failure}" for failure in found["failures"]]
    return done, failures


def measured(minutes: float, seed: int) -> Found:
    """Run both parts; what the server held after each, what was done, what went wrong."""
    with tempfile.TemporaryDirectory() as folder, server(Path(folder)) as running:
        begin = held(running.process)
        samples, failures, done = [], [], Counter[str]()
        for seconds in (FIRST_S, max(minutes * 60 - FIRST_S, FIRST_S)):
            counted, failed = soak(running, seconds, seed + len(samples))
            time.sleep(SETTLE_S)
            samples.append(held(running.process))
            failures += failed
            done += counted
        log = (Path(folder) / "log").read_text(encoding="utf-8")
    first, last = samples
    return {
        "minutes": minutes,
        "seed": seed,
        "at_start": asdict(begin),
        "after_first_minute": asdict(first),
        "at_end": asdict(last),
        "actions": dict(sorted(done.items())),
        "log_bytes": len(log),
        "exceptions": dict(Counter(RAISED.findall(log))),
        "pools": POOLS,
        "failures": [*failures, *growth(first, last)],
    }


def growth(first: Held, last: Held) -> list[str]:
    """Name what a server holds more of than it did after the first minute."""
    found = []
    grown = last.anonymous_bytes - first.anonymous_bytes
    if grown > GROWTH_MAX_BYTES:
        found.append(f"anonymous memory grew by {grown} bytes, more than {GROWTH_MAX_BYTES}")
    if last.descriptors > first.descriptors:
        found.append(f"descriptors grew from {first.descriptors} to {last.descriptors}")
    more = sum(POOLS.values()) - len(POOLS)
    if last.threads > first.threads + more:
        found.append(
            f"threads grew from {first.threads} to {last.threads}, by more than the {more} that "
            f"the pools may start ({POOLS})"
        )
    return found


def printed(found: Found) -> Sequence[str]:
    """Format what the server held at each time, what was done, and what went wrong."""
    columns = [
        Column("when"),
        *(Column(title, number=True) for title in ("MiB", "files", "threads")),
    ]
    rows = [
        (when.replace("_", " "), f"{found[when]['anonymous_bytes'] / 2**20:.1f}",
         str(found[when]["descriptors"]), str(found[when]["threads"]))
        for when in ("at_start", "after_first_minute", "at_end")
    ]  # fmt: skip
    counts = [(name, str(count)) for name, count in found["actions"].items()]
    return [
        *table(columns, rows),
        "",
        *table([Column("action"), Column("times", number=True)], counts),
        f"log: {found['log_bytes']} bytes",
        *(f"logged {count} times: {raised}" for raised, count in found["exceptions"].items()),
        *(f"failed: {failure}" for failure in found["failures"]),
    ]


def main() -> None:
    """Soak a server, print what it held, record it where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=MINUTES, help="at least 2 (10)")
    parser.add_argument("--seed", type=int, default=0, help="of the clients' actions (0)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--record", action="store_true", help="keep the figures")
    options = parser.parse_args()
    found = measured(options.minutes, options.seed)
    print(json.dumps(found) if options.json else "\n".join(printed(found)))
    if options.record:
        record.append("soak_serve", found)
    sys.exit(bool(found["failures"]))


if __name__ == "__main__":
    main()
