"""Example inputs of a module: its arguments as tensors, of which only types and shapes count."""

import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from tightship.errors import InputError

Tree = Any
"""Tensor, or tuples, lists and mappings of them; what is not a tensor is a fixed argument."""


@dataclass(frozen=True, slots=True)
class Examples:
    """Arguments of a module by name: those of a variadic parameter are a tuple or a mapping.

    Attributes:
        signature: Signature of `forward`.
        arguments: Arguments in the order of the signature.
    """

    signature: inspect.Signature
    arguments: Mapping[str, Tree]

    @classmethod
    def of(cls, module: torch.nn.Module, given: object) -> "Examples":
        """Bind what a caller gives: a tensor, a tuple by position, or a mapping by name.

        Raises:
            InputError: The arguments do not fit, or a tensor is not in the processor's memory.
        """
        signature = inspect.signature(module.forward)
        positional, named = divided(given)
        try:
            bound = signature.bind(*positional, **named)
        except TypeError as error:
            raise InputError(
                f"`example_inputs` do not fit `{type(module).__name__}.forward{_text(signature)}`: "
                f"{error}; give a tuple of its arguments, or a dictionary of them by name."
            ) from None
        found = cls(signature, {n: pytree.tree_map(_tensor, v) for n, v in bound.arguments.items()})
        for name, leaf in found.leaves():
            _check(name, leaf)
        return found

    def leaves(self) -> Iterator[tuple[str, torch.Tensor]]:
        """Yield the tensors, with the names that exported programs give to inputs."""
        for name, value in self.arguments.items():
            for path, leaf in pytree.tree_flatten_with_path(value)[0]:
                if isinstance(leaf, torch.Tensor):
                    yield "_".join([self._stem(name), *map(_key, path)]), leaf

    def mapped(self, function: Callable[[str, torch.Tensor], object]) -> "Examples":
        """Return the arguments with each tensor replaced by what a function of it returns."""
        found = iter([function(name, leaf) for name, leaf in self.leaves()])
        return Examples(
            self.signature,
            {
                name: pytree.tree_map(
                    lambda leaf: next(found) if isinstance(leaf, torch.Tensor) else leaf, value
                )
                for name, value in self.arguments.items()
            },
        )

    def call(self) -> tuple[tuple[Tree, ...], dict[str, Tree]]:
        """Return positional and named arguments for a call."""
        given = OrderedDict(self.arguments)
        bound = inspect.BoundArguments(self.signature, given)
        return bound.args, bound.kwargs

    def text(self) -> str:
        """Name the tensors with their shapes and types, for errors."""
        shown = [
            f"`{name}` {'x'.join(map(str, leaf.shape)) or 'scalar'} "
            f"{str(leaf.dtype).removeprefix('torch.')}"
            for name, leaf in self.leaves()
        ]
        return ", ".join(shown) or "no tensor"

    def _stem(self, name: str) -> str:
        """Return what torch calls a parameter: those of `**named` have their own names."""
        parameter = self.signature.parameters[name]
        return name if parameter.kind is not parameter.VAR_KEYWORD else ""


def divided(given: object) -> tuple[Sequence[Tree], Mapping[str, Tree]]:
    """Divide what a caller gives as examples into positional and named arguments."""
    if isinstance(given, Mapping):
        return (), given
    return (given if isinstance(given, tuple | list) else (given,)), {}


def _tensor(leaf: object) -> object:
    if isinstance(leaf, np.ndarray):
        return torch.from_numpy(np.ascontiguousarray(leaf))
    return leaf.detach() if isinstance(leaf, torch.Tensor) else leaf


def _check(name: str, leaf: torch.Tensor) -> None:
    if leaf.device.type not in ("cpu", "meta"):
        raise InputError(
            f"Example input `{name}` is on `{leaf.device}`; models run on the processor: give "
            f"`{name}.cpu()`."
        )


def _key(key: object) -> str:
    """Return a step of a path into a tree, as torch writes it in names."""
    for attribute in ("key", "idx", "name"):
        if hasattr(key, attribute):
            return str(getattr(key, attribute))
    return str(key)


def _text(signature: inspect.Signature) -> str:
    """Write the parameters without annotations."""
    return f"({', '.join(map(_plain, signature.parameters.values()))})"


def _plain(parameter: inspect.Parameter) -> str:
    return str(parameter.replace(annotation=inspect.Parameter.empty))
