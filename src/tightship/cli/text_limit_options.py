"""Defines options of `tightship serve` about language models."""

import argparse
from typing import TYPE_CHECKING

from tightship.cli.argument_types import add_activations, add_cache, count, size
from tightship.cli.embed_options import POOLINGS
from tightship.cli.text_options import context

if TYPE_CHECKING:
    from tightship.driver.texts.text_limits import TextLimits

SESSIONS, WAITING = 4, 32


def add_text_limits(command: argparse.ArgumentParser) -> None:
    """Add the limits of language models, which are served by OpenAI's API."""
    command.add_argument(
        "--context",
        type=context,
        metavar="8k",
        help="most tokens of prompt and answer of a language model, a GGUF file (default 4096, or "
        "what it was trained with if that is less)",
    )
    command.add_argument(
        "--sessions",
        type=count,
        default=SESSIONS,
        metavar="N",
        help=f"answers of a language model at once (default {SESSIONS})",
    )
    command.add_argument(
        "--waiting",
        type=count,
        default=WAITING,
        metavar="N",
        help="requests that may wait for a language model; further ones are answered 429 (default "
        f"{WAITING})",
    )
    command.add_argument(
        "--max-memory",
        type=size,
        metavar="2GiB",
        help="most memory of each language model with its sessions; if not all contexts fit, "
        "sessions share what there is",
    )
    command.add_argument(
        "--spill",
        type=size,
        metavar="8GiB",
        help="most bytes of files that keep the caches of idle sessions whose memory others need, "
        "until they go on (default: their tokens are computed again)",
    )
    command.add_argument(
        "--spill-folder",
        metavar="DIR",
        help="where these files are, without names (default: the system's folder for temporary "
        "files, which may be in memory)",
    )
    add_cache(command)
    add_activations(command)
    command.add_argument(
        "--share",
        action="store_true",
        help="prepare language models once for this user, and map the prepared files: later starts "
        "are quick, and processes share the weights",
    )
    command.add_argument(
        "--pooling",
        choices=POOLINGS,
        help="how an encoder's vectors of tokens become one (default: as its files say)",
    )


def text_limits(options: argparse.Namespace) -> "TextLimits":
    """Return the limits that the options give.

    Raises:
        InputError: The numbers of sessions and of waiting requests cannot answer anything.
    """
    from tightship.driver.texts.text_limits import TextLimits  # few servers have texts

    return TextLimits(
        options.context,
        options.sessions,
        options.waiting,
        options.max_memory,
        options.cache,
        options.pooling,
        options.spill,
        options.spill_folder,
    )
