"""Counters of a loaded model's programs, and the memory that it holds."""

from dataclasses import astuple, dataclass

from tightship.brief import brief


@brief
@dataclass(frozen=True, slots=True)
class ProgramStatistics:
    """Counters of a model's programs.

    Attributes:
        held: Programs that are ready now.
        hits: Runs that found their program.
        misses: Runs whose program had to be made.
        evictions: Programs released to make room for others.
        bytes: Steps, generated code and own weights of the programs held.
        run_bytes: Arena, inputs and outputs of the largest of them.
    """

    held: int
    hits: int
    misses: int
    evictions: int
    bytes: int
    run_bytes: int


@brief
@dataclass(frozen=True, slots=True)
class MemoryStatistics:
    """Bytes that a model holds now.

    Attributes:
        weights_bytes: Packed weights of all programs, except those mapped from a prepared file.
        arena_bytes: Arenas, reserved by runs or kept for the next.
        arena_used_bytes: Arenas that runs have reserved.
        arena_peak_bytes: Most bytes of arenas since loading.
        programs: Programs that are ready.
        program_bytes: Planned bytes of the programs: steps, own weights, and generated code, which
            counts once even if programs share it.
        dynamic_bytes: Pools of steps outside the plan: in use, of results that callers have, and
            kept for the next run.
        dynamic_peak_bytes: Most bytes of these since loading.
    """

    weights_bytes: int = 0
    arena_bytes: int = 0
    arena_used_bytes: int = 0
    arena_peak_bytes: int = 0
    programs: int = 0
    program_bytes: int = 0
    dynamic_bytes: int = 0
    dynamic_peak_bytes: int = 0

    def __add__(self, other: "MemoryStatistics") -> "MemoryStatistics":
        """Sum the figures of two models."""
        return MemoryStatistics(*map(sum, zip(astuple(self), astuple(other), strict=True)))
