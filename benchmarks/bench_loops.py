"""Time of an iteration of Loop and Scan beside ONNX Runtime, and of training steps of loops.

    python -m benchmarks.bench_loops --record

Runs of both take turns in one process, on one thread; times are processor time divided by the
iterations of a run, medians of rounds. A training step of a loop is compared with that of the same
network written out, which is what a loop of few nodes becomes.
"""

import argparse
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import onnx
import onnxruntime
from benchmarks import record
from numpy.typing import NDArray
from onnx import numpy_helper, parser

import tightship
import tightship.training.written_out as expansion

HEADER = '<ir_version: 9, opset_import: ["": 20]> g '
STEPS, ROWS_BATCH, WIDTH, VOCABULARY = 64, 8, 256, 4096
ROUNDS, SHORTEST_S = 15, 0.05

Array = NDArray[np.generic]
Run = Callable[[], object]


@dataclass(frozen=True, slots=True)
class Case:
    """Model with a loop of `STEPS` iterations."""

    name: str
    model: bytes
    inputs: Mapping[str, Array]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure every case, and print a line of JSON for each."""
    arguments_of = argparse.ArgumentParser(description=__doc__)
    arguments_of.add_argument("--record", action="store_true", help="keep the figures")
    arguments_of.add_argument("--rounds", type=int, default=ROUNDS)
    options = arguments_of.parse_args(arguments)
    rows: dict[str, list[dict[str, object]]] = {"inference": [], "training": []}
    for case in (tiny_rows(), tiny_loop(), gated_scan(1), gated_scan(ROWS_BATCH), decoder(),
                 branches()):  # fmt: skip
        rows["inference"].append(inference(case, options.rounds))
        print(json.dumps(rows["inference"][-1]), flush=True)
    for name, width in (("tiny rows", 8), ("products", WIDTH)):
        rows["training"].append(training(name, width, options.rounds))
        print(json.dumps(rows["training"][-1]), flush=True)
    if options.record:
        record.append("bench_loops", rows)


def inference(case: Case, rounds: int) -> dict[str, object]:
    """Compare a case with ONNX Runtime."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(case.model, options)
    with tightship.load(case.model, threads=1) as model:
        ours, theirs = model.run(case.inputs), session.run(None, dict(case.inputs))
        error = max(
            float(np.abs(a.astype(np.float64) - b).max()) / max(float(np.abs(b).max()), 1e-9)
            for a, b in zip(ours.values(), theirs, strict=True)
        )
        mine, other = in_turns(
            lambda: model.run(case.inputs), lambda: session.run(None, dict(case.inputs)), rounds
        )
        kinds = sorted({step.kernel for step in model.plan.steps})
    return {
        "case": case.name,
        "iterations": STEPS,
        "us": round(mine / STEPS * 1e6, 2),
        "onnxruntime_us": round(other / STEPS * 1e6, 2),
        "ratio": round(mine / other, 2),
        "kernels": kinds,
        "error": float(f"{error:.1e}"),
    }


def training(name: str, width: int, rounds: int) -> dict[str, object]:
    """Compare a step of a loop with one of the same network written out."""
    model, inputs = recurrent_loss(width)
    most = expansion.NODES_MAX
    steps = []
    for nodes_max in (0, 1 << 20):
        expansion.NODES_MAX = nodes_max
        steps.append(tightship.train(model, "loss", tightship.Sgd(1e-3), threads=1))
    expansion.NODES_MAX = most
    looped, written = steps
    mine, other = in_turns(lambda: looped.step(inputs), lambda: written.step(inputs), rounds)
    return {
        "case": name,
        "iterations": STEPS,
        "us": round(mine / STEPS * 1e6, 2),
        "written_out_us": round(other / STEPS * 1e6, 2),
        "ratio": round(mine / other, 2),
    }


def in_turns(first: Run, second: Run, rounds: int) -> tuple[float, float]:
    """Return the median seconds of processor time of each."""
    counts = []
    for run in (first, second):
        run()
        start = time.process_time()
        run()
        counts.append(max(1, int(SHORTEST_S / max(time.process_time() - start, 1e-6))))
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for run, count, times in zip((first, second), counts, found, strict=True):
            start = time.process_time()
            for _ in range(count):
                run()
            times.append((time.process_time() - start) / count)
    return median(found[0]), median(found[1])


def floats(*shape: int) -> NDArray[np.float32]:
    """Return numbers of a seed, small enough for products of many."""
    numbers = np.random.default_rng(len(shape)).standard_normal(shape)
    return (numbers / max(shape[-1], 1) ** 0.5).astype(np.float32)


def parsed(text: str, weights: Mapping[str, Array]) -> bytes:
    """Return the model of a text, with constants."""
    model = parser.parse_model(HEADER + text)
    for name, array in weights.items():
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    onnx.checker.check_model(model)
    return model.SerializeToString()


def tiny_rows() -> Case:
    """Five nodes on eight numbers, by Scan."""
    text = f"""(float[8] h, float[{STEPS},8] x) => (float[8] last, float[{STEPS},8] all) {{
      last, all = Scan <num_scan_inputs = 1, body = b (float[8] s, float[8] a)
        => (float[8] t, float[8] y) {{
          p = Mul (s, a) q = Add (p, a) r = Tanh (q) t = Sub (r, s) y = Neg (t) }}> (h, x)
    }}"""
    return Case("five nodes, Scan", parsed(text, {}), {"h": floats(8), "x": floats(STEPS, 8)})


def tiny_loop() -> Case:
    """Five nodes on eight numbers, by a Loop whose count only the run knows."""
    text = """(int64 n, float[8] h) => (float[8] last) {
      go = Constant <value: tensor = bool {1}> ()
      last = Loop (n, go, h) <body = b (int64 i, bool c, float[8] s) => (bool more, float[8] t) {
          p = Mul (s, s) q = Sub (s, p) r = Tanh (q) u = Neg (r) t = Add (u, s)
          more = Identity (c) }>
    }"""
    return Case("five nodes, Loop", parsed(text, {}),
                {"n": np.array(STEPS, np.int64), "h": floats(8)})  # fmt: skip


def gated_scan(batch: int) -> Case:
    """A gated recurrent unit, written as products and elementwise nodes."""
    state, whole = f"float[{batch},{WIDTH}]", f"float[{STEPS},{batch},{WIDTH}]"
    names = ("wz", "uz", "wr", "ur", "wn", "un")
    weights = {name: floats(WIDTH, WIDTH) for name in names}
    text = f"""({state} h, {whole} x) => ({state} last, {whole} all) {{
      one = Constant <value: tensor = float {{1}}> ()
      last, all = Scan <num_scan_inputs = 1, body = b ({state} s, {state} a)
        => ({state} t, {state} y) {{
          az = MatMul (a, wz) sz = MatMul (s, uz) zz = Add (az, sz) z = Sigmoid (zz)
          ar = MatMul (a, wr) sr = MatMul (s, ur) rr = Add (ar, sr) r = Sigmoid (rr)
          rs = Mul (r, s)
          an = MatMul (a, wn) sn = MatMul (rs, un) nn = Add (an, sn) n = Tanh (nn)
          iz = Sub (one, z) zn = Mul (iz, n) zs = Mul (z, s)
          t = Add (zn, zs) y = Identity (t) }}> (h, x)
    }}"""
    inputs = {"h": floats(batch, WIDTH), "x": floats(STEPS, batch, WIDTH)}
    return Case(f"gated unit of {WIDTH}, batch {batch}", parsed(text, weights), inputs)


def decoder() -> Case:
    """A greedy decoder: a token's embedding, a layer, scores of a vocabulary, the best of them."""
    weights = {"table": floats(VOCABULARY, WIDTH), "w": floats(WIDTH, WIDTH),
               "u": floats(WIDTH, WIDTH), "head": floats(WIDTH, VOCABULARY)}  # fmt: skip
    state = f"float[1,{WIDTH}]"
    text = f"""(int64[1] first, {state} h) => ({state} last, int64[{STEPS},1] tokens) {{
      n = Constant <value: tensor = int64 {{{STEPS}}}> ()
      go = Constant <value: tensor = bool {{1}}> ()
      end, last, tokens = Loop (n, go, first, h) <body = b (int64 i, bool c, int64[1] token,
        {state} s) => (bool more, int64[1] best, {state} t, int64[1] kept) {{
          e = Gather (table, token) ew = MatMul (e, w) su = MatMul (s, u) es = Add (ew, su)
          t = Tanh (es) scores = MatMul (t, head)
          best = ArgMax <axis = 1, keepdims = 0> (scores)
          kept = Identity (best) more = Identity (c) }}>
    }}"""
    inputs = {"first": np.array([1], np.int64), "h": floats(1, WIDTH)}
    return Case(f"decoder of {VOCABULARY} tokens", parsed(text, weights), inputs)


def branches() -> Case:
    """A Loop that takes one of two branches by what it has computed."""
    text = """(int64 n, float[8] h) => (float[8] last) {
      go = Constant <value: tensor = bool {1}> ()
      zero = Constant <value: tensor = float {0}> ()
      last = Loop (n, go, h) <body = b (int64 i, bool c, float[8] s) => (bool more, float[8] t) {
          total = ReduceSum <keepdims = 0> (s) up = Less (total, zero)
          t = If (up) <then_branch = d () => (float[8] o) { o = Exp (s) },
                       else_branch = e () => (float[8] v) { m = Tanh (s) v = Neg (m) }>
          more = Identity (c) }>
    }"""
    return Case("If in a Loop", parsed(text, {}),
                {"n": np.array(STEPS, np.int64), "h": floats(8)})  # fmt: skip


def recurrent_loss(width: int) -> tuple[bytes, dict[str, Array]]:
    """A recurrent layer over `STEPS` steps, with a loss."""
    state, whole = f"float[{ROWS_BATCH},{width}]", f"float[{STEPS},{ROWS_BATCH},{width}]"
    text = f"""({state} h, {whole} x, {whole} target) => (float loss) {{
      last, all = Scan <num_scan_inputs = 1, body = b ({state} s, {state} a)
        => ({state} t, {state} y) {{
          p = MatMul (s, u) q = MatMul (a, w) r = Add (p, q) t = Tanh (r)
          y = Mul (t, g) }}> (h, x)
      d = Sub (all, target) e = Mul (d, d) loss = ReduceMean <keepdims = 0> (e)
    }}"""
    weights = {"u": floats(width, width), "w": floats(width, width), "g": floats(width)}
    inputs = {"h": floats(ROWS_BATCH, width), "x": floats(STEPS, ROWS_BATCH, width),
              "target": floats(STEPS, ROWS_BATCH, width)}  # fmt: skip
    return parsed(text, weights), inputs


if __name__ == "__main__":
    main()
