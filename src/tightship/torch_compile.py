"""`torch.compile(module, backend="tightship")`: graphs of AOT autograd, run in planned memory.

Each graph has an arena of its own. Parameters, and what the forward path saves for the backward,
are torch's tensors, and are read where they lie.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.nn.attention import SDPBackend, sdpa_kernel

from tightship.errors import GraphError, InputError
from tightship.frontend.torch.decompose import decompositions_of_training
from tightship.frontend.torch.traced import traced_graph
from tightship.loading import load_graph

Compiled = Callable[..., Any]


def compile_graph(module: torch.fx.GraphModule, inputs: Sequence[torch.Tensor]) -> Compiled:
    """What `torch.compile` calls with each graph of a program; `tightship` is its name there.

    Inference, or forward and backward path of training, run on the kernels of `load` by as many
    threads as torch has. A graph that cannot be translated is run by torch, and a `RuntimeWarning`
    names the operator.
    """
    with sdpa_kernel(SDPBackend.MATH):  # attention as products, which have gradients here
        compiled: Compiled = _by_autograd(module, inputs)
    return compiled


def _compiled(module: torch.fx.GraphModule, _: Sequence[torch.Tensor]) -> Compiled:
    """One graph, without what autograd adds."""
    try:
        with unset_fake_temporarily():  # masks and positions are computed
            traced = traced_graph(module)
        model = load_graph(traced.graph, "compiled graph", torch.get_num_threads())
    except (GraphError, InputError) as error:
        warnings.warn(f"A graph is run by torch, not by Tightship: {error}", RuntimeWarning, 2)
        return _boxed(module)

    def run(*operands: torch.Tensor) -> list[torch.Tensor | None]:
        found = model.run(
            {name: operands[at].detach().contiguous().numpy() for name, at in traced.inputs.items()}
        )
        return [None if name is None else torch.from_numpy(found[name]) for name in traced.outputs]

    return _boxed(run)


def _boxed(run: Compiled) -> Compiled:
    boxed: Compiled = make_boxed_func(run)
    return boxed


_by_autograd = aot_autograd(
    fw_compiler=_compiled,
    bw_compiler=_compiled,
    inference_compiler=_compiled,
    decompositions=decompositions_of_training(),
)
