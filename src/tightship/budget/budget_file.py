"""Reads budgets from `tightship.toml`, or from the table `tool.tightship` of `pyproject.toml`."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TypeGuard

from tightship.brief import brief
from tightship.budget.budget import Budget
from tightship.budget.isa import Isa, checked_isa
from tightship.budget.training import Training, optimizer_of, precision_of
from tightship.errors import FormatError, InputError
from tightship.quantity import parse_bytes

NAMES = ("tightship.toml", "pyproject.toml")
KEYS = {"model", "limit", "shapes", "threads", "dynamic", "name", "training"}
OF_TRAINING = {
    "loss",
    "optimizer",
    "momentum",
    "classes_axis",
    "accumulate",
    "recompute",
    "precision",
}
EXAMPLE = 'a table `[[budget]]` for each model, with `model = "model.onnx"` and `limit = "512MiB"`'


@brief
@dataclass(frozen=True, slots=True)
class BudgetFile:
    """Budgets of a project, and the instruction set that they are planned for."""

    path: Path
    budgets: tuple[Budget, ...]
    isa: Isa = "avx2"


def read_budgets(path: str | PathLike[str] | None = None) -> BudgetFile:
    """Read the budgets of a project.

    Args:
        path: File of budgets, or a folder with `tightship.toml` or `pyproject.toml`; by default
            the folder at hand.

    Raises:
        FormatError: The file is not TOML, has no budgets, or a value in it is not understood.
        InputError: The file does not exist.
    """
    file = _found(Path(path or "."))
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise FormatError(f"`{file}` cannot be read as TOML: {error}.") from None
    table: object = content
    where = ""
    if file.name == "pyproject.toml":
        table, where = content.get("tool", {}).get("tightship"), "tool.tightship."
    rows: object = table.get("budget") if isinstance(table, dict) else None
    if not isinstance(table, dict) or not isinstance(rows, list) or not rows:
        example = EXAMPLE.replace("[[budget", f"[[{where}budget")
        raise FormatError(f"`{file}` has no budgets; write {example}.")
    _check_keys(table, {"budget", "isa"}, f"`{file}`")
    try:
        isa = checked_isa(str(table.get("isa", "avx2")))
    except InputError as error:
        raise FormatError(f"`{file}`: `{where}isa`: {error}") from None
    budgets = [_budget(row, f"`{file}`: budget {i}", file.parent) for i, row in enumerate(rows, 1)]
    _check_titles(budgets, file)
    return BudgetFile(file, tuple(budgets), isa)


def _found(path: Path) -> Path:
    if not path.is_dir():
        if not path.is_file():
            raise InputError(f"The file `{path}` does not exist; write one that has {EXAMPLE}.")
        return path
    for name in NAMES:
        file = path / name
        if file.is_file() and (name == NAMES[0] or _has_table(file)):
            return file
    raise InputError(
        f"The folder `{path.resolve()}` has no `tightship.toml`, and no `pyproject.toml` with "
        f"`tool.tightship.budget`; write one that has {EXAMPLE}."
    )


def _has_table(file: Path) -> bool:
    return "tool.tightship" in file.read_text(encoding="utf-8", errors="replace")


def _check_keys(table: Mapping[str, object], known: set[str], where: str) -> None:
    for key in table:
        if key not in known:
            raise FormatError(
                f"{where} has the unknown key `{key}`; known are {', '.join(sorted(known))}."
            )


def _budget(row: object, where: str, folder: Path) -> Budget:
    if not isinstance(row, dict):
        raise FormatError(f"{where} is not a table; write {EXAMPLE}.")
    _check_keys(row, KEYS, where)
    model = row.get("model")
    if not isinstance(model, str) or not model:
        raise FormatError(f"{where} has no `model`, the path of a model's file.")
    file = folder / model
    if not file.is_file():
        raise InputError(f"{where}: no model `{file}`.")
    threads = row.get("threads", 1)
    if not isinstance(threads, int) or isinstance(threads, bool) or threads < 1:
        raise FormatError(f"{where}: `threads` is {threads!r}; it must be a whole number from 1.")
    dynamic = row.get("dynamic")
    return Budget(
        file,
        _bytes(row["limit"], f"{where}: `limit`") if "limit" in row else None,
        _shapes(row.get("shapes", {}), where),
        threads,
        0 if dynamic is None else _bytes(dynamic, f"{where}: `dynamic`"),
        str(row.get("name", "")),
        _training(row["training"], f"{where}: `training`") if "training" in row else None,
    )


def _training(value: object, where: str) -> Training:
    example = 'write a table, as {loss = "cross_entropy", optimizer = "adam"}'
    if not isinstance(value, dict) or not isinstance(value.get("loss"), str):
        raise FormatError(f"{where} is {value!r}; {example}.")
    _check_keys(value, OF_TRAINING, where)
    for key, kinds in (("classes_axis", int), ("accumulate", int), ("recompute", int | float),
                       ("momentum", int | float)):  # fmt: skip
        if isinstance(value.get(key), bool) or not isinstance(value.get(key, 0), kinds):
            raise FormatError(f"{where}: `{key}` is {value[key]!r}; it must be a number.")
    try:
        optimizer = optimizer_of(value.get("optimizer", "adam"), value.get("momentum", 0.0))
        precision = precision_of(value.get("precision", "float32"))
    except InputError as error:
        raise FormatError(f"{where}: {error}") from None
    return Training(
        value["loss"],
        optimizer,
        classes_axis=value.get("classes_axis"),
        accumulate=value.get("accumulate", 1),
        recompute=value.get("recompute"),
        precision=precision,
    )


def _bytes(value: object, where: str) -> int:
    try:
        return parse_bytes(value)  # type: ignore[arg-type]
    except (InputError, TypeError) as error:
        raise FormatError(f"{where}: {error}") from None


def _shapes(value: object, where: str) -> dict[str, int | tuple[int, ...]]:
    if not isinstance(value, dict):
        raise FormatError(f"{where}: `shapes` is {value!r}; write a table, as {{batch = 1}}.")
    return {name: _shape(shape, f"{where}: shape `{name}`") for name, shape in value.items()}


def _shape(value: object, where: str) -> int | tuple[int, ...]:
    lengths = [each for each in (value if isinstance(value, list) else [value]) if _is_length(each)]
    if not isinstance(value, list) and lengths:
        return lengths[0]
    if isinstance(value, list) and len(lengths) == len(value):
        return tuple(lengths)
    raise FormatError(f"{where} is {value!r}; write a length, 128, or a list of lengths, [1, 128].")


def _is_length(value: object) -> TypeGuard[int]:
    return type(value) is int and value >= 0


def _check_titles(budgets: list[Budget], file: Path) -> None:
    titles = [budget.title for budget in budgets]
    for title in titles:
        if titles.count(title) > 1:
            raise FormatError(
                f"`{file}` has two budgets `{title}`; give one of them another `name`."
            )
