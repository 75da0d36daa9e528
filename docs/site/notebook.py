"""Runs the tutorial notebook without a server, and writes what its cells print and show into it.

python -m docs.site.notebook
"""

import ast
import contextlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NOTEBOOK = Path(__file__).parents[1] / "tutorial" / "notebook.ipynb"

Cell = dict[str, Any]


def read() -> dict[str, Any]:
    """Return the notebook."""
    values: dict[str, Any] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    return values


def run(cells: list[Cell]) -> Iterator[tuple[Cell, str, object]]:
    """Run the code cells in order, in one namespace.

    Yields:
        Each code cell, what it printed, and the value of its last line, or None.
    """
    names: dict[str, object] = {"__name__": "notebook"}
    for number, cell in enumerate(cells):
        if cell["cell_type"] != "code":
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            value = _run(ast.parse("".join(cell["source"])), f"cell {number}", names)
        yield cell, printed.getvalue(), value


def _run(code: ast.Module, name: str, names: dict[str, object]) -> object:
    """Run a cell, and return the value of an expression that ends it."""
    last = code.body[-1] if code.body and isinstance(code.body[-1], ast.Expr) else None
    body = code.body[:-1] if last is not None else code.body
    exec(compile(ast.Module(body, []), name, "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), name, "eval"), names)


def outputs(printed: str, value: object, count: int) -> list[Cell]:
    """Return the outputs of a cell in the notebook's form."""
    found: list[Cell] = []
    if printed:
        found.append({"name": "stdout", "output_type": "stream", "text": _lines(printed)})
    if value is not None:
        data = {"text/plain": _lines(repr(value))}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = _lines(value._repr_html_())
        found.append({"data": data, "execution_count": count, "metadata": {},
                      "output_type": "execute_result"})  # fmt: skip
    return found


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def main() -> None:
    """Run the notebook and write its outputs into it."""
    notebook = read()
    for count, (cell, printed, value) in enumerate(run(notebook["cells"]), start=1):
        cell["outputs"] = outputs(printed, value, count)
        cell["execution_count"] = count
    text = json.dumps(notebook, indent=1, ensure_ascii=False)
    NOTEBOOK.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
