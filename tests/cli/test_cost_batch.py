"""`tightship cost --batch` changes a batch that the file fixes, where each node lets it."""

import json
from pathlib import Path

import pytest

from tests.zoo.net import Net
from tightship.cli import main


@pytest.fixture
def fixed(tmp_path: Path) -> Path:
    """A model whose file says two samples, and whose Reshape says so too."""
    net = Net()
    x = net("Reshape", net.normal("x", 2, 4, 8), net.ints(2, 32))
    net.output(net("Relu", net("Gemm", x, net.weight(16, 32), net.bias(16), transB=1)))
    path = tmp_path / "fixed.onnx"
    path.write_bytes(net.case().model)
    return path


def cost(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, int]:
    """Run the command, and return what it prints as JSON."""
    assert main(["cost", *arguments, "--forward-only", "--json"]) == 0
    found: dict[str, int] = json.loads(capsys.readouterr().out)
    return found


def test_bytes_grow_with_the_batch(fixed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    two, ten = (cost(capsys, str(fixed), "--batch", count) for count in ("2", "10"))
    assert two == cost(capsys, str(fixed))
    assert ten["inputs_bytes"] == 5 * two["inputs_bytes"]


def test_a_limit_says_the_largest_batch(fixed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = cost(capsys, str(fixed), "--max-memory", "1MiB")
    largest = found["largest_batch"]
    assert largest > 100
    assert cost(capsys, str(fixed), "--batch", str(largest), "--max-memory", "1MiB")
    assert main(["cost", str(fixed), "--batch", str(largest + 1), "--max-memory", "1MiB"]) == 1


def test_the_node_that_fixes_the_batch_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    net = Net()
    net.output(net("Softmax", net.normal("x", 2, 4), axis=0))
    path = tmp_path / "mixed.onnx"
    path.write_bytes(net.case().model)
    assert main(["cost", str(path), "--batch", "3"]) == 2
    error = capsys.readouterr().err
    assert "Node `Softmax_0` (Softmax) normalizes along the batch, axis 0." in error
    assert "Export the model with an open batch." in error
    assert cost(capsys, str(path), "--max-memory", "1MiB")["largest_batch"] is None
