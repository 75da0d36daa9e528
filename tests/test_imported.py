"""What a process imports that it may have no use for: modules stay resident."""

import subprocess
import sys
from pathlib import Path

import onnx

import tightship
from tests.models import conv_net

FRAMEWORKS = ("onnx", "onnxruntime", "torch", "jax", "google.protobuf")
UNUSED = (
    *("numpy.random", "hashlib", "json", "csv", "decimal", "statistics", "http"),
    *("tightship.tuning", "tightship.cli", "tightship.backend", "tightship.planner.format"),
    *("tightship.planner.constrained", "tightship.planner.items", "tightship.planner.collision"),
    *("tightship.engine.drawing", "tightship.engine.profile", "tightship.view.report"),
    *("tightship.engine.kernels.elementwise", "tightship.engine.kernels.control"),
    *("tightship.engine.lower.native.elementwise", "tightship.engine.lower.native.recurrent"),
)
"""Not needed to run a network of convolutions."""
OF_ONNX = {"csv", "json"}
"""Of these, what `onnx` imports, which reads the file."""
IMPORTED_MAX = 90
"""Modules of the package itself that importing it may load."""

RUN = """
import numpy
with tightship.load({path!r}) as model:
    model(*[numpy.ones(shape, "float32") for _, shape in model.input_types.values()])
"""


def imported(code: str) -> set[str]:
    """Modules of a process that imports the package and runs the code."""
    script = f"import sys, tightship\n{code}\nprint(*sys.modules)"
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


def test_running_a_prepared_model_imports_nothing_that_lowers(tmp_path: Path) -> None:
    path = tmp_path / "net.tship"
    tightship.prepare(conv_net().SerializeToString(), path)
    found = imported(RUN.format(path=str(path)))
    assert found & set(FRAMEWORKS) == set()
    lowering = {name for name in found if name.startswith("tightship.engine.lower.")}
    assert lowering == {"tightship.engine.lower.affine"}  # what packs a constant knows it


def test_what_is_not_imported_is_there() -> None:
    assert set(UNUSED) <= imported("import " + ", ".join(UNUSED))
