"""Files beside an ONNX model of texts: its vocabulary, context and pooling."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tightship.errors import FormatError, InputError

CONTEXT = 512
"""Most tokens of a text if no file says."""
VOCABULARY = "tokenizer.json"


@dataclass(frozen=True, slots=True)
class Beside:
    """Facts in the files beside an ONNX model, which are in its folder or the one above.

    Attributes:
        vocabulary: The file of the vocabulary.
        context: Most tokens of a text.
        pooling: Kind of pooling; None if no file says.
    """

    vocabulary: Path
    context: int
    pooling: str | None


def vocabulary_beside(model: Path) -> Path | None:
    """Return the `tokenizer.json` in a model's folder, or in the one above `onnx`."""
    places = [model.parent, *([model.parent.parent] if model.parent.name == "onnx" else [])]
    return next((each / VOCABULARY for each in places if (each / VOCABULARY).is_file()), None)


def read_beside(model: Path) -> Beside:
    """Read the files beside a model.

    Raises:
        FormatError: A file is not JSON, or has no number where one belongs.
        InputError: The folder lacks a vocabulary.
    """
    vocabulary = vocabulary_beside(model)
    if vocabulary is None:
        raise InputError(
            f"`{model}` has no vocabulary: its folder lacks a `{VOCABULARY}`. Put the one that it "
            "was exported with there, or give a GGUF file."
        )
    folder = vocabulary.parent
    context = _number(folder / "sentence_bert_config.json", "max_seq_length")
    context = context or _number(folder / "config.json", "max_position_embeddings")
    found = _fields(folder / "1_Pooling" / "config.json")
    named = {"mean": "mean_tokens", "cls": "cls_token", "last": "lasttoken"}
    kinds = [kind for kind, key in named.items() if found.get(f"pooling_mode_{key}") is True]
    return Beside(vocabulary, context or CONTEXT, kinds[0] if len(kinds) == 1 else None)


def _number(path: Path, key: str) -> int | None:
    found = _fields(path).get(key)
    if found is not None and (type(found) is not int or found < 2):
        raise FormatError(f"`{path}`: `{key}` is {found!r}; it must be a number of tokens.")
    return found


def _fields(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise FormatError(f"`{path}` is not a JSON object. Export the model again.")
    return found
