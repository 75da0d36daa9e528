"""Which programs stay and which go when there are more shapes than room for programs."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tightship.engine.program.program import Lowered
from tightship.engine.program.shape_key import Key
from tightship.engine.run.executable import Executable

NEW_PROGRAMS = 2
"""Programs held that one run has asked for: of a hundred shapes that come once, few are there."""
SEEN_KEYS = 1024
"""Shapes remembered whose programs were let go; those that come again are here to stay."""


@dataclass(slots=True, eq=False, weakref_slot=True)
class Program:
    """A lowered model that can run.

    Attributes:
        own_bytes: Its steps and weights of its own.
        code: Bytes of generated code by primitive, which programs share.
        pins: Runs that have it.
        is_new: Whether one run has asked for it and no other since.
    """

    executable: Executable
    own_bytes: int
    code: Mapping[int, int] = field(default_factory=dict)
    pins: int = 0
    is_new: bool = False

    @property
    def lowered(self) -> Lowered:
        """Its steps and operands."""
        return self.executable.placement.lowered

    @property
    def run_bytes(self) -> int:
        """What a run takes: arena, inputs and outputs."""
        return self.executable.arena_bytes + self.executable.io_bytes


@dataclass(slots=True)
class ProgramEviction:
    """Programs by their shapes, the one used longest ago first; None for one being made.

    A shape that comes once passes through a few places; one that comes again stays until it is
    the one used longest ago. So many that come once leave those that come often alone.
    """

    _programs: OrderedDict[Key, Program | None] = field(default_factory=OrderedDict)
    _seen: OrderedDict[Key, None] = field(default_factory=OrderedDict)

    def __contains__(self, key: Key) -> bool:
        return key in self._programs

    def __iter__(self) -> Iterator[Program]:
        return (program for program in list(self._programs.values()) if program is not None)

    @property
    def is_still(self) -> bool:
        """Whether none is being made, and no run has any."""
        return all(program is not None and not program.pins for program in self._programs.values())

    @property
    def own_bytes(self) -> int:
        """What they take together; code that several share counts once."""
        return sum(program.own_bytes for program in self) + sum(self._code().values())

    def added_bytes(self, own_bytes: int, code: Mapping[int, int]) -> int:
        """What one more program takes: `own_bytes`, and the code that none of these has."""
        held = self._code()
        return own_bytes + sum(size for key, size in code.items() if key not in held)

    def _code(self) -> dict[int, int]:
        return {key: size for program in self for key, size in program.code.items()}

    @property
    def arena_bytes(self) -> int:
        """The largest arena that one needs."""
        return max((program.executable.arena_bytes for program in self), default=0)

    def book(self, key: Key) -> None:
        """A program for these shapes will be made."""
        self._programs[key] = None

    def cancel(self, key: Key) -> None:
        """It was not."""
        del self._programs[key]

    def put(self, key: Key, program: Program) -> None:
        """It was; it is new unless these shapes have come before."""
        program.is_new = key not in self._seen
        self._programs[key] = program
        self._programs.move_to_end(key)

    def take(self, key: Key) -> Program | None:
        """The program for shapes that are here, asked for again; None while it is being made."""
        program = self._programs[key]
        if program is not None:
            self._programs.move_to_end(key)
            program.is_new = False
        return program

    def idle(self) -> list[Key]:
        """Those that no run has."""
        return [key for key, p in self._programs.items() if p is not None and not p.pins]

    def surplus(self, key: Key) -> Key | None:
        """The new program to let go before one for `key` comes; None where there is room."""
        new = [program for program in self if program.is_new]
        if key in self._seen or len(new) < NEW_PROGRAMS:
            return None
        return next((key for key in self.idle() if self._is_new(key)), None)

    def _is_new(self, key: Key) -> bool:
        program = self._programs[key]
        return program is not None and program.is_new

    def release(self, key: Key) -> Program:
        """Drop an idle program."""
        program = self._programs.pop(key)
        assert program is not None
        assert not program.pins
        self._seen[key] = None
        if len(self._seen) > SEEN_KEYS:
            self._seen.popitem(last=False)
        return program

    def clear(self) -> None:
        """Drop all."""
        self._programs.clear()
