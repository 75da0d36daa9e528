from tests.difference.pictures import chain, plan, step, tensor, weight
from tightship.difference import compare_plans
from tightship.difference.tables import signed


def long():
    """A difference with long names, wide characters and a bar, and more changes than are shown."""
    names = [f"/encoder/layer.{i}/{'attention/' * 9}|値*{i}" for i in range(20)]
    old, new = (
        plan([step(f"{n}/Conv", "Conv") for n in names[:1]],
             [tensor(n, size + i, 4096 * i, 0, 1) for i, n in enumerate(names)],
             weights=[weight(f"w{i}", size * 3) for i in range(3)], title="model|1.onnx")
        for size in (64, 128)
    )  # fmt: skip
    return compare_plans(old, new)


def test_lines_fit_a_terminal():
    lines = long().table().splitlines()
    assert max(map(len, lines)) <= 100
    assert any(line.startswith("  … and ") for line in lines)


def test_amounts_have_signs():
    assert [signed(size) for size in (0, 1, -2048)] == ["0 B", "+1 B", "-2.00 KiB"]


def test_markdown_has_cells_that_show_names_as_they_are():
    text = long().markdown()
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert "model\\|1.onnx" in text
    counts = {line.replace("\\|", "").count("|") for line in rows}
    assert counts == {6, 5, 3}


def test_html_escapes_names():
    old = chain(64, 128, names=["<b>", "c"])
    new = chain(64, 256, names=["<b>", "<i>"])
    assert "<i>" not in compare_plans(old, new)._repr_html_()
