"""Models whose images are stored in buffers with channels last, the layout of their convolutions.

Values of a graph have channels first. A second program of the same graph takes and returns some of
its images with channels last, so that no step of a run converts their layout.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tightship.driver.memory.mappings import Array
from tightship.driver.models.subgraph_sequence import Limit
from tightship.graph import Graph, Node, Value
from tightship.model import Model
from tightship.model.bound_run import BoundRun

LAST, FIRST = (0, 2, 3, 1), (0, 3, 1, 2)
"""Permutations of axes that move channels to the end, and back."""
LoadLike = Callable[[Model, Graph], Model]
SUFFIX = ":channels_last"
OPSET = 21


@dataclass(frozen=True, slots=True)
class Images:
    """Names of inputs and outputs with channels last."""

    inputs: frozenset[str] = frozenset()
    outputs: frozenset[str] = frozenset()

    def __or__(self, other: "Images") -> "Images":
        return Images(self.inputs | other.inputs, self.outputs | other.outputs)


class ImageModel:
    """Two programs of a model; the strides of a run's arrays select one.

    Attributes:
        images: Inputs and outputs that the second program has with channels last.
        programs: Both programs, and those that the second one replaces.
    """

    def __init__(self, model: Model, programs: Sequence[Model], images: Images) -> None:
        self.images = images
        self.programs = (model, *programs)
        self.input_names = model.input_names
        self.output_names = model.output_names

    def run(
        self, inputs: Mapping[str, Array], outputs: Mapping[str, Array], limit: Limit
    ) -> dict[str, Array]:
        """Run like `Model.run`; arrays with channels last are passed as transposed views."""
        program, given, places = self.program_for(inputs, outputs)
        if program is self.programs[0]:
            return self._run_plain(inputs, outputs, limit)
        made = program.run(given, outputs=places, stop=limit.stop)
        return dict(outputs) | {
            name: made[name] for name in self.output_names if name not in self.images.outputs
        }

    def program_for(
        self, inputs: Mapping[str, Array], outputs: Mapping[str, Array]
    ) -> tuple[Model, Mapping[str, Array], Mapping[str, Array]]:
        """Return the program for the layouts of these arrays, and the arrays by its names."""
        images = self.images
        if all(_is_last(inputs[name]) for name in images.inputs) and all(
            name in outputs and _is_last(outputs[name]) for name in images.outputs
        ):
            given = _turned(inputs, images.inputs), _turned(outputs, images.outputs)
            return self.programs[-1], *given
        return self.programs[0], inputs, outputs

    def _run_plain(
        self, inputs: Mapping[str, Array], outputs: Mapping[str, Array], limit: Limit
    ) -> dict[str, Array]:
        places = {name: array for name, array in outputs.items() if array.flags.c_contiguous}
        made = self.programs[0].run(inputs, outputs=places, stop=limit.stop)
        for name in outputs.keys() - places.keys():
            np.copyto(outputs[name], made[name])
        return made | dict(outputs)

    def close(self) -> None:
        """Wait for current runs and free all memory."""
        for program in self.programs:
            program.close()


def bound(
    model: Model | ImageModel, inputs: Mapping[str, Array], outputs: Mapping[str, Array]
) -> BoundRun | None:
    """Bind all outputs, like `Model.bind`; None if an array would have to be copied."""
    if isinstance(model, ImageModel):
        model, inputs, outputs = model.program_for(inputs, outputs)
    arrays = (*inputs.values(), *outputs.values())
    return model.bind(inputs, outputs) if all(a.flags.c_contiguous for a in arrays) else None


def image_model(
    base: Model | ImageModel, graph: Graph, images: Images, load: LoadLike
) -> ImageModel | None:
    """Add channels-last images to a model; None if that saves no steps.

    Args:
        base: Loaded graph.
        graph: Graph without loops and branches.
        images: Inputs and outputs of four axes and float32.
        load: Loads another program over the weights of a model.
    """
    before: tuple[Model, ...] = ()
    if isinstance(base, ImageModel):
        images, before, base = images | base.images, base.programs[1:], base.programs[0]
    program = load(base, arranged(graph, images))
    if len(program.plan.steps) >= len(base.plan.steps):
        program.close()
        return None
    return ImageModel(base, (*before, program), images)


def arranged(graph: Graph, images: Images) -> Graph:
    """Return the graph with these images permuted; their names end in `SUFFIX`."""
    values = dict(graph.values)
    for name in images.inputs | images.outputs:
        value = graph.value(name)
        assert value.dtype is not None
        shape = tuple(value.static_shape[axis] for axis in LAST)
        values[name + SUFFIX] = Value(name + SUFFIX, value.dtype, shape)
    before = [_moved(name + SUFFIX, name, FIRST) for name in sorted(images.inputs)]
    after = [_moved(name, name + SUFFIX, LAST) for name in sorted(images.outputs)]
    return Graph(
        graph.name,
        tuple(name + SUFFIX if name in images.inputs else name for name in graph.inputs),
        tuple(name + SUFFIX if name in images.outputs else name for name in graph.outputs),
        values,
        (*before, *graph.nodes, *after),
        graph.constants,
        graph.known,
    )


def _turned(arrays: Mapping[str, Array], names: Collection[str]) -> dict[str, Array]:
    """Return arrays under the second program's names and layouts."""
    plain = {name: array for name, array in arrays.items() if name not in names}
    return plain | {name + SUFFIX: arrays[name].transpose(LAST) for name in names}


def _moved(source: str, target: str, order: tuple[int, ...]) -> Node:
    return Node(f"{target}:moved", "Transpose", (source,), (target,), {"perm": order}, "", OPSET)


def _is_last(array: Array) -> bool:
    return array.ndim == len(LAST) and array.transpose(LAST).flags.c_contiguous
