"""Output types of operators that run a graph: If, Loop, Scan and SequenceMap."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from onnx import GraphProto, NodeProto, TypeProto

from tightship.errors import GraphError
from tightship.frontend.onnx import types
from tightship.frontend.onnx.infer import UntypedError
from tightship.frontend.onnx.schema import label
from tightship.frontend.onnx.scope import Scope
from tightship.graph import AttributeValue, Constant, DType, Graph
from tightship.graph.loop_trips import trip_count
from tightship.graph.refusal import refusing_graph

_EXACT_LOOP_DEPTH_MAX = 3
_UNBATCHED_SCAN_VERSION = 9
"""Opset from which Scan has no batch axis; shapes of older ones stay unknown."""


@dataclass(frozen=True, slots=True)
class Body:
    """Subgraph, read for certain input types."""

    graph: Graph
    outputs: tuple[TypeProto, ...]


ReadBody = Callable[[GraphProto, Sequence[TypeProto] | None], Body]
"""Reads a subgraph for input types; None keeps the types it declares."""


@dataclass(frozen=True, slots=True)
class ControlNode:
    """Node with subgraphs, and the means to read them."""

    proto: NodeProto
    attributes: Mapping[str, AttributeValue]
    graphs: Mapping[str, GraphProto]
    scope: Scope
    read_body: ReadBody
    version: int
    depth: int
    """Number of graphs around the node's own."""

    @property
    def owner(self) -> str:
        """Name of the node in messages."""
        return f"Node {label(self.proto)}"

    def body(self, name: str, inputs: Sequence[TypeProto] | None) -> Body:
        """Read the subgraph in an attribute.

        Raises:
            GraphError: The attribute is missing, or the subgraph has another number of inputs.
        """
        graph = self.graphs.get(name)
        if graph is None:
            raise GraphError(f"{self.owner} has no graph in its attribute `{name}`.")
        if inputs is not None and len(graph.input) != len(inputs):
            raise GraphError(
                f"{self.owner} gives {len(inputs)} inputs to its graph `{name}`, which takes "
                f"{len(graph.input)}."
            )
        return self.read_body(graph, inputs)

    def type_of(self, name: str) -> TypeProto:
        """Return the type of an input; unknown if it is absent."""
        return self.scope.type_of(name, self.owner) if name else TypeProto()

    def known(self, index: int) -> Constant | None:
        """Return the value of an input if it is known and has one element."""
        name = self.proto.input[index] if index < len(self.proto.input) else ""
        constant = self.scope.small_constant_of(name) if name else None
        return constant if constant is not None and constant.array().size == 1 else None


def type_control(node: ControlNode) -> tuple[dict[str, Graph], list[TypeProto]]:
    """Return the subgraphs of a node by attribute, and the types of its outputs.

    Raises:
        GraphError: The subgraphs do not fit the node.
    """
    rule = _RULES.get(node.proto.op_type)
    if rule is None:
        graphs = {name: node.body(name, None).graph for name in node.graphs}
        return graphs, [TypeProto() for _ in node.proto.output]
    graphs, outputs = rule(node)
    if len(node.proto.output) > len(outputs):
        raise GraphError(
            f"{node.owner} has {len(node.proto.output)} outputs, but its graphs give "
            f"{len(outputs)}."
        )
    return graphs, outputs


def _type_if(node: ControlNode) -> tuple[dict[str, Graph], list[TypeProto]]:
    condition = node.known(0)
    if condition is not None:
        taken, other = _BRANCHES if condition.array().item() else _BRANCHES[::-1]
        body = node.body(taken, ())
        left = _branch(node, other, GraphError)
        return _branches(node, {taken: body, other: left}), list(body.outputs)
    found = {name: _branch(node, name, UntypedError) for name in _BRANCHES}
    bodies = [branch for branch in found.values() if isinstance(branch, Body)]
    if not bodies:
        reasons = " ".join(f"`{name}`: {error}" for name, error in found.items())
        raise UntypedError(f"{node.owner} has no branch that fits its operands. {reasons}")
    if len(bodies) == 1:
        return _branches(node, found), list(bodies[0].outputs)
    then_branch, else_branch = bodies
    if len(then_branch.outputs) != len(else_branch.outputs):
        raise GraphError(
            f"{node.owner} gives {len(then_branch.outputs)} outputs in one branch and "
            f"{len(else_branch.outputs)} in the other."
        )
    return _branches(node, found), _widen_all(node, then_branch.outputs, else_branch.outputs)


_BRANCHES = ("then_branch", "else_branch")


def _branch(node: ControlNode, name: str, excused: type[GraphError]) -> Body | GraphError:
    """Read a branch without inputs; return the error if it is of the class `excused`."""
    try:
        return node.body(name, ())
    except excused as error:
        return error


def _branches(node: ControlNode, found: Mapping[str, Body | GraphError]) -> dict[str, Graph]:
    """Return the graphs of an If; an unreadable branch becomes a graph that refuses to run."""
    (model,) = [branch for branch in found.values() if isinstance(branch, Body)][:1]
    outputs = [model.graph.value(name) for name in model.graph.outputs]
    return {
        name: branch.graph
        if isinstance(branch, Body)
        else refusing_graph(
            f"{next(iter(node.proto.output), node.proto.name)}/{name}",
            f"{node.owner} takes its branch `{name}`, which does not fit the shapes of this "
            f"model's inputs. {branch}",
            outputs,
        )
        for name, branch in found.items()
    }


def _type_loop(node: ControlNode) -> tuple[dict[str, Graph], list[TypeProto]]:
    if len(node.proto.input) < 2:
        raise GraphError(f"{node.owner} has {len(node.proto.input)} inputs; it needs at least 2.")
    fixed = [types.tensor_type(DType.INT64, ()), types.tensor_type(DType.BOOL, ())]
    state = [node.type_of(name) for name in node.proto.input[2:]]
    body, state = _settle(node, fixed, state, (), 1)
    trips = trip_count(node.proto.input, body.graph, node.scope.small_constant_of)
    scanned = [_stacked(type_, 0, trips) for type_ in body.outputs[1 + len(state) :]]
    return {"body": body.graph}, state + scanned


def _type_scan(node: ControlNode) -> tuple[dict[str, Graph], list[TypeProto]]:
    count = node.attributes.get("num_scan_inputs")
    inputs = list(node.proto.input)
    if not isinstance(count, int) or not 1 <= count <= len(inputs):
        raise GraphError(
            f"{node.owner} has num_scan_inputs={count!r}; it must be 1 to {len(inputs)}."
        )
    if node.version < _UNBATCHED_SCAN_VERSION:
        body = node.body("body", None)
        return {"body": body.graph}, [_shapeless(type_) for type_ in body.outputs]
    state = [node.type_of(name) for name in inputs[:-count]]
    scans = [node.type_of(name) for name in inputs[-count:]]
    axes = _axes(node, "scan_input_axes", count)
    slices = [_slice(type_, axis) for type_, axis in zip(scans, axes, strict=True)]
    lengths = [_length(type_, axis) for type_, axis in zip(scans, axes, strict=True)]
    length = next((length for length in lengths if length is not None), None)
    body, state = _settle(node, (), state, slices, 0)
    given = body.outputs[len(state) :]
    axes = _axes(node, "scan_output_axes", len(given))
    scanned = [_stacked(type_, axis, length) for type_, axis in zip(given, axes, strict=True)]
    return {"body": body.graph}, state + scanned


def _type_sequence_map(node: ControlNode) -> tuple[dict[str, Graph], list[TypeProto]]:
    inputs = [node.type_of(name) for name in node.proto.input]
    elements = [
        type_.sequence_type.elem_type if type_.HasField("sequence_type") else type_
        for type_ in inputs
    ]
    body = node.body("body", [_shapeless(type_) for type_ in elements])
    return {"body": body.graph}, [types.sequence_of(type_) for type_ in body.outputs]


_RULES: dict[str, Callable[[ControlNode], tuple[dict[str, Graph], list[TypeProto]]]] = {
    "If": _type_if,
    "Loop": _type_loop,
    "Scan": _type_scan,
    "SequenceMap": _type_sequence_map,
}


def _settle(
    node: ControlNode,
    before: Sequence[TypeProto],
    state: list[TypeProto],
    after: Sequence[TypeProto],
    skipped: int,
) -> tuple[Body, list[TypeProto]]:
    """Read a body for state types that it returns unchanged.

    A dimension that changes between iterations becomes unknown; if even the rank does, the whole
    shape. `skipped` outputs of the body come before the state.
    """
    if node.depth > _EXACT_LOOP_DEPTH_MAX:
        state = [_shapeless(type_) for type_ in state]
    for shape_is_known in (True, False, False):
        body = node.body("body", [*before, *state, *after])
        if len(body.outputs) < skipped + len(state):
            raise GraphError(
                f"The body of {node.owner} gives {len(body.outputs)} outputs; its state needs "
                f"{skipped + len(state)}."
            )
        widened = _widen_all(node, state, body.outputs[skipped : skipped + len(state)])
        if widened == state:
            break
        changed = zip(state, widened, strict=True)
        state = [new if shape_is_known or old == new else _shapeless(new) for old, new in changed]
    return body, state


def _widen_all(
    node: ControlNode, first: Sequence[TypeProto], second: Sequence[TypeProto]
) -> list[TypeProto]:
    for left, right in zip(first, second, strict=True):
        if types.is_tensor(left) and types.is_tensor(right):
            numbers = left.tensor_type.elem_type, right.tensor_type.elem_type
            if numbers[0] != numbers[1]:
                raise GraphError(
                    f"{node.owner} has a value of type {types.element_name(numbers[0])} on one "
                    f"path and {types.element_name(numbers[1])} on another."
                )
    return [types.widen(left, right) for left, right in zip(first, second, strict=True)]


def _axes(node: ControlNode, name: str, count: int) -> tuple[int, ...]:
    axes = node.attributes.get(name, (0,) * count)
    if not isinstance(axes, tuple) or len(axes) != count:
        raise GraphError(f"{node.owner} has {name}={axes!r}; it needs {count} axes.")
    return tuple(int(axis) for axis in axes)


def _shapeless(type_: TypeProto) -> TypeProto:
    if not types.is_tensor(type_):
        return type_
    return types.with_shape(type_.tensor_type.elem_type, None)


def _length(type_: TypeProto, axis: int) -> int | None:
    shape = types.shape_of(type_) if types.is_tensor(type_) else None
    if shape is None or not -len(shape) <= axis < len(shape):
        return None
    length = shape[axis]
    return length if isinstance(length, int) else None


def _slice(type_: TypeProto, axis: int) -> TypeProto:
    shape = types.shape_of(type_) if types.is_tensor(type_) else None
    if shape is None or not -len(shape) <= axis < len(shape):
        return _shapeless(type_)
    axis %= len(shape)
    return types.with_shape(type_.tensor_type.elem_type, shape[:axis] + shape[axis + 1 :])


def _stacked(type_: TypeProto, axis: int, length: int | None) -> TypeProto:
    shape = types.shape_of(type_) if types.is_tensor(type_) else None
    if shape is None or not -len(shape) - 1 <= axis <= len(shape):
        return _shapeless(type_)
    axis %= len(shape) + 1
    return types.with_shape(type_.tensor_type.elem_type, (*shape[:axis], length, *shape[axis:]))
