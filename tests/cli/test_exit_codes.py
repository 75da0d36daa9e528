"""Every command tells its exit codes, and no command that is gone is left in the table."""

from tightship.cli.arguments import COMMANDS, parser
from tightship.cli.exit_codes import EXIT_CODES

PARTS = {"list", "clear", "profile"}
"""Commands within a group."""


def test_only_commands_have_codes() -> None:
    assert set(EXIT_CODES) - PARTS <= set(COMMANDS)


def test_help_ends_with_the_codes() -> None:
    groups = set(COMMANDS) - set(EXIT_CODES)
    assert groups == {"budget", "cache", "cluster", "resource"}
    for name in set(COMMANDS) - groups:
        actions = parser(name)._subparsers
        assert actions is not None
        (choices,) = (action.choices for action in actions._actions if action.choices)
        assert "2 bad usage or file" in choices[name].epilog
