import json

import pytest

from tests.models import filled, mlp, parse
from tests.zoo.net import Net
from tightship.cli import main


@pytest.fixture
def model_file(tmp_path):
    path = tmp_path / "mlp.onnx"
    path.write_bytes(mlp().SerializeToString())
    return path


def run(capsys, *arguments):
    code = main(["cost", *(str(argument) for argument in arguments)])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_cost_prints_the_table_of_a_batch(capsys, model_file):
    code, out, _ = run(capsys, model_file, "--batch", "8")
    assert code == 0
    assert "in graph bytes" in out
    assert "inference, blocks" in out
    _, one, _ = run(capsys, model_file, "--shape", "x=8x16")
    assert one == out


def test_cost_in_json_scales_with_the_batch(capsys, model_file):
    naive = []
    for batch in (4, 8):
        _, out, _ = run(capsys, model_file, "--batch", str(batch), "--json")
        naive.append(json.loads(out)["inference"][0]["naive_bytes"])
    assert naive[1] == 2 * naive[0]


def test_the_largest_batch_within_a_limit_fits_and_the_next_does_not(capsys, model_file):
    _, out, _ = run(capsys, model_file, "--batch", "1", "--max-memory", "1MiB", "--json")
    largest = json.loads(out)["largest_batch"]
    limit = ("--max-memory", "1MiB")
    assert run(capsys, model_file, "--batch", largest, *limit)[0] == 0
    code, out, _ = run(capsys, model_file, "--batch", largest + 1, *limit)
    assert code == 1
    assert f"does not fit 1.00 MiB; largest batch: {largest:,}" in out


def test_the_largest_batch_is_said_without_one_of_its_own(capsys, model_file):
    _, out, _ = run(capsys, model_file, "--max-memory", "1MiB", "--json")
    values = json.loads(out)
    _, out, _ = run(capsys, model_file, "--batch", "1", "--max-memory", "1MiB", "--json")
    assert values == json.loads(out)
    assert values["largest_batch"] > 1


@pytest.mark.parametrize("batch", [2**44 + 1, 2**62, 10**30])
def test_a_batch_beyond_any_machine_is_refused(capsys, model_file, batch):
    code, _, err = run(capsys, model_file, "--batch", batch)
    assert code == 2
    assert "elements" in err


def test_a_batch_that_the_file_and_a_node_fix_is_said_to_be(capsys, tmp_path):
    net = Net()
    net.output(net("Softmax", net.normal("x", 2, 4), axis=0))
    path = tmp_path / "fixed.onnx"
    path.write_bytes(net.case().model)
    assert run(capsys, path, "--batch", "8")[0] == 2
    code, out, _ = run(capsys, path, "--max-memory", "1GiB")
    assert code == 0
    assert "its batch is fixed in the file" in out


@pytest.mark.parametrize("suffix", [".svg", ".html"])
def test_a_picture_is_drawn(capsys, model_file, tmp_path, suffix):
    picture = tmp_path / f"cost{suffix}"
    assert run(capsys, model_file, "--batch", "8", "-o", picture)[0] == 0
    assert "graph bytes" in picture.read_text()


def test_an_unknown_form_is_refused_before_anything_is_read(capsys, tmp_path):
    code, _, err = run(capsys, tmp_path / "none.onnx", "-o", "cost.png")
    assert code == 2
    assert "`cost.png`" in err


def test_steps_that_run_at_once_are_priced_where_asked(capsys, model_file):
    _, without, _ = run(capsys, model_file, "--batch", "2")
    code, out, _ = run(capsys, model_file, "--batch", "2", "--parallel")
    assert code == 0
    assert out.startswith(without)
    assert "as soon as they can" in out[len(without) :]
    _, out, _ = run(capsys, model_file, "--batch", "2", "--parallel", "--json")
    free = [row for row in json.loads(out)["parallel"] if "one after" not in row["plan"]]
    assert [row["added_edges"] for row in free] == [0] * len(free)


def test_a_training_step_is_squeezed_where_asked(capsys, model_file):
    _, without, _ = run(capsys, model_file, "--batch", "64")
    code, out, _ = run(capsys, model_file, "--batch", "64", "--squeeze", "100%")
    assert code == 0
    assert out.startswith(without)
    assert "in a better order" in out[len(without) :]
    _, out, _ = run(capsys, model_file, "--batch", "64", "--squeeze", "--json")
    values = json.loads(out)["squeeze"]
    assert values["squeezed_bytes"] <= values["reordered_bytes"] <= values["planned_bytes"]
    assert values["budget_bytes"] is None
    assert 0 <= values["least_operations"] <= values["added_operations"]


def test_a_budget_that_is_not_met_is_proved_or_not_found(capsys, tmp_path):
    path = tmp_path / "chain.onnx"
    path.write_bytes(products(16))
    code, out, _ = run(capsys, path, "--squeeze", "--json")
    found = json.loads(out)["squeeze"]
    assert (code, found["status"]) == (0, "feasible")
    least, smallest = found["least_bytes"], found["squeezed_bytes"]
    assert 0 < least < smallest
    expected = [
        (least - 1, 1, "infeasible", "cannot be reached"),
        (least, 3, "budget", "not found"),
        (smallest, 0, "feasible", None),
    ]
    for budget, wanted, status, words in expected:
        code, out, _ = run(capsys, path, "--squeeze", budget, "--json")
        assert (code, json.loads(out)["squeeze"]["status"]) == (wanted, status)
        code, out, _ = run(capsys, path, "--squeeze", budget)
        assert code == wanted
        assert ("cannot be reached" in out, "not found" in out) == (
            words == "cannot be reached",
            words == "not found",
        )
        assert ("these steps take at least" in out) == (words is not None)
    code, _, _ = run(capsys, path, "--squeeze", least, "--max-memory", "1KiB")
    assert code == 1


def products(count):
    """A chain of products and Tanh, whose every activation its gradients read."""
    lines = [f"m{i} = MatMul (t{i}, w{i}) t{i + 1} = Tanh (m{i})" for i in range(count)]
    text = f"net (float[64, 64] t0) => (float[64, 64] t{count}) {{ {' '.join(lines)} }}"
    weights = {f"w{i}": filled(64, 64) for i in range(count)}
    return parse(text, **weights).SerializeToString()


@pytest.mark.parametrize("budget", ["0%", "half%", "101%", "a lot"])
def test_a_budget_that_is_none_is_refused(capsys, model_file, budget):
    code, _, err = run(capsys, model_file, "--batch", "2", "--squeeze", budget)
    assert code == 2
    assert f"`{budget}`" in err or f"{budget!r}" in err
