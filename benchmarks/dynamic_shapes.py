"""Plans of GPT-2 for every length, decoded from orders that are stored once.

    python -m benchmarks.dynamic_shapes [--stride 9] [--record]

Convention: buffers are those of the graph's tensors node by node, in-place where it helps, weights
and inputs outside, 64 bytes of alignment. Two vocabularies, since logits hide the rest where they
are long. Same-size-only reuse is the memory note's walk with a match range of 1.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Iterator, Sequence

from benchmarks.record import append
from tests.zoo.open_lengths import text

from tightship.cost.schedule import schedule_of
from tightship.frontend.onnx import open_bytes
from tightship.planner import Plan, place_schedule
from tightship.planner.scheme.reference_count import walk
from tightship.planner.stored_order import stored_orders

FIRST, LAST = 32, 1024
SAMPLES = range(FIRST, LAST + 1, 32)


def main(arguments: Sequence[str]) -> None:
    """Measure, print, and record where asked."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dynamic_shapes")
    parser.add_argument("--stride", type=int, default=9, help="between lengths that are decoded")
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args(arguments)
    found = {}
    for row in rows(options.stride):
        found[str(row.pop("vocabulary"))] = row
        sys.stdout.write(f"vocabulary {list(found)[-1]}: {row}\n")
    if options.record:
        append("dynamic_shapes", {"stride": options.stride, "rows": found})


def rows(stride: int = 9) -> Iterator[dict[str, object]]:
    """Figures of both vocabularies, with `stride` between the lengths."""
    for words in (1000, 50257):
        yield {"vocabulary": words, **figures(words, stride)}


def figures(vocabulary: int, stride: int) -> dict[str, object]:
    """Largest ratio to the plan made for a length, and times of a decoding."""
    opened = open_bytes(text(12, 768, 12, vocabulary, LAST + 1))

    def planned(length: int) -> tuple[Plan, int]:
        schedule = schedule_of(opened.graph({"ids": (1, length)})).schedule
        same_size = walk(schedule, in_place=False, match_range=1).total_bytes
        return place_schedule(schedule).plan, same_size

    stored = stored_orders(planned(length)[0].problem for length in SAMPLES)
    ratios, same_size, times = [], [], []
    for length in range(FIRST, LAST + 1, stride):
        plan, recycled_bytes = planned(length)
        start = time.perf_counter()
        decoded = stored.decode(plan.problem)
        times.append(1e6 * (time.perf_counter() - start) / plan.problem.count)
        ratios.append(decoded.peak_bytes / plan.peak_bytes)
        same_size.append(recycled_bytes / plan.peak_bytes)
    return {
        "orders": len(stored.orders),
        "lengths": len(ratios),
        "largest_ratio": round(max(ratios), 7),
        "same_size_only_ratios": [round(min(same_size), 3), round(max(same_size), 3)],
        "us_per_buffer": round(statistics.median(times), 2),
    }


if __name__ == "__main__":
    main(sys.argv[1:])
