"""Programs of a prepared model by the shapes of their inputs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tightship.engine.compile.compiled_model import CompiledModel, PackedBefore
from tightship.engine.compile.input_shapes import Key
from tightship.engine.compile.shape_specializer import GraphSource, InputShapes
from tightship.engine.plan.memory_plan import MemoryPlan
from tightship.engine.program.program import PackedWeight
from tightship.engine.stored.model import SHOWN_MAX, StoredModel
from tightship.errors import InputError
from tightship.graph import Shape

if TYPE_CHECKING:
    from tightship.engine.state.decoder import Decoder
    from tightship.engine.state.step_choices import StepChoices
    from tightship.engine.stored.steps import StoredSteps


@dataclass(frozen=True, slots=True)
class StoredShapes:
    """Programs of a prepared model behind the interface of a model with symbolic lengths.

    Attributes:
        model: Prepared model.
        check: Function that raises if a plan for some shapes exceeds the limit of loading.
    """

    model: StoredModel
    check: Callable[[MemoryPlan, InputShapes], None]

    def prepare(self, shapes: InputShapes, _packed: PackedBefore) -> CompiledModel:
        """Return the program for these shapes, whose weights are packed already.

        Raises:
            FormatError: The file is damaged.
        """
        return self.model.prepared(self.model.keys.index(tuple(shapes.items())))

    def prepare_anew(self, shapes: InputShapes, packed: PackedBefore) -> CompiledModel:
        """Return the program for these shapes, as `prepare` does."""
        return self.prepare(shapes, packed)

    def unshared(self, _key: Key, _own: Sequence[PackedWeight]) -> None:
        """Return None, because all weights are in the file."""

    def open_lengths(self) -> dict[str, tuple[bool, ...] | None]:
        """Tell in which lengths of each input the programs differ; None if in rank."""
        found: dict[str, tuple[bool, ...] | None] = {}
        for rows in zip(*self.model.keys, strict=True):
            shapes = [shape for _, shape in rows]
            is_one_rank = len({len(shape) for shape in shapes}) == 1
            lengths = zip(*shapes, strict=True) if is_one_rank else ()
            open_ones = tuple(len(set(row)) > 1 for row in lengths)
            found[rows[0][0]] = open_ones if is_one_rank else None
        return found

    def output_shapes(self) -> dict[str, Shape | None]:
        """Return the lengths of each output that all programs share; None if ranks differ.

        Raises:
            FormatError: The file is damaged.
        """
        found: dict[str, Shape | None] = {}
        rows = [self.model.output_shapes(index) for index in range(len(self.model.keys))]
        for name in rows[0]:
            shapes = [row[name] for row in rows]
            ranks = {None if shape is None else len(shape) for shape in shapes}
            known = [shape for shape in shapes if shape is not None]
            found[name] = None if len(ranks) > 1 or not known else _common(known)
        return found

    def source(self) -> GraphSource:
        """Refuse: graphs are in the file that the model was prepared from.

        Raises:
            InputError: Always.
        """
        raise InputError(
            f"`{self.model.name}` is a prepared file, which has no graph; load the ONNX file with "
            "`share=True`, which shares the weights as well."
        )

    def stored_steps(self, choices: "StepChoices") -> "StoredSteps":
        """Return the programs for sessions of these choices.

        Raises:
            FormatError: The file is damaged.
            InputError: It has none; the message says how to prepare them.
        """
        from tightship.engine.stored.sessions import StoredSessions  # few models have sessions

        return StoredSessions.of(self.model).steps(choices)

    def stored_joint(
        self, _choices: "StepChoices", _steps: "StoredSteps", _decoder: "Decoder", _count: int
    ) -> None:
        """Return None: the file has no programs for several sessions at once."""

    def admit(self, shapes: Sequence[tuple[str, tuple[int, ...]]]) -> bool:
        """Whether there is a program for these shapes.

        Raises:
            InputError: There is none; the message lists the shapes that have one.
        """
        if tuple(shapes) in self.model.keys:
            return True
        keys, name = self.model.keys, self.model.name
        there_are = "; or ".join(map(shown, keys[:SHOWN_MAX]))
        more = f"; or {len(keys) - SHOWN_MAX} other sets of shapes" if len(keys) > SHOWN_MAX else ""
        raise InputError(
            f"`{name}` was prepared for {there_are}{more}; not for {shown(shapes)}. Prepare it for "
            f"these too: `{self.model.command((*keys, tuple(shapes)))}`; or load `{name}` itself, "
            "which takes every length that it leaves open."
        )


def _common(shapes: Sequence[tuple[int, ...]]) -> Shape:
    """Return the lengths that shapes of one rank share; None where they differ."""
    return tuple(row[0] if len(set(row)) == 1 else None for row in zip(*shapes, strict=True))


def shown(key: Sequence[tuple[str, tuple[int, ...]]]) -> str:
    """Format shapes for a message."""
    return ", ".join(f"`{name}` {list(shape)}" for name, shape in key)
