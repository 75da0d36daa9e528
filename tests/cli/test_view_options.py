"""Options of `tightship view`: lengths to choose from."""

import pytest

from tightship.cli.arguments import parser


def length_of(text):
    return parser("view").parse_args(["view", "model.onnx", "--length", text]).length


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("batch=1", ("batch", [1])),
        ("batch=16,1,4,4", ("batch", [1, 4, 16])),
        ("batch=", ("batch", [])),
    ],
)
def test_lengths_are_sorted_and_named_once(text, found) -> None:
    assert length_of(text) == found


@pytest.mark.parametrize("text", ["batch", "=1", "batch=0", "batch=1,,2", "batch=1k"])
def test_lengths_that_cannot_be_read_are_bad_usage(capsys, text) -> None:
    with pytest.raises(SystemExit) as ended:
        length_of(text)
    assert ended.value.code == 2
    capsys.readouterr()
