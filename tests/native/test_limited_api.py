"""One binary serves Python 3.12 and later: the bindings call only Python's limited API."""

import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

BIND = Path(__file__).parents[2] / "native" / "bind"
INCLUDE = Path(sysconfig.get_path("include"))
CALLED = re.compile(r"(?<![\w\"])(Py[A-Za-z]*_\w+)\s*\(")
LIMITED = """
#define Py_LIMITED_API 0x030c0000
#include <Python.h>
"""


def undeclared(names: list[str]) -> str:
    """Return what the compiler says of names that the limited API does not declare."""
    uses = "\n".join(f"#ifndef {name}\nauto use_{name} = &{name};\n#endif" for name in names)
    done = subprocess.run(
        ["g++", "-std=c++20", "-fsyntax-only", f"-I{INCLUDE}", "-xc++", "-"],
        input=LIMITED + uses, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stderr


@pytest.fixture(autouse=True)
def _compiler():
    if shutil.which("g++") is None or not (INCLUDE / "Python.h").exists():
        pytest.skip("there is no g++, or no headers of Python")


def test_the_bindings_call_the_limited_api_only():
    sources = (path.read_text() for path in sorted(BIND.glob("*.?pp")))
    names = sorted({name for source in sources for name in CALLED.findall(source)})
    assert len(names) > 10
    assert undeclared(names) == ""


def test_a_call_outside_of_it_is_found():
    assert "PyGILState_Check" in undeclared(["PyErr_Occurred", "PyGILState_Check"])
