"""Options of `tightship serve` about language models."""

from tightship.cli import text_options
from tightship.cli.arguments import parser
from tightship.cli.text_limit_options import text_limits
from tightship.driver.texts.text_limits import CONTEXT, TextLimits


def test_limits_are_read() -> None:
    given = parser().parse_args([
        "serve", "m.gguf", "--http", "8000", "--context", "8192", "--sessions", "8",
        "--max-memory", "2GiB", "--cache", "int8", "--waiting", "3",
    ])  # fmt: skip
    assert text_limits(given) == TextLimits(8192, 8, 3, 2 << 30, "int8")
    assert text_limits(parser().parse_args(["serve"])) == TextLimits()
    spilled = parser().parse_args(["serve", "--spill", "8GiB", "--spill-folder", "/var/tmp"])
    assert text_limits(spilled) == TextLimits(spill_bytes=8 << 30, spill_folder="/var/tmp")
    assert text_options.CONTEXT == CONTEXT
