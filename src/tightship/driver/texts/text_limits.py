"""Limits of texts that a server answers."""

from dataclasses import dataclass

from tightship.errors import InputError


@dataclass(frozen=True, slots=True)
class TextLimits:
    """Limits of each language model.

    Attributes:
        context: Most tokens of prompt and answer; None for what the model was trained with, up to
            4096.
        sessions: Answers at once, each in a session of its own.
        waiting: Requests that may wait for a session; further ones are told to try again later.
        max_memory: Most bytes of the model and its sessions; None for no limit.
        cache: Type that caches are rounded to; None for the model's.
        spill_bytes: Most bytes of files with the caches of idle sessions whose memory others need;
            None to compute their tokens again.
        spill_folder: Where these are; None for the system's folder for temporary files.
        pooling: How an encoder's vectors of tokens become one; None for what its files say.
    """

    context: int | None = None
    sessions: int = 4
    waiting: int = 32
    max_memory: int | None = None
    cache: str | None = None
    pooling: str | None = None
    spill_bytes: int | None = None
    spill_folder: str | None = None

    def __post_init__(self) -> None:
        if self.sessions < 1 or self.waiting < 0:
            raise InputError(
                f"{self.sessions} sessions with {self.waiting} waiting requests cannot answer; "
                "give at least 1 session, and 0 requests or more."
            )
        if self.spill_folder is not None and self.spill_bytes is None:
            raise InputError(
                f"The folder `{self.spill_folder}` gets no files without their most bytes; give "
                "them too, by `--spill`, or leave `--spill-folder` out."
            )


CONTEXT = 4096
"""Most tokens of a context that is not given."""
