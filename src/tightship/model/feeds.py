"""Checks callers' arrays against a program's inputs and outputs, and binds them."""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tightship.engine.program.program import Lowered, Operand, Space
from tightship.engine.run.output_buffer_pool import OutputBufferPool
from tightship.errors import InputError
from tightship.graph import DType
from tightship.graph.texts import decoded, with_texts
from tightship.model.row_blocks import RowBlocks

Array = NDArray[Any]


@dataclass(slots=True)
class Bound:
    """Arrays by slot, and objects by name, for one run."""

    external: dict[int, Array] = field(default_factory=dict)
    objects: dict[str, Any] = field(default_factory=dict)


def bind(
    lowered: Lowered,
    inputs: Mapping[str, ArrayLike],
    outputs: Mapping[str, Array],
    kept: OutputBufferPool | None = None,
    *,
    in_order: bool = True,
) -> Bound:
    """Bind an array to every input and output of a program.

    Args:
        lowered: The program.
        inputs: An array for every input, by name.
        outputs: Arrays for some or all outputs, by name; new ones are made for the others.
        kept: Pool that provides the new output arrays; None allocates them.
        in_order: Whether steps run one after another, so that an output may be written over an
            input that no later step reads.

    Raises:
        InputError: A name is missing or unknown, or a dtype, shape or layout does not fit.
    """
    _check_names(inputs, lowered.inputs, "input", required=True)
    if outputs:
        _check_names(outputs, lowered.outputs, "output", required=False)
    bound = Bound(objects={name: c.array() for name, c in lowered.objects.items()})
    for name, operand in lowered.inputs.items():
        if operand.space is Space.OBJECT:
            bound.objects[name] = _object(inputs[name], operand)
        else:
            bound.external[operand.slot] = _input(name, inputs[name], operand)
    taken: list[Array] = []
    for name, operand in lowered.outputs.items():
        if operand.space is Space.OBJECT:
            if name in outputs:
                raise InputError(
                    f"Output `{name}` cannot be written into a given array, because its shape "
                    "depends on data. Leave it out of `outputs`."
                )
        elif name in outputs:
            _check_output(name, outputs[name], operand, taken)
            _check_overlaps(lowered, bound, (name, outputs[name]), in_order=in_order)
            taken.append(outputs[name])
            bound.external[operand.slot] = outputs[name]
        else:
            new = np.empty if kept is None else partial(kept.array, name)
            bound.external[operand.slot] = new(operand.shape, operand.dtype.numpy)
    return bound


class Besides(NamedTuple):
    """Inputs and outputs of a program, by name, whose slots have no array yet."""

    lowered: Lowered
    inputs: Mapping[str, Operand]
    outputs: Mapping[str, Operand]

    @staticmethod
    def of(lowered: Lowered, placed: Container[int]) -> "Besides":
        """Return those of a program besides slots that have an array."""
        inputs = {name: operand for name, operand in lowered.inputs.items()
                  if operand.space is Space.OBJECT or operand.slot not in placed}  # fmt: skip
        outputs = {name: operand for name, operand in lowered.outputs.items()
                   if operand.space is not Space.OBJECT and operand.slot not in placed}  # fmt: skip
        return Besides(lowered, inputs, outputs)


def bind_besides(
    besides: Besides, inputs: Mapping[str, ArrayLike], kept: OutputBufferPool | None = None
) -> Bound:
    """Bind arrays to the inputs and outputs of a program whose slots have none yet.

    Args:
        besides: These inputs and outputs.
        inputs: An array for each of the inputs; outputs get new arrays.
        kept: Pool that provides the new output arrays; None allocates them.

    Raises:
        InputError: A name is missing or unknown, or a dtype or shape does not fit.
    """
    _check_names(inputs, besides.inputs, "input", required=True)
    bound = Bound({}, {name: c.array() for name, c in besides.lowered.objects.items()})
    for name, operand in besides.inputs.items():
        if operand.space is Space.OBJECT:
            bound.objects[name] = _object(inputs[name], operand)
        else:
            bound.external[operand.slot] = _input(name, inputs[name], operand)
    for name, operand in besides.outputs.items():
        new = np.empty if kept is None else partial(kept.array, name)
        bound.external[operand.slot] = new(operand.shape, operand.dtype.numpy)
    return bound


def bind_inputs(wanted: Mapping[str, Operand], inputs: Mapping[str, ArrayLike]) -> dict[int, Array]:
    """Bind arrays by slot to inputs that are planned.

    Args:
        wanted: Operands of the inputs by name.
        inputs: An array for each of these names.

    Raises:
        InputError: A name is missing or unknown, or a dtype or shape does not fit.
    """
    _check_names(inputs, wanted, "input", required=True)
    return {operand.slot: _input(name, inputs[name], operand) for name, operand in wanted.items()}


def made_up(random: "np.random.Generator", dtype: DType, shape: tuple[int, ...]) -> Array:
    """Make an array for a trial run: uniform in [0, 1) for floats, zeros for integers.

    Integers are zero because they are often indices, and 0 is a valid index.
    """
    if dtype.numpy.kind == "f":
        return random.random(shape, np.float32).astype(dtype.numpy)
    return np.zeros(shape, dtype.numpy)


def shapes_of(
    lowered: Lowered, inputs: Mapping[str, ArrayLike]
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return the shape of every input that is not an object, in order; any shape is accepted here.

    Raises:
        InputError: A name is missing or unknown, or a dtype does not fit.
    """
    _check_names(inputs, lowered.inputs, "input", required=True)
    return tuple(
        (name, _checked(name, inputs[name], operand).shape)
        for name, operand in lowered.inputs.items()
        if operand.space is not Space.OBJECT
    )


def _check_names(
    given: Mapping[str, Any], wanted: Mapping[str, Operand], kind: str, *, required: bool
) -> None:
    if given.keys() == wanted.keys():
        return
    unknown = [name for name in given if name not in wanted]
    missing = [name for name in wanted if name not in given] if required else []
    if unknown or missing:
        said = []
        if unknown:
            said.append(f"unknown {kind} `{unknown[0]}`")
        if missing:
            said.append(f"{kind} `{missing[0]}` is missing")
        expected = ", ".join(f"`{name}` ({_described(o)})" for name, o in wanted.items())
        text = " and ".join(said)
        raise InputError(f"{text[0].upper()}{text[1:]}; the model's {kind}s are {expected}.")


def _described(operand: Operand) -> str:
    if operand.space is Space.OBJECT:
        return "any shape"
    return f"{operand.dtype.value} {list(operand.shape)}"


def _object(given: ArrayLike, operand: Operand) -> Any:  # noqa: ANN401
    """Convert a value outside the plan: strings become objects of `str`, lists stay lists."""
    if operand.dtype is not DType.STRING:
        return given
    if isinstance(given, np.ndarray) and given.dtype.kind in "USO":
        return with_texts(given)
    if isinstance(given, list):
        return [_object(each, operand) for each in given]
    return decoded(given) if isinstance(given, bytes) else given


def _input(name: str, given: ArrayLike, operand: Operand) -> Array:
    """Return the caller's array, or a row-major copy in native byte order."""
    array = _array(name, given, operand)
    if array.shape != operand.shape:
        raise InputError(
            f"Input `{name}` has shape {list(array.shape)}; the plan was made for "
            f"{list(operand.shape)}. Give that, or load the model with "
            f"`shapes={{'{name}': {list(array.shape)}}}` if its shape is symbolic."
        )
    if array.flags.c_contiguous and array.dtype.isnative:
        return array
    return np.ascontiguousarray(array, operand.dtype.numpy).reshape(operand.shape)


def _array(name: str, given: ArrayLike, operand: Operand) -> Array:
    """Return the caller's value as an array, and check its dtype."""
    return np.asarray(_checked(name, given, operand))


def _checked(name: str, given: ArrayLike, operand: Operand) -> Array | RowBlocks:
    """Return the caller's value as an array, or blocks as they are, and check its dtype."""
    array = given if isinstance(given, RowBlocks) else np.asarray(given)
    wanted = operand.dtype.numpy
    if array.dtype is not wanted and array.dtype.newbyteorder("=") != wanted:
        raise InputError(
            f"Input `{name}` has dtype {array.dtype}; {wanted} is needed. "
            f"Convert it with `.astype('{wanted}')`."
        )
    return array


def _check_output(name: str, array: Array, operand: Operand, others: list[Array]) -> None:
    wanted = operand.dtype.numpy
    if array.dtype != wanted or array.shape != operand.shape:
        raise InputError(
            f"The array for output `{name}` is {array.dtype} {list(array.shape)}; it must be "
            f"{wanted} {list(operand.shape)}."
        )
    if not (array.flags.c_contiguous and array.flags.writeable):
        raise InputError(
            f"The array for output `{name}` is read-only or not C-contiguous; give one made by "
            "`np.empty`."
        )
    if any(np.may_share_memory(array, other) for other in others):
        raise _shared(name, "another output")


def _check_overlaps(
    lowered: Lowered, bound: Bound, output: tuple[str, Array], *, in_order: bool
) -> None:
    """Check that the bytes of an output are those of no input, or that writing over it is safe."""
    name, array = output
    for other, operand in lowered.inputs.items():
        given = bound.external.get(operand.slot) if operand.space is not Space.OBJECT else None
        if given is None or not np.may_share_memory(array, given):
            continue
        address = array.__array_interface__["data"][0]
        if (given.nbytes, given.__array_interface__["data"][0]) != (array.nbytes, address):
            reason = "they are not the same bytes"
        elif not in_order:
            reason = "steps run at once; use `workers=1`"
        else:
            from tightship.engine.run.overwriting import why_unsafe  # few outputs are inputs

            reason = why_unsafe(lowered, name, other)
        if reason:
            raise _shared(name, f"input `{other}`, and {reason}")


def _shared(name: str, what: str) -> InputError:
    return InputError(
        f"The array for output `{name}` shares memory with {what}; give the output an array of its "
        "own."
    )
