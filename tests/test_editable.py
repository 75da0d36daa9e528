"""An editable installation, as CONTRIBUTING describes it, in an environment of its own.

    python -m pytest -m slow tests/test_editable.py

Compiles the package: minutes without a compiler cache.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
COPIED = ("src", "native", "tests", "benchmarks", "docs", "examples")
BUILD_MODULES = ("scikit_build_core", "nanobind", "cmake", "ninja", "pip")
INSIDE = """
import sys
from pathlib import Path
import tightship
from tightship import _core
package, core = Path(tightship.__file__).parent, Path(_core.__file__).parent
assert package == Path(sys.argv[1]) / "src/tightship", package
assert core != package, core
assert not _core.HAS_ONEDNN or (core / "libdnnl.so.3").is_file(), "no libdnnl.so.3"
assert (core / "libtsomp.so").is_file(), "no libtsomp.so"
"""
TESTS = (
    "tests/view/test_report.py",
    "tests/driver/memory/test_isolated.py",
    "tests/test_static.py::test_the_stub_is_what_the_core_says_of_itself",
)


def run(*command, **given):
    done = subprocess.run(command, capture_output=True, text=True, check=False, **given)
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]
    return done.stdout


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the sources, because a build writes beside them."""
    folder = tmp_path_factory.mktemp("editable") / "tree"
    ignored = shutil.ignore_patterns("__pycache__", "*.so", "*.so.*", "results")
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=ignored)
    for path in ROOT.iterdir():
        if path.is_file() and path.name != ".git":
            shutil.copy(path, folder)
    return folder


@pytest.fixture(scope="module")
def installed(tree):
    """The Python of an environment that sees this one's packages, but another `tightship`."""
    if not all(importlib.util.find_spec(name) for name in BUILD_MODULES):
        pytest.skip("there is nothing to build with; `pip install --group build` brings it")
    environment = tree.parent / "environment"
    run(sys.executable, "-m", "venv", "--without-pip", environment)
    python = environment / "bin/python"
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    own = Path(run(python, "-c", code).strip())
    places = [path for path in sys.path if "site-packages" in path]
    (own / "outer.pth").write_text("\n".join([sysconfig.get_path("purelib"), *places]) + "\n")
    scripts = sysconfig.get_path("scripts")
    environ = {
        **os.environ,
        "PATH": f"{scripts}:{os.environ['PATH']}",
        "CCACHE_BASEDIR": str(tree),
        "CCACHE_NOHASHDIR": "1",
    }
    run(
        python, "-m", "pip", "install", "--no-deps", "--no-build-isolation", "--ignore-installed",
        "-Cbuild-dir=build/editable", "-e", ".", cwd=tree,
        env=environ,
    )  # fmt: skip
    return python


@pytest.mark.slow
def test_libraries_lie_beside_the_core_and_sources_where_they_are_edited(installed, tree):
    run(installed, "-c", INSIDE, tree, cwd=tree.parent)


@pytest.mark.slow
def test_assets_load_the_isolated_worker_starts_and_the_stub_is_right(installed, tree):
    run(installed, "-m", "pytest", "-q", "-p", "no:cacheprovider", *TESTS, cwd=tree)


@pytest.mark.slow
def test_the_sdist_has_no_build_folder(installed, tree):
    assert any((tree / "build/editable").iterdir())
    code = "import scikit_build_core.build as b, sys; print(b.build_sdist(sys.argv[1]))"
    name = run(installed, "-c", code, tree.parent, cwd=tree).splitlines()[-1]
    with tarfile.open(tree.parent / name) as archive:
        parts = {member.split("/")[1] for member in archive.getnames()}
    assert {"src", "native", "pyproject.toml"} <= parts
    assert "build" not in parts


def test_what_it_is_built_with_is_stated_alike():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    group = project["dependency-groups"]["build"]
    names = [line.partition(";")[0].rstrip("=<>.0123456789") for line in group]
    required = project["build-system"]["requires"]
    assert names[: len(required)] == [
        line.partition(";")[0].rstrip("=<>.0123456789") for line in required
    ]
    assert [each for each in required if "onednn" in each] == [g for g in group if "onednn" in g]
