"""Reference pages are complete: commands, names, variables, errors, passes, and a unit file."""

import ast
import re

from docs.site import command_line, deprecated, modules

from tests.docs.fences import ROOT
from tightship._core import RunPermits
from tightship.cli.arguments import parser
from tightship.cli.main import FAULT, INTERRUPTED
from tightship.driver.oip import monitor
from tightship.driver.oip.endpoint import InferenceEndpoint
from tightship.driver.oip.region_files import RegionFiles
from tightship.driver.oip.repository import Repository
from tightship.driver.texts.text_counts import encoder_metrics, text_metrics
from tightship.engine.lower.pipeline import pass_names

SOURCE = ROOT / "src/tightship"
REFERENCE = ROOT / "docs/reference"


def page(name: str) -> str:
    return (REFERENCE / name).read_text(encoding="utf-8")


def rows(text: str) -> list[str]:
    """First cells of tables, where they are one name in backticks."""
    return re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)


def test_the_command_line_is_that_of_the_parsers() -> None:
    assert page("command-line.md") == command_line.page(), "run `python -m docs.site.command_line`"
    assert len(list(command_line.commands(parser()))) == page("command-line.md").count("\n## ")


def test_deprecated_spellings_are_those_of_the_table() -> None:
    assert page("deprecated.md") == deprecated.page(), "run `python -m docs.site.deprecated`"


def test_every_variable_that_is_read_is_in_the_environment_reference() -> None:
    # A variable is read where its whole name stands in quotes, also as prefix and rest.
    quoted = re.compile(r'"(TIGHTSHIP_\w+?)_?"')
    code = "\n".join(
        path.read_text()
        for folder in (ROOT / "src", ROOT / "native")
        for path in folder.rglob("*")
        if path.suffix in {".py", ".cpp", ".hpp"}
    )
    found = set(quoted.findall(code)) - {"TIGHTSHIP_RESOURCE"}
    listed = {name for name in rows(page("environment.md")) if name.startswith("TIGHTSHIP_")}
    assert found <= listed
    unread = [name for name in listed if name not in code and "_RESOURCE_" not in name]
    assert unread == []


def test_every_exception_and_exit_code_is_listed() -> None:
    errors = ast.parse((SOURCE / "errors.py").read_text())
    classes = {node.name for node in errors.body if isinstance(node, ast.ClassDef)}
    text = page("errors.md")
    assert classes - {"TightshipError"} == set(rows(text))
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}
    assert codes == {0, 1, 2, 3, FAULT, INTERRUPTED}


def test_every_pass_is_listed_once() -> None:
    assert rows(page("passes.md")) == list(pass_names())


def test_every_metric_is_listed_with_its_type() -> None:
    endpoint = InferenceEndpoint(Repository(dict), RegionFiles(is_enabled=False), RunPermits(1))
    watching = monitor.Monitor(endpoint, lambda: None)
    watching._sample()
    text = endpoint.metrics() + watching.metrics() + text_metrics([]) + encoder_metrics({}, 0)
    made = set(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE))
    listed = set(re.findall(r"^\| `(\w+)` \| (\w+) \|", page("metrics.md"), re.MULTILINE))
    assert listed == made
    named = set(re.findall(r"(?:nv_inference|tightship)_\w+", page("metrics.md")))
    series = {f"{name}{end}" for name, _ in made for end in ("", "_bucket")}
    assert named <= series


def test_modules_are_listed_with_their_purpose() -> None:
    text = modules.listing()
    assert "## `tightship/planner`" not in text
    assert "| `verify` | Verifies plans." in text
    assert text.count("\n| `") > 500
