"""Sentences against the language rules, counted by room; no room may have one.

A docstring opens with a verb or with the noun that it defines. A sentence names its subject instead
of "nobody" or "whoever". An error says "not a" instead of "is no".
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
MODULES = "modules"
"""Stands for the modules of `tightship` beside its rooms, such as `errors`."""

FRAGMENT = re.compile(
    r"\W*(About|After|Also|And|As|At|Because|Before|Behind|Beneath|Between|But|By|For|From|How|If"
    r"|In|It|Its|Like|Not|Of|On|Once|Only|Or|So|Than|That|Their|Then|There|These|They|This|Those|To"
    r"|Unless|Until|What|When|Where|Whether|Which|While|Who|Whom|Whose|Why|With|Without)\b"
)
"""Openings of a docstring that neither name an action nor define a noun."""
RIDDLE = re.compile(r"\b(nobody|somebody|anybody|whoever|noone)\b", re.IGNORECASE)
IS_NO = re.compile(r"\b(is|are) no (?!longer\b|more\b)")


@dataclass(frozen=True)
class Count:
    """Sentences of a room that break a rule.

    Attributes:
        fragments: Docstrings of modules, classes, functions and attributes that open with one.
        riddles: Occurrences of `RIDDLE` in code, comments and pages.
        is_no: Messages that say that something "is no" something.
    """

    fragments: int = 0
    riddles: int = 0
    is_no: int = 0


def docstrings(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Docstrings with what they document; for an attribute its assignment."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        owner: ast.AST = node
        for child in node.body:
            match child:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield owner, text
            owner = child


def is_fragment(owner: ast.AST, text: str) -> bool:
    """Whether a docstring opens with a fragment; "Whether ..." is proper for a truth value."""
    match = FRAGMENT.match(text)
    if match is None or match[1] != "Whether":
        return match is not None
    if isinstance(owner, ast.FunctionDef | ast.AsyncFunctionDef):
        return owner.returns is None or "bool" not in ast.unparse(owner.returns)
    return isinstance(owner, ast.Module | ast.ClassDef)


def messages(tree: ast.Module) -> Iterator[str]:
    """Texts of the exceptions that a module raises, with their parts in one string."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and node.exc is not None:
            parts = (each.value for each in ast.walk(node.exc) if isinstance(each, ast.Constant))
            yield "".join(part for part in parts if isinstance(part, str))


def count_of(code: str) -> Count:
    """Count what a module has of each."""
    tree = ast.parse(code)
    return Count(
        sum(is_fragment(owner, text) for owner, text in docstrings(tree)),
        len(RIDDLE.findall(code)),
        sum(bool(IS_NO.search(text)) for text in messages(tree)),
    )


def counts() -> dict[str, Count]:
    """Count all rooms of the source, and the pages; rooms without a finding are left out."""
    found: dict[str, Count] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        package, *parts = path.relative_to(SOURCE).parts
        room = package if package != "tightship" else parts[0] if len(parts) > 1 else MODULES
        one, had = count_of(path.read_text()), found.get(room, Count())
        found[room] = Count(
            had.fragments + one.fragments, had.riddles + one.riddles, had.is_no + one.is_no
        )
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    found["docs"] = Count(riddles=sum(len(RIDDLE.findall(page.read_text())) for page in pages))
    return {room: count for room, count in found.items() if count != Count()}


def test_no_room_breaks_a_language_rule() -> None:
    assert counts() == {}


@pytest.mark.parametrize(
    "code",
    [
        '"""What a thing is."""',
        'class A:\n    """Of the pools."""',
        'def f() -> int:\n    """Whether it counts."""',
        'A = 1\n"""As the format has it."""',
        'class A:\n    x: int\n    """\'Where\' it is."""',
    ],
)
def test_a_fragment_is_seen(code: str) -> None:
    assert count_of(code) == Count(fragments=1)


@pytest.mark.parametrize(
    "code",
    [
        '"""Reads files."""',
        'def f() -> bool:\n    """Whether it fits."""',
        'def f() -> None:\n    """Return the offset."""\n    x = "What"',
        'X = 1\n"""Offset from the base."""',
        'raise ValueError("`x` is not a name")',
        'raise ValueError("`x` is no longer there")',
    ],
)
def test_a_plain_sentence_is_not(code: str) -> None:
    assert count_of(code) == Count()


def test_riddles_and_refusals_are_seen() -> None:
    code = '# Nobody reads it\nraise ValueError(f"`{name}` " "is " "no shape")'
    assert count_of(code) == Count(riddles=1, is_no=1)
