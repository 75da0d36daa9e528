"""Actor that runs a model in the memory that its node has booked for it."""

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import tightship.loading.budget  # noqa: F401  a replica checks its limit, and loads faster
from tightship.cluster.held_nodes import anchor_on, hold_on
from tightship.cluster.node_file import check_source
from tightship.cluster.node_processes import Process
from tightship.cluster.process_memory import (
    data_bytes,
    limit_data,
    pss_bytes,
    small_stacks,
)
from tightship.cluster.ray_state import booked_bytes
from tightship.cluster.replica_memory import Requirements, Shapes
from tightship.cluster.weights_bookings import Holding
from tightship.loading.entry import load
from tightship.public_calls import explains_memory

Array = NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class Found:
    """Model of a replica, for which the anchor of its node answers.

    Attributes:
        holding: The model and its weights.
        anchor_bytes: Memory of an anchor without weights.
        is_shared: Whether the weights are those of the prepared file that the anchor has.
    """

    holding: Holding
    anchor_bytes: int
    is_shared: bool = True

    def path(self, model: str) -> str:
        """Return the path of a file to load, which the anchor prepares first if it is missing.

        Args:
            model: Name of the model in reports.

        Raises:
            CapacityError: The anchor was lost for good, and the node has no room for another.
            InputError: The model differs from that of the process that named it.
        """
        import ray

        source = self.holding.source
        node = ray.get_runtime_context().get_node_id()
        process = Process("replica", os.getpid(), model, booked_bytes())
        if not self.is_shared:
            check_source(source)
            anchor_on(node, self.anchor_bytes).register.remote(process)
            return source.path
        (anchor,) = hold_on({node: self.anchor_bytes}, [self.holding])
        anchor.register.remote(process, [source.key])
        path: str = ray.get(anchor.file.remote(source)).path
        return path

    @property
    def shapes(self) -> Shapes | None:
        """Shapes to load the file with; a prepared one has its own."""
        return None if self.is_shared else self.holding.source.shapes


class Replica:
    """Process of Ray with one loaded model, which it may not outgrow.

    The limit on writable memory (`RLIMIT_DATA`) is what the process had before loading and what the
    plan adds. An allocation beyond it raises an error in the call that needs it, or ends this
    process if it happens in code that cannot raise one. Other processes never notice.
    """

    def __init__(
        self,
        model: str | Found,
        requirements: Requirements,
    ) -> None:
        """Load a model.

        Args:
            model: Path of a prepared model on this node, or where to find the model.
            requirements: Requirements of the model, which become the limit.

        Raises:
            CapacityError: The model needs more than the requirements.
            FormatError: The prepared model is damaged, or was made for another processor.
        """
        started = time.perf_counter_ns()
        path = model if isinstance(model, str) else model.path(requirements.model)
        small_stacks()
        self._data_bytes = data_bytes()
        self._limit_bytes = limit_data(self._data_bytes, requirements.data_bytes)
        load_started = time.perf_counter_ns()
        self._model = load(
            path,
            shapes=None if isinstance(model, str) else model.shapes,
            max_memory=requirements.plan_bytes,
            threads=requirements.threads,
        )
        ended = time.perf_counter_ns()
        self._load_ns, self._ready_ns = ended - load_started, ended - started

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        """Run the model on an array for every input name.

        Raises:
            InputError: A name, dtype or shape does not fit.
            OutOfMemoryError: The run needs more memory than the replica may take.
        """
        return self._model.run(inputs)

    @explains_memory("a function in a replica")
    def apply(self, function: Callable[..., Any], *arguments: Any) -> Any:  # noqa: ANN401
        """Return the result of a function of the model and further arguments, run here.

        The function has the memory that the plan leaves, as for steps before and after the model.

        Raises:
            Exception: Any that the function raises.
            OutOfMemoryError: It needs more memory than the replica may take.
        """
        return function(self._model, *arguments)

    def status(self) -> dict[str, int]:
        """Return the process id, and memory and times in bytes and nanoseconds."""
        return {
            "pid": os.getpid(),
            "pss_bytes": pss_bytes(),
            "data_bytes": data_bytes(),
            "data_before_bytes": self._data_bytes,
            "data_limit_bytes": self._limit_bytes,
            "load_ns": self._load_ns,
            "ready_ns": self._ready_ns,
        }
