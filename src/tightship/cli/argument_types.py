"""Parses values of options: amounts, times, counts, shapes and addresses."""

import argparse
import math
import os
import re

from tightship.engine.activations import EXACT, FLOAT32_PRODUCTS, with_activations, with_precision
from tightship.errors import InputError
from tightship.quantity import parse_bytes

MAX_MEMORY = "TIGHTSHIP_MAX_MEMORY"
"""Environment variable with the default memory limit of models."""


def size(text: str) -> int:
    """Read an amount of memory in bytes, such as `64MiB` or a number."""
    try:
        return parse_bytes(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def size_or_none(text: str) -> int:
    """Read an amount of memory in bytes, or 0 for none."""
    return 0 if text == "0" else size(text)


def bank(text: str) -> tuple[str, int | None]:
    """Read a bank: `NAME=256KiB`, or `NAME` for one without a limit."""
    name, separator, amount = text.partition("=")
    if not name or (separator and not amount):
        raise argparse.ArgumentTypeError(
            f"`{text}` is not a bank; write NAME=256KiB, or NAME for one without a limit."
        )
    return name, size(amount) if separator else None


def sizes(text: str) -> list[int]:
    """Read amounts of memory in bytes, separated by commas."""
    return [size(each) for each in text.split(",")]


def seconds(text: str) -> float:
    """Read a time in seconds, above 0."""
    try:
        given = float(text)
    except ValueError:
        given = math.nan
    if not 0 < given < math.inf:
        raise argparse.ArgumentTypeError(f"`{text}` is not a time; write seconds, more than 0.")
    return given


def pause(text: str) -> float:
    """Read a time in seconds, 0 or more."""
    return 0.0 if text in {"0", "0.0"} else seconds(text)


def host_name(text: str) -> str:
    """Read a name that an HTTP client may write as `Host`, without its port; in lower case.

    Raises:
        argparse.ArgumentTypeError: It has a port, a scheme or a letter that no host name has.
    """
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,253}", text):
        raise argparse.ArgumentTypeError(
            f"`{text}` is not a host name; write it without scheme and port, as models.example.com"
        )
    return text.lower()


_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def rate(text: str) -> tuple[int, int]:
    """Read a number in a time, such as `100/s`; return it and the time in seconds."""
    found = re.fullmatch(r"([0-9]{1,9})/([smhd])", text)
    if found is None or int(found[1]) < 1:
        raise argparse.ArgumentTypeError(
            f"`{text}` is not a rate; write 1 to 999999999, a slash, and s, m, h or d, as 100/s."
        )
    return int(found[1]), _SECONDS[found[2]]


def byte_rate(text: str) -> tuple[int, int]:
    """Read a number of bytes in a time, such as `64MiB/s`; return it and the time in seconds."""
    amount, _, period = text.rpartition("/")
    found = size(amount) if period in _SECONDS else 0
    if not found:
        raise argparse.ArgumentTypeError(
            f"`{text}` is not a rate of bytes; write a size and s, m, h or d, as 64MiB/s."
        )
    return found, _SECONDS[period]


def count(text: str) -> int:
    """Read an integer from 1."""
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"`{text}` is not a count; write a whole number from 1.")
    return int(text)


def lengths(text: str) -> list[int]:
    """Read whole numbers from 1, separated by commas; `4k` is 4096."""
    found = []
    for each in text.split(","):
        digits = each.removesuffix("k")
        found.append(count(digits) * (1024 if digits != each else 1))
    return found


def pass_name(text: str) -> str:
    """Read the name of a pass; one of an earlier version warns."""
    from tightship.deprecated import current  # most commands leave no pass out

    return current("pass", text, FutureWarning)


class ActivationsAction(argparse.Action):
    """Stores a type of activations, and adds it to the passes left out, where a command has any."""

    def __call__(
        self, _parser: object, options: argparse.Namespace, value: object, _option: object = None
    ) -> None:
        """Store a value of the option."""
        options.activations = str(value)
        if hasattr(options, "without"):
            others = [name for name in options.without if name != EXACT]
            options.without = [*with_activations(others, options.activations)]


def add_activations(command: argparse.ArgumentParser) -> None:
    """Add `--activations`."""
    command.add_argument(
        "--activations",
        action=ActivationsAction,
        choices=("float32", "int8"),
        help="type that matrices in blocks of a GGUF file are multiplied by; int8 rounds, which is "
        "faster and less exact (default float32)",
    )


def add_cache(command: argparse.ArgumentParser) -> None:
    """Add `--cache`."""
    command.add_argument(
        "--cache",
        metavar="TYPE",
        help="type that sessions round their caches to, float32, float16, bfloat16 or int8 "
        "(default: float16 with `--activations int8`, else the model's)",
    )


class PrecisionAction(argparse.Action):
    """Stores a type of products, and adds it to the passes left out."""

    def __call__(
        self, _parser: object, options: argparse.Namespace, value: object, _option: object = None
    ) -> None:
        """Store a value of the option."""
        options.precision = str(value)
        others = [name for name in options.without if name != FLOAT32_PRODUCTS]
        options.without = [*with_precision(others, options.precision)]


def shape(text: str) -> tuple[str, tuple[int, ...]]:
    """Read a shape: `NAME=1x3x224x224`, or `NAME=` for a scalar."""
    name, separator, dimensions = text.rpartition("=")
    lengths = dimensions.replace(",", "x").split("x") if dimensions else []
    if not name or not separator or not all(d.isascii() and d.isdigit() for d in lengths):
        raise argparse.ArgumentTypeError(
            f"`{text}` is not a shape; write NAME=1x3x224x224, or NAME= for a scalar."
        )
    return name, tuple(int(length) for length in lengths)


def address_or_systemd(text: str) -> tuple[str, int] | str:
    """Read an address, or the word `systemd` for a socket that systemd passes.

    Raises:
        argparse.ArgumentTypeError: The text is neither.
    """
    return text if text == "systemd" else address(text)


def address(text: str) -> tuple[str, int]:
    """Read `HOST:PORT`, `[HOST]:PORT` for IPv6, or `PORT` at 127.0.0.1; port 0 means any free port.

    Raises:
        argparse.ArgumentTypeError: The text is not an address.
    """
    host, _, port = text.rpartition(":")
    bare = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
    if not port.isdecimal() or int(port) > 65_535 or (":" in bare) != host.startswith("["):
        raise argparse.ArgumentTypeError(f"`{text}` is not HOST:PORT, such as 127.0.0.1:8000")
    return bare, int(port)


def max_memory(options: argparse.Namespace) -> int | None:
    """Return the limit of a model from the options, or else from the environment.

    Raises:
        InputError: The environment variable is not an amount of memory.
    """
    limit: int | None = options.max_memory
    variable = os.environ.get(MAX_MEMORY)
    if limit is not None or not variable:
        return limit
    try:
        return parse_bytes(variable)
    except InputError as error:
        raise InputError(f"{MAX_MEMORY}: {error}") from None
