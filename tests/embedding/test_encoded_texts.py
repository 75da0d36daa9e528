"""Tokens of texts and pairs: both kinds of files give the same."""

from pathlib import Path

import pytest

from tests.embedding.exports import tokenizer
from tests.embedding.texts import texts
from tests.frontend.gguf.encoders import embedding_model
from tightship.embedding.encoded_texts import FileEncoder, JsonEncoder
from tightship.text.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def encoders(tmp_path_factory: pytest.TempPathFactory) -> tuple[FileEncoder, JsonEncoder]:
    path: Path = tmp_path_factory.mktemp("vocabulary") / "tokenizer.json"
    library = tokenizer()
    library.enable_truncation(4)
    library.enable_padding(length=40)
    library.save(str(path))
    return FileEncoder(Tokenizer.open(embedding_model())), JsonEncoder(path)


def test_both_kinds_give_the_same(encoders: tuple[FileEncoder, JsonEncoder]) -> None:
    file, beside = encoders
    assert file.size == beside.size == 18
    for text in (*texts(20), "The CAT's mat!", "", "cats", "\ud83d\ude00 dog \ud800"):
        assert file.encode(text) == beside.encode(text)
        assert file.encode_pair("a cat", text) == beside.encode_pair("a cat", text)


def test_a_pair_has_two_kinds(encoders: tuple[FileEncoder, JsonEncoder]) -> None:
    for each in encoders:
        found = each.encode_pair("the cat", "sat")
        assert found.tokens == [2, 5, 6, 3, 7, 3]
        assert found.kinds == [0, 0, 0, 0, 1, 1]
