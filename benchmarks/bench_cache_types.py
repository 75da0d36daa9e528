"""Memory, speed and errors of sessions by the type of their caches.

    python -m benchmarks.bench_cache_types [MODEL.onnx] [--exact MODEL.onnx] [--threads N]
        [--clock processor] [--quick] [--json] [--record]

Without a file the decoder has made weights. Sessions of all types are filled with `--tokens` and
take turns at prompts and single steps; a ratio is the median over rounds of a type's time over that
of the model's own type in the same round. Resident memory is what one process of its own gains at
its highest. Errors are those of logits of all tokens of a text, which is drawn from the model's own
distribution; `--exact` is the file for them, if its activations are rounded less. `--clock
processor` takes the processor time of the process, which other work changes less.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks import record
from numpy.typing import NDArray
from tests import decoders

import tightship

TYPES = (None, "float16", "bfloat16", "int8")
SIZE = decoders.Size(layers=4, heads=8, shared=4, length=64, vocabulary=5000, positions=4096)
START = [504, 3575, 282, 4649, 314]
SHAPES = {"batch_size": 1, "sequence_length": 1, "past_sequence_length": 1}
TOTAL = {"total_sequence_length": 2}
STEPS = 16
CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}
Times = dict[Any, dict[str, list[float]]]
"""Seconds of each round, by type and by `prompt` and `step`."""

RESIDENT = """
import json, sys
import numpy as np

def status(field):
    for line in open("/proc/self/status"):
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024

path, shapes, context, cache, threads = json.loads(sys.argv[1])
import tightship
before = status("VmRSS")
session = tightship.load(path, shapes=shapes, threads=threads).session(context, cache=cache)
session.step(np.arange(context) % 100)
print(status("VmHWM") - before)
"""


def main() -> None:
    """Measure, print, and record where asked."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", help="decoder; made weights by default")
    parser.add_argument("--exact", help="decoder for errors; the same by default")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=2048, help="tokens before a step")
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    parser.add_argument("--quick", action="store_true", help="one round, and few tokens")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--record", action="store_true", help="add a line to the results")
    options = parser.parse_args()
    tokens, rounds = (min(options.tokens, 64), 1) if options.quick else (options.tokens, 5)
    clock = CLOCKS[options.clock]
    with tempfile.TemporaryDirectory() as folder:
        path = options.model or str(_made(Path(folder)))
        times, state = _timed(path, tokens, rounds, options.threads, clock)
        rows = _rows(path, options.exact or path, times, state, (tokens, options.threads))
    name = Path(options.model).name if options.model else "made"
    found = {"model": name, "tokens": tokens, "threads": options.threads,
             "clock": options.clock, "rows": rows}  # fmt: skip
    for each in [found] if options.json else rows:
        print(json.dumps(each))
    if options.record:
        record.append("bench_cache_types", found)


def _made(folder: Path) -> Path:
    path = folder / "decoder.onnx"
    path.write_bytes(decoders.llama(SIZE))
    return path


def _rows(
    path: str, exact: str, times: Times, state: dict[Any, int], sizes: tuple[int, int]
) -> list[dict[str, Any]]:
    tokens, threads = sizes
    errors = _errors(exact, min(tokens, 256), threads)
    own = times[None]
    found = []
    for kind in TYPES:
        ratios = {
            f"{part}_ratio": statistics.median(
                a / b for a, b in zip(times[kind][part], own[part], strict=True)
            )
            for part in own
        }
        ms = {f"{part}_ms": 1e3 * statistics.median(times[kind][part]) for part in own}
        found.append({
            "cache": kind or "model's", "state_bytes_per_token": state[kind], **ms, **ratios,
            "gained_bytes": _resident(path, tokens, kind, threads), **errors.get(kind, {}),
        })  # fmt: skip
    return found


def _loaded(path: str, threads: int) -> tightship.Model:
    return tightship.load(path, shapes=_shapes(path), threads=threads)


def _shapes(path: str) -> dict[str, int]:
    try:
        tightship.plan(path, shapes=SHAPES | TOTAL)
    except tightship.InputError:
        return SHAPES
    return SHAPES | TOTAL


def _timed(
    path: str, tokens: int, rounds: int, threads: int, clock: Callable[[], float]
) -> tuple[Times, dict[Any, int]]:
    """Return seconds of a prompt and of one step behind it, by type, and bytes for each token."""
    times: Times = {kind: {"prompt": [], "step": []} for kind in TYPES}
    prompt = np.arange(tokens) % 100
    with _loaded(path, threads) as model:
        sessions: dict[Any, tightship.Session] = {
            kind: model.session(tokens + STEPS, cache=kind)  # type: ignore[arg-type]
            for kind in TYPES
        }
        for number in range(rounds + 1):
            for kind, session in sessions.items():
                if not number:  # a prompt takes long; its programs have been made
                    start = clock()
                    session.step(prompt)
                    times[kind]["prompt"].append(clock() - start)
                session.truncate(tokens)
                start = clock()
                for _ in range(STEPS):
                    session.step([1])
                if number:
                    times[kind]["step"].append((clock() - start) / STEPS)
        state = {k: s.state_bytes // s.context for k, s in sessions.items()}
    return times, state


def _errors(path: str, count: int, threads: int) -> dict[Any, dict[str, float]]:
    """Return what logits of a text differ by from those of the model's own type."""
    random = np.random.default_rng(0)
    with _loaded(path, threads) as model:
        session, text = model.session(count + 8), list(START)
        logits = session.step(text)
        while len(text) < count:
            chances = _chances(logits[0, -1])
            text.append(int(random.choice(len(chances), p=chances)))
            logits = session.step(text[-1:])
        found: dict[Any, dict[str, float]] = {}
        wanted = model.session(count + 8, rows="all").step(text)[0].astype(np.float64)
        for kind in TYPES[1:]:
            session = model.session(count + 8, rows="all", cache=kind)  # type: ignore[arg-type]
            given = session.step(text)[0]
            off = given - wanted
            found[kind] = {
                "logits_rms_error": float(np.sqrt(np.mean(off**2))),
                "logits_largest_error": float(np.abs(off).max()),
                "logits_deviation": float(wanted.std()),
                "same_first_token": float((given.argmax(-1) == wanted.argmax(-1)).mean()),
            }
    return found


def _chances(logits: NDArray[Any]) -> NDArray[np.float64]:
    powers = np.exp(logits.astype(np.float64) - logits.max())
    return np.asarray(powers / powers.sum())


def _resident(path: str, context: int, kind: str | None, threads: int) -> int:
    given = json.dumps([path, _shapes(path), context, kind, threads])
    done = subprocess.run([sys.executable, "-c", RESIDENT, given], check=True, capture_output=True,
                          text=True)  # fmt: skip
    return int(done.stdout)


if __name__ == "__main__":
    main()
