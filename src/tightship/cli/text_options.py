"""Defines the arguments of `tightship generate` and `tightship chat`."""

import argparse

from tightship.cli.argument_types import add_activations, add_cache, count, lengths, size

CONTEXT = 4096
"""Tokens of a session by default, or fewer if the model was trained with fewer."""
MODEL = "a language model in GGUF"


def number(text: str) -> float:
    """Read a number."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"`{text}` is not a number.") from None


def context(text: str) -> int:
    """Read a number of tokens; `4k` is 4096."""
    (found,) = lengths(text) if "," not in text else (0,)
    if not found:
        raise argparse.ArgumentTypeError(f"`{text}` is not one number of tokens.")
    return found


def add_generate(command: argparse.ArgumentParser) -> None:
    """Add the options of `tightship generate`."""
    command.add_argument("model", metavar="MODEL", help=MODEL)
    command.add_argument(
        "-p",
        "--prompt",
        required=True,
        metavar="TEXT",
        help="text to go on with; - reads it from standard input",
    )
    command.add_argument(
        "--chat", action="store_true", help="ask the prompt as a question, by the model's template"
    )
    command.add_argument(
        "--json-schema", metavar="FILE", help="JSON schema that the answer follows"
    )
    _add_options(command)
    command.add_argument(
        "--json", action="store_true", help="print JSON with counts and times, at the end"
    )


def add_chat(command: argparse.ArgumentParser) -> None:
    """Add the options of `tightship chat`."""
    command.add_argument("model", metavar="MODEL", help=f"{MODEL}, with a template of chats")
    command.add_argument("--system", metavar="TEXT", help="message that each chat begins with")
    _add_options(command)


def _add_options(command: argparse.ArgumentParser) -> None:
    for option, kind, metavar, what in (
        ("--max-tokens", count, "N", "most tokens of an answer (default: what the context holds)"),
        ("--temperature", number, "T", "divisor of logits; 0 takes the likeliest (default 0.8)"),
        ("--top-k", int, "K", "most tokens to choose of; 0 for all (default 40)"),
        ("--top-p", number, "P", "probability that tokens to choose of reach (default 0.95)"),
        ("--min-p", number, "P", "least probability, as a share of the best's (default 0.05)"),
        ("--repeat-penalty", number, "R", "divisor of the logits of recent tokens (default 1)"),
        ("--seed", int, "SEED", "seed of the choices (default: another each time)"),
    ):
        command.add_argument(option, type=kind, metavar=metavar, help=what)
    command.add_argument(
        "--stop",
        action="append",
        metavar="TEXT",
        help="text that ends an answer, which it is not part of; may be repeated",
    )
    command.add_argument(
        "--context",
        type=context,
        metavar="4k",
        help=f"most tokens of prompt and answer (default {CONTEXT}, or what the model was trained "
        "with if that is less)",
    )
    add_cache(command)
    add_activations(command)
    command.add_argument(
        "--share",
        action="store_true",
        help="prepare the model once for this user, and map the prepared file: later starts are "
        "quick, and processes share its weights",
    )
    command.add_argument(
        "--anew",
        action="store_true",
        help="make the model's programs anew, and keep none: without it, they are kept for this "
        "user, and later starts are quick",
    )
    command.add_argument(
        "--threads", type=count, metavar="N", help="threads of each kernel (default 1)"
    )
    command.add_argument(
        "--max-memory",
        type=size,
        metavar="512MiB",
        help="refuse a model that would take more, with its session "
        "(default: TIGHTSHIP_MAX_MEMORY)",
    )
