"""Reads fenced blocks of Markdown pages, and compares printed output with what a page shows."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"(?:<!-- (not run: |needs )([^\n]+) -->\n)?```(\w+)\n(.*?)\n```", re.DOTALL)
SIZE = re.compile(r"(?<![\w.-])(\d[\d,]*(?:\.\d+)?) ?(bytes|[KMG]iB|B)\b")
FRACTION = re.compile(r"(?<![\w.-])\d+\.\d+")
HAS_AVX512 = "avx512f" in Path("/proc/cpuinfo").read_text(encoding="utf-8")
TOLERANCE = 0.1 if HAS_AVX512 else 0.5
"""Sizes vary by processor, because each instruction set uses other kernels and layouts. Pages show
those of one with AVX-512; without it the planned runtime is larger by some 25 MiB."""
UNIT = {"bytes": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


@dataclass(frozen=True)
class Fence:
    """A fenced block of a page.

    Attributes:
        language: Word behind the opening fence.
        text: Its lines.
        line: Number of the first of them, from 1.
        reason: Why it is not run here, or an empty text.
    """

    language: str
    text: str
    line: int
    reason: str = ""


def fences(page: Path, *languages: str) -> list[Fence]:
    """Blocks of a page in some languages, in order."""
    text = page.read_text(encoding="utf-8")
    return [
        Fence(found[3], found[4], text.count("\n", 0, found.start(4)) + 1, reason(found))
        for found in FENCE.finditer(text)
        if found[3] in languages
    ]


def reason(found: re.Match[str]) -> str:
    """Return why a block is not run: its page says so, or what it needs is missing."""
    needs = found[2] if found[1] == "needs " else None
    if needs is not None and (HAS_AVX512 if needs == "AVX-512" else find_spec(needs)):
        return ""
    return found[2] or ""


def sessions(page: Path) -> Iterator[tuple[str, str]]:
    """Commands of the `console` blocks that run here, each with the output shown for it."""
    for fence in fences(page, "console"):
        if fence.reason:
            continue
        for part in re.split(r"^\$ ", fence.text, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield command, output.rstrip("\n")


def differences(shown: str, printed: str) -> list[str]:
    """Lines of `shown` that are not among `printed`, in order.

    A line `...` stands for any lines, and `[...]` for any text within one. Words and integers must
    be equal; sizes may differ by `TOLERANCE`, fractions, such as times, by anything.
    """
    lines, missing = iter(printed.splitlines()), []
    for line in shown.splitlines():
        if line != "..." and not any(is_like(line, real) for real in lines):
            missing.append(line)
            lines = iter(printed.splitlines())
    return missing


def is_like(shown: str, printed: str) -> bool:
    """Whether a printed line has the words of a shown one, and about its sizes in order."""
    pattern = ".*".join(map(re.escape, words(shown).split("[...]")))
    if re.fullmatch(pattern, words(printed)) is None:
        return False
    rest = iter(sizes(printed))
    return all(any(is_close(size, other) for other in rest) for size in sizes(shown))


def is_close(size: float, other: float) -> bool:
    return abs(size - other) <= TOLERANCE * max(size, other)


def words(line: str) -> str:
    """A line with a sign for each size and fraction, and without rules and repeated spaces."""
    plain = FRACTION.sub("#", SIZE.sub("# B", line))
    return " ".join(re.sub(r"─+", "─", plain).split())


def sizes(line: str) -> list[float]:
    """Amounts of memory that a line names, in bytes."""
    return [float(number.replace(",", "")) * UNIT[unit] for number, unit in SIZE.findall(line)]
