"""Vocabularies of files."""

from pathlib import Path

import pytest

from tests.frontend.gguf.written import written
from tests.text.vocabularies import chat_fields, chat_tokens
from tightship.errors import FormatError
from tightship.frontend.gguf.vocabulary import open_vocabulary


def test_the_vocabulary_of_a_file_is_read_without_its_tensors(tmp_path: Path) -> None:
    fields = {"general.architecture": "llama", "llama.context_length": 64, **chat_fields(),
              "tokenizer.ggml.merges": ["a b", "  c"], "tokenizer.ggml.add_bos_token": True,
              "tokenizer.ggml.eot_token_id": ("u32", 999)}  # fmt: skip
    path = tmp_path / "m.gguf"
    path.write_bytes(written(fields, {}))
    found = open_vocabulary(path)
    assert (found.tokens, found.types) == chat_tokens()
    assert (found.kind, found.pre, found.merges) == ("llama", "", ["a b", "  c"])
    assert found.special == {"bos": 1, "eos": 2}  # 999 is not a token
    assert (found.flags, found.longest_context) == ({"add_bos_token": True}, 64)
    assert found.scores is not None
    assert found.scores[3] == -3.0


def test_files_without_a_vocabulary_are_refused() -> None:
    with pytest.raises(FormatError, match=r"has no `tokenizer.ggml.tokens`"):
        open_vocabulary(written({"general.architecture": "llama"}, {}))
    few = {**chat_fields(), "tokenizer.ggml.scores": [0.5]}
    with pytest.raises(FormatError, match=r"scores` is an array of 1 elements; .* of 70 numbers"):
        open_vocabulary(written(few, {}))
