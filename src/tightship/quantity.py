"""Reads and writes amounts of memory: `64MiB` to bytes, bytes to `5.56 MiB`."""

import operator
import re

from tightship.errors import InputError

LIMIT_BYTES_MAX = 2**56
"""64 PiB: no address space is larger."""

_BINARY = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_UNITS: dict[str, int] = {
    "": 1,
    "b": 1,
    **{letter: 1024**power for power, letter in enumerate("kmgtp", start=1)},
    **{f"{letter}ib": 1024**power for power, letter in enumerate("kmgtp", start=1)},
    **{f"{letter}b": 1000**power for power, letter in enumerate("kmgtp", start=1)},
}
_QUANTITY = re.compile(r"([0-9]{1,40}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})\s*([a-z]*)", re.ASCII)
_SHOWN_LENGTH_MAX = 40


def parse_bytes(quantity: str | int, name: str = "", least: int = 1) -> int:
    """Read an amount of memory: `64MiB`, `512M`, `0.5GiB`, `2GB`, or plain bytes.

    `K`, `M`, `G`, `T` and `P` count in 1024 as `KiB` to `PiB` do; `KB` to `PB` count in 1000.
    Upper and lower case mean the same. A fraction of a byte is dropped.

    Args:
        quantity: The amount.
        name: Parameter that it is given for, which errors name.
        least: Least bytes, 0 or 1.

    Returns:
        Bytes, from `least` to `LIMIT_BYTES_MAX`.

    Raises:
        InputError: The text is not an amount, or the amount is outside this range.
        TypeError: It is neither a text nor a whole number.
    """
    where = f"`{name}`: " if name else ""
    if isinstance(quantity, str):
        size_bytes = _parse_text(quantity, where)
    else:
        try:
            size_bytes = operator.index(quantity)
        except TypeError:
            raise TypeError(
                f"{where}{quantity!r} is not an amount of memory: give bytes as an int, or a text "
                "with a unit, as `64MiB`."
            ) from None
    if size_bytes < least:
        wanted = "at least 1 byte" if least else "0 or more bytes"
        raise InputError(
            f"{where}`{_shown(quantity)}` is less than a byte: give {wanted} of memory."
        )
    if size_bytes > LIMIT_BYTES_MAX:
        raise InputError(
            f"{where}`{_shown(quantity)}` is more memory than any machine can address "
            f"({format_bytes(LIMIT_BYTES_MAX)}): check the unit."
        )
    return size_bytes


def format_bytes(size_bytes: int) -> str:
    """Write an amount in the largest binary unit that leaves at least 1, to 3 or 4 digits.

    Args:
        size_bytes: The amount, at least 0.

    Returns:
        A number and a unit from `B` to `EiB`, rounded to nearest, as in `5.56 MiB`.
    """
    return _format(size_bytes, round_up=False)


def format_limit(size_bytes: int) -> str:
    """Write an amount rounded up, without a space, so that `parse_bytes` returns at least as much.

    Messages print limits for the user to copy, and a rounded-down limit would be too small.
    """
    return _format(size_bytes, round_up=True).replace(" ", "")


def _parse_text(text: str, where: str) -> int:
    match = _QUANTITY.fullmatch(text.strip().lower())
    if match is None or match[2] not in _UNITS:
        raise InputError(
            f"{where}`{_shown(text)}` is not an amount of memory: write a positive number of "
            "bytes, or a number with a unit, as in `64MiB`, `512M` or `0.5GiB`."
        )
    whole, _, fraction = match[1].partition(".")
    scaled = int((whole + fraction) or "0") * _UNITS[match[2]]
    scale: int = 10 ** len(fraction)
    return scaled // scale


def _format(size_bytes: int, *, round_up: bool) -> str:
    assert size_bytes >= 0, size_bytes
    if size_bytes < 1024:
        return f"{size_bytes} B"
    power = (size_bytes.bit_length() - 1) // 10
    while True:
        scale = 1024**power
        # Rounding may reach 1024 of a unit, as for 1048575 bytes; the loop then takes the next
        # unit.
        decimals = 2 if size_bytes < 10 * scale else 1
        shown = _rounded(size_bytes * 10**decimals, scale, round_up=round_up)
        if shown < 1024 * 10**decimals or power == len(_BINARY) - 1:
            whole, part = divmod(shown, 10**decimals)
            return f"{whole}.{part:0{decimals}} {_BINARY[power]}"
        power += 1


def _rounded(numerator: int, denominator: int, *, round_up: bool) -> int:
    return (
        -(-numerator // denominator) if round_up else (numerator + denominator // 2) // denominator
    )


def _shown(quantity: str | int) -> str:
    is_short = isinstance(quantity, str) or abs(quantity) < 10**18
    text = str(quantity) if is_short else f"{quantity:#x}"
    return text if len(text) <= _SHOWN_LENGTH_MAX else text[: _SHOWN_LENGTH_MAX - 1] + "…"
