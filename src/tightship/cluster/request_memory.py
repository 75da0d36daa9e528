"""Memory that a replica of Ray Serve takes for requests, besides its models; needs no Ray."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tightship.cluster.replica_memory import Requirements
from tightship.errors import CapacityError, InputError
from tightship.quantity import format_bytes

SERVE_BYTES = 8 << 20
"""Threads, heaps and records that a replica of Ray 2.60 gains as it answers its first requests."""
HEADER_BYTES = 64 << 10
"""Bytes of a request besides its tensors."""
RAW_COPIES = 3
"""Copies of raw tensors of a request: as they arrive, joined, and as they are sent."""
TEXT_COPIES = 4
"""Bytes that a byte of JSON takes while it is parsed, besides numbers: body, text, and objects."""
NUMBER_BYTES = 9
"""Bytes of a number of a request in JSON, as it arrives: 8, and a piece of the text."""
ANSWER_COPIES = 3
"""Copies of an answer in JSON: as text, as bytes, and as they are sent."""
ANSWER_NUMBER_BYTES = 128
"""Bytes of a number of an answer while it becomes text: Python's number, and its text."""
NUMBER_TEXT_BYTES = 26
"""Most bytes of a number's text: sign, 17 digits, point and exponent, comma and space."""
ANSWERS_MAX = 32 << 20
"""Most memory for answers in JSON that is booked unless a larger `max_memory` asks for it."""


@dataclass(frozen=True, slots=True)
class BodyLimits:
    """Largest bodies that a replica accepts, in bytes.

    Attributes:
        raw_bytes: With raw tensors behind a JSON header.
        json_bytes: Text of JSON besides numbers.
        numbers: Numbers in JSON.
    """

    raw_bytes: int
    json_bytes: int
    numbers: int


def together(models: Sequence[Requirements]) -> Requirements:
    """Return what a replica takes that runs several models, one at a time.

    Their arenas are one, the largest; weights and programs add up.
    """
    largest = max(models, key=lambda needs: needs.arena_bytes)
    return replace(
        largest,
        model=", ".join(needs.model for needs in models),
        weights_bytes=sum(needs.weights_bytes for needs in models),
        io_bytes=max(needs.io_bytes for needs in models),
        runtime_bytes=sum(needs.runtime_bytes for needs in models),
        reserved_bytes=sum(needs.reserved_bytes for needs in models),
        threads=max(needs.threads for needs in models),
        input_elements=max(needs.input_elements for needs in models),
        output_elements=max(needs.output_elements for needs in models),
    )


def with_requests(
    needs: Requirements, ongoing: int, worker_bytes: int, max_bytes: int | None
) -> tuple[Requirements, BodyLimits]:
    """Add the room for requests, and say which bodies it holds.

    Args:
        needs: Requirements of a replica's models.
        ongoing: Requests that a replica has at once.
        worker_bytes: Bytes of an idle replica without a model.
        max_bytes: Memory that each replica may take in all, which it then books; by default what
            is planned. What is left of it is room for further text, and for functions of `apply`.

    Raises:
        CapacityError: A replica takes more than `max_bytes`.
        InputError: `ongoing` is not positive.
    """
    if ongoing < 1:
        raise InputError(f"`max_ongoing_requests` is {ongoing}; it must be at least 1.")
    raw = needs.io_bytes + HEADER_BYTES
    json = raw + NUMBER_BYTES * needs.input_elements + TEXT_COPIES * HEADER_BYTES
    fixed = SERVE_BYTES + ongoing * max(RAW_COPIES * raw, json) + _answers(needs, ongoing)
    further = 0
    if max_bytes is not None:
        least = worker_bytes + needs.replica_bytes + fixed
        if max_bytes < least:
            raise CapacityError(
                f"`{needs.model}`: a replica takes {format_bytes(least)} ({least} bytes: worker "
                f"process {format_bytes(worker_bytes)}, model {format_bytes(needs.replica_bytes)}, "
                f"requests {format_bytes(fixed)}), more than `max_memory`, "
                f"{format_bytes(max_bytes)}. Raise it, or allow fewer `max_ongoing_requests`.",
                needed_bytes=least,
                limit_bytes=max_bytes,
            )
        further = max_bytes - least
    text = HEADER_BYTES + further // (TEXT_COPIES * ongoing)
    return replace(needs, request_bytes=fixed + further), BodyLimits(
        raw, text, needs.input_elements
    )


def _answers(needs: Requirements, ongoing: int) -> int:
    """Return the room for answers in JSON: one becomes text while the others are sent."""
    text = NUMBER_TEXT_BYTES * needs.output_elements
    objects = ANSWER_NUMBER_BYTES * needs.output_elements
    return min(ANSWERS_MAX, objects + (ANSWER_COPIES + ongoing) * text)
