"""Implements `tightship embed`: vectors of texts, or scores of them for a question."""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tightship.atomic_file import draft
from tightship.cli.argument_types import max_memory
from tightship.cli.output import show
from tightship.embedding.embedder import Embedder
from tightship.embedding.encoded_texts import Encoded
from tightship.embedding.reranker import Reranker
from tightship.errors import InputError

TEXTS = 1024
"""Texts that are read before the first of them run, those of similar lengths together."""

Array = NDArray[np.float32]
Model = Embedder | Reranker


def run(options: argparse.Namespace) -> int:
    """Print a vector or a score for each text, or a report in JSON at the end."""
    if options.query is not None and options.pooling is not None:
        raise InputError("`--pooling` is for vectors; a model for `--query` gives scores.")
    known = {
        "context": options.context,
        "max_memory": max_memory(options),
        "threads": options.threads,
        "activations": options.activations,
        "share": options.share,
    }
    with ExitStack() as open_:
        if options.query is None:
            model: Model = Embedder(options.model, pooling=options.pooling, **known)
        else:
            model = Reranker(options.model, **known)
        open_.enter_context(model)
        parts, tokens = [], 0
        for texts in _windows(options.texts):
            encoded, values = _answered(model, texts, options)
            tokens += sum(map(len, encoded))
            if options.json or options.output:
                parts.append(values)
            if not options.json and not options.output:
                _print(texts, values)
        whole = np.concatenate(parts) if parts else np.zeros((0,), np.float32)
        if options.output:
            with draft(Path(options.output)) as file:
                np.save(file, whole)
        if options.json:
            show(json.dumps(_report(model, options, tokens, whole)) + "\n")
    return 0


def _answered(
    model: Model, texts: Sequence[str], options: argparse.Namespace
) -> tuple[list[Encoded], Array]:
    """Return the tokens of texts, and their vectors or scores."""
    cut: bool = options.truncate
    if isinstance(model, Embedder):
        encoded = model.encode(texts, truncate=cut)
        return encoded, model.vectors(encoded, normalize=not options.no_normalize)
    encoded = model.encode(options.query, texts, truncate=cut)
    return encoded, model.scores(encoded)


def _windows(given: Sequence[str]) -> Iterator[list[str]]:
    """Yield texts, some at a time; the lines of standard input for none or `-`."""
    lines: Iterator[str] = iter(given)
    if not given or list(given) == ["-"]:
        lines = (line.rstrip("\n") for line in sys.stdin)
    while texts := list(islice(lines, TEXTS)):
        yield texts


def _print(texts: Sequence[str], values: Array) -> None:
    """Print a line for each text: its vector as JSON, or its score and itself."""
    for text, value in zip(texts, values, strict=True):
        if value.ndim:
            show(json.dumps(_plain(value)) + "\n")
        else:
            show(f"{value:.6g}\t{text}\n")
    sys.stdout.flush()


def _plain(value: Array) -> list[float]:
    """Return the shortest numbers that read back as those of an array."""
    shortest: Callable[[Any], str] = np.format_float_positional
    return [float(shortest(each)) for each in value]


def _report(
    model: Model, options: argparse.Namespace, tokens: int, values: Array
) -> dict[str, object]:
    """Return all vectors or scores with counts and memory."""
    found: dict[str, object] = {
        "model": options.model,
        "texts": len(values),
        "tokens": tokens,
        "peak_bytes": model.peak_bytes,
        "programs": [list(shape) for shape in model.program_shapes],
    }
    if isinstance(model, Embedder):
        found |= {"dimension": model.dimension, "pooling": model.pooling}
        return found | {"embeddings": [_plain(each) for each in values]}
    return found | {"scores": _plain(values)}
