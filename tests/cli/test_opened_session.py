"""Sessions of the commands for texts."""

from pathlib import Path

import pytest

from tests.text.vocabularies import chat_model
from tightship.cli.arguments import parser
from tightship.cli.opened_session import check_template, opened
from tightship.errors import CapacityError, InputError


def test_the_context_is_what_the_model_was_trained_with_at_most(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(chat_model())
    options = parser().parse_args(["generate", str(path), "-p", "a", "--top-k", "3"])
    with opened(options, None) as found:
        assert (found.session.context, found.answer) == (64, {"top_k": 3})
        check_template(found, str(path))
    with pytest.raises(CapacityError), opened(options, 1 << 20):
        pass


def test_a_model_without_a_template_cannot_chat(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(chat_model().replace(b"tokenizer.chat_template", b"tokenizer.chat_templatf"))
    options = parser().parse_args(["chat", str(path)])
    with opened(options, None) as found, pytest.raises(InputError, match="no template of chats"):
        check_template(found, str(path))
