"""Modules that a process imports without need: they would stay resident."""

import subprocess
import sys
from pathlib import Path

import onnx
import pytest

import tightship
from tests import decoders
from tests.models import conv_net
from tightship.prepared_cache import identity

FRAMEWORKS = ("onnx", "onnxruntime", "torch", "jax", "google.protobuf")
UNUSED = (
    *("numpy.random", "hashlib", "json", "csv", "decimal", "statistics", "http"),
    *("tightship.loading.tuning", "tightship.cli", "tightship.backend", "tightship.planner.format"),
    *("tightship.planner.constrained", "tightship.planner.verify_constraints"),
    *("tightship.engine.plan.drawing", "tightship.engine.run.profile", "tightship.view.report"),
    *("tightship.engine.kernels.elementwise", "tightship.engine.kernels.control"),
    *("tightship.engine.lower.native.elementwise", "tightship.engine.lower.native.recurrent"),
)
"""Modules that are not needed to run a network of convolutions."""
OF_ONNX = {"csv", "json"}
"""Modules among these that `onnx` imports, which reads the file."""
IMPORTED_MAX = 66
"""Modules of the package itself that importing it may load; a folder counts as one."""
PREPARED = {
    "": "brief errors forks late_names memory public_calls quantity",
    "engine": "activations library primitive_cache",
    "engine.arenas": "arena_pool idle_trimmer model_pools pools retention",
    "engine.cache": "bounds program_cache program_eviction",
    "engine.compile": "compiled_model input_shapes shape_specializer",
    "engine.plan": "footprint memory_plan placement",
    "engine.program": "program schedule",
    "engine.run": "arena executable executor limits native_run output_buffer_pool",
    "engine.stored": "bounds container dimensions fields compatibility reconstruct model "
    "read_program shapes",
    "engine.weights": "allocation weight_store",
    "graph": "layout mapped_file texts",
    "loading": "entry preparing restoring",
    "model": "feeds loaded row_blocks session_opener",
    "planner": "plan problem schedule schedule_plan verify",
    "training": "train",
}
"""Modules of each package that a process imports which runs a prepared model, and no others."""
PYTHONS = {"atexit", "copy", "dataclasses", "json", "mmap", "resource", "threading", "zlib"}
"""Modules of Python that the package imports beyond those of NumPy, which imports one more."""

RUN = """
import numpy
with tightship.load({path!r}) as model:
    model(*[numpy.ones(shape, "float32") for _, shape in model.input_types.values()])
"""


def imported(code: str, package: str = "tightship") -> set[str]:
    """Modules of a process that imports the package and runs the code."""
    script = f"import sys, {package}\n{code}\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_importing_it_imports_no_framework() -> None:
    assert imported("") & set(FRAMEWORKS) == set()


def test_importing_it_imports_nothing_that_few_use() -> None:
    assert imported("") & set(UNUSED) == set()


def test_importing_it_imports_a_part_of_it() -> None:
    own = [name for name in imported("") if name.split(".")[0] == "tightship"]
    assert len(own) <= IMPORTED_MAX


def test_running_a_network_imports_what_it_needs(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(conv_net(), path)
    assert imported(RUN.format(path=str(path))) & set(UNUSED) - OF_ONNX == set()


def test_running_a_prepared_model_imports_what_it_needs(tmp_path: Path) -> None:
    path = tmp_path / "net.tship"
    tightship.prepare(conv_net().SerializeToString(), path)
    found = imported(RUN.format(path=str(path)))
    assert found & set(FRAMEWORKS) == set()
    packages = {f"tightship.{package}".rstrip(".") for package in PREPARED}
    own = {
        f"tightship.{package}.{name}".replace("..", ".")
        for package, names in PREPARED.items()
        for name in names.split()
    }
    assert packages | own | {"tightship._core"} == {n for n in found if n.startswith("tightship")}
    others = {name.split(".")[0] for name in found - imported("import numpy", "sys")}
    assert {name for name in others if name[0] != "_"} - {"numpy", "tightship"} == PYTHONS


def test_planning_sessions_imports_neither_a_driver_nor_pictures(tmp_path: Path) -> None:
    """The command is to answer within a second, of which imports take a large part."""
    path = tmp_path / "decoder.onnx"
    path.write_bytes(decoders.llama())
    command = ["plan", str(path), "--context", "64"]
    code = f"from tightship.cli.main import main\nassert main({command!r}) == 0"
    found = imported(code, "tightship.cli")
    parts = {".".join(name.split(".")[1:3]) for name in found if name.startswith("tightship.")}
    assert parts & {"driver.client", "driver.protocol", "driver.types", "loading.tuning"} == set()
    assert parts & {"view.svg", "view.timeline", "view.report"} == set()
    assert {"engine.lower", "loading.session_plan"} <= parts


def test_what_was_prepared_for_a_user_is_found_without_what_reads_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", str(tmp_path / "prepared"))
    path = tmp_path / "net.onnx"
    onnx.save(conv_net(), path)
    monkeypatch.setattr(identity, "SETTLED_NS", -(10**18))  # one written just now is read again
    tightship.load(path, share=True).close()
    found = imported(RUN.replace("{path!r}", repr(str(path)) + ", share=True"))
    assert found & set(FRAMEWORKS) == set()
    assert found & {"tightship.frontend", "tightship.loading.opening"} == set()


def test_a_session_that_is_found_imports_no_shared_arenas(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of the processes that share a decoder has its own copy of what it imports."""
    monkeypatch.setenv("TIGHTSHIP_CACHE_DIR", str(tmp_path / "prepared"))
    path = tmp_path / "decoder.onnx"
    path.write_bytes(decoders.llama())
    monkeypatch.setattr(identity, "SETTLED_NS", -(10**18))
    code = f"with tightship.load({str(path)!r}, share=True) as m: m.session(64).step([1, 2, 3])"
    with tightship.load(path, share=True) as model:
        model.session(64)
    found = imported(code)
    assert "tightship.engine.stored.steps" in found
    assert found & {"tempfile", "onnx", "tightship.resource.shared_arenas"} == set()
    assert found & {"tightship.engine.lower", "tightship.frontend"} == set()


def test_what_is_not_imported_is_there() -> None:
    assert set(UNUSED) <= imported("import " + ", ".join(UNUSED))
