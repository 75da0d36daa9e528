"""Implements ONNX's backend interface, so that any driver of ONNX backends can run Tightship.

    import onnx
    import tightship.backend

    rep = tightship.backend.prepare(onnx.load("model.onnx"))
    (result,) = rep.run([x])

`onnx.backend.test.BackendTest(tightship.backend, __name__)` runs ONNX's test suite.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, TypedDict, Unpack

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, TypeProto, helper
from onnx.backend import base

from tightship.errors import InputError, TightshipError
from tightship.loading import load
from tightship.model import Model

__all__ = [
    "Backend",
    "Inputs",
    "Options",
    "Rep",
    "is_compatible",
    "prepare",
    "run_model",
    "run_node",
    "supports_device",
]

MODELS_MAX = 8
"""Models that one `Rep` keeps, one for each set of input shapes, least recently used evicted."""

Shapes = tuple[tuple[str, tuple[int, ...]], ...]
Inputs = Sequence[Any] | Mapping[str, Any]
"""Arrays in the order of the inputs, or by their names."""


class Options(TypedDict, total=False):
    """Keyword arguments of `tightship.load` that `prepare` takes."""

    max_memory: str | int | None
    dynamic_memory: str | int | None
    threads: int
    without: Collection[str]


class Rep(base.BackendRep):  # type: ignore[misc]  # onnx is not typed here
    """A prepared model: loads the model once for each set of shapes that its free dimensions take.

    Several threads may run one `Rep` at the same time.
    """

    def __init__(self, model: ModelProto, options: Options) -> None:
        constants = {tensor.name for tensor in model.graph.initializer}
        constants.update(sparse.values.name for sparse in model.graph.sparse_initializer)
        inputs = [value for value in model.graph.input if value.name not in constants]
        self._input_names = tuple(value.name for value in inputs)
        self._free_names = tuple(value.name for value in inputs if _is_free(value.type))
        loader = partial(_load, model.SerializeToString(), options)
        self._model_for: Callable[[Shapes], Model] = lru_cache(MODELS_MAX)(loader)
        if not self._free_names:
            self._model_for(())

    def run(self, inputs: Inputs, **_: Any) -> tuple[Any, ...]:  # noqa: ANN401
        """Run the model once.

        Args:
            inputs: One entry for each input of the model that is not an initializer, in order or by
                name: an array, a list for a sequence, None for an empty optional.

        Returns:
            The outputs, in the model's order.

        Raises:
            InputError: A name, dtype or shape does not fit.
            GraphError: The graph cannot be typed or run for these shapes.
        """
        named = self._named(inputs)
        return tuple(self.model_for(named).run(named).values())

    def model_for(self, inputs: Inputs) -> Model:
        """Return the model loaded for the shapes of these inputs; raises as `tightship.load`."""
        named = self._named(inputs)
        given = [name for name in self._free_names if name in named]
        return self._model_for(tuple((name, np.shape(named[name])) for name in given))

    def _named(self, inputs: Inputs) -> dict[str, Any]:
        if isinstance(inputs, Mapping):
            return dict(inputs)
        if len(inputs) != len(self._input_names):
            raise InputError(
                f"{len(inputs)} inputs were given; the model has {len(self._input_names)}: "
                f"{', '.join(self._input_names)}."
            )
        return dict(zip(self._input_names, inputs, strict=True))


def _load(data: bytes, options: Options, shapes: Shapes) -> Model:
    return load(data, shapes=dict(shapes), **options)


def _is_free(type_: TypeProto) -> bool:
    """Whether an input is a tensor whose shape is known only when the model runs."""
    if not type_.HasField("tensor_type"):
        return False
    tensor = type_.tensor_type
    # A dimension without `dim_value` is symbolic or unknown, so each run may bring another length.
    return not tensor.HasField("shape") or any(
        not dimension.HasField("dim_value") for dimension in tensor.shape.dim
    )


class Backend(base.Backend):  # type: ignore[misc]  # onnx is not typed here
    """Tightship as an ONNX backend; runs on the CPU."""

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether models can be prepared for a device; `"CPU"` alone."""
        return device.partition(":")[0] == "CPU"

    @classmethod
    def is_compatible(
        cls, model: ModelProto, device: str = "CPU", **options: Unpack[Options]
    ) -> bool:
        """Whether `prepare` accepts the model, with arguments as for it.

        Free dimensions are first checked by a run.
        """
        try:
            cls.prepare(model, device, **options)
        except TightshipError:
            return False
        return True

    @classmethod
    def prepare(cls, model: ModelProto, device: str = "CPU", **options: Unpack[Options]) -> Rep:
        """Prepare a model: loads it now if its input shapes are fixed, otherwise at the first run.

        Args:
            model: The model, as `onnx.load` returns it.
            device: The device to run on; only `"CPU"`, optionally followed by `:` and a number.
            options: Keyword arguments of `tightship.load` that `Options` lists.

        Raises:
            InputError: The device is not the CPU, or an option does not fit.
            FormatError, GraphError, CapacityError: As `tightship.load`.
        """
        if not cls.supports_device(device):
            raise InputError(f"Unknown device `{device}`; choose `CPU`.")
        return Rep(model, options)

    @classmethod
    def run_model(
        cls, model: ModelProto, inputs: Inputs, device: str = "CPU", **options: Unpack[Options]
    ) -> tuple[Any, ...]:
        """Prepare a model and run it once; raises as `prepare` and `Rep.run`.

        Args:
            model: The model.
            inputs: As for `Rep.run`.
            device: As for `prepare`.
            options: As for `prepare`.
        """
        return cls.prepare(model, device, **options).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: NodeProto,
        inputs: Inputs,
        device: str = "CPU",
        outputs_info: object = None,  # noqa: ARG003
        *,
        opset_version: int | None = None,
        **options: Unpack[Options],
    ) -> tuple[Any, ...]:
        """Run one node as a model of its own, in the newest opset unless one is given.

        Raises as `prepare` and `Rep.run`.

        Args:
            node: The node.
            inputs: Arrays for the node's inputs, in order or by name.
            device: As for `prepare`.
            outputs_info: Ignored, because types are inferred.
            opset_version: Version of ONNX's operators; the newest by default.
            options: As for `prepare`.
        """
        opsets = {"": onnx.defs.onnx_opset_version() if opset_version is None else opset_version}
        if node.domain not in ("", "ai.onnx"):
            opsets[node.domain] = onnx.defs.get_schema(node.op_type, node.domain).since_version
        named = inputs if isinstance(inputs, Mapping) else _by_name(node, inputs)
        graph = helper.make_graph(
            [node],
            node.name or node.op_type,
            [helper.make_value_info(name, _type_of(value)) for name, value in named.items()],
            [helper.make_empty_tensor_value_info(name) for name in node.output if name],
        )
        imports = [helper.make_opsetid(domain, version) for domain, version in opsets.items()]
        model = helper.make_model(graph, opset_imports=imports)
        return cls.run_model(model, named, device, **options)


def _by_name(node: NodeProto, inputs: Sequence[Any]) -> dict[str, Any]:
    names = [name for name in node.input if name]
    if len(names) != len(inputs):
        raise InputError(
            f"{len(inputs)} inputs were given; the node `{node.op_type}` has {len(names)}: "
            f"{', '.join(names)}."
        )
    return dict(zip(names, inputs, strict=True))


def _type_of(value: Any) -> TypeProto:  # noqa: ANN401
    """Build the ONNX type of an input; elements of an empty list and of None stay untyped."""
    if isinstance(value, list):
        return helper.make_sequence_type_proto(_type_of(value[0]) if value else TypeProto())
    if value is None:
        return TypeProto()
    array = np.asarray(value)
    is_text = array.dtype.kind in "OSU"
    number = TensorProto.STRING if is_text else helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_type_proto(number, array.shape)


prepare = Backend.prepare
"""`Backend.prepare`."""
run_model = Backend.run_model
"""`Backend.run_model`."""
run_node = Backend.run_node
"""`Backend.run_node`."""
supports_device = Backend.supports_device
"""`Backend.supports_device`."""
is_compatible = Backend.is_compatible
"""`Backend.is_compatible`."""
