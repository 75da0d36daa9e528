"""Passes over the graph, in order; each can be left out by name."""

from collections.abc import Callable, Collection
from importlib import import_module

from tightship.engine.activations import EXACT, FLOAT32_PRODUCTS
from tightship.engine.lower.passes.common_subexpressions import common_subexpressions
from tightship.engine.lower.passes.expand_loss import expand_loss
from tightship.engine.lower.passes.expand_outer import expand_outer
from tightship.engine.lower.passes.expand_power import expand_power
from tightship.engine.lower.passes.expand_product import expand_product
from tightship.engine.lower.passes.expand_quantized import expand_quantized
from tightship.engine.lower.passes.fold_batch_norm import fold_batch_norm
from tightship.engine.lower.passes.fold_constants import fold_constants
from tightship.engine.lower.passes.fold_pad import fold_pad
from tightship.engine.lower.passes.fuse_activation import fuse_activation
from tightship.engine.lower.passes.fuse_attention import fuse_attention
from tightship.engine.lower.passes.fuse_quantize import fuse_quantize
from tightship.engine.lower.passes.fuse_residual import fuse_residual
from tightship.engine.lower.passes.lift_gemm import lift_gemm
from tightship.engine.lower.passes.pool_means import pool_means
from tightship.engine.lower.passes.recognize_activation import recognize_activation
from tightship.engine.lower.passes.recognize_normalization import recognize_normalization
from tightship.engine.lower.passes.recognize_quantized import recognize_quantized
from tightship.engine.lower.passes.recognize_rotary import recognize_rotary
from tightship.engine.lower.passes.shuffle_channels import shuffle_channels
from tightship.engine.lower.passes.sink_dequantize import sink_dequantize
from tightship.engine.lower.passes.split_recurrent import split_recurrent
from tightship.engine.lower.passes.widen_floats import widen_floats
from tightship.errors import GraphError, InputError
from tightship.graph import Graph
from tightship.graph.operators import Category, row_of


def seldom(
    place: str, *operators: str, category: Category | None = None
) -> Callable[[Graph], Graph]:
    """Import the pass at `module.name` for the first graph with an operator, or one of a kind."""
    module, name = place.rsplit(".", 1)

    def graph_pass(graph: Graph) -> Graph:
        if not any(
            node.operator in operators or (category and row_of(node).category is category)
            for node in graph.nodes
        ):
            return graph
        imported = import_module(f"tightship.engine.lower.{module}")
        found: Callable[[Graph], Graph] = getattr(imported, name)
        return found(graph)

    graph_pass.__name__ = name
    return graph_pass


GRAPH_PASSES: tuple[Callable[[Graph], Graph], ...] = (
    widen_floats,
    expand_loss,
    seldom(
        "passes.split_recurrent_gradient.split_recurrent_gradient", "GRUGrad", "LSTMGrad", "RNNGrad"
    ),
    seldom("passes.expand_lp_pool.expand_lp_pool", "LpPool"),
    seldom("passes.expand_einsum.expand_einsum", "Einsum"),
    expand_quantized,
    recognize_quantized,
    seldom("passes.split_integers.split_integers", "ConvInteger"),
    fold_constants,
    expand_product,
    fold_constants,
    sink_dequantize,
    split_recurrent,
    common_subexpressions,
    recognize_activation,
    recognize_normalization,
    seldom("passes.recognize_group_norm.recognize_group_norm", "InstanceNormalization"),
    recognize_rotary,
    fuse_attention,
    expand_outer,
    seldom("passes.read_stored_rows.read_stored_rows", "AppendRows"),
    pool_means,
    lift_gemm,
    seldom("passes.transpose_gradients.transpose_gradients", category=Category.UPDATING),
    fold_pad,
    expand_power,
    seldom("passes.lift_scale.lift_scale", "Conv"),
    fold_batch_norm,
    seldom("passes.merge_convolutions.merge_convolutions", "Conv"),
    fold_batch_norm,
    seldom("passes.multiply_pixels.multiply_pixels", "Conv"),
    shuffle_channels,
    fuse_activation,
    seldom("passes.split_batch_norm.split_batch_norm", "BatchNormalization"),
    fuse_residual,
    fuse_activation,
    fuse_quantize,
    seldom("passes.multiply_quantized.multiply_quantized", "Conv"),
    seldom("passes.convolve_planes.convolve_planes", "Conv"),
    seldom("passes.fuse_depthwise.fuse_depthwise", "Conv"),
    seldom("passes.scale_weights.scale_weights", "Conv"),
)
ONEDNN_PASSES = frozenset(
    {"shuffle_channels", "expand_quantized", "fuse_quantize", "recognize_quantized",
     "split_integers", "fuse_depthwise", "scale_weights"}
)  # fmt: skip
"""Passes whose results only oneDNN's kernels run."""
NATIVE_PASSES = frozenset(
    {"fuse_attention", "recognize_rotary", "split_recurrent", "split_recurrent_gradient",
     "convolve_planes", "fuse_depthwise", "multiply_quantized", "scale_weights"}
)  # fmt: skip
"""Passes whose results only native kernels run."""
CHOSEN_PASSES = frozenset({"multiply_pixels", "multiply_quantized"})
"""Passes whose results are faster on some processors only."""

SELECTION_PASSES = (
    "onednn",
    "native",
    "in_place",
    "library_layouts",
    "stream_weights",
    "split_products",
    "winograd",
    "share_tables",
    "elide_concat",
    "write_outputs_directly",
    "blocked_layouts",
)
"""Choices of kernel selection: oneDNN and native kernels at all, in-place sums, layouts that oneDNN
prefers, large weights streamed past few rows, float32 products made of bfloat16 ones, convolutions
of 3x3 by Winograd's algorithm, tables gathered from where a product has them packed, concatenations
without copies, outputs written directly, channels in blocks where these then take less."""

LAST_RESORT = "reference"
"""Name in `without` that refuses nodes that only `onnx.reference` runs."""


def pass_names() -> tuple[str, ...]:
    """List the names of all passes; results do not depend on any of them."""
    return tuple(dict.fromkeys((*(p.__name__ for p in GRAPH_PASSES), *SELECTION_PASSES)))


def check_passes(without: Collection[str]) -> None:
    """Refuse names that are not of passes.

    Raises:
        InputError: A name in `without` is not a pass.
    """
    names = (*pass_names(), LAST_RESORT)
    for name in without:
        if name not in (*names, EXACT, FLOAT32_PRODUCTS):
            raise InputError(f"Unknown pass `{name}`; choose from {', '.join(names)}.")


def run_passes(
    graph: Graph, without: Collection[str] = (), go_on: Callable[[], None] | None = None
) -> Graph:
    """Run every graph pass that is not named in `without`, calling `go_on` before each.

    Raises:
        GraphError: A cache that is stored in another type than the file's has a reader that is not
            attention of the native core.
        InputError: A name in `without` is not a pass.
    """
    check_passes(without)
    for graph_pass in GRAPH_PASSES:
        if graph_pass.__name__ not in without:
            if go_on is not None:
                go_on()
            graph = graph_pass(graph)
    _check_stored_rows(graph)
    return graph


def unserved(*, onednn: bool, native: bool, faster: Collection[str]) -> tuple[str, ...]:
    """Return the passes whose results no kernel would run, or none faster.

    Args:
        onednn: Whether the library's kernels may be used.
        native: Whether the core's kernels may be used.
        faster: Those of `CHOSEN_PASSES` whose kernels are faster on this processor.
    """
    found = frozenset() if onednn else ONEDNN_PASSES
    found |= frozenset() if native else NATIVE_PASSES
    return tuple(sorted(found | (CHOSEN_PASSES - frozenset(faster))))


def rounds_activations(without: Collection[str]) -> bool:
    """Whether products by weights in blocks round their activations."""
    return EXACT in without


def multiplies_narrow(without: Collection[str]) -> bool:
    """Whether products by constants round both operands to bfloat16."""
    return FLOAT32_PRODUCTS in without


def _check_stored_rows(graph: Graph) -> None:
    """Refuse a graph that would widen a whole cache.

    Raises:
        GraphError: It does.
    """
    for node in graph.nodes:
        if (node.domain, node.operator) == ("tightship", "WidenRows"):
            passes = import_module("tightship.engine.lower.passes.read_stored_rows")
            raise GraphError(passes.why_unread(graph, node))
