"""Plans for a named instruction set, so that processors with more of them use the same kernels."""

import os
from collections.abc import Mapping
from typing import Literal, get_args

from tightship import _core
from tightship.engine.library import ISA_NAMES, open_library
from tightship.errors import InputError

Isa = Literal["avx2", "avx512_core", "avx512_core_amx"]
"""Instruction sets to plan for; each has those before it."""

MASKS: Mapping[str, int] = {"avx2": 0x7, "avx512_core": 0x27, "avx512_core_amx": 0xFEF}
"""Bits of oneDNN's masks for each of them."""
VARIABLE = "ONEDNN_MAX_CPU_ISA"


def checked_isa(name: str) -> Isa:
    """Return the name of an instruction set.

    Raises:
        InputError: It is none that plans are made for.
    """
    for known in get_args(Isa):
        if name == known:
            return known  # type: ignore[no-any-return]
    raise InputError(
        f"`{name}` is not an instruction set to plan for; choose from {', '.join(MASKS)}."
    )


def assume(isa: Isa) -> None:
    """Have kernels chosen in this process as for an instruction set, which must come first.

    Raises:
        InputError: This machine lacks it, or kernels have been chosen for another one here.
    """
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = isa.upper()  # read once, when the library is first asked
    try:
        open_library()
        _check(isa)
    except BaseException:
        del os.environ[VARIABLE]
        if before is not None:
            os.environ[VARIABLE] = before
        raise


def _check(isa: Isa) -> None:
    if not _core.HAS_ONEDNN:
        return
    found = _core.onednn_cpu_isa()
    name = ISA_NAMES.get(found, hex(found))
    if found & MASKS[isa] != MASKS[isa]:
        lower = [f"`{each}`" for each, mask in MASKS.items() if found & mask == mask]
        advice = f"choose {' or '.join(lower)}" if lower else "it has none of them"
        raise InputError(
            f"This machine has {name}, less than the instruction set `{isa}` to plan for; {advice}."
        )
    if found & ~MASKS[isa]:
        raise InputError(
            f"Kernels of this process are chosen for {name} already; plan for `{isa}` in another "
            "process."
        )
