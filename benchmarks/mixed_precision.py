"""Training steps whose values wait in bfloat16, beside float32: bytes, time and loss curves.

    python -m benchmarks.mixed_precision [SUITE ...] [--record]

`bytes` plans steps with SGD, one thread. `time` runs steps of the two in processes of their own
that alternate, one thread; times are medians over turns of the median of a turn's steps, `ratio` is
the median over turns of bfloat16's over float32's in the same turn, and `cpu_ratio` the same of
processor time.

`curves` trains small networks on real data for 200 steps, five times in each precision: seed by
seed with equal weights and batches. Means are of 20 losses in a row. `spread` is the standard
deviation over seeds of float32's mean of the last 20, `difference` the mean over seeds of
bfloat16's less float32's, and `largest` the largest such difference of any 20 in a row, in spreads
of those 20. Differences below one spread are within the noise of another seed. Digits are
scikit-learn's (images of 8 x 8), which must be in the environment; the text is what Python's own
`help` says of the language (`pydoc_data.topics`).
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from benchmarks.record import append
from benchmarks.training_steps import NETS, Side, stored
from numpy.typing import NDArray
from tests.training.nets import Net, net
from tests.zoo.inception_bn import inception_bn

import tightship

Array = NDArray[Any]
Row = dict[str, object]
Batch = Callable[[np.random.Generator], dict[str, Array]]

PRECISIONS = ("float32", "bfloat16")
SEEDS, STEPS, WINDOW = 5, 200, 20
TURNS = 5
CONTEXT, TEXTS, SYMBOLS = 32, 16, 128
WIDE, HEADS = 64, 4


def planned_bytes() -> Iterator[Row]:
    """Arena and peak of networks in both precisions."""
    with tempfile.TemporaryDirectory() as folder:
        for each in (NETS[0], NETS[1], NETS[3], NETS[4]):
            model, _ = stored(each, Path(folder))
            yield _bytes(f"{each.name}, {each.batch} of {each.length}", str(model))
    yield _bytes("inception_bn, 8 of 224", inception_bn(8).model)


def _bytes(name: str, model: str | bytes) -> Row:
    plans = [
        tightship.plan(
            model, loss="cross_entropy", optimizer=tightship.Sgd(0.01), precision=precision
        )
        for precision in PRECISIONS
    ]
    arenas, peaks = [p.arena_bytes for p in plans], [p.peak_bytes for p in plans]
    return {
        "net": name,
        **{
            f"{p}_arena_mb": round(size / 1e6, 1)
            for p, size in zip(PRECISIONS, arenas, strict=True)
        },
        "arena_share": round(arenas[1] / arenas[0], 3),
        **{f"{p}_peak_mb": round(size / 1e6, 1) for p, size in zip(PRECISIONS, peaks, strict=True)},
    }


def times(threads: int = 1) -> Iterator[Row]:
    """Seconds of a step in both precisions, in turn."""
    for each in (NETS[0], NETS[4]):
        with tempfile.TemporaryDirectory() as folder:
            model, feeds = stored(each, Path(folder))
            sides = [
                Side([sys.executable, "-m", "benchmarks.own_step", str(model), str(feeds),
                      str(threads), "0", precision])
                for precision in PRECISIONS
            ]  # fmt: skip
            for side in sides:
                side.turn(1)
            turns = [[side.turn(2) for side in sides] for _ in range(TURNS)]
            for side in sides:
                side.close()
        walls, cpus = ([[median(side[kind]) for side in turn] for turn in turns]
                       for kind in ("walls", "cpus"))  # fmt: skip
        yield {
            "net": f"{each.name}, {each.batch} of {each.length}",
            "threads": threads,
            **{f"{p}_s": round(median(turn[i] for turn in walls), 3)
               for i, p in enumerate(PRECISIONS)},
            "ratio": round(median(half / whole for whole, half in walls), 3),
            "cpu_ratio": round(median(half / whole for whole, half in cpus), 3),
        }  # fmt: skip


def curves() -> Iterator[Row]:
    """Losses over 200 steps on real data."""
    for name, (made, batch) in {"digits": digits(), "text": text()}.items():
        found = {p: np.array([_losses(made, batch, seed, p) for seed in range(SEEDS)])
                 for p in PRECISIONS}  # fmt: skip
        whole, half = (_means(found[p]) for p in PRECISIONS)
        spreads, differences = whole.std(0, ddof=1), (half - whole).mean(0)
        yield {
            "data": name,
            "first": round(float(found["float32"][:, 0].mean()), 4),
            "float32_end": round(float(whole[:, -1].mean()), 4),
            "bfloat16_end": round(float(half[:, -1].mean()), 4),
            "spread": round(float(spreads[-1]), 4),
            "difference": round(float(differences[-1]), 5),
            "largest": round(float((np.abs(differences) / spreads).max()), 3),
        }


def _means(losses: Array) -> Array:
    """Means of `WINDOW` losses in a row, by seed."""
    sums = np.cumsum(np.pad(losses, ((0, 0), (1, 0))), axis=1)
    means: Array = (sums[:, WINDOW:] - sums[:, :-WINDOW]) / WINDOW
    return means


def _losses(made: Net, batch: Batch, seed: int, precision: str) -> list[float]:
    random = np.random.default_rng(seed)
    with tightship.train(
        made.model, made.loss, tightship.Adam(2e-3), precision=precision
    ) as trainer:  # type: ignore[call-overload]
        for name, array in trainer.weights(copy=False).items():
            if array.ndim > 1:
                spread = 1 / np.sqrt(np.prod(array.shape[1:]))
                array[...] = random.standard_normal(array.shape) * spread
            elif not name.startswith(("scale", "variance")):
                array[...] = 0
            else:
                array[...] = 1
        return [trainer.step(batch(random)) for _ in range(STEPS)]


def digits() -> tuple[Net, Batch]:
    """A network of convolutions, and batches of 64 written digits."""
    from sklearn.datasets import load_digits

    images, classes = load_digits(return_X_y=True)
    pixels = (images.reshape(-1, 1, 8, 8) / 16).astype(np.float32)

    def batch(random: np.random.Generator) -> dict[str, Array]:
        chosen = random.integers(0, len(pixels), 64)
        return {"x": pixels[chosen], "labels": classes[chosen].astype(np.int64)}

    layers = [("x", 1)] + [(f"h{i}", 32) for i in range(4)]
    lines, shapes = [], {}
    for i, (source, channels) in enumerate(layers[:4]):
        lines.append(f"""c{i} = Conv <pads = [1, 1, 1, 1]> ({source}, w{i})
            n{i} = BatchNormalization (c{i}, scale{i}, b{i}, mean{i}, variance{i})
            h{i} = Relu (n{i})""")
        shapes |= {f"w{i}": (32, channels, 3, 3)}
        shapes |= {f"{part}{i}": (32,) for part in ("scale", "b", "mean", "variance")}
    body = "\n".join(lines)
    made = net(
        f"""digits (float[64,1,8,8] x) => (float[64,10] y) {{
            {body}
            p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (h3)
            f = Flatten (p)
            y = Gemm <transB = 1> (f, last, b)
        }}""",
        "cross_entropy", {}, **shapes, last=(10, 512), b=(10,),
    )  # fmt: skip
    return made, batch


def _layers() -> tuple[list[str], dict[str, tuple[int, ...]]]:
    """Text and weights of the transformer's layers."""
    wide = WIDE
    lines, shapes = ["x0 = Add (words_row, places)"], {"places": (CONTEXT, wide)}
    for i in range(4):
        lines.append(f"""n{i} = LayerNormalization <axis = -1> (x{i}, scale{i}, b{i})
            q0{i} = MatMul (n{i}, wq{i})
            k0{i} = MatMul (n{i}, wk{i})
            v0{i} = MatMul (n{i}, wv{i})
            q1{i} = Reshape (q0{i}, apart)
            k1{i} = Reshape (k0{i}, apart)
            v1{i} = Reshape (v0{i}, apart)
            q{i} = Transpose <perm = [0, 2, 1, 3]> (q1{i})
            k{i} = Transpose <perm = [0, 2, 3, 1]> (k1{i})
            v{i} = Transpose <perm = [0, 2, 1, 3]> (v1{i})
            s0{i} = MatMul (q{i}, k{i})
            s1{i} = Mul (s0{i}, root)
            s{i} = Add (s1{i}, mask)
            p{i} = Softmax <axis = -1> (s{i})
            m0{i} = MatMul (p{i}, v{i})
            m1{i} = Transpose <perm = [0, 2, 1, 3]> (m0{i})
            m2{i} = Reshape (m1{i}, joined)
            m3{i} = MatMul (m2{i}, wo{i})
            a{i} = Add (m3{i}, x{i})
            o{i} = LayerNormalization <axis = -1> (a{i}, scale_b{i}, bb{i})
            u0{i} = MatMul (o{i}, wu{i})
            u{i} = Gelu <approximate = "tanh"> (u0{i})
            d{i} = MatMul (u{i}, wd{i})
            x{i + 1} = Add (d{i}, a{i})""")
        shapes |= {f"{name}{i}": (wide, wide) for name in ("wq", "wk", "wv", "wo")}
        shapes |= {f"wu{i}": (wide, 4 * wide), f"wd{i}": (4 * wide, wide)}
        shapes |= {f"{name}{i}": (wide,) for name in ("scale", "b", "scale_b", "bb")}
    return lines, shapes


def text() -> tuple[Net, Batch]:
    """A transformer of four layers that guesses the next letter, and batches of 16 texts."""
    from pydoc_data.topics import topics

    said = "".join(topics[name] for name in sorted(topics)).encode("ascii", "replace")
    letters = np.frombuffer(said, np.uint8) % SYMBOLS

    def batch(random: np.random.Generator) -> dict[str, Array]:
        starts = random.integers(0, len(letters) - CONTEXT - 1, (TEXTS, 1))
        rows = letters[starts + np.arange(CONTEXT + 1)].astype(np.int64)
        return {"words": rows[:, :-1], "labels": rows[:, 1:].reshape(-1)}

    lines, shapes = _layers()
    wide, heads = WIDE, HEADS
    body, part = "\n".join(lines), wide // heads
    masked = ", ".join("-1e9" if j > i else "0" for i in range(CONTEXT) for j in range(CONTEXT))
    made = net(
        f"""text (int64[{TEXTS},{CONTEXT}] words) => (float[{TEXTS * CONTEXT},{SYMBOLS}] y)
            <int64[4] apart = {{{TEXTS}, {CONTEXT}, {heads}, {part}}},
             int64[3] joined = {{{TEXTS}, {CONTEXT}, {wide}}},
             int64[2] rows = {{{TEXTS * CONTEXT}, {SYMBOLS}}}, float root = {{{part**-0.5}}},
             float[{CONTEXT},{CONTEXT}] mask = {{{masked}}}> {{
            words_row = Gather (table, words)
            {body}
            z = MatMul (x4, wz)
            y = Reshape (z, rows)
        }}""",
        "cross_entropy", {}, **shapes, table=(SYMBOLS, wide), wz=(wide, SYMBOLS),
    )  # fmt: skip
    return made, batch


SUITES: Mapping[str, Callable[[], Iterator[Row]]] = {
    "bytes": planned_bytes,
    "time": times,
    "curves": curves,
}


def main(arguments: Sequence[str]) -> None:
    """Run suites, print their rows, and record them where asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mixed_precision")
    parser.add_argument("suites", nargs="*", metavar="SUITE", help=", ".join(SUITES))
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args(arguments)
    for name in options.suites or SUITES:
        rows = []
        for row in SUITES[name]():
            rows.append(row)
            sys.stdout.write(f"{name}: {', '.join(f'{k} {v}' for k, v in row.items())}\n")
            sys.stdout.flush()
        if options.record:
            append("mixed_precision", {"suite": name, "rows": rows})


if __name__ == "__main__":
    main(sys.argv[1:])
