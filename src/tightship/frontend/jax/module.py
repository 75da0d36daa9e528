"""Entry point: a module of flax or equinox, or a function, with example inputs, as a program."""

import inspect
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from tightship.errors import GraphError, InputError
from tightship.frontend.jax.module_parts import (
    Call,
    Parts,
    Tree,
    is_array,
    parts_of,
    place_in,
)
from tightship.frontend.jax.program import JaxProgram, Weights
from tightship.frontend.jax.tensor import HELD_BYTES_MAX, constant_of
from tightship.frontend.named_lengths import NamedLengths, Shapes
from tightship.graph import Constant, DType
from tightship.graph.absent import absent


def module_program(
    module: object, example_inputs: object, shapes: Shapes | None = None
) -> JaxProgram:
    """Trace a module or function and open the program.

    Args:
        module: Module of flax (`linen` bound to its variables, or `nnx`) or equinox, or a function.
        example_inputs: Array, tuple or mapping of arguments; their values are not used.
        shapes: Shapes that replace those of the examples; texts in them are open lengths, for which
            `JaxProgram.at` traces again.

    Raises:
        GraphError: A primitive has no translation, or the module changes a weight.
        InputError: The inputs do not fit, or a module of linen has no variables.
    """
    parts = parts_of(module)
    arguments = _bound(parts.name, parts.signature, example_inputs)

    def call(weights: Sequence[Any], **given: Tree) -> Any:  # noqa: ANN401
        bound = inspect.BoundArguments(parts.signature, OrderedDict(given))
        return parts.call(weights, *bound.args, **bound.kwargs)

    return _program(parts, call, arguments, shapes)


def module_loss(
    module: object, example_inputs: object, loss: Call | None, example_labels: object
) -> tuple[JaxProgram, Sequence[str]]:
    """Trace a module followed by a loss.

    Args:
        module: As for `module_program`.
        example_inputs: As for `module_program`.
        loss: Function of the module's output and labels; None for the module's output.
        example_labels: Array or tuple of labels.

    Returns:
        The program, and the names of the weights to train.

    Raises:
        GraphError, InputError: As from `module_program`.
    """
    parts = parts_of(module)
    if loss is None:
        return module_program(module, example_inputs), parts.trained
    labels = _labels(loss, example_labels)
    arguments = {**_bound(parts.name, parts.signature, example_inputs), **labels}

    def call(weights: Sequence[Any], **given: Tree) -> Any:  # noqa: ANN401
        targets = [given.pop(name) for name in labels]
        bound = inspect.BoundArguments(parts.signature, OrderedDict(given))
        return loss(parts.call(weights, *bound.args, **bound.kwargs), *targets)

    return _program(parts, call, arguments), parts.trained


def _program(
    parts: Parts, call: Call, arguments: Mapping[str, Tree], shapes: Shapes | None = None
) -> JaxProgram:
    """Trace a function of weights and arguments by name, in their order."""
    flat, tree = jax.tree_util.tree_flatten_with_path(list(arguments.values()))
    stems = list(arguments)
    places = [index for index, (_, leaf) in enumerate(flat) if is_array(leaf)]
    names = [
        ".".join(filter(None, (stems[path[0].idx], place_in(path[1:]))))
        for path, _ in (flat[index] for index in places)
    ]

    def run(weights: Sequence[Any], given: Sequence[Any]) -> Any:  # noqa: ANN401
        leaves = [leaf for _, leaf in flat]
        for place, each in zip(places, given, strict=True):
            leaves[place] = each
        values = jax.tree_util.tree_unflatten(tree, leaves)
        return call(weights, **dict(zip(stems, values, strict=True)))

    weights = [_abstract(leaf) for leaf in parts.weights.values()]
    held = Weights({name: _constant(name, leaf) for name, leaf in parts.weights.items()}, names)

    def traced(shapes: Shapes) -> JaxProgram:
        named = NamedLengths(shapes)
        named.check_names(names)
        abstract = [
            _abstract(flat[index][1], named.applied(name, flat[index][1].shape))
            for name, index in zip(names, places, strict=True)
        ]
        try:
            found = jax.jit(run).trace(weights, abstract)
        except (GraphError, InputError):
            raise
        except Exception as error:
            raise _untraced(error, parts.name, names, abstract) from error
        return JaxProgram(found, parts.name, held, named, traced)

    return traced(shapes or {})


def _bound(name: str, signature: inspect.Signature, given: object) -> dict[str, Tree]:
    """Return example inputs by the names of parameters.

    Raises:
        InputError: They do not fit.
    """
    positional: Sequence[Tree] = given if isinstance(given, tuple | list) else (given,)
    named: Mapping[str, Tree] = {}
    if isinstance(given, Mapping):
        positional, named = (), given
    try:
        return dict(signature.bind(*positional, **named).arguments)
    except TypeError as error:
        raise InputError(
            f"`example_inputs` do not fit `{name}({', '.join(signature.parameters)})`: {error}; "
            "give a tuple of its arguments, or a dictionary of them by name."
        ) from None


def _labels(loss: Call, given: object) -> dict[str, Tree]:
    """Return example labels by the names of the loss's parameters after the first."""
    each = () if given is None else given if isinstance(given, tuple | list) else (given,)
    names = list(inspect.signature(loss).parameters)[1 : len(each) + 1]
    names += [f"labels.{index}" for index in range(len(names), len(each))]
    return dict(zip(names, each, strict=True))


def _untraced(
    error: Exception, name: str, names: Sequence[str], arrays: Sequence[Any]
) -> GraphError | InputError:
    """Return an error for a module that jax cannot trace."""
    kind, said = type(error).__name__, (str(error).strip().splitlines() or ["no reason given"])[0]
    if kind.startswith(("Concretization", "TracerBool", "TracerInteger", "NonConcrete")):
        return GraphError(
            f"`{name}` decides by data, and a plan is for all data: {kind}: {said} Choose by "
            "`jnp.where` or `jax.lax.cond`, or leave that part outside the module."
        )
    shown = ", ".join(
        f"`{each}` {'x'.join(map(str, array.shape)) or 'scalar'} {array.dtype}"
        for each, array in zip(names, arrays, strict=True)
    )
    return InputError(
        f"jax cannot trace `{name}` with the inputs {shown or 'none'}: {kind}: {said} Give "
        "`example_inputs` that the module runs with."
    )


def _constant(name: str, leaf: Any) -> Constant:  # noqa: ANN401
    if isinstance(leaf, jax.ShapeDtypeStruct):
        return absent(name, DType.of(leaf.dtype), tuple(leaf.shape), HELD_BYTES_MAX)
    return constant_of(np.asarray(leaf), name)


def _abstract(
    leaf: Any,  # noqa: ANN401
    shape: tuple[int, ...] | None = None,
) -> jax.ShapeDtypeStruct:
    """Return the shape and type of an array, or those of one of another shape."""
    given = leaf.shape if shape is None else shape
    return jax.ShapeDtypeStruct(given, jax.dtypes.canonicalize_dtype(leaf.dtype))
