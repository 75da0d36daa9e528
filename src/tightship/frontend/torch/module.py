"""Entry point: a module and example inputs as a program, and as a step of training."""

from collections.abc import Callable, Sequence

import torch

from tightship.errors import InputError, TightshipError
from tightship.frontend.named_lengths import Shapes
from tightship.frontend.torch.decompose import ignore_own_warnings
from tightship.frontend.torch.examples import Examples
from tightship.frontend.torch.export_errors import unexported
from tightship.frontend.torch.losses import named_loss
from tightship.frontend.torch.open_axes import OpenAxes
from tightship.frontend.torch.program import TorchProgram
from tightship.frontend.torch.training import (
    StepInputs,
    TrainingGraph,
    differentiated,
    label_names,
)
from tightship.frontend.torch.unallocated import (
    Tensors,
    allocated,
    check_devices,
    is_unallocated,
    on_processor,
)


def module_program(
    module: torch.nn.Module, example_inputs: object, shapes: Shapes | None
) -> tuple[TorchProgram, dict[str, tuple[int, ...]]]:
    """Export a module and open the program.

    Args:
        module: Module on the processor, or without memory.
        example_inputs: Tensor, tuple or mapping of arguments; their values are not used.
        shapes: Shapes that replace those of the examples; texts in them are open lengths.

    Returns:
        The program, and the shapes of inputs with open lengths.

    Raises:
        GraphError: The module decides by data, or an operator has no translation.
        InputError: The inputs do not fit, or the module is on another device.
    """
    module = plain_module(module)
    name = type(module).__name__
    axes = OpenAxes(shapes or {})
    examples = axes.applied(Examples.of(module, example_inputs))
    dynamic = axes.dynamic_shapes(examples)
    module, examples, _ = ready(module, examples)
    arguments, keywords = examples.call()
    ignore_own_warnings()
    try:
        program = torch.export.export(module, arguments, keywords, dynamic_shapes=dynamic)
    except Exception as error:
        raise unexported(error, module, examples) from error
    return TorchProgram(program, name), axes.named.bound


def module_step(
    module: torch.nn.Module,
    example_inputs: object,
    loss: "str | Callable[..., torch.Tensor] | None",
    *,
    example_labels: object = None,
    labels: str = "labels",
    classes_axis: int | None = None,
) -> TrainingGraph:
    """Return a training step of a module, differentiated by torch.

    Args:
        module: Module on the processor, or without memory, in the mode that it is trained in.
        example_inputs: As for `module_program`.
        loss: Function of the module's output and labels, or a name as in `tightship.train`; None
            if the module returns its loss.
        example_labels: Tensor or tuple of labels; a loss by its name needs none.
        labels: Name of the labels' input, for a loss by its name.
        classes_axis: Axis of classes, for a cross entropy by its name.

    Raises:
        GraphError, InputError: As from `module_program`, and of `training_graph`.
    """
    module = plain_module(module)
    examples = Examples.of(module, example_inputs)
    targets = _targets(example_labels)
    if isinstance(loss, str):
        loss, target = named_loss(loss, _output(module, examples), classes_axis)
        names, targets = [labels], targets or (target,)
    else:
        names = label_names(loss, len(targets))
    module, examples, targets = ready(module, examples, targets)
    leaves = dict(examples.leaves())
    tensors = (*leaves.values(), *targets)
    given = StepInputs((*leaves, *names), tensors, len(leaves), _call(examples))
    try:
        return differentiated(module, given, loss)
    except TightshipError:
        raise
    except Exception as error:
        raise unexported(error, module, examples) from error


def _call(examples: Examples) -> Callable[[torch.nn.Module, Sequence[torch.Tensor]], torch.Tensor]:
    """Return a function that calls a module with other tensors."""

    def call(module: torch.nn.Module, tensors: Sequence[torch.Tensor]) -> torch.Tensor:
        left = iter(tensors)
        arguments, keywords = examples.mapped(lambda *_: next(left)).call()
        result: torch.Tensor = module(*arguments, **keywords)
        return result

    return call


def _output(module: torch.nn.Module, examples: Examples) -> object:
    """Return the module's output without running it: fake tensors."""
    copied, fakes, _ = on_processor(module, examples)
    arguments, keywords = fakes.call()
    try:
        with torch.no_grad():
            return copied(*arguments, **keywords)
    except Exception as error:
        raise unexported(error, copied, fakes) from error


def _targets(given: object) -> tuple[torch.Tensor, ...]:
    """Return example labels as tensors."""
    if given is None:
        return ()
    each = given if isinstance(given, tuple | list) else (given,)
    return tuple(torch.as_tensor(label) for label in each)


def plain_module(module: torch.nn.Module) -> torch.nn.Module:
    """Return a module that can be exported: the one within, if it is wrapped for compilation.

    Raises:
        InputError: It is a module of TorchScript, or on another device.
    """
    inner = getattr(module, "_orig_mod", None)
    module = inner if isinstance(inner, torch.nn.Module) else module
    if isinstance(module, torch.jit.ScriptModule):
        raise InputError(
            f"`{type(module).__name__}` is a module of TorchScript, which `torch.export` does not "
            "take; give the module that it was made from, or export it as ONNX."
        )
    check_devices(module)
    return module


def ready(
    module: torch.nn.Module, examples: Examples, labels: Tensors = ()
) -> tuple[torch.nn.Module, Examples, Tensors]:
    """Return module, examples and labels that torch can export, without allocating a weight."""
    if is_unallocated(module):
        return on_processor(module, examples, labels)
    return module, examples.mapped(lambda _, each: allocated(each)), tuple(map(allocated, labels))
