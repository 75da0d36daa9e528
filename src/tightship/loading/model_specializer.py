"""Compiles a prepared model's ONNX file for further shapes, over the same weights."""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from tightship._core import HostResource
from tightship.engine.compile.compile_graph import Settings, prepare
from tightship.engine.compile.compiled_model import CompiledModel, PackedBefore
from tightship.engine.compile.input_shapes import Key
from tightship.engine.compile.shape_specializer import GraphSource, InputShapes
from tightship.engine.plan.memory_plan import MemoryPlan
from tightship.engine.program.program import PackedWeight
from tightship.engine.stored.shapes import StoredShapes, shown
from tightship.engine.weights.weight_store import PackedCopy, WeightStore
from tightship.errors import InputError
from tightship.graph import Constant, Mapped, Shape
from tightship.graph.constant import Computed
from tightship.quantity import format_bytes

if TYPE_CHECKING:
    from tightship.engine.state.decoder import Decoder
    from tightship.engine.state.step_choices import StepChoices
    from tightship.engine.stored.steps import StoredSteps
    from tightship.engine.template.variants import Variants
    from tightship.graph import Graph


OWN_BYTES_MAX = 2 << 20
"""Bytes of weights of their own that programs for further shapes may have without a warning."""


@dataclass(frozen=True, slots=True)
class Original:
    """Model that a file was prepared from.

    Attributes:
        name: Name of the model in reports.
        settings: Settings that it was prepared with.
        graph: Function that returns its graph for some shapes.
        variants: Compiler for further shapes; None if the file fixes all shapes.
    """

    name: str
    settings: Settings
    graph: "Callable[[InputShapes], Graph]"
    variants: "Variants | None"


class SessionPrograms(Protocol):
    """Stored programs of the sessions of a model; None where they cannot be stored."""

    def read(self, specializer: "ModelSpecializer", choices: "StepChoices") -> "StoredSteps | None":
        """Return those of sessions of some choices."""

    def joint(
        self,
        specializer: "ModelSpecializer",
        choices: "StepChoices",
        steps: "StoredSteps",
        decoder: "Decoder",
        count: int,
    ) -> CompiledModel | None:
        """Return that for a token of each of some sessions."""


@dataclass(slots=True)
class ModelSpecializer:
    """Programs of a prepared model, and those that its ONNX file makes for further shapes.

    The file is read when such a shape first comes. It is lowered once more as for the prepared
    model, which identifies each stored weight; programs for further shapes then use the stored
    ones.

    Attributes:
        stored: Programs of the prepared model.
        read: Function that reads the file; raises `InputError` if it has changed since.
        steps: Stored programs of sessions.
    """

    stored: StoredShapes
    read: Callable[[], Original]
    steps: "SessionPrograms"
    _original: Original | None = None
    _known: WeightStore = field(default_factory=lambda: WeightStore(HostResource()))
    _as_stored: dict[int, PackedWeight] = field(default_factory=dict)
    _has_warned: bool = False
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @property
    def check(self) -> Callable[[MemoryPlan, InputShapes], None]:
        """Function that raises if a plan for some shapes exceeds the limit of loading."""
        return self.stored.check

    def prepare(self, shapes: InputShapes, packed: PackedBefore, /) -> CompiledModel:
        """Return the program for these shapes, which uses the stored weights where possible.

        Raises:
            FormatError: The prepared model is damaged.
            GraphError, InputError: The errors of `Variants.prepare`.
        """
        if tuple(shapes.items()) in self.stored.model.keys:
            return self.stored.prepare(shapes, packed)
        with self._lock:
            return self.over_stored(self._variants().prepare(shapes, self._known.by_name()))

    def prepare_anew(self, shapes: InputShapes, packed: PackedBefore, /) -> CompiledModel:
        """Prepare without the template, which cannot produce a constant for these shapes."""
        if tuple(shapes.items()) in self.stored.model.keys:
            return self.stored.prepare_anew(shapes, packed)
        with self._lock:
            return self.over_stored(self._variants().prepare_anew(shapes, self._known.by_name()))

    def unshared(self, key: Key, own: Sequence[PackedWeight]) -> str | None:
        """Warn once of weights that the process has beside the stored ones, and say why.

        Tables that are computed from lengths alone do not count as weights.
        """
        moved = absent = 0
        with self._lock:
            for weight in own:
                if not _is_of_file(weight.constant):
                    continue
                if self._known.has_constant(weight.constant):
                    moved += weight.size_bytes
                else:
                    absent += weight.size_bytes
        if self._has_warned or moved + absent <= OWN_BYTES_MAX:
            return None
        self._has_warned = True
        reasons = {
            "are wanted in another layout by kernels for these shapes": moved,
            "are not among those of the first shapes": absent,
        }
        if not self._as_stored:
            reasons = {"cannot be told from those that were stored": moved + absent}
        said = "; ".join(f"{format_bytes(n)} {reason}" for reason, n in reasons.items() if n)
        return (
            f"`{self.stored.model.name}` has {format_bytes(moved + absent)} of weights for this "
            f"process alone since it ran with {shown(key)}: {said}. Give `load` the shapes that "
            "come most often, or prepare one file for all that come."
        )

    def open_lengths(self) -> Mapping[str, tuple[bool, ...] | None]:
        """Tell which lengths are open, as `Variants.open_lengths` does.

        Raises:
            InputError: The file has changed since it was prepared.
        """
        variants = self._opened().variants
        return self.stored.open_lengths() if variants is None else variants.open_lengths()

    def output_shapes(self) -> Mapping[str, Shape | None]:
        """Return output shapes, as `Variants.output_shapes` does.

        Raises:
            InputError: The file has changed since it was prepared.
        """
        variants = self._opened().variants
        return self.stored.output_shapes() if variants is None else variants.output_shapes()

    def source(self) -> GraphSource:
        """Return the source of the model's graphs.

        Raises:
            InputError: The file has changed since it was prepared.
        """
        variants = self._opened().variants
        if variants is None:
            raise InputError(f"The file of `{self.stored.model.name}` fixes all shapes.")
        with self._lock:
            return variants.source()._replace(packed=tuple(self._known.copies_held()))

    def admit(self, shapes: Sequence[tuple[str, tuple[int, ...]]]) -> bool:
        """Whether these can be the shapes of the model's inputs.

        Raises:
            InputError: The file has changed since it was prepared.
        """
        if tuple(shapes) in self.stored.model.keys:
            return True
        variants = self._opened().variants
        return variants is not None and variants.admit(shapes)

    def _variants(self) -> "Variants":
        variants = self._opened().variants
        assert variants is not None, "shapes were admitted that the file does not leave open"
        return variants

    def _opened(self) -> Original:
        with self._lock:
            if self._original is None:
                original = self.read()
                if original.variants is not None:
                    self._learn(original)
                self._original = original
            return self._original

    def _learn(self, original: Original) -> None:
        """Pair the weights of the lowered file with the stored ones; none if these differ."""
        settings = original.settings
        again = prepare(original.graph(settings.input_shapes), original.name, settings, {})
        stored = self.stored.model.prepared(0)
        copies = {id(copy.weight): copy for copy in self.stored.model.copies}
        weights = again.placement.lowered.weights
        found = stored.placement.lowered.weights
        if [(w.name, w.size_bytes) for w in weights] != [(w.name, w.size_bytes) for w in found]:
            return
        for weight, same in zip(weights, found, strict=True):
            copy = copies[id(same)]
            if (weight.source, weight.desc) == (same.source, same.desc):
                weight = weight._replace(source=same.source, desc=same.desc)  # noqa: PLW2901
            known = PackedCopy(weight, copy.block, copy.offset_bytes)
            self._known.adopt([known])
            self._as_stored[id(known)] = same

    def stored_steps(self, choices: "StepChoices") -> "StoredSteps | None":
        """Return stored programs of sessions over the stored weights; None if there can be none.

        Raises:
            GraphError: The model cannot be planned for a whole context.
            InputError: The model has no caches, or its file has changed since it was prepared.
        """
        return self.steps.read(self, choices)

    def stored_joint(
        self, choices: "StepChoices", steps: "StoredSteps", decoder: "Decoder", count: int
    ) -> CompiledModel | None:
        """Return the program for a token of each of some sessions; None if it cannot be stored.

        Raises:
            GraphError: The model can have no such program.
            InputError: The model's file has changed since it was prepared.
        """
        return self.steps.joint(self, choices, steps, decoder, count)

    def known_weights(self) -> dict[str, list[PackedWeight]]:
        """Return the stored layouts of each constant of the file, which has been read."""
        return self._known.by_name()

    def over_stored(self, prepared: CompiledModel) -> CompiledModel:
        """Return a program of the file over the stored weights, as far as these have its own."""
        placement = prepared.placement
        weights = tuple(map(self._stored_for, placement.lowered.weights))
        lowered = placement.lowered._replace(weights=weights)
        return prepared._replace(placement=placement._replace(lowered=lowered))

    def _stored_for(self, weight: PackedWeight) -> PackedWeight:
        if self._known.missing([weight]):
            return weight
        (known,) = self._known.copies([weight])
        return self._as_stored[id(known)]


def _is_of_file(constant: Constant) -> bool:
    """Whether elements of a constant are read from the model's file."""
    if isinstance(constant, Computed):
        return any(map(_is_of_file, constant.sources))
    return isinstance(constant, Mapped)
