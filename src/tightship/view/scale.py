"""Chooses round numbers for the ticks of an axis."""

from collections.abc import Iterator

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def byte_ticks(top_bytes: int, count_max: int) -> Iterator[tuple[float, str]]:
    """Yield at most `count_max` + 1 round amounts from 0 to `top_bytes` with labels in one unit."""
    power = min((max(1, top_bytes).bit_length() - 1) // 10, len(_UNITS) - 1)
    unit = 1024**power
    tick, decimals = _round_step(top_bytes / unit / count_max, fractions=power > 0)
    index = 0
    while index * tick * unit <= top_bytes:
        label = f"{index * tick:.{decimals}f} {_UNITS[power]}" if index else "0"
        yield index * tick * unit, label
        index += 1


def step_ticks(steps: int, count_max: int) -> Iterator[int]:
    """Yield at most `count_max` + 1 round steps from 0 to `steps`."""
    tick, _ = _round_step(steps / count_max, fractions=False)
    yield from range(0, steps + 1, int(tick))


def _round_step(least: float, *, fractions: bool) -> tuple[float, int]:
    """Return the least of 1, 2 and 5 times a power of ten from `least` on, and its decimals."""
    exponent = -6 if fractions else 0
    while True:
        for factor in (1, 2, 5):
            step = factor * 10.0**exponent
            if step >= least:
                return step, max(0, -exponent)
        exponent += 1
