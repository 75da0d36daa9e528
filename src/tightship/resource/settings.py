"""Division of a node's memory: defaults, arguments, `TIGHTSHIP_RESOURCE_*` variables.

| variable | value | default |
|---|---|---|
| `TIGHTSHIP_RESOURCE_MAIN_BYTES` | the most that a node's main memory holds | its memory |
| `TIGHTSHIP_RESOURCE_SCRATCHPAD_BYTES` | memory that is kept for its scratchpad | `8MiB` |
| `TIGHTSHIP_RESOURCE_SLABS` | `64:2%,256:5%`: parts for blocks of these sizes | a tenth in all |
| `TIGHTSHIP_RESOURCE_ORDER` | `seed`: what came back waits for the bump's end | `free_list_first` |
| `TIGHTSHIP_RESOURCE_FIT` | `first`: the seed's plain list | `best` |
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from tightship.errors import InputError
from tightship.quantity import parse_bytes

PREFIX = "TIGHTSHIP_RESOURCE_"
MAIN_BYTES = f"{PREFIX}MAIN_BYTES"

SCRATCHPAD_BYTES = 8 << 20

Shares = tuple[tuple[int, float], ...]
"""Pairs of a block's bytes and the part of a region for such blocks, by rising size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings; `main_bytes` 0 means the node's memory, `slabs` None the documented division."""

    main_bytes: int = 0
    scratchpad_bytes: int = SCRATCHPAD_BYTES
    slabs: Shares | None = None
    best_fit: bool = True
    free_list_last: bool = False


def settings_from(environment: Mapping[str, str] | None = None) -> Settings:
    """Read settings from an environment, by default the process's own.

    Raises:
        InputError: A variable of that prefix is unknown, or has an invalid value.
    """
    given = os.environ if environment is None else environment
    values = {name.removeprefix(PREFIX): text for name, text in given.items() if _is_ours(name)}
    unknown = values.keys() - {"MAIN_BYTES", "SCRATCHPAD_BYTES", "SLABS", "ORDER", "FIT"}
    if unknown:
        raise InputError(f"Unknown setting `{PREFIX}{min(unknown)}`: see the table in settings.py.")
    defaults = Settings()
    return Settings(
        main_bytes=_bytes(values, "MAIN_BYTES", defaults.main_bytes),
        scratchpad_bytes=_bytes(values, "SCRATCHPAD_BYTES", defaults.scratchpad_bytes),
        slabs=parse_shares(values["SLABS"]) if "SLABS" in values else None,
        best_fit=_choice(values, "FIT", ("best", "first")) == "best",
        free_list_last=_choice(values, "ORDER", ("free_list_first", "seed")) == "seed",
    )


def parse_shares(text: str) -> Shares:
    """Read `64:2%,256:5%`; an empty text means no slabs.

    Raises:
        InputError: A part is not a size, a colon and a percentage.
    """
    shares = []
    for part in filter(None, text.split(",")):
        size, _, percent = part.partition(":")
        try:
            shares.append((int(size), float(percent.strip().removesuffix("%")) / 100))
        except ValueError:
            raise InputError(
                f"`{part}` is not a share of a slab: give bytes and a percentage, as in `64:2%`."
            ) from None
    return tuple(shares)


def shares_text(shares: Shares) -> str:
    """Format shares for `parse_shares`, to four digits."""
    return ",".join(f"{block_bytes}:{share * 100:.4g}%" for block_bytes, share in shares)


def _is_ours(name: str) -> bool:
    return name.startswith(PREFIX)


def _bytes(values: Mapping[str, str], name: str, default: int) -> int:
    return parse_bytes(values[name]) if name in values else default


def _choice(values: Mapping[str, str], name: str, choices: tuple[str, ...]) -> str:
    value = values.get(name, choices[0])
    if value not in choices:
        raise InputError(
            f"`{PREFIX}{name}` (= `{value}`) must be "
            + " or ".join(f"`{c}`" for c in choices)
            + "."
        )
    return value
