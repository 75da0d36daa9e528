"""What a loaded model has done with programs, and what it holds."""

from dataclasses import astuple, dataclass


@dataclass(frozen=True, slots=True)
class ProgramStatistics:
    """What has become of the programs of a model.

    Attributes:
        held: Programs that are ready now.
        hits: Runs that found theirs.
        misses: Runs that had to have it made.
        evictions: Programs let go for others.
        bytes: Steps, generated code and weights of their own of those held.
    """

    held: int
    hits: int
    misses: int
    evictions: int
    bytes: int


@dataclass(frozen=True, slots=True)
class MemoryStatistics:
    """What is held now.

    Attributes:
        weights_bytes: Packed weights of all programs; those of a prepared file are not counted,
            for they are mapped.
        arena_bytes: Memory of arenas, reserved by runs or kept for the next.
        arena_used_bytes: Of that, what runs have reserved.
        arena_peak_bytes: The most that arenas have had since loading.
        programs: Programs that are ready.
        program_bytes: What they take as planned: steps, weights of their own, and code, which
            counts once where programs share it.
    """

    weights_bytes: int = 0
    arena_bytes: int = 0
    arena_used_bytes: int = 0
    arena_peak_bytes: int = 0
    programs: int = 0
    program_bytes: int = 0

    def __add__(self, other: "MemoryStatistics") -> "MemoryStatistics":
        """Of two models."""
        return MemoryStatistics(*map(sum, zip(astuple(self), astuple(other), strict=True)))
