"""Memory of a decoder and its sessions, for one context."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from tightship.engine.plan.footprint import (
    NODE_BYTES,
    counted,
    further_bytes,
    program_bytes,
    session_bytes,
)
from tightship.engine.plan.placement import Placement
from tightship.errors import InputError
from tightship.loading.input_shapes import Given, divided


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """Bytes of a loaded decoder and its sessions, for one context.

    Attributes:
        context: Most tokens of a session.
        weights_bytes: Packed weights, which all sessions share.
        arena_bytes: Arenas of the model's own program and of the steps', for one step at a time.
        io_bytes: Inputs and outputs of the model's own program, and those of the steps but caches.
        runtime_bytes: Libraries, generated code and programs.
        state_bytes: Caches of one session, and what it is given of an encoder.
        bytes_per_token: Bytes of its caches for one token.
    """

    context: int
    weights_bytes: int
    arena_bytes: int
    io_bytes: int
    runtime_bytes: int
    state_bytes: int
    bytes_per_token: int

    def peak_bytes(self, sessions: int) -> int:
        """Return the bytes with a number of sessions whose contexts are full."""
        fixed = self.weights_bytes + self.arena_bytes + self.io_bytes + self.runtime_bytes
        return fixed + sessions * self.state_bytes


@dataclass(frozen=True, slots=True)
class StepParts:
    """Bytes of a program of sessions.

    Attributes:
        arena_bytes: Its arena.
        io_bytes: Its inputs and outputs, caches included.
        program_bytes: Its steps and generated code.
        further_bytes: The same beside another program of the same steps.
    """

    arena_bytes: int
    io_bytes: int
    program_bytes: int
    further_bytes: int

    @staticmethod
    def of(placement: Placement) -> "StepParts":
        """Measure a program."""
        programs = program_bytes(placement.lowered), further_bytes(placement.lowered)
        return StepParts(placement.arena_bytes, placement.io_bytes, *programs)


@dataclass(frozen=True, slots=True)
class SessionParts:
    """Bytes that a plan of sessions consists of.

    Attributes:
        weights_bytes: Packed weights.
        arena_bytes: Arena of the model's own program.
        nodes: Nodes of its graph, as `node_kinds` counts them.
        runtime_bytes: Libraries, generated code and the program without its nodes.
        state_bytes: Caches of one session.
        steps: Programs of sessions.
        given_bytes: Inputs that are the same at each step, of an encoder.
        io_bytes: Inputs and outputs of the model's own program.
    """

    weights_bytes: int
    arena_bytes: int
    nodes: tuple[int, int]
    runtime_bytes: int
    state_bytes: int
    steps: tuple[StepParts, ...]
    given_bytes: int = 0
    io_bytes: int = 0

    def plan(self, context: int, programs: int) -> SessionPlan:
        """Return the plan of sessions.

        Args:
            context: Most tokens of a session.
            programs: Most programs of sessions.
        """
        largest = max(each.program_bytes for each in self.steps)
        further = max(each.further_bytes for each in self.steps)
        return SessionPlan(
            context,
            self.weights_bytes,
            self.arena_bytes + max(each.arena_bytes for each in self.steps),
            self.io_bytes
            + max(each.io_bytes for each in self.steps)
            - 2 * self.state_bytes
            - self.given_bytes,
            self.runtime_bytes
            + counted(*self.nodes) * NODE_BYTES
            + session_bytes(largest, further, programs),
            self.state_bytes + self.given_bytes,
            self.state_bytes // context,
        )

    def with_more_layers(self, less: "SessionParts", count: int) -> "SessionParts | None":
        """Return the parts of a model that has more layers; None if these two do not tell them.

        A layer adds weights, caches and steps of its own. It adds nothing to arenas, because the
        layers run one after another.

        Args:
            less: Parts of the same model with one layer less.
            count: Layers to add.
        """
        arenas, others = ([parts.arena_bytes, *(each.arena_bytes for each in parts.steps)]
                          for parts in (self, less))  # fmt: skip
        if arenas != others:
            return None

        def more(known: int, before: int) -> int:
            return known + count * (known - before)

        return SessionParts(
            more(self.weights_bytes, less.weights_bytes),
            self.arena_bytes,
            (more(self.nodes[0], less.nodes[0]), more(self.nodes[1], less.nodes[1])),
            more(self.runtime_bytes, less.runtime_bytes),
            more(self.state_bytes, less.state_bytes),
            tuple(
                StepParts(
                    each.arena_bytes,
                    more(each.io_bytes, before.io_bytes),
                    more(each.program_bytes, before.program_bytes),
                    more(each.further_bytes, before.further_bytes),
                )
                for each, before in zip(self.steps, less.steps, strict=True)
            ),
            more(self.given_bytes, less.given_bytes),
            more(self.io_bytes, less.io_bytes),
        )


def batch_of(
    declared: Mapping[str, Sequence[object] | None], given: Given, encoder: Collection[object] = ()
) -> int:
    """Return the batch that is given, 1 by default.

    Args:
        declared: Inputs as the file declares them.
        given: Lengths by dimension.
        encoder: Dimensions of an encoder's rows, whose lengths may be given too.

    Raises:
        InputError: A length of another dimension is given.
    """
    batches = {shape[0] for shape in declared.values() if shape and isinstance(shape[0], str)}
    shapes, named = divided({}, given)
    named = {name: length for name, length in named.items() if name not in encoder}
    for name in [*shapes, *(name for name in named if name not in batches)]:
        raise InputError(
            f"`{name}` was given a length; with a context only the batch may be, by its name: "
            f"{', '.join(sorted(map(str, batches))) or 'the file fixes it'}."
        )
    return next(iter(named.values()), 1)
