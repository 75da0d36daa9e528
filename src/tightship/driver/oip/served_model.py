"""Version of a model as requests use it: the model, with what its configuration narrows."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tightship._core import RequestMetrics
from tightship.driver.oip.model_config import ANY, ModelConfig, TensorConfig
from tightship.driver.oip.model_source import ModelSource
from tightship.driver.oip.request_counts import JoinedCount
from tightship.graph import DType, Shape
from tightship.model import Model

Types = Mapping[str, tuple[DType, Shape | None]]
"""Element types and shapes of tensors by name; open lengths are no integers."""


@dataclass(frozen=True, slots=True, eq=False)
class ServedModel:
    """Version of a model that requests may use.

    Attributes:
        model: Loaded model.
        source: What it was loaded from.
        metrics: Metrics of the version's requests, which outlive a reload.
        inputs, outputs: Tensors of requests, as model and configuration say together.
        joined: Requests that were part of another one's run.
        has_even_runs: Whether runs on inputs of the same shapes take equally long.
        is_constant_time: Whether runs take equally long, whatever the contents of the inputs: these
            have one shape, and contents decide no step.
        may_join: Whether requests may be joined, by its configuration.
        accepted: Requests that have been found to fit, by what is checked of them.
    """

    name: str
    version: str
    model: Model
    source: ModelSource
    metrics: RequestMetrics
    inputs: Types
    outputs: Types
    joined: JoinedCount
    has_even_runs: bool
    is_constant_time: bool
    may_join: bool
    accepted: set[object] = field(init=False, default_factory=set)

    @classmethod
    def of(
        cls,
        name: str,
        version: str,
        model: Model,
        source: ModelSource,
        metrics: RequestMetrics,
        joined: JoinedCount,
    ) -> "ServedModel":
        """Describe a model that was loaded from a source."""
        config = source.config or ModelConfig()
        inputs = _narrowed(config, config.inputs, input_types(model))
        outputs = _narrowed(config, config.outputs, output_types(model))
        if config.outputs:
            outputs = {each.name: outputs[each.name] for each in config.outputs}
        # Of the whole plan, once: requests ask for each of these.
        has_even_runs = model.plan.is_constant_time
        return cls(
            name,
            version,
            model,
            source,
            metrics,
            inputs,
            outputs,
            joined,
            has_even_runs,
            is_constant_time=has_even_runs and not model.takes_other_shapes,
            may_join=config.batching is not None and config.max_batch_size > 1,
        )

    @property
    def config(self) -> ModelConfig | None:
        """Configuration that it was loaded with; None for a model that was given as a file."""
        return self.source.config


def input_types(model: Model) -> Types:
    """Return the types of a model's inputs; lengths that may change are None."""
    found: dict[str, tuple[DType, Shape | None]] = dict(model.input_types)
    for name, is_open in model.open_lengths.items():
        dtype, shape = found[name]
        assert shape is not None, name
        found[name] = dtype, tuple(map(_unless, is_open, shape))
    return found


def _unless(is_open: object, length: int | str | None) -> int | str | None:
    return None if is_open else length


def output_types(model: Model) -> Types:
    """Return the types of a model's outputs, with the lengths that hold for all inputs."""
    known = model.known_output_shapes
    return {name: (dtype, known[name]) for name, (dtype, _) in model.output_types.items()}


def _narrowed(config: ModelConfig, tensors: tuple[TensorConfig, ...], types: Types) -> Types:
    """Return types whose open lengths are those of the configuration, where it has some."""
    found = dict(types)
    for each in tensors:
        dtype, shape = types[each.name]
        wanted = config.full_shape(each)
        known = (None,) * len(wanted) if shape is None else shape
        found[each.name] = dtype, tuple(map(_narrower, known, wanted))
    return found


def _narrower(known: int | str | None, wanted: int) -> int | str | None:
    return known if isinstance(known, int) or wanted == ANY else wanted
