"""Eviction policy of programs: which are kept when shapes outnumber the room for programs."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from tightship.engine.compile.input_shapes import Key
from tightship.engine.program.program import Lowered
from tightship.engine.run.executable import Executable

NEW_PROGRAMS = 1
"""Programs kept that only one run has asked for, so that one-time shapes evict few others."""
SEEN_KEYS = 1024
"""Shapes remembered whose programs were released; a program made again for one is kept longer."""


@dataclass(slots=True, eq=False, weakref_slot=True)
class Program:
    """Lowered model that can run.

    Attributes:
        own_bytes: Bytes of its steps and of weights of its own.
        code: Bytes of generated code by primitive, which programs share.
        pins: Runs that use it now.
        is_new: Whether only one run has asked for it, and never before.
    """

    executable: Executable
    own_bytes: int
    code: Mapping[int, int] = field(default_factory=dict)
    pins: int = 0
    is_new: bool = False

    @property
    def lowered(self) -> Lowered:
        """Steps and operands of the program."""
        return self.executable.placement.lowered

    @property
    def run_bytes(self) -> int:
        """Bytes of a run: arena, inputs and outputs."""
        return self.executable.arena_bytes + self.executable.io_bytes


@dataclass(slots=True)
class ProgramEviction:
    """Programs by shape key in least-recently-used order; None marks one under construction.

    A shape that comes once uses one of `NEW_PROGRAMS` places; one that comes again stays until it
    is least recently used. So many one-time shapes do not evict those that come often.
    """

    _programs: OrderedDict[Key, Program | None] = field(default_factory=OrderedDict)
    _seen: OrderedDict[Key, None] = field(default_factory=OrderedDict)

    def __contains__(self, key: Key) -> bool:
        return key in self._programs

    def __iter__(self) -> Iterator[Program]:
        return (program for program in list(self._programs.values()) if program is not None)

    @property
    def is_still(self) -> bool:
        """Whether no program is under construction or used by a run."""
        return all(program is not None and not program.pins for program in self._programs.values())

    @property
    def own_bytes(self) -> int:
        """Bytes of all programs; generated code that several share counts once."""
        return sum(program.own_bytes for program in self) + sum(self._code().values())

    def added_bytes(self, own_bytes: int, code: Mapping[int, int]) -> int:
        """Count the bytes of one more program: `own_bytes`, and code that none of these has."""
        held = self._code()
        return own_bytes + sum(size for key, size in code.items() if key not in held)

    def _code(self) -> dict[int, int]:
        return {key: size for program in self for key, size in program.code.items()}

    @property
    def arena_bytes(self) -> int:
        """Bytes of the largest arena that a program needs."""
        return max((program.executable.arena_bytes for program in self), default=0)

    def book(self, key: Key) -> None:
        """Mark a program for `key` as under construction."""
        self._programs[key] = None

    def cancel(self, key: Key) -> None:
        """Remove the mark of `book`, because construction failed."""
        del self._programs[key]

    def put(self, key: Key, program: Program) -> None:
        """Add a program; it is new unless a program for its shapes was released before."""
        program.is_new = key not in self._seen
        self._programs[key] = program
        self._programs.move_to_end(key)

    def take(self, key: Key) -> Program | None:
        """Return the program for `key` and mark it as used; None while it is under construction."""
        program = self._programs[key]
        if program is not None:
            self._programs.move_to_end(key)
            program.is_new = False
        return program

    def idle(self) -> list[Key]:
        """List the keys of programs that no run uses."""
        return [key for key, p in self._programs.items() if p is not None and not p.pins]

    def surplus(self, key: Key) -> Key | None:
        """Choose a new program to release before one for `key` is added; None if none must go."""
        new = [program for program in self if program.is_new]
        if key in self._seen or len(new) < NEW_PROGRAMS:
            return None
        return next((key for key in self.idle() if self._is_new(key)), None)

    def _is_new(self, key: Key) -> bool:
        program = self._programs[key]
        return program is not None and program.is_new

    def release(self, key: Key) -> Program:
        """Remove an idle program and return it."""
        program = self._programs.pop(key)
        assert program is not None
        assert not program.pins
        self._seen[key] = None
        if len(self._seen) > SEEN_KEYS:
            self._seen.popitem(last=False)
        return program

    def clear(self) -> None:
        """Remove all programs."""
        self._programs.clear()
