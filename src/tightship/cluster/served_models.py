"""Replica of Ray Serve: models in the memory that is booked for it, over HTTP and by handles."""

import asyncio
import gc
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ray import serve

from tightship.cluster.held_nodes import anchor_on, hold_on
from tightship.cluster.inference_calls import InferenceCalls
from tightship.cluster.node_processes import Process
from tightship.cluster.process_memory import (
    data_bytes,
    limit_data,
    pss_bytes,
    return_blocks,
    small_stacks,
)
from tightship.cluster.ray_state import booked_bytes
from tightship.cluster.replica import Array
from tightship.cluster.replica_memory import Requirements
from tightship.cluster.request_memory import BodyLimits
from tightship.cluster.weights_bookings import Holding
from tightship.driver.oip.http.message import HttpRequest, HttpResponse
from tightship.driver.oip.model_source import ModelSource
from tightship.driver.oip.repository import Repository
from tightship.engine.library import release_heap
from tightship.errors import InputError, TightshipError
from tightship.public_calls import explains_memory

OVERRUNS_MAX = 3
"""Calls in a row that lack memory until the replica counts as unhealthy, and is replaced."""
REGISTERED_S = 2.0
"""Seconds that an anchor has to answer, of those that Serve gives a health check (30)."""
HEADER_LENGTH = "Inference-Header-Content-Length"


@dataclass(frozen=True, slots=True)
class Served:
    """Models of a deployment, and what each of its replicas may take.

    Attributes:
        models: Requirements of each model by name.
        holdings: Models and their weights, in the same order.
        anchor_bytes: Memory of an anchor without weights, where it takes most.
        requirements: All that a replica takes, which becomes its limit.
        limits: Largest bodies.
    """

    models: Mapping[str, Requirements]
    holdings: tuple[Holding, ...]
    anchor_bytes: int
    requirements: Requirements
    limits: BodyLimits


class ServedModels:
    """Process of Ray Serve that runs models under a limit on its memory, as `Replica` does.

    Models load when they are first asked for, the only one of a deployment at once. Runs, and what
    is parsed for them, take turns in one thread, because one of each is what is booked.
    """

    def __init__(self, served: Served) -> None:
        """Set the limit, and find the files of the models on this node.

        Raises:
            CapacityError: The node has no room for an anchor or the weights besides this replica.
            TightshipError: A file cannot be made, or the only model cannot be loaded.
        """
        import ray

        self._served = served
        self._node: str = ray.get_runtime_context().get_node_id()
        (anchor,) = hold_on({self._node: served.anchor_bytes}, served.holdings)
        self._register(anchor)
        files = [anchor.file.remote(each.source) for each in served.holdings]
        sources = {
            name: ModelSource(file.path, None, needs.threads, needs.plan_bytes)
            for (name, needs), file in zip(served.models.items(), ray.get(files), strict=True)
        }
        small_stacks()
        return_blocks()
        self._data_bytes = data_bytes()
        self._limit_bytes = limit_data(self._data_bytes, served.requirements.data_bytes)
        self._repository = Repository(lambda: sources)
        self._calls = InferenceCalls(self._repository, served.limits)
        self._thread = ThreadPoolExecutor(1, "tightship-run")
        self._overruns = 0
        if len(sources) == 1:
            self._load(next(iter(sources)))
        gc.collect()
        release_heap()

    async def __call__(self, request: Any) -> Any:  # noqa: ANN401  of Starlette
        """Answer a call of the Open Inference Protocol."""
        from starlette.responses import Response

        response = await self._response(request)
        headers = {"Content-Type": response.content_type}
        if response.header_bytes is not None:
            headers[HEADER_LENGTH] = str(response.header_bytes)
        return Response(b"".join(response.parts), response.status, headers)

    async def run(self, inputs: Mapping[str, Array], model: str | None = None) -> dict[str, Array]:
        """Run a model on an array for every input name.

        Args:
            inputs: An array for every input name.
            model: Name of the model; by default the one that the handle's `multiplexed_model_id`
                names, or the only one.

        Raises:
            InputError: A name, dtype or shape does not fit.
            OutOfMemoryError: The run needs more memory than the replica may take.
        """
        name = await self._ready(model)
        results: dict[str, Array] = await self._in_turn(self._run, name, inputs)
        return results

    async def apply(self, function: Callable[..., Any], *arguments: Any) -> Any:  # noqa: ANN401
        """Return the result of a function of a model and further arguments, run here.

        Raises:
            Exception: Any that the function raises.
            OutOfMemoryError: It needs more memory than the replica may take.
        """
        name = await self._ready(None)
        return await self._in_turn(self._apply, name, function, arguments)

    async def status(self) -> dict[str, int]:
        """Return the process id, and memory in bytes."""
        return {
            "pid": os.getpid(),
            "pss_bytes": pss_bytes(),
            "booked_bytes": booked_bytes(),
            "arena_bytes": self._repository.arenas.held_bytes,
            "data_bytes": data_bytes(),
            "data_before_bytes": self._data_bytes,
            "data_limit_bytes": self._limit_bytes,
        }

    async def check_health(self) -> None:
        """Check, for Serve, that calls find memory; and remind the anchor of this replica.

        Raises:
            TightshipError: The last calls all lacked memory.
        """
        if self._overruns >= OVERRUNS_MAX:
            raise TightshipError(f"The last {self._overruns} calls lacked memory.")
        await self._remind()

    def __del__(self) -> None:
        """Close the models, once Serve has drained the requests."""
        if hasattr(self, "_thread"):
            self._thread.shutdown()
            self._repository.close()

    async def _response(self, request: Any) -> Any:  # noqa: ANN401
        import ray

        path, prefix = request.scope["path"], request.scope.get("root_path", "")
        headers = {name.lower(): value for name, value in request.headers.items()}
        target = path.removeprefix(prefix) or "/"
        body = self._calls.arriving(HttpRequest(request.method, target, headers, b""))
        try:
            async for part in request.stream():  # all: a client that still sends hears no answer
                body.feed(part)
        except (MemoryError, ray.exceptions.RaySystemError):
            # Serve received more at once than there is room for; Ray wraps what it cannot read.
            body.overrun(MemoryError())
        asked = body.end()
        if isinstance(asked, HttpResponse):
            return asked
        name = self._calls.model_of(asked.target)
        if name in self._served.models:
            await self._ready(name)
        return await self._in_turn(self._calls.respond, asked)

    async def _ready(self, name: str | None) -> str:
        """Return the name of a model, which is loaded then."""
        wanted = name or serve.get_multiplexed_model_id()
        if not wanted and len(self._served.models) == 1:
            (wanted,) = self._served.models
        if wanted not in self._served.models:
            known = ", ".join(f"`{each}`" for each in self._served.models)
            raise InputError(f"Unknown model `{wanted}`; choose {known}.")
        return wanted if len(self._served.models) == 1 else await self.loaded(wanted)

    async def loaded(self, name: str) -> str:
        """Load a model if it is not; Serve's multiplexing routes requests to those that have it."""
        if not self._repository.is_ready(name):
            await self._in_turn(self._load, name)
        return name

    async def _in_turn(self, function: Callable[..., Any], *arguments: Any) -> Any:  # noqa: ANN401
        try:
            found = await asyncio.get_running_loop().run_in_executor(
                self._thread, function, *arguments
            )
        except MemoryError:
            self._overruns += 1
            raise
        self._overruns = 0
        return found

    def _load(self, name: str) -> None:
        if self._repository.is_ready(name):
            return
        try:
            self._repository.load(name)
        except TightshipError as error:
            raise error.__cause__ or error from None

    def _run(self, name: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
        with self._repository.used(name) as served:
            return served.model.run(inputs)

    @explains_memory("a function in a replica")
    def _apply(
        self, name: str, function: Callable[..., object], arguments: tuple[object, ...]
    ) -> object:
        with self._repository.used(name) as served:
            return function(served.model, *arguments)

    def _register(self, anchor: Any) -> Any:  # noqa: ANN401
        model = self._served.requirements.model
        return anchor.register.remote(
            Process("replica", os.getpid(), model, booked_bytes()),
            [each.source.key for each in self._served.holdings],
        )

    async def _remind(self) -> None:
        """Register again, because the anchor may be another process by now, or another actor."""
        import ray

        with suppress(TimeoutError, ray.exceptions.RayError):
            anchor = await asyncio.to_thread(anchor_on, self._node, self._served.anchor_bytes)
            await asyncio.wait_for(self._register(anchor), REGISTERED_S)


class MultiplexedModels(ServedModels):
    """Replica of which Serve knows the loaded models, so that it can route requests to them."""

    loaded = serve.multiplexed(max_num_models_per_replica=-1)(ServedModels.loaded)
