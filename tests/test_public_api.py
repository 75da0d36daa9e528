"""What `import tightship` gives: few names, each documented, and nothing heavy with them."""

import ast
import inspect
from pathlib import Path

import pytest

import tightship

CONTENTS = ast.parse(Path(tightship.__file__).read_text())
NAMES = [
    alias.asname
    for node in CONTENTS.body
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
]


def test_the_package_is_a_contents_page_without_logic() -> None:
    docstring, *body = CONTENTS.body
    assert isinstance(docstring, ast.Expr)
    assert {type(node) for node in body} <= {ast.ImportFrom, ast.Assign}
    imports = [node for node in body if isinstance(node, ast.ImportFrom)]
    assert all(alias.name == alias.asname for node in imports for alias in node.names)
    constants = [node for node in body if isinstance(node, ast.Assign)]
    assert [ast.unparse(target) for node in constants for target in node.targets] == ["__version__"]


def test_there_are_few_names() -> None:
    """Running a model has 24; training one has its verb and the two optimizers it takes."""
    assert len(NAMES) <= 27


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_documented(name: str) -> None:
    thing = getattr(tightship, name)
    assert thing.__doc__
    if inspect.isfunction(thing):
        parameters = inspect.signature(thing).parameters
        assert [name for name in parameters if f"{name}:" not in thing.__doc__] == []
    if inspect.isclass(thing) and thing.__module__ != "tightship._core":
        members = [member for key, member in vars(thing).items() if not key.startswith("_")]
        undocumented = [member for member in members if callable(member) and not member.__doc__]
        assert undocumented == []


def test_every_error_is_a_tightship_error() -> None:
    errors = [getattr(tightship, name) for name in NAMES if name.endswith("Error")]
    assert len(errors) > 5
    assert all(issubclass(error, tightship.TightshipError) for error in errors)


def test_its_version_is_that_of_the_project() -> None:
    project = Path(__file__).parents[1] / "pyproject.toml"
    assert f'version = "{tightship.__version__}"' in project.read_text().splitlines()
