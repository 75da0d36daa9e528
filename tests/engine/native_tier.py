"""Single nodes run by the native tier alone, from arrays to arrays."""

from collections.abc import Sequence
from typing import Any

from tests.engine.kernels.node_suite import known, values_of
from tests.engine.kernels.typed import Typed
from tightship.engine.cache.bounds import Bounds
from tightship.engine.compile.compiled_model import CompiledModel
from tightship.engine.kernels import Array
from tightship.engine.lower.steps.builder import Builder, Options
from tightship.engine.lower.steps.emit import emit
from tightship.engine.plan.placement import place
from tightship.engine.program.program import Lowered, NativeWork
from tightship.graph import Graph, Node
from tightship.model import Model


def lowered_natively(
    node: Node, inputs: Sequence[Any], like: Sequence[Any], threads: int = 1
) -> Lowered | None:
    """A node as native kernels, every input known as parameters are; None if not covered."""
    given, made = values_of(node.inputs, inputs), values_of(node.outputs, like)
    values = {value.name: value for value in (*given, *made) if value is not None}
    names = tuple(dict.fromkeys(value.name for value in given if value is not None))
    outputs = tuple(value.name for value in made if value is not None)
    graph = Graph("g", names, outputs, values, (node,), {}, known=known(node, inputs))
    builder = Builder(graph, threads, Options(use_onednn=False))
    return builder.finish() if emit("native", builder, node) else None


def run_natively(
    node: Node, inputs: Sequence[Any], like: Sequence[Any], threads: int = 1
) -> list[Array | None] | None:
    """Return the results of the node's native kernels; None if the tier has none."""
    lowered = lowered_natively(node, inputs, like, threads)
    if lowered is None:
        return None
    assert all(isinstance(step.work, NativeWork) for step in lowered.steps)
    placement = place(lowered)
    feeds = {n: x for n, x in zip(node.inputs, inputs, strict=True) if x is not None}
    with Model(CompiledModel(placement, "g", 0, {}), Bounds()) as model:
        results = model.run(feeds)
    return [results.get(name) for name in node.outputs]


def assert_as_numpy(case: Typed, threads: int = 1) -> None:
    """The native tier covers the node and makes what its NumPy kernel makes, bit for bit."""
    results = run_natively(case.node, case.inputs, case.like, threads)
    assert results is not None, f"no native kernel covers {case.node}"
    for result, wanted in zip(results, case.run(), strict=True):
        assert result is not None
        assert (result.dtype, result.shape) == (wanted.dtype, wanted.shape)
        assert result.tobytes() == wanted.tobytes()
