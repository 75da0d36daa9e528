"""Errors for modules that torch cannot export, with the place in the module."""

import os
import re
from collections.abc import Iterator
from linecache import getline
from pathlib import Path
from types import FrameType, TracebackType

import torch

from tightship.errors import GraphError, InputError, TightshipError
from tightship.frontend.torch.examples import Examples

_LIBRARIES = tuple(
    f"{folder}/"
    for folder in (Path(torch.__file__).parent, Path(os.__file__).parent, Path(__file__).parents[2])
)
"""Folders of code that is not the user's: torch, Python's library, Tightship."""


def unexported(error: Exception, module: torch.nn.Module, examples: Examples) -> TightshipError:
    """Return an error that says what in a module torch cannot export, and where.

    Args:
        error: Error of `torch.export.export`.
        module: The module.
        examples: The inputs that it was called with.
    """
    name, place = type(module).__name__, _place(error, module)
    kind, said = type(error).__name__, _first_line(error)
    if kind.startswith("GuardOnDataDependent"):
        return GraphError(
            f"`{name}` decides by data{place}, and a plan is for all data; choose by "
            "`torch.where` or `torch.cond`, or leave that part outside the module."
        )
    if "onstraint" in said:
        violated = re.findall(r"^\s+- (.+)$", str(error), re.MULTILINE)
        why = violated[0].split("If you")[0].strip() if violated else said
        return InputError(
            f"A length of `{name}` cannot stay open: {why} Give it a number in `shapes`, or leave "
            "it out."
        )
    return InputError(
        f"torch cannot export `{name}` with the inputs {examples.text()}{place}: {kind}: {said} "
        "Give `example_inputs` that the module runs with, and operators of torch on tensors alone."
    )


def _first_line(error: Exception) -> str:
    line = (str(error).strip().splitlines() or ["no reason is given"])[0].strip()
    return line if line.endswith((".", "!", "?")) else f"{line}."


def _place(error: Exception, module: torch.nn.Module) -> str:
    """Return the innermost part of the module on the way to an error, and the user's line."""
    names = {id(part): name for name, part in module.named_modules()}
    part, where = "", ""
    for frame, line in _frames(error.__traceback__):
        owner = frame.f_locals.get("self")
        if isinstance(owner, torch.nn.Module) and names.get(id(owner)):
            part = f" in `{names[id(owner)]}` ({type(owner).__name__})"
        file = frame.f_code.co_filename
        if not file.startswith((*_LIBRARIES, "<")):
            code = getline(file, line).strip()
            where = f" at {file}:{line}" + (f": `{code}`" if code else "")
    return part + where


def _frames(traceback: TracebackType | None) -> Iterator[tuple[FrameType, int]]:
    while traceback is not None:
        yield traceback.tb_frame, traceback.tb_lineno
        traceback = traceback.tb_next
