"""Plans models for a named instruction set, in a process of their own."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Self

from tightship.budget.isa import Isa, assume
from tightship.budget.training import (
    Training,
    light_step,
    picture_of_step,
    picture_of_training,
)
from tightship.errors import InputError
from tightship.frontend.modules import is_module, opened, refuse_examples
from tightship.frontend.snapshot import Snapshot, snapshot
from tightship.loading.entry import plan
from tightship.loading.reading_process import ReadingProcess
from tightship.view.picture import Picture

Shapes = Mapping[str, Sequence[int | str] | int]
"""Shapes by input, in which texts name open lengths of a module, and lengths by name."""


class IsaPlanner:
    """Plans for one instruction set; the end of the `with` block ends the process.

    oneDNN asks for the processor once in a process, so that this one cannot plan for another.
    """

    def __init__(self, isa: Isa) -> None:
        """Plan for an instruction set; the process starts with `start`, or with the first plan."""
        self.isa = isa
        self._process = ReadingProcess()
        self._is_set = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Start the process, unless it runs.

        Raises:
            InputError: The machine lacks the instruction set.
        """
        if not self._is_set:
            self._process.call(assume, self.isa)
            self._is_set = True

    def close(self) -> None:
        """End the process, if it runs."""
        self._process.end()
        self._is_set = False

    def plan(
        self,
        model: object,
        shapes: Mapping[str, Sequence[int | str] | int] | None = None,
        threads: int = 1,
        example_inputs: object = None,
        training: Training | None = None,
    ) -> Picture:
        """Plan a model as `tightship.plan` does.

        Args:
            model: Path of a model, bytes of an ONNX file, or an `onnx.ModelProto`; or a module or
                function, with `example_inputs`.
            shapes: As for `tightship.plan`.
            threads: Threads of each kernel.
            example_inputs: As for `tightship.plan`.
            training: Plan a training step of the model.

        Raises:
            InputError: The machine lacks the instruction set, or the model is none of these.
            FormatError, GraphError: The errors of `tightship.plan`.
        """
        if training is not None:
            return self._plan_step(model, shapes, threads, example_inputs, training)
        module = opened(model, example_inputs, shapes)
        source = _portable(model) if module is None else snapshot(*module)
        self.start()
        return self._process.call(_picture, source, shapes if module is None else None, threads)

    def _plan_step(
        self,
        model: object,
        shapes: Shapes | None,
        threads: int,
        example_inputs: object,
        training: Training,
    ) -> Picture:
        """Plan a training step; that of a module is made here, where its library is."""
        if not is_module(model):
            refuse_examples(model, example_inputs)
            source = _portable(model)
            self.start()
            return self._process.call(picture_of_training, source, shapes, threads, training)
        step, name = light_step(model, shapes, threads, example_inputs, training)
        self.start()
        portable = replace(training, loss=None, example_labels=None)
        return self._process.call(picture_of_step, step, name, threads, portable)


def _portable(model: object) -> str | bytes:
    """Return a file of a model in a form that another process can read."""
    serialize = getattr(model, "SerializeToString", None)
    if callable(serialize):
        return bytes(serialize())
    if isinstance(model, bytes):
        return model
    try:
        return os.fspath(model)  # type: ignore[call-overload,no-any-return]
    except TypeError:
        raise InputError(
            "A model with a budget is a path, the bytes of an ONNX file, an `onnx.ModelProto`, or "
            f"a module with `example_inputs`, not {type(model).__name__}; save a program of torch "
            "as a .pt2 file first."
        ) from None


def _picture(model: str | bytes | Snapshot, shapes: Shapes | None, threads: int) -> Picture:
    return plan(model, shapes=shapes, threads=threads).picture()
