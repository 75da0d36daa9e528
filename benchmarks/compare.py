"""Names the models that got slower from one record of `bench_engine` to another, beyond noise.

    python -m benchmarks.compare OLD NEW

OLD and NEW are commits with records in `results`, or files of records. Ratios to ONNX Runtime are
compared, which a busy machine changes less than times, and only on the same instruction set. A
model is slower if its ratio grew by more than `WORTH` and the middle halves of its ratios do not
overlap. Exits with 1 if any is.
"""

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.record import RESULTS

WORTH = 1.03
"""Ratio of ratios that is told; two runs of one commit differ by up to 2 % on a quiet machine."""
NAME = "bench_engine"

Record = Mapping[str, Any]
Key = tuple[str, str, int, str]
"""Instruction set, model, threads and contender."""


@dataclass(frozen=True, slots=True)
class Change:
    """Ratios of one model in two records: least, middle and greatest of their middle half."""

    key: Key
    old: tuple[float, float, float]
    new: tuple[float, float, float]

    @property
    def factor(self) -> float:
        """New ratio over the old one."""
        return self.new[1] / self.old[1]

    @property
    def is_slower(self) -> bool:
        """Whether it takes longer, beyond the noise of both records."""
        return self.factor > WORTH and self.new[0] > self.old[2]

    @property
    def is_faster(self) -> bool:
        """Whether it takes less time, beyond the noise of both records."""
        return 1 / self.factor > WORTH and self.new[2] < self.old[0]

    def line(self) -> str:
        """Name the model and both ratios."""
        isa, model, threads, contender = self.key
        word = "slower" if self.is_slower else "faster" if self.is_faster else "same"
        ratios = " -> ".join(
            f"{middle:.3f} [{low:.3f}-{high:.3f}]" for low, middle, high in (self.old, self.new)
        )
        return f"{word:7}{self.factor:6.2f}  {model} ({contender}, {threads}, {isa}): {ratios}"


def records_of(source: str) -> list[Record]:
    """Read records from a file, or those of a commit from `results`.

    Raises:
        SystemExit: There are none.
    """
    path = Path(source)
    is_file = path.is_file()
    lines = (path if is_file else RESULTS / f"{NAME}.json").read_text(encoding="utf-8")
    found = [json.loads(line) for line in lines.splitlines()]
    if not is_file:
        found = [each for each in found if each["commit"].rstrip("+").startswith(source)]
    if not found:
        sys.exit(f"`{source}` is neither a file of records nor a commit in `results/{NAME}.json`.")
    return found


def ratios_of(records: Sequence[Record]) -> dict[Key, tuple[float, float, float]]:
    """Return the ratios of Tightship by key; a later record replaces an earlier one."""
    return {
        (record.get("isa", ""), row["model"], row["threads"], row["contender"]): (
            row["quartiles"][0], row["ratio"], row["quartiles"][1],
        )
        for record in records
        for row in record["rows"]
        if row["contender"].startswith("tightship")
    }  # fmt: skip


def changes(old: Sequence[Record], new: Sequence[Record]) -> list[Change]:
    """List what both have, slowest first."""
    before, after = ratios_of(old), ratios_of(new)
    found = [Change(key, before[key], after[key]) for key in before.keys() & after.keys()]
    return sorted(found, key=lambda change: (-change.factor, change.key))


def main() -> int:
    """Print the changes; return whether anything got slower."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("old", help="commit, or file of records")
    parser.add_argument("new", help="commit, or file of records")
    arguments = parser.parse_args()
    found = changes(records_of(arguments.old), records_of(arguments.new))
    if not found:
        sys.exit("The two have no model, number of threads and instruction set in common.")
    for change in found:
        print(change.line())
    slower = sum(change.is_slower for change in found)
    print(f"{slower} of {len(found)} slower beyond noise.")
    return int(slower > 0)


if __name__ == "__main__":
    sys.exit(main())
