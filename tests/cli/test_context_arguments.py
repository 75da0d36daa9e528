"""Arguments for sessions, of `plan` and of `prepare`."""

import pytest

from tightship.cli.arguments import parser


@pytest.mark.parametrize(
    "command", [["plan", "m.onnx"], ["prepare", "m.onnx", "-o", "m.tship"]], ids=["plan", "prepare"]
)
def test_contexts_are_a_list_of_lengths_and_none_by_default(command: list[str]) -> None:
    plain = parser().parse_args(command)
    assert (plain.context, plain.cache) == (None, None)
    given = parser().parse_args([*command, "--context", "4k,12", "--cache", "int8"])
    assert (list(given.context), given.cache) == ([4096, 12], "int8")
