"""Renders the command line reference from the parsers, and writes it to its page.

python -m docs.site.command_line
"""

import argparse
import textwrap
from collections.abc import Iterator
from pathlib import Path

from tightship.cli.arguments import parser

PAGE = Path(__file__).parents[1] / "reference" / "command-line.md"
HEAD = """\
# Command line

Generated from the parsers by `python -m docs.site.command_line`; `tightship COMMAND --help` prints
the same. Amounts of memory take units, such as `64MiB`. Without a MODEL, `plan`, `run`, `view`,
`cost` and `share` take the ResNet-50 of the `onnx` package. See also
[exit codes](errors.md#exit-codes) and [environment](environment.md).
"""


def page() -> str:
    """Markdown of every command."""
    return "\n".join([HEAD, *(section(name, each) for name, each in commands(parser()))])


def commands(
    top: argparse.ArgumentParser, prefix: str = "tightship"
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Yield the parsers that take no further command, with their whole names."""
    groups = [each for each in top._actions if isinstance(each, argparse._SubParsersAction)]
    if not groups:
        yield prefix, top
    for group in groups:
        for name, each in group.choices.items():
            yield from commands(each, f"{prefix} {name}")


def section(name: str, command: argparse.ArgumentParser) -> str:
    """Markdown of one command: heading, description, usage, arguments and exit codes."""
    actions = [
        each
        for each in command._actions
        if "--help" not in each.option_strings and each.help is not argparse.SUPPRESS
    ]
    words = [name, *(_usage(each).replace(" ", "\0") for each in actions)]
    indent = " " * (len(name) + 1)
    usage = textwrap.fill(" ".join(words), 96, subsequent_indent=indent, break_on_hyphens=False)
    rows = [f"| {_code(_names(each))} | {_cell(_help(command, each))} |" for each in actions]
    return "\n".join(
        [
            f"## `{name}`",
            "",
            f"{command.description}",
            "",
            "```text\n" + usage.replace("\0", " ") + "\n```",
            "",
            "| argument | meaning |",
            "|---|---|",
            *rows,
            "",
            f"{command.epilog}",
            "",
        ]
    )


def _usage(action: argparse.Action) -> str:
    if not action.option_strings:
        name = str(action.metavar)
        return {"?": f"[{name}]", "*": f"[{name}]..."}.get(str(action.nargs), name)
    text = _names(action).split(", ")[0]
    if len(action.option_strings) > 1 and action.nargs != 0:
        text = f"{action.option_strings[0]} {action.metavar}"
    repeats = "..." if isinstance(action, argparse._AppendAction) else ""
    return (text if action.required else f"[{text}]") + repeats


def _names(action: argparse.Action) -> str:
    if not action.option_strings:
        return str(action.metavar)
    value = action.metavar or "|".join(action.choices or ())
    if action.nargs == "?":
        value = f"[{value}]"
    names = ", ".join(action.option_strings)
    return f"{names} {value}" if value and action.nargs != 0 else names


def _help(command: argparse.ArgumentParser, action: argparse.Action) -> str:
    return command._get_formatter()._expand_help(action)


def _code(text: str) -> str:
    """Code in a cell; a bar within backticks would end the cell, or show a backslash."""
    return f"<code>{text.replace('|', '&#124;')}</code>" if "|" in text else f"`{text}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
