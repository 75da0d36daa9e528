"""Defines the arguments of `tightship embed`."""

import argparse

from tightship.cli.argument_types import add_activations, count, size
from tightship.cli.text_options import context

POOLINGS = ("mean", "cls", "last")


def add_embed(command: argparse.ArgumentParser) -> None:
    """Add the options of `tightship embed`."""
    command.add_argument(
        "model",
        metavar="MODEL",
        help="an encoder in GGUF, or in ONNX with its tokenizer.json beside it",
    )
    command.add_argument(
        "texts",
        nargs="*",
        metavar="TEXT",
        help="texts, by default the lines of standard input, which - names too",
    )
    command.add_argument(
        "--query",
        metavar="TEXT",
        help="score the texts by how well they answer this one, by a model for pairs",
    )
    command.add_argument(
        "--pooling",
        choices=POOLINGS,
        help="how vectors of tokens become one (default: as the model's files say)",
    )
    command.add_argument(
        "--no-normalize", action="store_true", help="leave vectors at the length that they have"
    )
    command.add_argument(
        "--truncate", action="store_true", help="cut texts that are longer than the context"
    )
    command.add_argument(
        "--context",
        type=context,
        metavar="256",
        help="most tokens of a text (default: what the model was trained with)",
    )
    command.add_argument(
        "--share",
        action="store_true",
        help="prepare the model once for this user, and map the prepared file: later starts are "
        "quick, and processes share its weights",
    )
    command.add_argument(
        "--threads", type=count, metavar="N", help="threads of each kernel (default 1)"
    )
    add_activations(command)
    command.add_argument(
        "--max-memory",
        type=size,
        metavar="128MiB",
        help="refuse a model that would take more (default: TIGHTSHIP_MAX_MEMORY); if it does not "
        "hold all programs, there are fewer, and short texts take longer",
    )
    command.add_argument(
        "-o", "--output", metavar="OUT.npy", help="write the vectors, or scores, as an array"
    )
    command.add_argument(
        "--json", action="store_true", help="print JSON with counts and memory, at the end"
    )
