"""Packages of the extra."""

import subprocess
import sys

import pytest

from tightship.errors import InputError
from tightship.text.text_extra import imported


def test_a_missing_package_is_named_with_its_extra() -> None:
    with pytest.raises(InputError, match=r"package `not_there`; pip install 'tightship\[text\]'"):
        imported("not_there")


def test_texts_import_them_when_one_comes() -> None:
    code = "import sys, tightship.text; print(*sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {"tokenizers", "jinja2", "gguf", "onnx"} & set(found.stdout.split()) == set()
