"""Model files of encoders, and the files beside them."""

from pathlib import Path

import pytest

from tests.embedding.exports import exported
from tests.frontend.gguf.encoders import embedding_model, encoder
from tests.text.vocabularies import chat_model
from tightship.embedding.encoder_file import is_encoder, open_encoder_file
from tightship.errors import FormatError, InputError


def test_a_file_says_what_it_is(tmp_path: Path) -> None:
    path, chat = tmp_path / "e.gguf", tmp_path / "c.gguf"
    path.write_bytes(embedding_model(pooling=2))
    chat.write_bytes(chat_model())
    assert (is_encoder(path), is_encoder(chat)) == (True, False)
    found = open_encoder_file(path)
    assert (found.context, found.pooling, found.encoder.size) == (64, "cls", 18)
    with pytest.raises(InputError, match="is not an encoder"):
        open_encoder_file(chat)
    with pytest.raises(InputError, match="exists"):
        open_encoder_file(tmp_path / "none.gguf")


def test_files_beside_an_export_say_it(tmp_path: Path) -> None:
    path = exported(tmp_path, encoder(), pooling="cls_token")
    assert is_encoder(path)
    found = open_encoder_file(path)
    assert (found.context, found.pooling, found.encoder.size) == (48, "cls", 18)
    (tmp_path / "sentence_bert_config.json").unlink()
    (tmp_path / "1_Pooling" / "config.json").unlink()
    found = open_encoder_file(path)
    assert (found.context, found.pooling) == (64, None)
    (tmp_path / "config.json").unlink()
    assert open_encoder_file(path).context == 512


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("config.json", "[1]", "is not a JSON object"),
        ("config.json", "{", "is not a JSON object"),
        ("sentence_bert_config.json", '{"max_seq_length": "x"}', "must be a number of tokens"),
        ("tokenizer.json", "{}", "is not a tokenizer that can be read"),
    ],
)
def test_a_damaged_file_is_named(tmp_path: Path, name: str, text: str, said: str) -> None:
    path = exported(tmp_path, encoder())
    (tmp_path / "sentence_bert_config.json").write_text("{}")
    (tmp_path / name).write_text(text)
    with pytest.raises(FormatError, match=said) as raised:
        open_encoder_file(path)
    assert name in str(raised.value)


def test_a_model_without_vocabulary_is_refused(tmp_path: Path) -> None:
    path = exported(tmp_path, encoder())
    (tmp_path / "tokenizer.json").unlink()
    assert not is_encoder(path)
    with pytest.raises(InputError, match=r"lacks a `tokenizer\.json`"):
        open_encoder_file(path)
