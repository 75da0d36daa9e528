"""Modules are told from other models without importing a library."""

import subprocess
import sys

import pytest

import tightship
from tightship.errors import InputError
from tightship.frontend.modules import is_module, is_torch_module, refuse_examples


class Program:
    """Looks like a program of `torch.export`, which can be called as well."""

    def __call__(self):
        """Do nothing."""


Program.__name__ = "ExportedProgram"


def test_functions_are_modules_and_programs_are_not():
    assert is_module(lambda x: x)
    assert not is_module(Program())
    assert not is_module("model.onnx")
    assert not is_module(b"")
    assert not is_torch_module(lambda x: x)


def test_examples_are_for_modules():
    refuse_examples("model.onnx", None)
    with pytest.raises(InputError, match="`example_inputs` are for modules"):
        refuse_examples("model.onnx", 3)


def test_a_function_needs_examples():
    with pytest.raises(InputError, match="`square` is a function or module without shapes"):
        tightship.plan(square)


def square(x):
    return x * x


WITHOUT = """
import sys, tightship
sys.modules["jax"] = None
for call in (tightship.plan, tightship.load):
    try:
        call(lambda x: x, 3)
    except tightship.InputError as error:
        print(error)
assert "torch" not in sys.modules
"""


def test_without_jax_the_error_says_what_to_install():
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout.count("pip install 'tightship[jax]'") == 2
