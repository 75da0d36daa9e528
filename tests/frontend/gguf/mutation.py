"""GGUF files with a few of their bytes or numbers changed, read one after another.

Run as `python -m tests.frontend.gguf.mutation SEED COUNT`; what escapes as another error than ours,
hangs, or takes more than `DATA_BYTES_MAX` is identified by the exit status and the last seed.
"""

import random
import resource
import signal
import struct
import sys
from collections import Counter

from tests.frontend.gguf.decoders import decoder
from tests.frontend.gguf.encoders import encoder
from tests.frontend.mutation import with_bytes_changed
from tightship.errors import TightshipError
from tightship.frontend.gguf import open_bytes

SECONDS_MAX = 20
DATA_BYTES_MAX = 1 << 30
GRAPHS = 8
"""Files of which one becomes a graph, which takes most of the time."""
NUMBERS = (0, 1, 2, 3, 7, 8, 9, 12, 13, 16, 31, 32, 33, 63, 255, 4096, 1 << 16, (1 << 31) - 1,
           1 << 31, (1 << 32) - 1)  # fmt: skip
WIDE = (*NUMBERS, 1 << 40, 1 << 48, (1 << 63) - 1, 1 << 63, (1 << 64) - 1)


def small_files() -> list[tuple[bytes, int]]:
    """Files of one layer, and the bytes of their headers."""
    kinds = {"llama": "Q4_0", "qwen2": "Q8_0", "gemma3": "F16", "phi3": "Q4_1"}
    models = [decoder(kind, type_, layers=1) for kind, type_ in kinds.items()]
    models.append(encoder("Q8_0", layers=1))
    models[0].fields["nested"] = [[1, 2], [3]]
    models[0].fields["rope.scaling.type"] = "linear"
    models[1].fields["attention.head_count"] = [4]
    models[2].fields["attention.sliding_window"] = 3
    found = []
    for model in models:
        data = model.written()
        found.append((data, len(data) - sum(len(t.raw) for t in model.tensors.values())))
    return found


def mutated(data: bytes, head: int, rng: random.Random) -> bytes:
    """Change bytes or numbers of a header, cut the file, or exchange parts of the header."""
    kind = rng.randrange(4)
    if kind == 0:
        return with_bytes_changed(data[:head], rng) + data[head:]
    if kind == 1:
        return data[: rng.randrange(len(data) if rng.random() < 0.2 else head)]
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 4))):
        place = rng.randrange(head - 8)
        if kind == 2:
            struct.pack_into("<Q", out, place, rng.choice(WIDE))
        else:
            struct.pack_into("<I", out, place, rng.choice(NUMBERS))
    return bytes(out)


def outcome(data: bytes, *, as_graph: bool) -> str:
    """Read a file; return the name of our error, or `read`."""
    signal.alarm(SECONDS_MAX)
    try:
        file = open_bytes(data)
        if as_graph:
            file.graph(None, allow_symbolic=True)
    except TightshipError as error:
        return type(error).__name__ if str(error) else "an error without a reason"
    else:
        return "read"
    finally:
        signal.alarm(0)


def main() -> None:
    """Read mutants of a seed; print how many had each outcome."""
    first, count = map(int, sys.argv[1:])
    resource.setrlimit(resource.RLIMIT_DATA, (DATA_BYTES_MAX, DATA_BYTES_MAX))
    files = small_files()
    found: Counter[str] = Counter()
    for seed in range(first, first + count):
        sys.stdout.write(f"\r{seed}")
        sys.stdout.flush()
        rng = random.Random(seed)
        data = mutated(*files[seed % len(files)], rng)
        found[outcome(data, as_graph=seed % GRAPHS == 0)] += 1
    sys.stdout.write(f"\n{dict(found)}\n")


if __name__ == "__main__":
    main()
