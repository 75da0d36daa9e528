"""The public surface: what it is, that it is documented, and that pages use nothing else.

A public module is `tightship`, or one that has a section on the page of the Python API; its public
names are those of its `__all__`.
"""

import ast
import inspect
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest
from numpy.typing import NDArray

import tightship
from tightship.deprecated import RENAMED
from tightship.graph.backward import DOMAIN

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
PAGE = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
ENTRIES = re.findall(r"^::: (\S+)$(?!\n    options)", PAGE, re.MULTILINE)
"""Modules and names of the page, in its order. Those with options are names of a module before them
that the site would take for modules of the same name."""
CONTENTS = ast.parse(Path(tightship.__file__).read_text())
STUB = {
    node.name: node
    for node in ast.parse((SOURCE / "tightship/_core.pyi").read_text(encoding="utf-8")).body
    if isinstance(node, ast.ClassDef | ast.FunctionDef)
}
FRAMEWORKS = {"tightship.torch_compile": "torch"}


def file_of(module: str) -> Path | None:
    path = SOURCE / module.replace(".", "/")
    files = (path.with_suffix(".py"), path / "__init__.py")
    return next((each for each in files if each.is_file()), None)


def exported(module: str) -> list[str]:
    """Names of `__all__`, read from the source, as a framework may be missing."""
    file = file_of(module)
    assert file is not None
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            names: list[str] = ast.literal_eval(node.value)
            return names
    raise AssertionError(f"`{module}` is public and has no `__all__`")


ROOT_NAMES = exported("tightship")
MODULES = [
    "tightship",
    *(name for name in ENTRIES if file_of(name) and name.split(".")[-1] not in ROOT_NAMES),
]
PUBLIC = {f"{module}.{name}" for module in MODULES for name in exported(module)}
CORE = {name.rpartition(".")[2] for name in PUBLIC}
PACKAGES = {".".join(each.split(".")[:count]) for each in MODULES for count in (1, 2, 3)}
OLD = {f"{row.where}.{row.old}" for row in RENAMED if row.kind == "name"}


def found(name: str) -> object:
    module, _, last = name.rpartition(".")
    if module in FRAMEWORKS:
        pytest.importorskip(FRAMEWORKS[module])
    thing: object = getattr(import_module(module), last)
    return thing


def test_the_package_is_a_contents_page_without_logic() -> None:
    docstring, *body = CONTENTS.body
    assert isinstance(docstring, ast.Expr)
    *names, late, version, exports = body
    assert {type(node) for node in names} == {ast.ImportFrom}
    assert isinstance(late, ast.If)
    assert ast.unparse(late.test) == "TYPE_CHECKING"
    assert [ast.unparse(node).split(" ")[0] for node in (version, exports)] == [
        "__version__",
        "__all__",
    ]


def test_the_page_has_the_names_of_the_package_in_their_order() -> None:
    listed = [name.removeprefix("tightship.") for name in ENTRIES]
    shown = [name for name in ROOT_NAMES if not issubclass_of_error(name)]
    assert listed[: len(shown)] == shown
    assert {name for name in ROOT_NAMES if issubclass_of_error(name)} <= set(
        exported("tightship.errors")
    )


def issubclass_of_error(name: str) -> bool:
    thing = getattr(tightship, name)
    return inspect.isclass(thing) and issubclass(thing, Exception)


def test_there_are_few_names() -> None:
    """Each has a reason to be learned first; the others are in public modules."""
    assert len(ROOT_NAMES) <= 34
    assert len(set(ROOT_NAMES)) == len(ROOT_NAMES)


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_public_name_is_there_and_documented(name: str) -> None:
    thing = found(name)
    module = name.rpartition(".")[0]
    assert name in OLD or not inspect.ismodule(thing) or module == "tightship.plug"
    if inspect.isclass(thing):
        assert thing.__doc__
        assert list(undocumented(thing)) == []
    elif inspect.isroutine(thing):
        assert list(gaps(name, thing, thing.__doc__)) == []


def undocumented(cls: type) -> Iterator[str]:
    """Methods and properties without a docstring, or with one that lacks a part."""
    for key, member in vars(cls).items():
        if key.startswith("_") or cls.__module__ == "tightship._core":
            continue
        function = getattr(member, "fget", getattr(member, "__func__", member))
        if inspect.isfunction(function):
            yield from gaps(f"{cls.__name__}.{key}", function, inspect.getdoc(getattr(cls, key)))


def gaps(name: str, function: Callable[..., object], text: str | None) -> Iterator[str]:
    """Parts that a docstring lacks: several parameters, exceptions that the function raises."""
    if not text:
        yield f"{name} has no docstring"
        return
    inner = inspect.unwrap(function)
    if not inspect.isfunction(inner):
        return
    parameters = inspect.signature(inner).parameters.keys() - {"self", "cls", "_"}
    refers = re.search(r"arguments[^.]*\bas for\b", text)
    for each in () if refers else sorted(parameters):
        if len(parameters) > 1 and not re.search(rf"\b{each}\b", text):
            yield f"{name} does not say what `{each}` is"
    raised = {
        ast.unparse(node.exc).partition("(")[0]
        for node in ast.walk(ast.parse(dedent(inspect.getsource(inner))))
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)
    }
    for error in sorted(each for each in raised if each.endswith("Error") and each not in text):
        if error not in ("TypeError", "AttributeError"):
            yield f"{name} raises {error} and does not say so"


HANDLES = {
    "tightship.cluster.stage_origin.Origin": "of a `Stage`, for `Stage.prepare` and `pipeline`",
    "tightship._core.NativeContext": "of `BoundRun.alone`, for the native connections of a driver",
    "tightship.engine.weights.weight_store.PackedCopy": "a reference keeps weights in memory",
    "tightship.graph.few_layers.FewLayers": "of a `Graph` with few of its layers, for lowering",
    "tightship.graph.open_graphs.SymbolicGraph": "of an exported program, for the engine",
    "tightship.text.schema_guide.Followed": "of `Tokenizer.follow`, for an answer",
    "tightship.resource.slot_file.Slot": "of `SharedArenaPool.take`, for `give`",
}
"""Classes that one public call returns and another takes; callers need nothing of their inside."""


def annotations(cls: object) -> Iterator[ast.expr]:
    """Annotations of a function, or of public fields, methods and properties of a class.

    Constructors do not count, because most objects come from calls; fields of data do.
    """
    assert isinstance(cls, type) or inspect.isfunction(cls)
    yield from annotated(ast.parse(dedent(inspect.getsource(cls))).body[0])


def annotated(node: ast.stmt) -> Iterator[ast.expr]:
    """Return what `annotations` does, of a parsed function or class."""
    for each in node.body if isinstance(node, ast.ClassDef) else [node]:
        if isinstance(each, ast.AnnAssign) and not ast.unparse(each.target).startswith("_"):
            yield each.annotation
        elif isinstance(each, ast.FunctionDef) and not each.name.startswith("_"):
            given = [*each.args.posonlyargs, *each.args.args, *each.args.kwonlyargs]
            yield from (arg.annotation for arg in given if arg.annotation)
            yield from [each.returns] if each.returns else []


def named_types(module: str, annotation: ast.expr) -> Iterator[tuple[str, object]]:
    """Classes and aliases of the package that an annotation in a module names.

    Aliases of NumPy's array types do not count: pages show what they stand for.
    """
    tree = ast.parse(Path(sys.modules[module].__file__ or "").read_text(encoding="utf-8"))
    sources = {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    for node in ast.walk(annotation):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from named_types(module, ast.parse(node.value, mode="eval").body)
        elif isinstance(node, ast.Name):
            where, name = sources.get(node.id, (module, node.id))
            if where.startswith("tightship"):
                thing = getattr(import_module(where), name, None)
                # From Python 3.12 on, NDArray is an alias of the language, and the origin itself.
                is_array = getattr(thing, "__origin__", None) in (np.ndarray, NDArray)
                if not (thing is None or inspect.ismodule(thing) or is_array):
                    yield f"{where}.{name}", thing


def in_the_stub(name: str) -> Iterator[str]:
    """Classes of the core that the signatures of a function or class of the core name."""
    node = STUB[name]
    bases = node.bases if isinstance(node, ast.ClassDef) else []
    for annotation in (*annotated(node), *bases):
        for each in ast.walk(annotation):
            if isinstance(each, ast.Name) and each.id in STUB:
                yield each.id


@cache
def public_types() -> list[object]:
    """All public names; a list, as some aliases have no hash."""
    is_there = find_spec("torch") is not None
    return [found(each) for each in PUBLIC if is_there or each.split(".")[1] != "torch_compile"]


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_public_signatures_name_public_types(name: str) -> None:
    thing = inspect.unwrap(found(name)) if callable(found(name)) else found(name)
    module = getattr(thing, "__module__", None) or ""
    if module == "tightship._core":
        assert [each for each in in_the_stub(name.rpartition(".")[2]) if each not in CORE] == []
    if not (inspect.isclass(thing) or inspect.isfunction(thing)) or module == "tightship._core":
        return
    public = public_types()
    private = {
        each
        for annotation in annotations(thing)
        for each, type_ in named_types(module, annotation)
        if type_ not in public
    }
    assert sorted(private - HANDLES.keys()) == []


def test_every_error_is_a_tightship_error() -> None:
    errors = [getattr(tightship.errors, name) for name in exported("tightship.errors")]
    assert len(errors) > 10
    assert all(issubclass(error, tightship.TightshipError) for error in errors)


def test_its_version_is_that_of_the_project() -> None:
    project = Path(__file__).parents[1] / "pyproject.toml"
    assert f'version = "{tightship.__version__}"' in project.read_text().splitlines()


def test_modules_and_late_names_come_with_the_package_alone() -> None:
    """Each is imported in a process of its own, where no test has imported it."""
    names = [*(f"tightship.{name}" for name in ROOT_NAMES), *MODULES]
    known = [name for name in names if name not in FRAMEWORKS and "cupy" not in name]
    code = "import tightship\n" + "\n".join(known)
    subprocess.run([sys.executable, "-c", code], check=True)


PAGES = [
    ROOT / "README.md",
    *(ROOT / "docs").rglob("*.md"),
    *(path for path in (ROOT / "examples").rglob("*") if path.suffix in {".py", ".md"}),
]
IMPORT = re.compile(r"^\s*from (tightship[\w.]*) import \(?([\w, ]+)", re.MULTILINE)
PATH = re.compile(r"(?<![\w./#-])tightship(?!\.(?:toml|lock)\b)(?:\.\w+)+")
NO_PAGES = {"modules.md", "deprecated.md"}
"""Lists of all modules, and of old spellings."""


def private_names(text: str) -> Iterator[str]:
    """Names of the package in a text that are not public."""
    paths = set(PATH.findall(text))
    for module, names in IMPORT.findall(text):
        paths.update(f"{module}.{name.strip()}" for name in names.split(",") if name.strip())
    for path in sorted(paths):
        if not is_public(path):
            yield path


def is_public(path: str) -> bool:
    """Whether a path is a public module or name, or an attribute of one."""
    parts = path.split(".")
    heads = [".".join(parts[:count]) for count in range(2, len(parts) + 1)]
    if parts[-1].startswith("__"):
        return True
    return path in PACKAGES | {DOMAIN} or any(head in PUBLIC for head in heads)


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_pages_and_examples_use_public_names_only(page: Path) -> None:
    if page.name not in NO_PAGES:
        assert list(private_names(page.read_text(encoding="utf-8"))) == []


def test_private_names_are_seen() -> None:
    text = (
        "from tightship.engine.run import executor\nfrom tightship.driver import Client, Server\n"
        "`tightship._core` `tightship.training.train.train_joint` `tightship.load` tightship/cli\n"
        "    from tightship.resource.virtual import HostStream, nothing"
    )
    assert list(private_names(text)) == [
        "tightship._core",
        "tightship.driver.Server",
        "tightship.engine.run",
        "tightship.engine.run.executor",
        "tightship.resource.virtual.nothing",
        "tightship.training.train.train_joint",
    ]
