"""`docs/reference/operators.md`, made from the operator table and ONNX's node suite.

Run `python -m tests.graph.operators.page` after a change of the table.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from onnx import defs

import tightship
from tests.engine.kernels.node_suite import Case
from tests.frontend.misfits import model_of
from tests.graph.operators.suite import suite
from tightship.errors import TightshipError
from tightship.graph.operators import Category, NoGradient, Operator, rows

PAGE = Path(__file__).parents[3] / "docs/reference/operators.md"
TIERS: Mapping[str, str] = {
    "onednn": "oneDNN",
    "quantized": "oneDNN int8",
    "native": "native",
    "numpy": "NumPy",
    "objects": "objects",
}
BY_LENGTHS = frozenset({"ConstantOfShape", "Range"})
"""Operators that are exact where their first input, which the suite feeds, is a constant."""
IN_PLACE: Mapping[Category, str] = {
    Category.OTHER: "",
    Category.ELEMENTWISE: "any input",
    Category.NORMALIZING: "first input",
    Category.REPLACING: "first input",
    Category.LOSS: "log probabilities",
    Category.RESHAPING: "view",
    Category.CUTTING: "views",
    Category.JOINING: "parts",
}
HEAD = """# Operators

Operators of ONNX that Tightship runs. `python -m tests.graph.operators.page` makes this page from
the operator table (`src/tightship/graph/operators`) and from ONNX's node suite.

- **Versions**: opsets that changed the operator; all of them are accepted.
- **Tiers**: kernels in the order of preference. *Objects* are arrays whose shapes only the run
  knows, sequences and optionals. `onnx.reference` runs what no tier takes, such as an attribute or
  an element type that a kernel lacks.
- **Memory**: a plan is *exact* where a kernel with a known size runs the operator, and *bounded*
  where the operator allocates its results. Where both stand, it depends on the attributes.
- **In place**: inputs that a result may overwrite; a *view* is the input's bytes, and *parts*
  are written where the result has them.
- **Gradient**: whether training differentiates the operator; *zero* stops the way back.

| operator | versions | tiers | memory | in place | gradient |
|---|---|---|---|---|---|
"""


def versions() -> Mapping[str, list[int]]:
    """Return the opsets that changed each operator."""
    found: dict[str, list[int]] = {}
    for schema in defs.get_all_schemas_with_history():
        if not schema.domain:
            found.setdefault(schema.name, []).append(schema.since_version)
    return {name: sorted(each) for name, each in found.items()}


def different(cases: list[Case]) -> list[Case]:
    """Return a case for each set of attributes and element types."""
    found = {}
    for case in cases:
        types = tuple(each.dtype.str for each in case.inputs if each is not None)
        found[*sorted(case.node.attributes), *types] = case
    return list(found.values())


def memory(row: Operator) -> str:
    """Plan the operator's cases of the node suite; without a case its tiers decide."""
    found = {True} if row.name in BY_LENGTHS else set()
    for case in different(suite().get(row.name, [])):
        model, feeds = model_of(case, case.inputs, "constant")
        shapes = {name: array.shape for name, array in feeds.items()}
        try:
            with tightship.load(model.SerializeToString(), shapes=shapes) as loaded:
                found.add(loaded.plan.is_exact)
        except TightshipError:
            continue
    if not found:
        found = {bool(row.onednn or row.native or row.numpy)}
    return " or ".join(
        word for word, each in (("exact", True), ("bounded", False)) if each in found
    )


def gradient(row: Operator) -> str:
    """Return whether there is a gradient, and why not."""
    if isinstance(row.gradient, NoGradient):
        return f"{'zero' if row.gradient.is_zero else 'none'}: {row.gradient.reason}"
    return "yes"


def lines() -> Iterator[str]:
    """Yield a line of the page's table for each operator."""
    since = versions()
    for name, row in sorted(rows().items()):
        tiers = [word for column, word in TIERS.items() if getattr(row, column)]
        yield " | ".join(
            (
                f"| `{name}`",
                ", ".join(map(str, since[name])),
                ", ".join(tiers or ["`onnx.reference`"]),
                memory(row),
                IN_PLACE[row.category],
                f"{gradient(row)} |",
            )
        )


def page() -> str:
    """Return the whole page."""
    return HEAD + "\n".join(lines()) + "\n"


if __name__ == "__main__":
    PAGE.parent.mkdir(exist_ok=True)
    PAGE.write_text(page())
