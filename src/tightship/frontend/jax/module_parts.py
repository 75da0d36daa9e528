"""Modules of flax and equinox, and functions, divided into weights and a function of them."""

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from tightship.errors import GraphError, InputError

Tree = Any
"""Array, or containers of them that jax takes apart."""
Call = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Parts:
    """A module in two parts.

    Attributes:
        name: Name of the module's class, or of the function.
        signature: Signature of a call of the module.
        weights: Arrays by their places in the module; `jax.ShapeDtypeStruct` for absent ones.
        trained: Names of those that training may change.
        call: Calls the module with a list of weights, then the arguments.
    """

    name: str
    signature: inspect.Signature
    weights: Mapping[str, Any]
    trained: Sequence[str]
    call: Call


def parts_of(module: object) -> Parts:
    """Divide a module into its weights and a function of them.

    Raises:
        InputError: It cannot be called, or a module of linen has no variables.
    """
    for name, divide in (("flax.linen", _linen), ("flax.nnx", _nnx)):
        library = sys.modules.get(name)
        if library is not None and isinstance(module, library.Module):
            return divide(module)
    return _tree(module)


def _linen(module: Any) -> Parts:  # noqa: ANN401
    if module.scope is None:
        raise InputError(
            f"`{type(module).__name__}` is a module of flax.linen without variables; give it bound "
            "to them: `module.bind(variables)`, with `variables = module.init(key, x)`, or "
            "`jax.eval_shape(module.init, key, x)` to plan without allocating."
        )
    apart, variables = module.unbind()
    leaves = _Leaves.of(variables)

    def call(weights: Sequence[Any], *arguments: Tree, **named: Tree) -> Any:  # noqa: ANN401
        return apart.apply(leaves.tree(weights), *arguments, **named)

    held = leaves.weights
    trained = [name for name, leaf in held.items() if _is_float(leaf) and name[:7] == "params."]
    return Parts(type(module).__name__, _signature(module), held, trained, call)


def _nnx(module: Any) -> Parts:  # noqa: ANN401
    nnx = sys.modules["flax.nnx"]
    name = type(module).__name__
    definition, state = nnx.split(module)
    leaves = _Leaves.of(state)
    variables, _ = jax.tree_util.tree_flatten_with_path(
        state, is_leaf=lambda each: isinstance(each, nnx.Variable)
    )
    parameters = [place_in(path) for path, each in variables if isinstance(each, nnx.Param)]

    def call(weights: Sequence[Any], *arguments: Tree, **named: Tree) -> Any:  # noqa: ANN401
        given = leaves.tree(weights)
        before = jax.tree_util.tree_leaves(given)
        merged = nnx.merge(definition, given)
        result = merged(*arguments, **named)
        after = jax.tree_util.tree_leaves(nnx.split(merged)[1])
        for each, one, other in zip(leaves.names, before, after, strict=True):
            if one is not other:
                raise GraphError(
                    f"A call of `{name}` changes `{each}`, and a plan keeps weights as they are; "
                    "call `module.eval()` first, or leave that part outside the module."
                )
        return result

    held = leaves.weights
    trained = [each for each in parameters if each in held and _is_float(held[each])]
    return Parts(name, _signature(module), held, trained, call)


def _tree(module: Any) -> Parts:  # noqa: ANN401
    """Divide a function, or a module that is a tree of jax, as those of equinox."""
    leaves = _Leaves.of(module)

    def call(weights: Sequence[Any], *arguments: Tree, **named: Tree) -> Any:  # noqa: ANN401
        return leaves.tree(weights)(*arguments, **named)

    name = getattr(module, "__name__", type(module).__name__)
    trained = [each for each, leaf in leaves.weights.items() if _is_float(leaf)]
    return Parts(name, _signature(module), leaves.weights, trained, call)


@dataclass(frozen=True, slots=True)
class _Leaves:
    """Leaves of a tree by their places; those that are arrays are weights."""

    names: Sequence[str]
    values: Sequence[Any]
    form: Any

    @classmethod
    def of(cls, tree: Tree) -> "_Leaves":
        """Take a tree apart."""
        flat, form = jax.tree_util.tree_flatten_with_path(tree)
        names = [place_in(path).removesuffix(".value") or "weight" for path, _ in flat]
        return cls(names, [leaf for _, leaf in flat], form)

    @property
    def weights(self) -> dict[str, Any]:
        """Arrays by place."""
        each = zip(self.names, self.values, strict=True)
        return {name: leaf for name, leaf in each if is_array(leaf)}

    def tree(self, weights: Sequence[Any]) -> Any:  # noqa: ANN401
        """Return the tree with other arrays."""
        left = iter(weights)
        leaves = [next(left) if is_array(leaf) else leaf for leaf in self.values]
        return jax.tree_util.tree_unflatten(self.form, leaves)


def _signature(module: Any) -> inspect.Signature:  # noqa: ANN401
    """Return the signature of a call of a module or function."""
    is_function = inspect.isroutine(module) or hasattr(module, "__wrapped__")
    return inspect.signature(module if is_function else type(module).__call__.__get__(module))


def is_array(leaf: object) -> bool:
    """Whether a leaf of a tree is an array, with or without memory; keys of random numbers are not.

    They stay in the module, because no operator takes them.
    """
    return isinstance(leaf, jax.Array | np.ndarray | jax.ShapeDtypeStruct) and not (
        jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.extended)
    )


def _is_float(leaf: Any) -> bool:  # noqa: ANN401
    return bool(jax.numpy.issubdtype(leaf.dtype, np.floating))


def place_in(path: Sequence[Any]) -> str:
    """Return a place in a tree, such as `layers.0.weight`."""
    return ".".join(_key(each) for each in path)


def _key(key: Any) -> str:  # noqa: ANN401
    for attribute in ("key", "idx", "name"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key).strip(".[]'")
