"""Stores NumPy kernels by operator, attributes and the inputs that they depend on."""

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from tightship.engine.kernels import Array, Kernel, numpy_kernel
from tightship.engine.kernels.kernel_context import KernelContext
from tightship.engine.program.program import KernelWork, Operand
from tightship.engine.stored import fields
from tightship.engine.stored.fields import MalformedError
from tightship.errors import FormatError, GraphError
from tightship.graph import AttributeValue, Constant, DType, Graph, Inline, Layer, Node, Value

INTEGER_MAX = (1 << 63) - 1
UNFIT = (
    ArithmeticError, AssertionError, AttributeError, GraphError, LookupError, TypeError, ValueError,
)  # fmt: skip
"""Exceptions of making or running a kernel whose attributes or shapes are invalid."""

Element = int | float | str
Result = TypeVar("Result")


class UnstorableError(Exception):
    """Kernel that depends on more than operator, attributes and known inputs; names what."""


def kernel_json(context: KernelContext) -> list[object]:
    """Describe what a kernel is made of, besides the types of its operands.

    Raises:
        UnstorableError: An attribute is a graph, or holds strings, or nodes are fused into the
            node.
    """
    node = context.node
    if node.fused:
        raise UnstorableError("has nodes fused into it")
    attributes = {name: _attribute_json(value) for name, value in node.attributes.items()}
    known = {name: _tensor_json(constant) for name, constant in context.consulted.items()}
    return [
        node.operator, node.domain, node.version, list(node.inputs), list(node.outputs),
        attributes, known,
    ]  # fmt: skip


def _attribute_json(value: AttributeValue) -> list[object]:
    match value:
        case int():
            return ["integer", value]
        case float():
            return ["number", value.hex()]
        case str():
            return ["text", value]
        case bytes():
            return ["bytes", value.hex()]
        case tuple():
            return ["list", [_attribute_json(element) for element in value]]
        case Graph() | Layer():
            raise UnstorableError("has a graph for an attribute")
    return ["tensor", _tensor_json(value)]


def _tensor_json(constant: Constant) -> list[object]:
    if constant.dtype is DType.STRING:
        raise UnstorableError("has strings for an attribute or input")
    elements = np.ascontiguousarray(constant.array())
    return [constant.dtype.value, list(constant.shape), elements.tobytes().hex()]


def numpy_work(
    name: str,
    made_of: object,
    inputs: Sequence[Operand | None],
    outputs: Sequence[Operand | None],
) -> KernelWork:
    """Make the kernel that `kernel_json` described, for untrusted operands.

    Raises:
        MalformedError: There is no such kernel.
    """
    operator, domain, version, sources, targets, attributes, known = fields.items(made_of, 7)
    node = Node(
        name,
        fields.text(operator),
        _names(sources, inputs),
        _names(targets, outputs),
        _members(attributes, _attribute),
        fields.text(domain),
        fields.integer(version),
    )
    types = tuple(map(_value, inputs)), tuple(map(_value, outputs))
    constants = _members(known, _tensor)
    kernel = _fitting(name, lambda: numpy_kernel(node, *types, constants))
    if kernel is None:
        raise MalformedError(f"step `{name:.60}` has no NumPy kernel")
    return KernelWork(_guarded(name, kernel), tuple(inputs), tuple(outputs))


def _fitting(name: str, call: Callable[[], Result]) -> Result:
    try:
        return call()
    except UNFIT as error:
        raise MalformedError(f"step `{name:.60}` cannot be made: {error!r:.80}") from None


def _guarded(name: str, kernel: Kernel) -> Kernel:
    """Wrap a kernel so that operands that do not fit raise an error that calls the file damaged."""

    def run(
        inputs: Sequence[Array | None], outputs: Sequence[Array | None], scratch: Array | None
    ) -> None:
        try:
            kernel.run(inputs, outputs, scratch)
        except UNFIT as error:
            raise FormatError(
                f"Step `{name:.60}` of a prepared model cannot be run: {error!r:.80}. Where its "
                "inputs are right, the file is damaged: make it again with `tightship prepare`."
            ) from None

    return Kernel(kernel.name, run, kernel.scratch_bytes, kernel.in_place)


def _names(value: object, operands: Sequence[Operand | None]) -> tuple[str, ...]:
    """Read one name for each operand, empty if it is left out."""
    names = tuple(fields.each(value, fields.text))
    if [bool(name) for name in names] != [operand is not None for operand in operands]:
        raise MalformedError("a NumPy kernel has other operands than its node")
    return names


def _value(operand: Operand | None) -> Value | None:
    return None if operand is None else Value(operand.name, operand.dtype, operand.shape)


def _members(value: object, read: Callable[[object], Result]) -> dict[str, Result]:
    if type(value) is not dict:
        raise MalformedError(f"{value!r:.40} is not an object")
    return {fields.text(name): read(member) for name, member in value.items()}


def _attribute(value: object) -> AttributeValue:
    kind, content = fields.items(value, 2)
    if kind == "list":
        elements = fields.each(content, _element)
        # a node's elements have one type; kernels tolerate a forged mixture
        return tuple(elements)  # type: ignore[return-value]
    return _tensor(content) if kind == "tensor" else _element(value)


def _element(value: object) -> int | float | str | bytes:
    kind, content = fields.items(value, 2)
    if kind == "integer":
        return fields.integer(content, -INTEGER_MAX - 1, INTEGER_MAX)
    said = fields.text(content)
    try:
        match kind:
            case "number":
                return float.fromhex(said)
            case "bytes":
                return bytes.fromhex(said)
            case "text":
                return said
    except (ValueError, OverflowError):
        raise MalformedError(f"`{said:.40}` is not a value of an attribute") from None
    raise MalformedError(f"{kind!r:.40} is not a kind of attribute")


def _tensor(value: object) -> Inline:
    dtype, shape, content = fields.items(value, 3)
    try:
        element = DType(fields.text(dtype))
        raw = np.frombuffer(bytes.fromhex(fields.text(content)), element.numpy)
        return Inline(raw.reshape(fields.integers(shape)))
    except ValueError as error:
        raise MalformedError(f"a tensor cannot be read: {error!s:.80}") from None
