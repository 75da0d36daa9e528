"""Files of budgets."""

from tightship.budget import read_budgets


def write(folder, *budgets):
    rows = [f"[[budget]]\n{text}\n" for text in budgets]
    (folder / "tightship.toml").write_text("\n".join(rows))
    return read_budgets(folder)
