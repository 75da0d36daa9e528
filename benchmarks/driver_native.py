"""The driver's native endpoint beside other ways to have another process compute on an array.

An element-wise addition runs in the driver, on memory that both sides have mapped; the others send
an array to a process that sends it back, and add nothing. All alternate.
"""

import importlib
import multiprocessing
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import onnx
from benchmarks.record import ROOT
from onnx import TensorProto, helper

import tightship
from tightship._core import StopFlag
from tightship.driver import Client
from tightship.driver.client.segment import Segment

SIZES = (4 << 10, 1 << 20, 16 << 20, 64 << 20)
EVERY_SIZE = (4 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20)
STATE_BYTES = 16 << 20
TURN_S = 0.02
"""Duration of a contender's turn, at least one call."""
TARGETS = {4 << 10: 4, 1 << 20: 50, 64 << 20: 40}
"""Speedup over a queue that is required, by bytes."""
EXTRA_US, EXTRA_SHARE = 20, 0.03
"""Time that a run in the driver may take beyond one in process."""

Call = Callable[[], object]
Row = dict[str, object]


def network(size_bytes: int, operators: Mapping[str, int]) -> bytes:
    """Operators of one or two inputs of a size, one after another."""
    shape = [size_bytes // 4]
    inputs = [f"x{index}" for index in range(max(operators.values()))]
    nodes, value = [], inputs[0]
    for number, (operator, count) in enumerate(operators.items()):
        nodes.append(helper.make_node(operator, [value, *inputs[1:count]], [f"v{number}"]))
        value = f"v{number}"
    ends = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in names]
        for names in (inputs, [value])
    ]
    graph = helper.make_graph(nodes, "network", *ends)
    opsets = [helper.make_opsetid("", 18)]
    model: onnx.ModelProto = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    return model.SerializeToString()


@contextmanager
def serving(threads: int) -> Iterator[Client]:
    """A client of a driver in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "driver.sock"
        with subprocess.Popen(
            [sys.executable, "-m", "tightship.cli", "serve",
             "--socket", path, "--threads", str(threads)],
            cwd=ROOT, stdout=subprocess.PIPE,
        ) as process:  # fmt: skip
            try:
                assert process.stdout is not None
                process.stdout.readline()
                with Client(path) as client:
                    yield client
            finally:
                process.terminate()


def rows(*, quick: bool, threads: int, with_ray: bool = False) -> Iterator[Row]:
    """Times of all, for each size."""
    rounds = 3 if quick else 15
    with ExitStack() as stack:
        client = stack.enter_context(serving(threads))
        others = {name: stack.enter_context(make()) for name, make in PEERS.items()}
        if with_ray:
            others["ray"] = stack.enter_context(ray_echo())
        for size in SIZES:
            with added(client, size) as (ways, arrays):
                for name, echo in others.items():
                    ways[name] = lambda echo=echo, array=arrays[0]: echo(array)
                yield row(size, taken(ways, rounds))


@contextmanager
def added(client: Client, size: int) -> Iterator[tuple[dict[str, Call], list[Any]]]:
    """Ways to add in the driver, checked; and the arrays."""
    model = client.prepare(network(size, {"Add": 2}))
    with client.segment(3 * size) as segment:
        places = arguments(segment, size, 3)
        *inputs, output = places
        execution, burst = model.reusable(inputs, [output]), model.burst()
        ways: dict[str, Call] = {
            "execute": lambda: model.execute(inputs, [output]),
            "reusable": execution.execute,
            "burst": lambda: burst.execute(inputs, [output]),
        }
        for way in ways.values():
            output.array[...] = 0
            way()
            assert np.array_equal(output.array, inputs[0].array + inputs[1].array)
        yield ways, [place.array for place in places]
        for made in (execution, burst, model):
            made.close()


def arguments(segment: Segment, size: int, count: int) -> list[Any]:
    """Arrays in a segment, filled."""
    random = np.random.default_rng(0)
    places = [segment.place((size // 4,), "f4") for _ in range(count)]
    for place in places:
        place.array[...] = random.standard_normal(1024, np.float32).repeat(size // 4096)
    return places


def taken(ways: Mapping[str, Call], rounds: int) -> dict[str, list[float]]:
    """Seconds of every call, in turns; every other round the other way round."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(rounds):
        for name in list(ways)[:: -1 if number % 2 else 1]:
            way, stop = ways[name], time.perf_counter() + TURN_S
            way()
            while True:
                start = time.perf_counter()
                way()
                end = time.perf_counter()
                times[name].append(end - start)
                if end > stop:
                    break
    return times


def row(size: int, times: Mapping[str, list[float]]) -> Row:
    """Microseconds of each, and how many times faster than a queue."""
    middle = {name: median(each) * 1e6 for name, each in times.items()}
    said: Row = {"size_bytes": size}
    for name, each in times.items():
        said[f"{name}_us"] = round(middle[name], 1)
        said[f"{name}_least_us"] = round(min(each) * 1e6, 1)
    said["queue_over_execute"] = round(middle["queue"] / middle["execute"], 1)
    said["target"] = TARGETS.get(size)
    return said


def independence(*, quick: bool, threads: int) -> Iterator[Row]:
    """A run in the driver beyond the same run in this process on the same mapping."""
    with serving(threads) as client:
        for size in EVERY_SIZE[: 5 if quick else None]:
            yield beyond(client, size, threads, 3 if quick else 15)


def beyond(client: Client, size: int, threads: int, rounds: int) -> Row:
    """One size of `independence`."""
    with (
        added(client, size) as (ways, arrays),
        tightship.load(network(size, {"Add": 2}), threads=threads) as local,
    ):
        inputs = dict(zip(local.input_names, arrays[:2], strict=True))
        here, stop = local.bind(inputs, {local.output_names[0]: arrays[2]}), StopFlag()
        times = taken({"execute": ways["execute"], "here": lambda: here.run(stop)}, rounds)
    middle = {name: median(each) * 1e6 for name, each in times.items()}
    least = {name: min(each) * 1e6 for name, each in times.items()}
    return {
        "size_bytes": size,
        "execute_us": round(middle["execute"], 1),
        "here_us": round(middle["here"], 1),
        "extra_us": round(middle["execute"] - middle["here"], 1),
        "least_extra_us": round(least["execute"] - least["here"], 1),
        "allowed_us": round(EXTRA_US + EXTRA_SHARE * middle["here"], 1),
    }


def recurrent(*, quick: bool, threads: int) -> Row:
    """A state that is carried in two buffers of the driver, against a loop in this process.

    Both bind what they run before they begin; `execute` says its arguments anew at each step.
    """
    steps = 50 if quick else 500
    data = network(STATE_BYTES, {"Mul": 2, "Tanh": 1})
    with serving(threads) as client, tightship.load(data, threads=threads) as local:
        model = client.prepare(data)
        weights, *states = [as_in_a_buffer(STATE_BYTES // 4, 0.5) for _ in range(3)]
        buffers = [client.allocate(inputs=[(model, 0)], outputs=[(model, 0)]) for _ in range(2)]
        held = client.allocate(inputs=[(model, 1)])
        for buffer, array in zip((*buffers, held), (*states, weights), strict=True):
            buffer.copy_from(array)
        first, second = local.input_names
        (result,) = local.output_names
        stop, turns = StopFlag(), [0, 0]
        loops = [
            local.bind({first: states[i], second: weights}, {result: states[1 - i]})
            for i in range(2)
        ]

        def here() -> None:
            loops[turns[0] % 2].run(stop)
            turns[0] += 1

        ends = [([buffers[i].of(), held.of()], [buffers[1 - i].of()]) for i in range(2)]
        steps_there = [model.reusable(*each) for each in ends]

        def there() -> None:
            steps_there[turns[1] % 2].execute()
            turns[1] += 1

        def execute() -> None:
            model.execute(*ends[turns[1] % 2])
            turns[1] += 1

        ways = {"there": there, "execute": execute, "here": here}
        times = taken(ways, rounds=steps // 5)
        middle = {name: median(each) * 1e6 for name, each in times.items()}
        for _ in range(max(turns) - turns[0]):
            here()
        for _ in range(max(turns) - turns[1]):
            there()
        got = np.empty_like(states[0])
        buffers[turns[1] % 2].copy_to(got)
        assert np.array_equal(got, states[turns[0] % 2])
    return {
        "steps": len(times["there"]),
        **{f"{name}_us": round(each, 1) for name, each in middle.items()},
        "ratio": round(middle["there"] / middle["here"], 3),
        "execute_ratio": round(middle["execute"] / middle["here"], 3),
        "target": 1.05,
    }


def as_in_a_buffer(count: int, value: float) -> Any:
    """An array that begins with a line of the cache, as a buffer of the driver does."""
    room = np.full(count + 16, value, np.float32)
    start = -room.ctypes.data % 64 // 4
    return room[start : start + count]


@contextmanager
def queue_echo() -> Iterator[Callable[[Any], object]]:
    """A process that takes from one `multiprocessing.Queue` and puts into another."""
    there, back = multiprocessing.Queue(), multiprocessing.Queue()
    process = multiprocessing.Process(target=_answer_queue, args=(there, back), daemon=True)
    process.start()

    def echo(array: Any) -> object:
        there.put(array)
        return back.get()

    yield echo
    there.put(None)
    process.join()


def _answer_queue(there: Any, back: Any) -> None:
    while (array := there.get()) is not None:
        back.put(array)


@contextmanager
def pipe_echo() -> Iterator[Callable[[Any], object]]:
    """A process at the other end of a `multiprocessing.Pipe`."""
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.Process(target=_answer_pipe, args=(theirs,), daemon=True)
    process.start()

    def echo(array: Any) -> object:
        ours.send(array)
        return ours.recv()

    yield echo
    ours.send(None)
    process.join()


def _answer_pipe(connection: Any) -> None:
    while (array := connection.recv()) is not None:
        connection.send(array)


@contextmanager
def ray_echo() -> Iterator[Callable[[Any], object]]:
    """An actor of Ray that returns what it is given by reference."""
    ray = importlib.import_module("ray")
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)

    class Echo:
        def back(self, array: Any) -> Any:
            return array

    actor = ray.remote(Echo).remote()
    yield lambda array: ray.get(actor.back.remote(ray.put(array)))
    ray.shutdown()


PEERS: Mapping[str, Callable[[], Any]] = {"queue": queue_echo, "pipe": pipe_echo}
