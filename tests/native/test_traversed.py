"""Every bound class that keeps objects of Python's shows them to the garbage collector."""

import ast
from pathlib import Path

import pytest

import tightship
from tightship import _core

STUB = Path(tightship.__file__).parent / "_core.pyi"
TRACKED = 1 << 14
"""The flag of a type whose objects the garbage collector looks at."""

ABSTRACT = {"PagedDevice", "Stream", "Callable", "object"}
"""Types that may refer to anything without being a class that does."""

ROOTS = {"MemoryResource", "PoolManager", *ABSTRACT}
"""Types that may refer to anything, in annotations."""

KEEPING_METHODS = {"obtain", "create_resource", "allocate_block"}
"""Methods whose result keeps the object alive."""


def named(annotation: ast.expr | None) -> set[str]:
    if annotation is None:
        return set()
    names = {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)}
    return names | {node.attr for node in ast.walk(annotation) if isinstance(node, ast.Attribute)}


def functions(node: ast.ClassDef) -> list[ast.FunctionDef]:
    return [each for each in node.body if isinstance(each, ast.FunctionDef)]


def given(function: ast.FunctionDef) -> set[str]:
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return set().union(*(named(each.annotation) for each in arguments))


def keepers() -> set[str]:
    """Classes whose constructor is given what may refer back, or that are the result of such."""
    classes = [each for each in ast.parse(STUB.read_text()).body if isinstance(each, ast.ClassDef)]
    found, count = set(ROOTS), 0
    while count != len(found):
        count = len(found)
        for node in classes:
            if set().union(*map(named, node.bases)) & (found - ROOTS):
                found.add(node.name)
            for function in functions(node):
                if function.name == "__init__" and given(function) & found:
                    found.add(node.name)
                if function.name in KEEPING_METHODS and node.name in found:
                    found |= named(function.returns)
    return found - ABSTRACT


@pytest.mark.parametrize("name", sorted(keepers()))
def test_a_class_that_keeps_objects_is_tracked(name):
    assert getattr(_core, name).__flags__ & TRACKED


def test_the_list_is_not_empty():
    known = {"NumpyScope", "MemoryManager", "PythonStream", "Block", "NativeStepwise"}
    assert known <= keepers()
