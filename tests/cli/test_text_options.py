"""Arguments of `tightship generate` and `tightship chat`."""

import argparse

import pytest

from tightship.cli.arguments import parser
from tightship.cli.text_options import context, number


def test_options_are_read() -> None:
    given = parser().parse_args([
        "generate", "m.gguf", "-p", "a", "--context", "8k", "--stop", "x", "--stop", "y",
        "--top-k", "5", "--temperature", "0", "--max-memory", "512MiB", "--json",
    ])  # fmt: skip
    assert (given.model, given.prompt, given.context) == ("m.gguf", "a", 8192)
    assert (given.stop, given.top_k, given.temperature) == (["x", "y"], 5, 0.0)
    assert (given.max_memory, given.json, given.seed) == (512 << 20, True, None)
    chat = parser().parse_args(["chat", "m.gguf", "--system", "Be brief."])
    assert (chat.command, chat.system, chat.context) == ("chat", "Be brief.", None)


@pytest.mark.parametrize(("read", "text"), [(context, "4k,8k"), (number, "warm")])
def test_what_is_not_a_number_is_refused(read: object, text: str) -> None:
    assert callable(read)
    with pytest.raises(argparse.ArgumentTypeError, match="is not"):
        read(text)
