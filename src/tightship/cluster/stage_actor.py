"""Actor that runs one stage of a model in the memory that its node has booked for it."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any
from uuid import uuid4

from tightship.cluster.node_processes import Process
from tightship.cluster.process_memory import pss_bytes
from tightship.cluster.ray_state import booked_bytes
from tightship.cluster.replica import Array, Replica
from tightship.cluster.replica_memory import Requirements
from tightship.cluster.stage_file import StageSource
from tightship.cluster.weights_bookings import PREFIX
from tightship.cluster.worker import Probe

CHANNEL_BYTES = 8 << 20
"""Data that Ray's channels take in a process beside the modules that they import."""
STAGE = f"{PREFIX}:stage:"
"""Start of the names of stages, by which the status of a cluster finds them."""


def stage_name() -> str:
    """Return a new name for the actor of a stage."""
    return f"{STAGE}{uuid4().hex}"


def import_channels() -> None:
    """Import what Ray imports when it opens channels, which must not count as the stage's.

    Ray imports torch too where it is installed, some 130 MiB, for the device of its tensors. Stages
    send NumPy arrays alone, so the import is answered as if torch were not installed.
    """
    import ray.dag.compiled_dag_node
    import ray.experimental.channel.auto_transport_type
    import ray.experimental.channel.shared_memory_channel
    import ray.experimental.channel.torch_tensor_type  # noqa: F401
    from ray.experimental.channel import ChannelContext

    ChannelContext.get_current()._torch_available = False


class StageProbe(Probe):
    """Actor that imports what a stage imports, and measures its own process."""

    def __init__(self) -> None:
        super().__init__()
        import_channels()


class StageActor:
    """Process of Ray with one stage, which it may not outgrow."""

    def __init__(
        self, source: StageSource, requirements: Requirements, sent: Sequence[Sequence[str]]
    ) -> None:
        """Remember a stage, which `load` loads: errors of a constructor do not reach the caller.

        Args:
            source: The stage.
            requirements: Requirements of the stage, which become the limit.
            sent: Names of its outputs for each that they are sent to.
        """
        self._source = source
        self._requirements = requirements
        self._sent = sent
        self._replica: Replica | None = None

    def load(self) -> None:
        """Load the stage from this node's file of it, which is prepared first if it is missing.

        Raises:
            CapacityError, FormatError, InputError: The errors of `StageSource.path` and `Replica`.
            UnusableCacheError: The cache of this node cannot be used.
        """
        self._loaded()

    def _loaded(self) -> Replica:
        if self._replica is None:
            import_channels()
            self._replica = Replica(self._source.path(), self._requirements)
        return self._replica

    def run_stage(
        self, *received: Mapping[str, Array]
    ) -> Mapping[str, Array] | tuple[Mapping[str, Array], ...]:
        """Run the stage on inputs of the model and values of earlier stages.

        Returns:
            Values for the only one that they are sent to, or a tuple with values for each.

        Raises:
            InputError: A name, dtype or shape does not fit.
            OutOfMemoryError: The run needs more memory than the stage may take.
        """
        values: dict[str, Array] = {}
        for part in received:
            values |= part
        results = self._loaded().run(values)
        parts = tuple([{name: results[name] for name in names} for names in self._sent])
        return parts if len(parts) > 1 else parts[0]

    def apply(self, function: Callable[..., Any], *arguments: Any) -> Any:  # noqa: ANN401
        """Return the result of a function of the model, as `Replica.apply`."""
        return self._loaded().apply(function, *arguments)

    def status(self) -> dict[str, int]:
        """Return the process id, and memory and times in bytes and nanoseconds."""
        return self._loaded().status()

    def located(self) -> tuple[str, list[dict[str, Any]]]:
        """Return the id of this node, and this process as `cluster.status` shows it."""
        import ray

        process = Process("stage", os.getpid(), self._requirements.model, booked_bytes())
        node: str = ray.get_runtime_context().get_node_id()
        return node, [{**asdict(process), "pss_bytes": pss_bytes()}]
