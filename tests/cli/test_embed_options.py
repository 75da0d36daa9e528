"""Options of `tightship embed`, and the pooling that `serve` takes."""

import pytest

from tightship.cli.arguments import parser
from tightship.cli.embed_options import POOLINGS
from tightship.cli.text_limit_options import text_limits
from tightship.embedding import encoder_file


def test_the_kinds_of_pooling_are_those_of_models() -> None:
    assert encoder_file.POOLINGS == POOLINGS


def test_a_server_takes_a_pooling() -> None:
    given = ["serve", "m.gguf", "--http", "8000", "--pooling", "cls"]
    assert text_limits(parser().parse_args(given)).pooling == "cls"
    with pytest.raises(SystemExit):
        parser().parse_args([*given, "--pooling", "max"])
