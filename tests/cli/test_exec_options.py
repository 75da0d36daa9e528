"""Options of `tightship exec` end where the program begins."""

import pytest

from tightship.cli.arguments import parser


@pytest.mark.parametrize(
    ("given", "program"),
    [
        (["--", "a", "--json", "-x"], ["--", "a", "--json", "-x"]),
        (["a", "--json"], ["a", "--json"]),
        (["--", "--", "a"], ["--", "--", "a"]),
        ([], []),
    ],
)
def test_everything_from_the_program_on_is_the_programs(given, program) -> None:
    options = parser("exec").parse_args(["exec", "--max-memory", "1KiB", *given])
    assert (options.max_memory, options.json, options.program) == (1024, False, program)


def test_options_before_the_program_are_ours() -> None:
    options = parser("exec").parse_args(["exec", "--json", "-o", "out", "--", "a", "-o", "b"])
    assert (options.json, options.output) == (True, "out")
