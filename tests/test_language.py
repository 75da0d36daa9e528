"""Sentences against the language rules, counted by room; no room may have one.

A docstring, or a comment of C++ that documents a declaration, opens with a verb or with the noun
that it defines. A sentence or a name says its subject instead of "nobody" or "whoever". An error
says "not a" instead of "is no".
"""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "native", "tests", "benchmarks", "examples", "release")
MODULES = "modules"
"""Stands for the modules of `tightship` beside its rooms, such as `errors`."""

FRAGMENT = re.compile(
    r"\W*(About|After|Also|And|As|At|Because|Before|Behind|Beneath|Between|But|By|For|From|How|If"
    r"|In|It|Its|Like|Not|Of|On|Once|Only|Or|So|Than|That|Their|Then|There|These|They|This|Those|To"
    r"|Unless|Until|What|When|Where|Whether|Which|While|Who|Whom|Whose|Why|With|Without)\b"
)
"""Openings of a docstring that neither name an action nor define a noun."""
RIDDLE = re.compile(r"nobody|somebody|anybody|whoever|\bnoone\b", re.IGNORECASE)
IS_NO = re.compile(r"\b(is|are) no (?!longer\b|more\b)")
DOCUMENTATION = re.compile(r"(?:^[ \t]*///(?!<).*\n)+", re.MULTILINE)
"""Comment of C++ that documents the declaration after it, or the file."""
COMMENT_BREAK = re.compile(r"\n\s*//[/<]* ?")
"""Line break within a comment of C++, with the marks around it."""


@dataclass(frozen=True)
class Count:
    """Sentences of a room that break a rule.

    Attributes:
        fragments: Docstrings of modules, classes, functions and attributes, and documentation of
            C++, that open with one.
        riddles: Occurrences of `RIDDLE` in code, names, comments and pages.
        is_no: Messages, and lines or comments of C++, that say that something "is no" something.
    """

    fragments: int = 0
    riddles: int = 0
    is_no: int = 0

    def __add__(self, other: "Count") -> "Count":
        """Add the counts of two files."""
        return Count(
            self.fragments + other.fragments,
            self.riddles + other.riddles,
            self.is_no + other.is_no,
        )


def docstrings(nodes: Iterable[ast.AST]) -> Iterator[tuple[ast.AST, str]]:
    """Docstrings with what they document; for an attribute its assignment."""
    for node in nodes:
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


def messages(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Texts of the exceptions that a module raises, with their parts in one string."""
    for node in nodes:
        if isinstance(node, ast.Raise) and node.exc is not None:
            parts = (each.value for each in ast.walk(node.exc) if isinstance(each, ast.Constant))
            yield "".join(part for part in parts if isinstance(part, str))


def count_of(code: str) -> Count:
    """Count the sentences of a module that break each rule."""
    nodes = list(ast.walk(ast.parse(code)))
    return Count(
        sum(is_fragment(owner, text) for owner, text in docstrings(nodes)),
        len(RIDDLE.findall(code)),
        sum(bool(IS_NO.search(text)) for text in messages(nodes)),
    )


def cpp_count_of(code: str) -> Count:
    """Count the sentences of a C++ file that break each rule.

    "Whether ..." is a fragment there: a comment says "Returns whether ..." or "True if ...".
    """
    return Count(
        sum(bool(FRAGMENT.match(text)) for text in DOCUMENTATION.findall(code)),
        len(RIDDLE.findall(code)),
        len(IS_NO.findall(COMMENT_BREAK.sub(" ", code))),
    )


COUNTERS = {".py": count_of, ".pyi": count_of, ".cpp": cpp_count_of, ".hpp": cpp_count_of}
"""Functions that count a file's sentences, by its suffix."""


def room_of(path: Path) -> str:
    """Name the room of a file: a package in `src`, or the top folder."""
    top, *parts = path.relative_to(ROOT).parts
    if top != "src":
        return top
    package, *inner = parts
    return package if package != "tightship" else inner[0] if len(inner) > 1 else MODULES


def counts() -> dict[str, Count]:
    """Count all rooms, and the pages; rooms without a finding are left out."""
    found: dict[str, Count] = {}
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.*")):
        count = COUNTERS.get(path.suffix)
        if count is not None and path != Path(__file__):
            room = room_of(path)
            found[room] = found.get(room, Count()) + count(path.read_text())
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


@pytest.mark.parametrize(
    ("code", "count"),
    [
        ("/// What a kernel\n/// reads.\nstruct Reads;\n", Count(fragments=1)),
        ("    /// Whether it fits.\n    bool fits() const;\n", Count(fragments=1)),
        ("/// Returns whether it fits.\nbool fits();\n", Count()),
        ("if (a) // What is left waits.\n    return; ///< as before\n", Count()),
        ("constexpr int kNobody = -1;\n", Count(riddles=1)),
        ("/// Size of a block; 0 if it is\n/// no block.\nint size();\n", Count(is_no=1)),
        ('throw Misuse("it is no longer open");\n', Count()),
        ('throw Misuse("it is no block");\n', Count(is_no=1)),
    ],
)
def test_sentences_of_cpp_are_seen(code: str, count: Count) -> None:
    assert cpp_count_of(code) == count


def test_a_riddle_in_the_name_of_a_test_is_seen() -> None:
    assert count_of("def test_it_delays_nobody():\n    pass") == Count(riddles=1)


@pytest.mark.parametrize(
    ("path", "room"),
    [
        ("src/tightship/engine/run/executor.py", "engine"),
        ("src/tightship/errors.py", MODULES),
        ("src/tightship_start/__init__.py", "tightship_start"),
        ("native/src/verify.cpp", "native"),
        ("tests/test_language.py", "tests"),
    ],
)
def test_a_file_has_a_room(path: str, room: str) -> None:
    assert room_of(ROOT / path) == room
