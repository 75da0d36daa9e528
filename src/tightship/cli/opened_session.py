"""Opens the session that the options of `tightship generate` and `tightship chat` describe."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from tightship.cli.progress import Progress
from tightship.cli.text_options import CONTEXT
from tightship.errors import InputError
from tightship.loading import load
from tightship.model.session import Session


class Opened(NamedTuple):
    """Session of the model that options name, and what answers get."""

    session: Session
    answer: dict[str, Any]


@contextmanager
def opened(options: argparse.Namespace, limit_bytes: int | None) -> Iterator[Opened]:
    """Load the model and open a session.

    Raises:
        CapacityError: They do not fit the limit.
        InputError: The model has no vocabulary, or an option does not fit.
    """
    names = ("max_tokens", "temperature", "top_k", "top_p", "min_p", "repeat_penalty", "seed",
             "stop")  # fmt: skip
    answer = {each: getattr(options, each) for each in names if getattr(options, each) is not None}
    with (
        Progress("packing weights") as progress,
        load(
            options.model,
            max_memory=limit_bytes,
            threads=options.threads,
            activations=options.activations,
            share=options.share,
            keep_programs=not options.anew,
            progress=progress,
        ) as model,
    ):
        tokenizer = model.tokenizer
        length = options.context or min(CONTEXT, tokenizer.longest_context or CONTEXT)
        tokenizer.check_trained(length)
        with model.session(length, cache=options.cache) as session:
            yield Opened(session, answer)


def check_template(opened: Opened, path: str) -> None:
    """Check that a model can chat.

    Raises:
        InputError: The model's file has no template of chats.
    """
    if not opened.session.tokenizer.has_template:
        raise InputError(
            f"`{path}` has no template of chats; it goes on with texts: use `tightship generate`."
        )
