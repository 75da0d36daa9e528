"""Output of a process that runs programs of torch, besides its results: nothing."""

import subprocess
import sys

import pytest

pytest.importorskip("torch", reason="needs the extra `torch`")

MODULE = """
import sys
import numpy as np
import torch
import tightship
module = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
x = torch.ones(2, 8)
"""
COMPILE = """
from tightship.torch_compile import compile_graph
compiled = torch.compile(module, backend=compile_graph)
"""
WAYS = {
    "an exported program": "tightship.load(torch.export.export(module, (x,)))(x.numpy())",
    "an exported program, planned": "tightship.plan(torch.export.export(module, (x,)))",
    "a training step": """
from tightship.frontend.torch import training_graph
training_graph(module, [x], torch.nn.functional.mse_loss, [torch.ones(2, 1)])
""",
    "a compiled module": COMPILE + "with torch.no_grad(): compiled(x)",
    "a compiled module for two shapes": COMPILE + "compiled(x); compiled(torch.ones(3, 8))",
    "a compiled module that is trained": COMPILE + "compiled(x).sum().backward()",
    "a backward path that is never run": COMPILE + "y = compiled(x)",
    "an end by an exit": COMPILE + "compiled(x); sys.exit(0)",
}


FEW = ("an exported program", "a compiled module that is trained")


@pytest.mark.parametrize(
    "way", [pytest.param(way, marks=() if way in FEW else pytest.mark.slow) for way in WAYS]
)
def test_nothing_is_printed_by(way: str) -> None:
    """nanobind reports its objects that are alive when the interpreter has ended."""
    command = [sys.executable, "-W", "always::FutureWarning:copyreg", "-c", MODULE + WAYS[way]]
    finished = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert (finished.stderr, finished.returncode) == ("", 0)
