"""Modules and functions of torch and jax with example inputs, opened as programs.

A module belongs to a library that has been imported, so that none is imported to recognize it.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Union, cast

from tightship.errors import InputError
from tightship.frontend.named_lengths import Shapes

if TYPE_CHECKING:
    from tightship.frontend.jax import JaxProgram
    from tightship.frontend.torch import TorchProgram

Program = Union["TorchProgram", "JaxProgram"]
Opened = tuple[Program, Mapping[str, Sequence[int] | int] | None]
"""A program, and the shapes of inputs with open lengths."""


def is_module(model: object) -> bool:
    """Whether a model is a module or function that needs example inputs."""
    return is_torch_module(model) or (callable(model) and not _is_program(model))


def is_torch_module(model: object) -> bool:
    """Whether a model is a module of torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def opened(model: object, example_inputs: object, shapes: Shapes | None) -> "Opened | None":
    """Open a model if it is a module or function, as `open_module` does; None if it is not.

    Raises:
        GraphError: As from `open_module`.
        InputError: As from `open_module`, or there are example inputs of another model.
    """
    if not is_module(model):
        refuse_examples(model, example_inputs)
        return None
    return open_module(cast("Callable[..., object]", model), example_inputs, shapes)


def open_module(
    model: Callable[..., object], example_inputs: object, shapes: Shapes | None
) -> "Opened":
    """Open a module or function, and return it with the shapes of inputs with open lengths.

    Args:
        model: Module of torch, flax or equinox, or a function of jax.
        example_inputs: Tensor, tuple or mapping of arguments; their values are not used.
        shapes: Shapes that replace those of the examples; texts in them are open lengths.

    Raises:
        GraphError: It decides by data, or an operator has no translation.
        InputError: There are no example inputs, they do not fit, or the library is missing.
    """
    if example_inputs is None:
        raise InputError(
            f"`{_name(model)}` is a {'module' if is_torch_module(model) else 'function or module'} "
            "without shapes of its own; give `example_inputs`: a tensor, a tuple of its arguments, "
            "or a dictionary of them by name, as in `tightship.plan(module, (x,))`. Their values "
            "are not used."
        )
    if is_torch_module(model):
        from tightship.frontend.torch.module import module_program as torch_program

        return torch_program(model, example_inputs, shapes)
    return jax_module(model, example_inputs).module_program(model, example_inputs, shapes), None


def jax_module(model: object, example_inputs: object) -> ModuleType:
    """Import what opens a function or module of jax.

    Raises:
        InputError: jax is not installed, or the examples are tensors of torch.
    """
    each = example_inputs if isinstance(example_inputs, tuple | list) else (example_inputs,)
    if any(type(value).__module__.partition(".")[0] == "torch" for value in each):
        raise InputError(
            f"`{_name(model)}` is a function with example inputs of torch; give a "
            "`torch.nn.Module` whose `forward` calls it."
        )
    try:
        from tightship.frontend.jax import module
    except ModuleNotFoundError as error:
        raise InputError(
            f"`{_name(model)}` is a function, which is traced by the package `{error.name}`, which "
            "is not installed; pip install 'tightship[jax]', or give the path of a model."
        ) from None
    return module


def refuse_examples(model: object, example_inputs: object) -> None:
    """Refuse example inputs of a model that has shapes of its own.

    Raises:
        InputError: There are some.
    """
    if example_inputs is not None:
        raise InputError(
            f"`example_inputs` are for modules and functions; {type(model).__name__} "
            "has shapes of its own, whose open lengths `shapes` gives."
        )


def _is_program(model: object) -> bool:
    """Whether a callable is a program with shapes: `torch.export`'s, or a traced function."""
    return type(model).__name__ == "ExportedProgram" or hasattr(model, "jaxpr")


def _name(model: object) -> str:
    return getattr(model, "__name__", type(model).__name__)
