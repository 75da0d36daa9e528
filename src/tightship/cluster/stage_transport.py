"""Ways of values between stages: channels of shared memory on one node, objects between nodes.

Channels are those of Ray's compiled graphs. Between nodes these are not used, because the end of a
process that has one ends the raylet of its node (Ray 2.60, issue 63229), and with it all that runs
there.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from tightship.cluster.replica import Array
from tightship.cluster.short_spin import ShortSpin
from tightship.cluster.stage_graph import CALLER, StageGraph

ENDLESS = -1
MESSAGE_BYTES = 64 << 10
"""Bytes of a message beside its arrays."""


class Transport(Protocol):
    """Way of calls through the stages."""

    def send(self, parts: Sequence[Mapping[str, Array]]) -> Sequence[Any]:
        """Start a call; return references to what the caller receives, by sender."""

    def receive(self, references: Sequence[Any]) -> list[Mapping[str, Array]]:
        """Wait for the results of a call; calls are received in their order."""

    def close(self) -> None:
        """End the transport; actors remain."""


class Channels:
    """Compiled graph of Ray over stages on the node of this process."""

    def __init__(self, graph: StageGraph, actors: Sequence[Any], in_flight: int) -> None:
        """Open channels that hold as many calls as may be in flight."""
        from ray.dag import InputNode, MultiOutputNode

        inputs = {flow: index for index, flow in enumerate(graph.sent_by(CALLER))}
        with InputNode() as given:
            sent: dict[Any, Any] = {flow: given[index] for flow, index in inputs.items()}
            _bind(graph, sent, lambda stage, count, received: (
                actors[stage].run_stage.options(num_returns=count).bind(*received)
            ))  # fmt: skip
            ends = MultiOutputNode([sent[flow] for flow in graph.to(CALLER)])
        self._graph = ends.experimental_compile(
            _submit_timeout=ENDLESS,
            _buffer_size_bytes=graph.message_bytes + MESSAGE_BYTES,
            _max_inflight_executions=in_flight,
            _max_buffered_results=in_flight,
        )
        # Ray registers a reader at its first read, or to close it; if the stage has ended by then,
        # that ends this process (Ray 2.60).
        for channel in self._graph.dag_output_channels:
            channel.ensure_registered_as_reader()
        self._spin = ShortSpin()

    def send(self, parts: Sequence[Mapping[str, Array]]) -> Sequence[Any]:
        """Start a call, as `Transport.send`."""
        references: Sequence[Any] = self._graph.execute(*parts)
        return references

    def receive(self, references: Sequence[Any]) -> list[Mapping[str, Array]]:
        """Wait for the results of a call, which are copied out of the channels."""
        return self._spin.result(lambda: [_copied(each.get(ENDLESS)) for each in references])

    def close(self) -> None:
        """Close the channels; calls in flight end with an error."""
        self._graph.teardown()


class Objects:
    """Calls of actors whose results go from node to node through Ray's object stores."""

    def __init__(self, graph: StageGraph, actors: Sequence[Any]) -> None:
        self._graph = graph
        self._actors = actors

    def send(self, parts: Sequence[Mapping[str, Array]]) -> Sequence[Any]:
        """Start a call, as `Transport.send`."""
        sent: dict[Any, Any] = dict(zip(self._graph.sent_by(CALLER), parts, strict=True))
        _bind(self._graph, sent, lambda stage, count, received: (
            self._actors[stage].run_stage.options(num_returns=count).remote(*received)
        ))  # fmt: skip
        return [sent[flow] for flow in self._graph.to(CALLER)]

    def receive(self, references: Sequence[Any]) -> list[Mapping[str, Array]]:
        """Wait for the results of a call."""
        import ray

        return [_copied(each) for each in ray.get(list(references))]

    def close(self) -> None:
        """Do nothing, because nothing is kept open."""


def _bind(graph: StageGraph, sent: dict[Any, Any], call: Any) -> None:  # noqa: ANN401
    """Call every stage with what it receives, and note what it sends."""
    for stage in range(len(graph.stages)):
        flows = graph.sent_by(stage)
        found = call(stage, len(flows), [sent[flow] for flow in graph.to(stage)])
        sent |= zip(flows, [found] if len(flows) == 1 else found, strict=True)


def _copied(received: Mapping[str, Array]) -> Mapping[str, Array]:
    return {name: array.copy() for name, array in received.items()}
