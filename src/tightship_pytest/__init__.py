"""A plugin of pytest: tests fail if the plan of a model takes more than a budget.

    @pytest.mark.tightship_budget("model.onnx", "512MiB", shapes={"batch": 1})
    def test_the_model_is_small(): ...

    def test_what_is_built_here_is_small(tightship_budget):
        tightship_budget(model, "64MiB")

This is a package of its own, because importing a module of `tightship` imports that package first,
and a session without a budget should not.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tightship.budget import IsaPlanner, Training

MARK = "tightship_budget"
ISA = "tightship_isa"
_PLANNERS = pytest.StashKey["dict[str, IsaPlanner]"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the setting of the instruction set."""
    parser.addini(
        ISA, "instruction set that budgets are planned for (default avx2)", default="avx2"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark."""
    config.addinivalue_line(
        "markers",
        f"{MARK}(model, limit, shapes=None, threads=1, dynamic=None, isa=None, loss=None, "
        "optimizer=None): fail if the plan of a model, or of its training step, takes more, as "
        '("model.onnx", "512MiB", shapes={"batch": 1}).',
    )


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the processes that planned."""
    for planner in config.stash.get(_PLANNERS, {}).values():
        planner.close()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> None:
    """Hold the models of a test's marks to their budgets before it runs."""
    for mark in item.iter_markers(MARK):
        try:
            _marked(item, *mark.args, **mark.kwargs)
        except TypeError as error:
            where = f"@pytest.mark.{MARK}"
            pytest.fail(f'{where}: {error}; write {where}("model.onnx", "512MiB").', pytrace=False)


@pytest.fixture
def tightship_budget(request: pytest.FixtureRequest) -> Callable[..., int]:
    """Return a function that fails the test if a model takes more than a budget.

    It takes a model (a path, the bytes of an ONNX file, an `onnx.ModelProto`, or a module of torch
    or jax with `example_inputs`), a limit such as `"64MiB"`, and `shapes`, `threads`, `dynamic`
    and `isa` by keyword; it returns the bytes that the model needs. With an `optimizer` these are
    of a training step, which `loss`, `example_labels`, `classes_axis`, `accumulate`, `recompute`
    and `precision` describe as for `tightship.plan`.
    """

    def check(model: object, limit: str | int, **options: Any) -> int:  # noqa: ANN401
        """Plan the model and compare it with the limit; return the bytes that it needs."""
        __tracebackhide__ = True
        is_file = isinstance(model, str | Path)
        found = _file(request.node, Path(model)) if is_file else model  # type: ignore[arg-type]
        return _check(request.config, found, _Asked(limit, **options))

    return check


@dataclass(frozen=True)
class _Asked:
    """A limit, and what the plan that it is compared with depends on."""

    limit: str | int
    shapes: dict[str, Any] | None = None
    threads: int = 1
    dynamic: str | int | None = None
    isa: str | None = None
    example_inputs: object = None
    loss: Any = None
    optimizer: object = None
    example_labels: object = None
    classes_axis: int | None = None
    accumulate: int = 1
    recompute: float | None = None
    precision: Any = "float32"

    def training(self) -> Training | None:
        """Return the training step; None if the budget is for inference."""
        from tightship.budget.training import Training, optimizer_of
        from tightship.errors import InputError

        if self.optimizer is None:
            if self.loss is not None:
                raise InputError('`loss` is for a training step; give `optimizer="adam"` too.')
            return None
        return Training(
            self.loss,
            optimizer_of(self.optimizer),
            self.example_labels,
            self.classes_axis,
            self.accumulate,
            self.recompute,
            self.precision,
        )


def _marked(
    item: pytest.Item,
    model: str | Path,
    limit: str | int,
    **options: Any,  # noqa: ANN401
) -> None:
    _check(item.config, _file(item, Path(model)), _Asked(limit, **options))


def _file(item: pytest.Item, model: Path) -> Path:
    """Return a model's file: beside the test, or else in the root folder of the tests."""
    places = [item.path.parent / model, item.config.rootpath / model]
    for place in places:
        if place.is_file():
            return place
    listed = " or ".join(f"`{place}`" for place in dict.fromkeys(places))
    pytest.fail(
        f"No file of a model exists at {listed}; give its path from the test's folder.",
        pytrace=False,
    )


def _check(config: pytest.Config, model: object, asked: _Asked) -> int:
    from tightship.budget.budget import Budget, BudgetResult
    from tightship.errors import TightshipError
    from tightship.quantity import parse_bytes

    __tracebackhide__ = True
    try:
        limit = parse_bytes(asked.limit, "limit")
        dynamic = 0 if asked.dynamic is None else parse_bytes(asked.dynamic, "dynamic")
        name = model if isinstance(model, Path) else Path(_name(model))
        training, shapes = asked.training(), asked.shapes
        budget = Budget(name, limit, dict(shapes or {}), asked.threads, dynamic, "", training)
        planner = _planner(config, asked.isa or str(config.getini(ISA)))
        planned = planner.plan(model, shapes, asked.threads, asked.example_inputs, training)
        result = BudgetResult(budget, planned)
    except TightshipError as error:
        pytest.fail(f"Tightship: {error}", pytrace=False)
    if not result.fits:
        pytest.fail(result.message(), pytrace=False)
    return result.needed_bytes


def _name(model: object) -> str:
    """Return what messages call a model without a path: its class, if that is a caller's own."""
    is_module = callable(model) and not hasattr(model, "SerializeToString")
    return type(model).__name__ if is_module else "the model"


def _planner(config: pytest.Config, isa: str) -> IsaPlanner:
    """Return the planner of a session for an instruction set: one process for all its models."""
    from tightship.budget.isa import checked_isa
    from tightship.budget.planning import IsaPlanner

    planners = config.stash.setdefault(_PLANNERS, {})
    name = checked_isa(isa)
    if name not in planners:
        planners[name] = IsaPlanner(name)
    return planners[name]
