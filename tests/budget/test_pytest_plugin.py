"""The plugin of pytest, in sessions of their own."""

import subprocess
import sys

import pytest

from tests.small_models import dense


@pytest.fixture
def session(tmp_path):
    """A function that runs tests in a folder with a model, and returns exit code and output."""
    (tmp_path / "model.onnx").write_bytes(dense()[0])

    def run(code, *arguments):
        (tmp_path / "test_it.py").write_text(code)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
        done = subprocess.run(
            [*command, "-p", "no:benchmark", "--strict-markers", *arguments],
            cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    return run


MARKED = """
import pytest

@pytest.mark.tightship_budget("model.onnx", "64MiB", shapes={"batch": 8})
def test_small(): pass

@pytest.mark.tightship_budget("model.onnx", "40MiB", shapes={"batch": 65536})
def test_large():
    raise AssertionError("is not run")
"""


def test_a_test_fails_whose_model_exceeds_its_budget(session):
    code, out = session(MARKED)
    assert code == 1
    assert "1 failed, 1 passed" in out
    assert "`model.onnx batch=65536` needs 5" in out
    assert "more than its budget of 40.0 MiB (41,943,040 bytes)" in out
    assert "The largest at the peak: r 16.0 MiB." in out
    assert "is not run" not in out


BUILT = """
import onnx
from onnx import helper, TensorProto
import pytest

def built(size):
    nodes = [helper.make_node("Sin", ["x"], ["h"]), helper.make_node("Cos", ["h"], ["y"])]
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [size])
    graph = helper.make_graph(nodes, "g", [value("x")], [value("y")])
    opsets = [helper.make_opsetid("", 20)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)

def test_built(tightship_budget):
    model = built(1024)
    needed = tightship_budget(model, "64MiB")
    assert needed == tightship_budget(model.SerializeToString(), needed)

def test_too_large(tightship_budget):
    tightship_budget(built(1 << 25), "64MiB")

def test_files(tightship_budget):
    tightship_budget("model.onnx", "64MiB", shapes={"batch": 1}, threads=2, isa="avx2")
"""


def test_models_that_a_test_builds_are_held_to_a_budget(session):
    code, out = session(BUILT)
    assert code == 1
    assert "1 failed, 2 passed" in out
    assert "`the model` needs " in out
    assert "more than its budget of 64.0 MiB" in out


MISTAKES = {
    '("no.onnx", "64MiB")': "No file of a model exists at `",
    '("model.onnx", "much")': "`much` is not an amount of memory",
    '("model.onnx", "64MiB")': "`x` [batch, 32]",
    '("model.onnx", "64MiB", shapes={"batch": 8}, isa="sse")': "not an instruction set",
    '("model.onnx")': "tightship_budget: ",
    '("model.onnx", "64MiB", shape=3)': "unexpected keyword argument 'shape'",
}


def test_mistakes_fail_with_a_message(session):
    marks = [f"@pytest.mark.tightship_budget{mark}\ndef test_{i}(): pass\n"
             for i, mark in enumerate(MISTAKES)]  # fmt: skip
    code, out = session("import pytest\n" + "".join(marks))
    assert (code, f"{len(MISTAKES)} failed" in out) == (1, True)
    assert [said for said in MISTAKES.values() if said not in out] == []
    assert "INTERNALERROR" not in out


UNUSED = """
import subprocess, sys

def test_nothing_is_imported():
    assert "tightship_pytest" in sys.modules
    tops = {name.split(".")[0] for name in sys.modules}
    assert tops.isdisjoint({"tightship", "numpy", "onnx"})
"""


def test_a_session_without_a_budget_imports_nothing_of_the_package(session):
    code, out = session(UNUSED, "-p", "no:jaxtyping")  # a plugin that imports NumPy
    assert (code, "1 passed" in out) == (0, True), out


def test_the_instruction_set_is_a_setting(session, tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\ntightship_isa = sse\n")
    code, out = session(MARKED)
    assert code == 1
    assert "`sse` is not an instruction set to plan for" in out
    assert "tightship_budget(model, limit" in session("", "--markers")[1]


MODULES = """
import torch

def net(device):
    with torch.device(device):
        return torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.ReLU(),
                                   torch.nn.Linear(512, 8))

def test_module(tightship_budget):
    x = torch.zeros(2, 256)
    needed = tightship_budget(net("cpu"), "64MiB", example_inputs=x)
    assert needed == tightship_budget(net("meta"), "64MiB", example_inputs=x)
    assert needed == tightship_budget(net("meta"), "64MiB", example_inputs=x[:1],
                                      shapes={"input": ("batch", 256), "batch": 2})

def test_too_large(tightship_budget):
    with torch.device("meta"):
        module = torch.nn.Linear(1 << 15, 1 << 15)
    tightship_budget(module, "1GiB", example_inputs=torch.zeros(1, 1 << 15))

def test_without_examples(tightship_budget):
    tightship_budget(net("cpu"), "1GiB")
"""


def test_modules_are_held_to_a_budget(session):
    pytest.importorskip("torch", reason="`.ci/frontends` has torch")
    code, out = session(MODULES)
    assert code == 1
    assert "2 failed, 1 passed" in out
    assert "`Linear` needs 4.0" in out
    assert "give `example_inputs`" in out
