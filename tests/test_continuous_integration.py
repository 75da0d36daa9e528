"""The parts of `.ci` run what the first environment, with the extra `test` alone, skips."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CI = ROOT / ".ci"
PARTS = ("tests", "wheel", "frontends", "docs")
SKIPPING = re.compile(r"importorskip\(\s*\"(\w+)|find_spec\(\"(\w+)")
PACKAGES = {
    "grpc": "grpcio",
    "PIL": "pillow",
    "kubernetes_validate": "kubernetes-validate",
    "opentelemetry": "opentelemetry-sdk",
    "prometheus_client": "prometheus-client",
    "yaml": "pyyaml",
}
"""Names of packages by what is imported of them, where these differ."""
SLOW = {
    "tests/loading/test_shared_exports.py": "slow, with a package that no extra brings",
    "tests/scenarios/gpu/test_frameworks.py": "on a machine with a GPU only",
}


def of_the_first_environment() -> set[str]:
    """Packages of the extra `test`, without versions."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = (*project["dependencies"], *project["optional-dependencies"]["test"])
    return {re.match(r"[\w-]+", each)[0] for each in wanted}


def wanting() -> dict[str, set[str]]:
    """Packages that test files look for beyond those, by file."""
    first, found = of_the_first_environment(), {}
    for path in sorted((ROOT / "tests").rglob("*.py")):
        names = {one or other for one, other in SKIPPING.findall(path.read_text())}
        missing = {each for each in names if PACKAGES.get(each, each) not in first}
        if missing:
            found[path.relative_to(ROOT).as_posix()] = missing
    return found


def test_each_part_says_what_it_does_and_is_run() -> None:
    lines = {part: (CI / part).read_text().splitlines() for part in PARTS}
    assert all(text[1].startswith("# ") for text in lines.values())
    assert f"for part in {' '.join(PARTS)}; do" in (CI / "run").read_text()
    assert {path.name for path in CI.iterdir()} == {*PARTS, "run", "environment"}


def test_what_needs_another_package_is_run_with_it() -> None:
    words = {word for part in PARTS for word in (CI / part).read_text().split()} - {"."}
    missing = [
        name
        for name in wanting()
        if name not in SLOW
        and not words & {str(each) for each in (Path(name), *Path(name).parents)}
    ]
    assert missing == []


@pytest.mark.parametrize("package", ["torch", "jax", "silero_vad", "safetensors"])
def test_a_package_that_the_first_environment_lacks_is_seen(package: str) -> None:
    assert package in set().union(*wanting().values())


def test_every_exception_is_needed() -> None:
    assert set(SLOW) <= set(wanting())


@pytest.mark.parametrize("extra", ["serve", "test", "torch", "jax", "docs"])
def test_every_extra_is_installed(extra: str) -> None:
    extras = re.findall(r"\[([\w,]+)\]", "\n".join((CI / part).read_text() for part in PARTS))
    assert extra in {name for each in extras for name in each.split(",")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert extra in project["optional-dependencies"]
