"""Selects kernels: each node becomes a view if nothing moves, else steps of the best kernel."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

from tightship import _core
from tightship.engine.kernels.failure import named
from tightship.engine.library import open_library
from tightship.engine.lower.native.split import split
from tightship.engine.lower.native.streamed import ends_apart, streamed
from tightship.engine.lower.native.winograd import winograd
from tightship.engine.lower.onednn.sized_convolution import sized_convolution
from tightship.engine.lower.passes.blocks import BlockWeights
from tightship.engine.lower.passes.dequantized import (
    Dequantized,
    Measured,
    Quantization,
    measured,
    quantization,
)
from tightship.engine.lower.pipeline import (
    LAST_RESORT,
    multiplies_narrow,
    rounds_activations,
    run_passes,
    unserved,
)
from tightship.engine.lower.replay import lower_layers
from tightship.engine.lower.step_passes.elide_concat import elide_concat, live_bytes
from tightship.engine.lower.step_passes.equal_weights import share_equal_weights
from tightship.engine.lower.step_passes.room_for_scratch import room_for_scratch
from tightship.engine.lower.step_passes.share_tables import share_tables
from tightship.engine.lower.step_passes.write_outputs_directly import write_outputs_directly
from tightship.engine.lower.steps.builder import Builder
from tightship.engine.lower.steps.cost import concat_ns, cost_ns, crowded_ns
from tightship.engine.lower.steps.emit import emit
from tightship.engine.lower.steps.layouts import faster_passes, multiplies_halves
from tightship.engine.lower.steps.options import BodyMaker, Choice, Options
from tightship.engine.lower.steps.parts import PARTING, cut
from tightship.engine.lower.steps.python_steps import emit_numpy, emit_objects
from tightship.engine.lower.steps.views import is_view, same_bytes
from tightship.engine.program.program import Body, Lowered, PackedWeight
from tightship.engine.program.schedule import schedule_of
from tightship.graph import Constant, DType, Graph, Node, Value, element_count
from tightship.graph.equal_runs import LayerRun
from tightship.graph.operators import Category, body, row_of
from tightship.planner import place_schedule

GAINS_MATTER = 0.01
"""Least share of a program's time that justifies trying another layout."""
BRIEF_ELEMENTS = 1024
"""Most elements of a step in a body that is not the library's, whose call takes 0.4 us (Zen 4)."""
ONEDNN_LENGTH_MAX = 2**31 - 1
"""Longest axis for oneDNN: 3.2 keeps lengths in 32 bits, and may divide by a remainder."""
OF_INTEGERS = frozenset({"ConvInteger", "MatMulInteger", "MaxPool"})
"""Operators on 8-bit integers themselves rather than the real numbers that they represent."""


def lower(graph: Graph, threads: int = 1, without: Collection[str] = ()) -> Lowered:
    """Lower a graph to kernels, for a number of threads, leaving out the passes named.

    Raises:
        InputError: A name in `without` is not a pass, or the processor does not multiply bfloat16.
        GraphError: A node cannot be run by any kernel.
    """
    return select(rewritten(graph, without), threads, without)


def rewritten(
    graph: Graph, without: Collection[str] = (), go_on: Callable[[], None] | None = None
) -> Graph:
    """Run the passes over a graph; `go_on` as for `run_passes`.

    Raises:
        InputError: A name in `without` is not a pass.
    """
    use_onednn = _core.HAS_ONEDNN and "onednn" not in without
    if use_onednn:
        open_library()
    faster = faster_passes(narrow=multiplies_narrow(without)) if use_onednn else frozenset()
    left_out = unserved(onednn=use_onednn, native="native" not in without, faster=faster)
    return run_passes(graph, (*without, *left_out), go_on)


def select(
    graph: Graph,
    threads: int = 1,
    without: Collection[str] = (),
    packed: Mapping[str, Sequence[PackedWeight]] | None = None,
    choice: Choice | None = None,
    repeats: Sequence[LayerRun] = (),
    *,
    go_on: Callable[[], None] | None = None,
    half_products: bool = False,
) -> Lowered:
    """Select kernels for the nodes of a rewritten graph.

    Args:
        graph: Graph that passes have rewritten.
        threads: Threads of each kernel.
        without: Names of passes to leave out.
        packed: Constants, by name, as programs for other shapes have packed them, used where
            possible; None if there are no other shapes.
        choice: Previous choice of layouts; None chooses by the cost table.
        repeats: Repeated layers of the graph, if known.
        go_on: Function called before each node; raises to abandon the work.
        half_products: Whether products may round what they multiply to bfloat16, where the
            processor multiplies such numbers faster.

    Raises:
        GraphError: A node cannot be run by any kernel.
        InputError: Products are to be of bfloat16, and the processor does not multiply that.
    """
    use_onednn = _core.HAS_ONEDNN and "onednn" not in without
    use_native = "native" not in without
    options = Options(
        use_onednn,
        use_native,
        LAST_RESORT not in without,
        "in_place" not in without,
        "library_layouts" not in without,
        use_onednn and use_native and "stream_weights" not in without,
        use_onednn and use_native and "split_products" not in without,
        half_products and use_onednn and multiplies_halves(),
        rounds_activations(without),
        narrow=_narrow(graph, without, use_onednn=use_onednn),
        winograd=use_onednn and use_native and "winograd" not in without,
        packed=packed,
        repeats=repeats,
        go_on=go_on,
        bodies=_body_maker(threads, without) if use_native else None,
    )
    if choice is not None:
        return _selected(graph, threads, _as_chosen(options, choice), without)
    lowered = _selected(graph, threads, options, without)
    if use_onednn and options.choose_layouts and "blocked_layouts" not in without:
        return _cheaper(
            lowered, lambda: _selected(graph, threads, replace(options, blocked=True), without)
        )
    return lowered


def _body_maker(threads: int, without: Collection[str]) -> BodyMaker:
    """Return functions that make programs of bodies as the graph's own is made."""

    def lower_body(graph: Graph, options: Options) -> Lowered:
        body = rewritten(graph, without, options.go_on)
        narrow = _narrow(body, without, use_onednn=options.use_onednn)
        own = replace(
            options, narrow=narrow, repeats=(), like_outputs=frozenset(), scratch_room={},
            in_body=True,
        )  # fmt: skip
        return _selected(body, threads, own, without)

    def place_body(lowered: Lowered, bound: tuple[tuple[int, int], ...]) -> Body:
        return Body(lowered, place_schedule(schedule_of(lowered)), bound)

    return BodyMaker(lower_body, place_body)


def _as_chosen(options: Options, choice: Choice) -> Options:
    """Return the options with a previous choice of layouts."""
    return replace(
        options,
        blocked=choice.layouts == "blocked",
        stream_weights=options.stream_weights and choice.stream_weights,
        like_outputs=choice.like_outputs,
    )


def _narrow(graph: Graph, without: Collection[str], *, use_onednn: bool) -> frozenset[str]:
    """Return the constants that products multiply by in bfloat16."""
    if not multiplies_narrow(without):
        return frozenset()
    from tightship.engine.lower.steps.narrow_products import narrow_constants  # few models do

    return narrow_constants(graph, use_onednn=use_onednn)


def _selected(graph: Graph, threads: int, options: Options, without: Collection[str]) -> Lowered:
    """Select kernels, and again where scratch would make the plan larger."""
    lowered = _lowered(graph, threads, options, without)
    if room := room_for_scratch(lowered):
        lowered = _lowered(graph, threads, replace(options, scratch_room=room), without)
    return lowered


def _lowered(graph: Graph, threads: int, options: Options, without: Collection[str]) -> Lowered:
    builder = Builder(graph, threads, options)

    def lower_node(position: int) -> None:
        if options.go_on is not None:
            options.go_on()
        builder.position = position
        node = graph.nodes[position]
        with named(node, "be lowered for operands of these shapes"):
            _emit(builder, node)

    position = 0
    for repeat in options.repeats:
        for each in range(position, repeat.start):
            lower_node(each)
        lower_layers(builder, repeat, lower_node)
        position = repeat.stop
    for each in range(position, len(graph.nodes)):
        lower_node(each)
    lowered = builder.finish()._replace(layouts="blocked" if options.blocked else "library")
    if "share_tables" not in without:
        lowered = share_equal_weights(share_tables(lowered))
    if "write_outputs_directly" not in without:
        lowered = write_outputs_directly(lowered)
    return lowered if "elide_concat" in without else elide_concat(lowered)


def _cheaper(lowered: Lowered, blocked: Callable[[], Lowered]) -> Lowered:
    """Choose channels in blocks if that is faster and takes no more memory.

    It is tried only if blocks remove what takes time: concatenations, or crowded pixels.
    """
    gained = concat_ns(lowered) + crowded_ns(lowered)
    if gained == 0.0 or gained < GAINS_MATTER * cost_ns(lowered):
        return lowered
    other = blocked()
    if live_bytes(other) > live_bytes(lowered) or cost_ns(other) >= cost_ns(lowered):
        return lowered
    return other


def _emit(builder: Builder, node: Node) -> None:
    if _from_integers(builder, node, BlockWeights) or _moves_nothing(builder, node):
        return
    is_narrow = builder.options.multiplies_narrow(node)
    if (
        _quantized(builder, node)
        or _from_integers(builder, node, Dequantized)
        or (not is_narrow and _by_own_products(builder, node))
    ):
        return
    if not is_narrow and ends_apart(builder, node):
        for part in (replace(node, fused=node.fused[:-1]), node.fused[-1]):
            _emit(builder, part)
        return
    if builder.options.use_onednn and (_brief(builder, node) or _onednn(builder, node)):
        return
    if builder.options.use_native and not node.fused and _native(builder, node):
        return
    if parts := _parts(node):
        for part in parts:
            _emit(builder, part)
    elif not emit_numpy(builder, node):
        emit_objects(builder, node, sized_convolution if builder.options.use_onednn else None)


def _brief(builder: Builder, node: Node) -> bool:
    """Emit a native kernel for so few elements of a body that the library's call takes longer."""
    if not builder.options.in_body or node.fused or node.domain:
        return False
    values = [builder.value(name) for name in node.writes]
    return (
        row_of(node).category is Category.ELEMENTWISE
        and all(v.is_static and element_count(v.static_shape) <= BRIEF_ELEMENTS for v in values)
        and _native(builder, node)
    )


def _by_own_products(builder: Builder, node: Node) -> bool:
    """Emit a product by a float32 constant that our kernels compute faster than the library."""
    return split(builder, node) or winograd(builder, node) or streamed(builder, node)


def _from_integers(builder: Builder, node: Node, *kinds: type[Constant]) -> bool:
    """Emit a product or gather by weights of these kinds, and what is fused into it after it."""
    kinds = (*kinds, Dequantized) if node.operator == "Gather" else kinds
    if not any(isinstance(builder.constant(name), kinds) for name in node.inputs if name):
        return False
    from tightship.engine.lower.native import block_weights  # few models have such

    rest = block_weights.block_product(builder, node)
    for part in rest or ():
        _emit(builder, part)
    return rest is not None or block_weights.block_gather(builder, node)


def _parts(node: Node) -> tuple[Node, ...]:
    """Split a fused node into nodes to run one by one; empty if the node is plain."""
    if node.fused:
        return replace(node, fused=()), *node.fused
    is_scaled = (node.domain, node.operator) == ("tightship", "ScaledConv")
    return _unscaled(node) if is_scaled else ()


def _unscaled(node: Node) -> tuple[Node, Node]:
    """Split a `ScaledConv` into Mul and Conv."""
    image, weights, bias, scale = node.inputs
    product = node.attributes["product"]
    assert isinstance(product, str)
    attributes = {name: value for name, value in node.attributes.items() if name != "product"}
    plain = replace(node, operator="Conv", domain="", attributes=attributes)
    return (
        Node(f"{node.name}.scaled", "Mul", (image, scale), (product,), version=node.version),
        replace(plain, inputs=(product, weights, bias) if bias else (product, weights)),
    )


def _moves_nothing(builder: Builder, node: Node) -> bool:
    """Whether the outputs are views of the first input, or are deferred until they are read."""
    if node.domain:
        return node.operator == "Dequantize" and _deferred(builder, node)
    if is_view(node):
        return _view(builder, node)
    if node.operator in PARTING:
        return cut(builder, node)
    return node.operator == "DequantizeLinear" and _deferred(builder, node)


def _view(builder: Builder, node: Node) -> bool:
    """Make the output a view of the input under another shape, if possible."""
    if len(node.writes) != 1:
        return False
    before, after = builder.value(node.inputs[0]), builder.value(node.outputs[0])
    if not before.is_static or not after.is_static:
        return False
    if node.operator == "Dropout" and (
        node.version >= 12 and len([n for n in node.inputs if n]) > 2
    ):
        return False
    return same_bytes(builder, node)


def _deferred(builder: Builder, node: Node) -> bool:
    """Defer DequantizeLinear until a reader needs real numbers, because kernels take integers."""
    found = _tensor(builder, node)
    if found is None:
        return False
    name = node.outputs[0]
    if (
        builder.is_like_output(name)
        or not builder.value(name).is_static
        or not builder.home_is_planned(node.inputs[0])
    ):
        return False

    def emit() -> None:
        plain = replace(node, domain="", operator="DequantizeLinear", inputs=node.inputs[:3])
        if not (builder.options.use_native and _native(builder, plain)):
            emit_numpy(builder, plain)

    builder.defer(name, found, emit)
    return True


def _tensor(builder: Builder, node: Node) -> Quantization | Measured | None:
    """Return the integers that a node dequantizes, if kernels can take them directly."""
    if not builder.options.use_onednn:
        return None
    if node.operator == "DequantizeLinear" and not node.domain:
        return quantization(node, builder.value(node.inputs[0]).dtype, builder.graph.constants)
    return measured(node, builder.value)


def _quantized(builder: Builder, node: Node) -> bool:
    """Emit a kernel on 8-bit integers, if there is one."""
    return (
        builder.options.use_onednn
        and body("quantized", node.operator, node.domain) is not None
        and (node.operator in OF_INTEGERS or builder.quantized(node.inputs[0]) is not None)
        and all(builder.value(name).is_static for name in (*node.reads, *node.writes))
        and emit("quantized", builder, node)
    )


def _onednn(builder: Builder, node: Node) -> bool:
    if body("onednn", node.operator, node.domain) is None:
        return False
    parameters = node.inputs[1:] if node.operator in ("Clip", "Resize") else ()
    for name in (*node.inputs, *node.writes):
        if name and name not in parameters and not _is_describable(builder.value(name)):
            return False
    for name in node.reads:
        if not builder.home_is_planned(name):
            return False
    return emit("onednn", builder, node)


def _native(builder: Builder, node: Node) -> bool:
    """Emit a kernel of the native core, if operands are planned and of known shape."""
    names = [name for name in (*node.inputs, *node.writes) if name]
    return (
        all(builder.value(name).is_static for name in names)
        and all(builder.home_is_planned(name) for name in node.reads)
        and emit("native", builder, node)
    )


def _is_describable(value: Value) -> bool:
    if not value.is_static or value.dtype is not DType.FLOAT32:
        return False
    shape = value.static_shape
    return 0 not in shape and len(shape) <= 5 and max(shape, default=1) <= ONEDNN_LENGTH_MAX
