"""Defines `Trainer`, which `train` returns and which runs training steps."""

from collections.abc import Callable, Mapping
from os import PathLike, fspath
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightship.engine.library import THREADS_MAX, release_heap, release_unused
from tightship.engine.run.executor import execute
from tightship.engine.run.limits import Limits
from tightship.errors import InputError
from tightship.graph.backward import GATHERED
from tightship.public_calls import explains_memory, public_methods
from tightship.training.block import Block
from tightship.training.planned import Planned, TrainingMemory
from tightship.training.program import Program

if TYPE_CHECKING:
    from tightship.engine.run.profile import Profile

Array = NDArray[Any]
Save = Callable[[Mapping[str, Array], str | PathLike[str]], None]


@public_methods
class Trainer:
    """A model in training, which runs in exactly the memory that was planned.

    Weights, the optimizer's tensors, activations and gradients lie in one block. Updates overwrite
    weights in place; a gradient dies as soon as its weight is updated. Several threads may use a
    trainer; a lock runs their calls one after another.

    Attributes:
        memory: Every byte that the trainer takes.
        rate: Learning rate of the next steps; may be set.
        steps: Number of steps made; with `accumulate` each call of `step` is one.
        seed: Seed of the dropouts, used together with the number of the step.
    """

    def __init__(self, planned: Planned, save: Save) -> None:
        """Allocate the block, fill it, and compile the kernels.

        Raises:
            OutOfMemoryError: The system refuses the memory.
        """
        step, self._save = planned.step, save
        self.memory: TrainingMemory = planned.memory
        self.rate = step.rate[1]
        self.steps = 0
        self.seed = step.dropout[1]
        self._weights, self._labels, self._state = step.weights, step.labels, step.state
        self._accumulate = step.accumulate
        self._gathered = [name for name, (_, part) in step.state.items() if part == GATHERED]
        block = Block(planned.held, planned.memory.arena_bytes)
        self._block: Block | None = block
        read = (step.rate[0], np.float32, ()), (step.counter, np.int64, ())
        scalars: dict[str, Array] = {}
        for name, dtype, shape in (*read, (step.dropout[0], np.int64, (2,))):
            if name:
                scalars[name] = np.zeros(shape, dtype)
        self._rate, self._counter, self._dropout = (
            scalars.get(name) for name in (step.rate[0], step.counter, step.dropout[0])
        )
        self._programs = [
            Program(part.step, part.arranged.placement, block, scalars) for part in planned.parts
        ]
        self._norm, self._inputs = self._programs[0].norm, self._programs[0].inputs
        self._threads, self._using = planned.parts[0].lowered.threads, Lock()
        release_heap()
        release_unused()

    @property
    def peak_bytes(self) -> int:
        """All bytes that the process gains by the trainer."""
        return self.memory.peak_bytes

    @property
    def gradient_norm(self) -> float | None:
        """Norm of the gradients in the last update, before clipping; None without `clip_norm`."""
        return None if self._norm is None else float(self._norm)

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs of a step in order: the model's inputs, and the labels."""
        return tuple(self._inputs)

    @explains_memory("a step of training")
    def step(self, inputs: Mapping[str, ArrayLike], *, workers: int = 1) -> float:
        """Run forward, backward and the updates once.

        Args:
            inputs: An array for every name in `input_names`, of its dtype and shape.
            workers: Number of independent kernels that may run at once; 1 by default. Each runs on
                one thread, so more than 1 needs `threads=1`. The results are bit-identical.

        Returns:
            The loss with the weights before the update.

        Raises:
            OutOfMemoryError: The system refuses the memory.
            InputError: A name, dtype or shape does not fit, an element is outside an operator's
                domain, such as a label that is not a class, or the trainer is closed; there are
                several workers although kernels have several threads; or, with `clip_norm`, the
                norm of the gradients is not finite. Weights and running statistics are unchanged.
        """
        if not 1 <= workers <= THREADS_MAX or (workers > 1 and self._threads > 1):
            raise InputError(
                f"`workers` is {workers} and `threads` is {self._threads}; both must be from "
                f"1 to {THREADS_MAX}, and one of the two must be 1."
            )
        with self._using:
            program, external = self._ready(inputs)
            limits = Limits(workers=workers)
            execute(program.executable, program.arena, external, {}, limits)
            self.steps += 1
            return float(program.loss.reshape(()))

    def profile(self, inputs: Mapping[str, ArrayLike], *, repeat: int = 5) -> "Profile":
        """Make `1 + repeat` steps with every kernel timed; the weights change as by `step`.

        Args:
            inputs: As for `step`.
            repeat: Number of timed steps, at least 1; a kernel's time is their median.

        Raises:
            InputError: As `step`; also fewer than one step.
        """
        from tightship.engine.plan.placement import memory_plan
        from tightship.engine.run.profile import profile_of, timed_run

        if repeat < 1:
            raise InputError(f"`repeat` is {repeat}; it must be at least 1.")
        laps: list[tuple[int, NDArray[np.int64]]] = []
        with self._using:
            while len(laps) <= repeat:
                program, external = self._ready(inputs)
                executable = program.executable
                lap = timed_run(executable, program.arena, external, {}, Limits())
                self.steps += 1
                if program is self._programs[0]:
                    laps.append(lap)
        runtime_bytes = self.memory.runtime_bytes
        plan = memory_plan(executable.placement, "training step", runtime_bytes, {}, {})
        return profile_of(executable, plan, laps[1:])

    def _ready(self, inputs: Mapping[str, ArrayLike]) -> tuple[Program, dict[int, Array]]:
        """Return the next program, and its operands outside the arena."""
        block, done = self._block, self.steps % self._accumulate
        if block is None:
            raise InputError("The trainer is closed; make another one.")
        program = self._programs[0 if done == self._accumulate - 1 else 1]
        labels = self._labels
        if labels is not None and labels.name in inputs:
            labels.check_shape(inputs[labels.name])
        external = program.bound(inputs)
        if labels is not None:
            labels.check(external[program.inputs[labels.name].slot])
        if self._rate is not None:
            self._rate[...] = self.rate
        if self._counter is not None:
            self._counter[...] = self.steps // self._accumulate + 1
        if self._dropout is not None:
            self._dropout[...] = self.seed, self.steps + 1
        # The first run of an accumulation starts from gradients of zero.
        if not done:
            for name in self._gathered:
                block.tensors[name].fill(0)
        return program, external

    def weights(self, *, copy: bool = True) -> dict[str, Array]:
        """Return weights and running statistics by name.

        Args:
            copy: Whether to copy the arrays. False returns the trainer's own memory, which steps
                write, and which the caller may write between steps. True by default.

        Raises:
            InputError: The trainer is closed.
        """
        with self._using:
            views = self._views()
            return {name: np.array(view) for name, view in views.items()} if copy else views

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model with its present weights, for inference.

        Args:
            path: Path of the ONNX file, which is written atomically. Weights of more than 2 GB, and
                those of a model that has a data file, go to `<path>.data`.

        Raises:
            InputError: The trainer is closed, or its model did not come from an ONNX file.
        """
        with self._using:
            self._save(self._views(), path)

    def save_checkpoint(self, path: str | PathLike[str]) -> None:
        """Write the state that further steps depend on, for `load_checkpoint`.

        The file has the format `.safetensors` and holds weights and running statistics by name,
        the optimizer's tensors under torch's names, such as `optimizer.state.<weight>.exp_avg`,
        the number of steps, the rate and the seed. No tensor is copied.

        Args:
            path: Path of the file, which is written atomically.

        Raises:
            InputError: The trainer is closed.
            OSError: The file cannot be written; an older file is untouched.
        """
        from tightship.training.checkpoint import Progress, write_checkpoint

        with self._using:
            progress = Progress(self.steps, float(self.rate), self.seed)
            write_checkpoint(path, self._tensors(), self._state, progress)

    def load_checkpoint(self, path: str | PathLike[str]) -> None:
        """Continue from a checkpoint, bit for bit.

        The trainer must have the model, the weights and the kind of optimizer of the checkpoint.
        The file sets `steps`, `rate` and `seed`; other settings of the optimizer stay the
        trainer's. Results are bit-identical on the same kind of processor with the same `threads`.

        Args:
            path: Path of the file.

        Raises:
            FormatError: The file is not a checkpoint, or is truncated.
            InputError: The checkpoint is of another model or optimizer, or the trainer is closed.
                Neither error changes the trainer.
            OSError: The file cannot be read.
        """
        from tightship.training.checkpoint import read_checkpoint

        with self._using:
            progress = read_checkpoint(fspath(path), self._tensors(), self._state)
            self.steps, self.rate, self.seed = progress.steps, progress.rate, progress.seed

    def _tensors(self) -> dict[str, Array]:
        if self._block is None:
            raise InputError("The trainer is closed; make another one.")
        return self._block.tensors

    def _views(self) -> dict[str, Array]:
        if self._block is None:
            raise InputError("The trainer is closed; read its weights before `close`.")
        return {name: self._block.tensors[name] for name in self._weights}

    def close(self) -> None:
        """Release all memory, after a step in progress. Further calls have no effect."""
        with self._using:
            self._block = None
            self._programs = []

    def __enter__(self) -> "Trainer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._block is None else f"peak {self.peak_bytes} bytes"
        return f"<tightship.Trainer after {self.steps} steps: {state}>"
