"""Limits on files, functions, names and words. An exception is a line here, with its reason."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from tightship.graph.operators.table import FAMILIES, PACKAGES, rows

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "tests", "benchmarks", "native", "release", "docs", ".ci")
CODE = {".py", ".cpp", ".hpp", ".js"}
TEXT = CODE | {".md", ".toml", ".cmake", ".txt", ".html", ".css", ".pyi", ".json", ""}

FILE_LINES_MAX = 400
LINE_COLUMNS_MAX = 100
FUNCTION_LINES_MAX = 60
TEST_LINES_MAX = 30
PARAMETERS_MAX = 6

BANNED_FILE_NAMES = re.compile(
    r"(^|_)(utils?|helpers?|common(?!_subexpressions)|misc|managers?|base)(_|$)"
)
BANNED_WORDS = re.compile(
    r"\b(robust(ly)?|seamless(ly)?|comprehensive(ly)?|powerful|blazing(ly)?|effortless(ly)?"
    r"|cutting[- ]edge|state[- ]of[- ]the[- ]art|world[- ]class|leverag(e|es|ing)"
    r"|refactor(ed|ing)?|now supports?|as requested|legacy"
    r"|backwards?[- ]compatib\w+|TODO|FIXME|XXX|HACK)\b",
    re.IGNORECASE,
)
BANNED_PLACES = re.compile(
    r"(pypi\.org|pythonhosted\.org|npmjs\.(com|org)|crates\.io|anaconda\.org|deb\.debian\.org"
    r"|(?<![\w.])/(work|home|root|tmp/w|opt/pypi)/)"
)

LONG_FUNCTIONS: dict[str, str] = {}
MANY_PARAMETERS = {
    "src/tightship/loading/entry.py:load": "the front door; all but the first are keywords",
    "src/tightship/loading/entry.py:plan": "as `load`",
    "src/tightship/loading/preparing.py:prepare": "as `load`",
    "src/tightship/embedding/embedder.py:__init__": "as `load`",
    "src/tightship/cluster/serving.py:deployment": "as `load`",
    "src/tightship/training/train.py:train": "as `load`",
    "src/tightship/training/train.py:train_joint": "as `load`",
    "src/tightship/model/session_opener.py:session": "as `load`",
    "src/tightship/model/session_text.py:generate": "as `load`",
    "src/tightship/planner/problem.py:__init__": "a problem's fields; all but four have defaults",
    "src/tightship/engine/lower/selection.py:select": "all that selection heeds; one a keyword",
    "src/tightship/engine/run/executor.py:execute": "all that a run heeds; two for few callers",
    "src/tightship/engine/lower/steps/builder.py:step": "facts of a step; the later ones keywords",
}
UNREFERENCED = {
    "src/tightship/engine/run/stepwise.py": "for callers: how frameworks use operators, to compare",
    "src/tightship/backend.py": "for callers: ONNX's suite takes the module",
    "src/tightship/torch_compile.py": "for callers: torch takes it by its entry point",
    "src/tightship/driver/client/client.py": "for callers",
    "src/tightship/cli/__main__.py": "`python -m tightship.cli`",
    "tests/driver/oip/triton_models.py": "`python -m`, for a real Triton server",
}
ENVIRONMENT_READERS = {
    "src/tightship/prepared_cache/settings.py": "where a user's caches are, and how large",
    "src/tightship/resource/settings.py": "how places are divided, before the first is made",
    "src/tightship/resource/private_folder.py": "where the system has a user's runtime folder",
    "src/tightship/engine/library.py": "which libdnnl, before anything is loaded",
    "src/tightship/engine/primitive_cache.py": "its capacity, before anything is compiled",
    "src/tightship/budget/isa.py": "kernels for a named instruction set, in a process that plans",
    "src/tightship_start/__init__.py": "whether NumPy asks for huge pages, before its import",
    "src/tightship/public_calls.py": "how much of a traceback a user sees",
}


def files(*suffixes: str, folders: tuple[str, ...] = FOLDERS) -> list[Path]:
    """Files of the repository below some folders, with the top's own where all are meant."""
    below = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]
    top = [path for path in ROOT.iterdir() if path.is_file()] if folders == FOLDERS else []
    return [
        path
        for path in sorted(below + top)
        if path.suffix in suffixes and not {"__pycache__", "build", ".git"} & set(path.parts)
    ]


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@dataclass(frozen=True, slots=True)
class Function:
    """A function's name, its lines without its docstring and decorators, and its parameters."""

    name: str
    lines: int
    parameters: int


@dataclass(frozen=True, slots=True)
class Module:
    """Facts that the rules read of a Python file; its whole tree would take too much memory.

    Attributes:
        names: Modules that it imports, or that its strings name, whole or as `module.NAME`.
        prints: Lines with a call that prints.
    """

    functions: tuple[Function, ...]
    names: frozenset[str]
    prints: tuple[int, ...]


@cache
def module(path: Path) -> Module:
    functions, names, prints = [], set(), []
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                functions.append(Function(node.name, body_lines(node), parameter_count(node)))
            case ast.Call() if is_printing(node.func):
                prints.append(node.lineno)
            case ast.Import() | ast.ImportFrom() | ast.Constant():
                names.update(named_modules(node, module_of(path.parent)))
    return Module(tuple(functions), modules() & names, tuple(prints))


def parameter_count(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    every = (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)
    return len([argument for argument in every if argument.arg not in {"self", "cls"}])


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring and decorators."""
    assert function.end_lineno is not None
    count = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function) is not None:
        docstring = function.body[0]
        assert docstring.end_lineno is not None
        count -= docstring.end_lineno - docstring.lineno + 1
    return count


def native_functions(code: str) -> Iterator[tuple[str, int]]:
    """First line and length of what starts with a brace at column 0; clang-format puts it so."""
    first: tuple[int, str] | None = None
    for number, line in enumerate(code.splitlines()):
        if first is None and re.match(r"\w.*\)[^;]*\{$", line):
            first = number, line
        elif first is not None and line.startswith("}"):
            yield first[1], number - first[0] + 1
            first = None


def test_files_and_lines_are_short() -> None:
    found = []
    for path in files(*CODE):
        lines = path.read_text().splitlines()
        if len(lines) > FILE_LINES_MAX:
            found.append(f"{named(path)} has {len(lines)} lines")
        found += [
            f"{named(path)}:{number} has {len(line)} columns"
            for number, line in enumerate(lines, start=1)
            if len(line) > LINE_COLUMNS_MAX
        ]
    assert found == []


def test_functions_are_short() -> None:
    found = []
    for path in files(".py"):
        for function in module(path).functions:
            is_test = function.name.startswith("test_")
            limit = TEST_LINES_MAX if is_test else FUNCTION_LINES_MAX
            where = f"{named(path)}:{function.name}"
            if function.lines > limit and where not in LONG_FUNCTIONS:
                found.append(f"{where} has {function.lines} lines")
    for path in files(".cpp", ".hpp"):
        for first_line, count in native_functions(path.read_text()):
            if count > FUNCTION_LINES_MAX:
                found.append(f"{named(path)}: {first_line} has {count} lines")
    assert found == []


def test_functions_take_few_parameters() -> None:
    found = []
    for path in files(".py", folders=("src", "benchmarks")):
        for function in module(path).functions:
            where = f"{named(path)}:{function.name}"
            if function.parameters > PARAMETERS_MAX and where not in MANY_PARAMETERS:
                found.append(f"{where} has {function.parameters} parameters")
    assert found == []


def test_every_exception_is_needed() -> None:
    present = {f"{named(p)}:{f.name}" for p in files(".py") for f in module(p).functions}
    assert set(LONG_FUNCTIONS) | set(MANY_PARAMETERS) <= present
    assert all((ROOT / name).is_file() for name in (*UNREFERENCED, *ENVIRONMENT_READERS))


def test_a_file_is_named_by_its_concept() -> None:
    assert [named(path) for path in files(*TEXT) if BANNED_FILE_NAMES.search(path.stem)] == []


def test_text_has_no_marketing_no_process_and_no_place_of_this_machine() -> None:
    found = []
    for path in files(*TEXT):
        if path == Path(__file__) or path.name in {"LICENSE", "THIRD-PARTY-NOTICES.md"}:
            continue
        for pattern in (BANNED_WORDS, BANNED_PLACES):
            matches = pattern.finditer(path.read_text())
            found += [f"{named(path)} says `{match[0]}`" for match in matches]
    assert found == []


def test_the_environment_is_read_only_in_listed_modules() -> None:
    found = [
        named(path)
        for path in files(".py", folders=("src",))
        if re.search(r"\bos\.(environ|getenv)\b|from os import .*environ", path.read_text())
    ]
    assert [n for n in found if "/cli/" not in n and n not in ENVIRONMENT_READERS] == []


def is_printing(called: ast.expr) -> bool:
    match called:
        case ast.Name(id="print"):
            return True
        case ast.Attribute(attr="write"):
            return ast.unparse(called) == "sys.stdout.write"
    return False


@pytest.mark.parametrize("code", ["print(1)", "sys.stdout.write('a')"])
def test_printing_is_seen(code: str) -> None:
    (statement,) = ast.parse(code).body
    assert isinstance(statement, ast.Expr)
    assert isinstance(statement.value, ast.Call)
    assert is_printing(statement.value.func)


def test_only_the_command_line_prints() -> None:
    found = [
        f"{named(path)}:{line}"
        for path in files(".py", folders=("src",))
        if "cli" not in path.parts
        for line in module(path).prints
    ]
    assert found == []


@cache
def modules() -> frozenset[str]:
    return frozenset(map(module_of, files(".py", folders=("src", "tests"))))


def module_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[1:] if parts[0] == "src" else parts)


def named_modules(node: ast.AST, package: str) -> Iterator[str]:
    """Modules that a node in a file of a package may import or name."""
    match node:
        case ast.Import(names=names):
            yield from (alias.name for alias in names)
        case ast.ImportFrom(module=str(module), names=names):
            yield module
            yield from (f"{module}.{alias.name}" for alias in names)
        case ast.Constant(value=str(text)):
            yield text  # as in `python -m tests.frontend.mutation`
            yield f"{package}.{text}".rpartition(".")[0]  # as in `seldom`
            yield from (f"{package}.{word}" for word in text.split())  # as in `FAMILIES`


def named_by_rows() -> Iterator[str]:
    """Modules with bodies of the operator table."""
    for domain in FAMILIES:
        for row in rows(domain).values():
            for column, package in PACKAGES.items():
                place = getattr(row, column)
                if isinstance(place, str) and place:
                    module = place.partition(":")[0].rpartition(".")[0]
                    yield f"tightship.{package}.{module}"


@pytest.mark.parametrize("folder", ["src", "tests"])
def test_every_module_is_imported_somewhere(folder: str) -> None:
    everything = {name for path in files(".py", folders=(folder,)) for name in module(path).names}
    everything.update(named_by_rows())
    loose = {"__init__.py", "conftest.py"}
    dead = [
        named(path)
        for path in files(".py", folders=(folder,))
        if path.name not in loose and not path.name.startswith("test_")
        if module_of(path) not in everything and named(path) not in UNREFERENCED
    ]
    assert dead == []


def test_every_header_and_asset_is_used() -> None:
    native = "\n".join(path.read_text() for path in files(".cpp", ".hpp"))
    source = "\n".join(path.read_text() for path in files(".py", ".js", ".html", folders=("src",)))
    headers = files(".hpp")
    assets = files(".js", ".css", ".html", folders=("src",))
    assert headers
    assert [named(path) for path in headers if f'{path.name}"' not in native] == []
    assert [named(path) for path in assets if path.stem not in source] == []


def test_every_folder_of_tests_is_a_package() -> None:
    folders = {path.parent for path in files(".py", folders=("tests",))}
    assert [named(folder) for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_the_readme_says_what_continuous_integration_runs() -> None:
    command = (ROOT / ".ci/tests").read_text().splitlines()[-1]
    assert command.endswith("python -m pytest -n auto")
    assert command in (ROOT / "README.md").read_text().splitlines()


def test_a_long_native_function_is_seen() -> None:
    code = "int f(int a) {\n" + "    a++;\n" * 70 + "}\n\nvoid g() {\n}\n"
    assert list(native_functions(code)) == [("int f(int a) {", 72), ("void g() {", 2)]


@pytest.mark.parametrize(
    "text",
    ["a robust plan", "TODO: later", "see /home/me/x", "from pypi" + ".org", "now supports x"],
)
def test_a_banned_word_is_seen(text: str) -> None:
    assert BANNED_WORDS.search(text) or BANNED_PLACES.search(text)


@pytest.mark.parametrize("text", ["tests/home/x", "https://a.b/work/x", "database", "baseline"])
def test_an_innocent_word_is_not(text: str) -> None:
    assert not BANNED_WORDS.search(text)
    assert not BANNED_PLACES.search(text)
    assert not BANNED_FILE_NAMES.search(text)
