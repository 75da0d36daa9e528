"""Builder of a lowered program: collects steps, and the home and layout of each value."""

from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence

from tightship._core import Attributes, MemoryDesc, NativeKernel, PrimitiveDesc
from tightship.engine.lower.passes.dequantized import Measured, Quantization
from tightship.engine.lower.steps.copy_step import copy_step
from tightship.engine.lower.steps.descriptions import Descriptions
from tightship.engine.lower.steps.layouts import (
    DESCRIBABLE,
    blocked,
    channels_last,
    register_floats,
    row_major,
    seen_as,
)
from tightship.engine.lower.steps.options import Options
from tightship.engine.lower.steps.packed_weights import PackedWeights
from tightship.engine.lower.steps.reach import check_reach
from tightship.engine.lower.steps.records import Records
from tightship.engine.program.program import (
    KernelKind,
    Lowered,
    LoweredStep,
    NativeWork,
    Operand,
    PrimitiveWork,
    Sharing,
    Slot,
    Space,
    Work,
)
from tightship.graph import Constant, DType, Graph, Node, Value
from tightship.graph.layout import size_bytes
from tightship.planner.schedule import AliasKind

SRC, DST, SCRATCHPAD = 1, 17, 80

ImageLayouts = tuple[MemoryDesc, MemoryDesc]
"""Layouts of the image that a convolution reads and of the one that it writes."""


class Builder:
    """Program under construction.

    Every value has one home (`home`); copies in other layouts are made on demand and shared.
    `known` maps names to all values known before the run.
    """

    def __init__(self, graph: Graph, threads: int, options: Options) -> None:
        self.graph = graph
        self.threads = threads
        self.options = options
        self.position = 0
        descriptions = Descriptions()
        self.described, self.row_major = descriptions.once, descriptions.row_major
        self.records = Records(PackedWeights(options.packed or {}))
        self._values: dict[str, Value] = {}
        self.known: Mapping[str, Constant] = ChainMap(
            self.records.added, dict(graph.constants), dict(graph.known)
        )
        self._inputs = {name: self._input(graph.value(name)) for name in graph.inputs}

    def _input(self, value: Value) -> Operand:
        operand = self._external(value) if value.is_static else self.object_operand(value)
        self.records.homes[value.name] = operand
        return operand

    def value(self, name: str) -> Value:
        """Return the type of a value."""
        found = self._values.get(name)
        if found is None:
            found = self._values[name] = self.graph.value(name)
        return found

    def readers(self, name: str) -> list[Node]:
        """List the nodes that read a value, in order."""
        return [self.graph.nodes[index] for index in self.graph.reads.get(name, ())]

    def _is_last_to_read(self, name: str) -> bool:
        positions = self.graph.reads.get(name, ())
        return (not positions or positions[-1] <= self.position) and name not in self.graph.outputs

    def constant(self, name: str) -> Constant | None:
        """Return the constant of this name, if it is one."""
        return self.records.added.get(name) or self.graph.constants.get(name)

    def add_constant(self, name: str, constant: Constant) -> None:
        """Add a constant that an emitter derives from the graph's."""
        self.records.added[name] = constant
        self._values[name] = Value(name, constant.dtype, constant.shape)

    def packed_layout(self, name: str, dims: Sequence[int]) -> MemoryDesc | None:
        """Find a layout of these dimensions in which another program packed a constant."""
        packed = self.options.packed_layouts(name)
        return next((desc for desc in packed if desc.dims == dims), None)

    def defer(self, name: str, tensor: Quantization | Measured, emit: Callable[[], None]) -> None:
        """Leave out the step that dequantizes a value until its home is needed."""
        self.records.deferred[name] = tensor, emit
        for source in map(self.home, tensor.reads):
            if source.space is Space.ARENA:
                self.records.names[source.slot].append(name)

    def quantized(self, name: str) -> Quantization | Measured | None:
        """Return the integers that a deferred value is dequantized from; None for other values."""
        return self.records.deferred[name][0] if name in self.records.deferred else None

    def home(self, name: str) -> Operand:
        """Return a value's home; a constant is packed row-major on its first use."""
        homes, deferred = self.records.homes, self.records.deferred
        if name in deferred and name not in homes:
            deferred[name][1]()
        if name not in homes:
            constant = self.constant(name)
            assert constant is not None, name
            if constant.dtype is DType.STRING:
                self.records.objects[name] = constant
                self.object_operand(self.value(name))
            else:
                desc = self._describable(constant.dtype, constant.shape)
                homes[name] = self.records.weights.row_major(name, constant, desc)
        return homes[name]

    def home_is_planned(self, name: str) -> bool:
        """Whether a value has planned bytes, instead of being an object."""
        if name in self.records.homes:
            return self.records.homes[name].space is not Space.OBJECT
        return self.value(name).is_static

    def dies_here(self, operand: Operand) -> bool:
        """Whether the node being lowered is the last to read an arena slot."""
        return operand.space is Space.ARENA and all(
            self._is_last_to_read(name) for name in self.records.names.get(operand.slot, ())
        )

    def overwritable(self, node: Node, name: str, desc: MemoryDesc) -> Operand | None:
        """Return an input in a layout, if its bytes are its own and no later node reads them.

        A value in another layout is copied into this one, if it is not read later.
        """
        inputs = [i for part in (node, *node.fused) for i in part.inputs if i]
        if inputs.count(name) > 1:
            return None
        home = seen_as(self.home(name), desc)
        if home is None:
            return self.in_layout(name, desc) if self._is_last_to_read(name) else None
        homes = [self.records.homes[i] for i in inputs if i in self.records.homes]
        alone = sum((h.space, h.slot) == (home.space, home.slot) for h in homes) == 1
        return home if alone and self.dies_here(home) and self._is_whole(home) else None

    def _is_whole(self, operand: Operand) -> bool:
        """Whether an operand in the arena fills its slot."""
        desc, slot = operand.desc, self.records.slots[operand.slot]
        return desc is None or (desc.offset_bytes == 0 and desc.size_bytes == slot.size_bytes)

    def writes_outside(self, name: str, desc: MemoryDesc) -> bool:
        """Whether a value in this layout is written directly to the caller's memory."""
        return name in self.graph.outputs and desc == MemoryDesc(desc.dims, desc.dtype)

    def is_like_output(self, name: str) -> bool:
        """Whether a value has an output's layout: it is one, or is recomputed from one."""
        return name in self.graph.outputs or name in self.options.like_outputs

    def dense(self, name: str) -> Operand:
        """Return a value in row-major layout, copied if needed; an object unchanged."""
        home = self.home(name)
        return (
            home if home.desc is None else self.in_layout(name, row_major(home.shape, home.dtype))
        )

    def in_layout(self, name: str, desc: MemoryDesc) -> Operand:
        """Return a value in the given layout, copied if needed."""
        present = self._present(name, desc)
        if present is not None:
            return present
        home = self.home(name)
        assert home.desc is not None, home
        if home.desc.dims != desc.dims:
            home = self.dense(name).under(row_major(desc.dims, home.dtype))
            if home.desc == desc:
                return home
        copy = self._arena(f"{name}.{desc.format}", DType(desc.dtype), home.shape, desc)
        self.reorder(home, copy)
        self.records.copies.setdefault(name, []).append(copy)
        return copy

    def _present(self, name: str, desc: MemoryDesc) -> Operand | None:
        """Return a value in the given layout, if it or a copy has that already."""
        operands = (self.home(name), *self.records.copies.get(name, ()))
        return next((seen for o in operands if (seen := seen_as(o, desc)) is not None), None)

    def reorder(self, source: Operand, target: Operand) -> None:
        """Add a step that copies `source` into the layout of `target`."""
        assert source.desc is not None
        assert target.desc is not None
        desc = PrimitiveDesc.reorder(source.desc, target.desc, Attributes())
        self.primitive(
            Node(f"{target.name}.reorder", "Reorder", (), ()), desc, [(SRC, source)], [target]
        )

    def preferred(self, shape: Sequence[int]) -> MemoryDesc:
        """Return a layout for a primitive to choose; row-major if choosing is switched off."""
        return MemoryDesc.any(list(shape)) if self.options.choose_layouts else row_major(shape)

    def image_layouts(self, before: Sequence[int], after: Sequence[int]) -> list[ImageLayouts]:
        """List pairs of layouts for a convolution's images, to be tried in order."""
        free = self.preferred(before), self.preferred(after)
        if not self.options.blocked or not self.options.choose_layouts:
            return [free]
        narrow = before[1] < register_floats()
        return [(free[0] if narrow else blocked(before), blocked(after)), free]

    def candidate_layouts(self, source: Operand) -> list[MemoryDesc]:
        """List layouts to try on a primitive that keeps its input's: as it is, channels last."""
        assert source.desc is not None
        return [source.desc, channels_last(source.shape)]

    def weight(self, name: str, source: MemoryDesc, desc: MemoryDesc) -> Operand:
        """Pack a constant into a layout, once for all readers of that layout."""
        constant = self.constant(name)
        assert constant is not None, name
        return self.records.weights.packed(name, constant, source, desc)

    def _describable(self, dtype: DType, shape: tuple[int, ...]) -> MemoryDesc | None:
        if self.options.use_onednn and dtype in DESCRIBABLE and 0 not in shape and len(shape) <= 12:
            return self.row_major(shape, dtype)
        return None

    def output(self, name: str, desc: MemoryDesc | None = None) -> Operand:
        """Make the home of a value that is about to be written.

        A row-major graph output is written directly to the caller's memory.
        """
        value = self.value(name)
        assert value.dtype is not None
        shape = value.static_shape
        if name in self.graph.outputs and (desc is None or self.writes_outside(name, desc)):
            operand = self._external(value)
        else:
            plain = self._describable(value.dtype, shape)
            operand = self._arena(name, value.dtype, shape, desc or plain)
        return self._settle(name, operand)

    def output_as(self, name: str, desc: MemoryDesc) -> Operand:
        """Make the home of a row-major value, seen by its writer under another shape."""
        return self.output(name).under(desc)

    def room(self, name: str, desc: MemoryDesc) -> Operand:
        """Make an operand for a result that is not a value of the graph."""
        return self._arena(name, DType(desc.dtype), tuple(desc.dims), desc)

    def view(self, name: str, source: Operand, desc: MemoryDesc | None) -> None:
        """Make a value a view of another operand under another layout."""
        shape = self.value(name).static_shape
        self._settle(name, Operand(name, source.space, source.slot, source.dtype, shape, desc))

    def _settle(self, name: str, operand: Operand) -> Operand:
        """Make an operand a value's home; several values may share its slot."""
        self.records.homes[name] = operand
        if operand.space is Space.ARENA:
            self.records.names.setdefault(operand.slot, []).append(name)
        return operand

    def object_operand(self, value: Value) -> Operand:
        """Make a value whose size only the run determines."""
        operand = Operand(value.name, Space.OBJECT, -1, value.dtype or DType.STRING, ())
        self.records.homes[value.name] = operand
        return operand

    def _external(self, value: Value) -> Operand:
        assert value.dtype is not None
        shape, slots = value.static_shape, self.records.slots
        slots.append(Slot(value.name, value.size_bytes, external=True))
        desc = self._describable(value.dtype, shape)
        return Operand(value.name, Space.EXTERNAL, len(slots) - 1, value.dtype, shape, desc)

    def _arena(
        self, name: str, dtype: DType, shape: tuple[int, ...], desc: MemoryDesc | None
    ) -> Operand:
        size = desc.size_bytes if desc else size_bytes(dtype, shape)
        self.records.slots.append(Slot(name, size, external=False))
        return Operand(name, Space.ARENA, len(self.records.slots) - 1, dtype, shape, desc)

    def primitive(
        self,
        node: Node,
        desc: PrimitiveDesc,
        reads: Sequence[tuple[int, Operand]],
        writes: Sequence[Operand],
        share: Sequence[tuple[Operand, AliasKind]] = (),
    ) -> None:
        """Add an oneDNN step that writes `writes[0]` as its destination.

        `share` lists operands whose bytes the destination may, or must, take over; an operand tied
        to the destination is not bound a second time.
        """
        tied = [source for source, kind in share if kind is AliasKind.TIED]
        assert not tied or writes[0].space is Space.ARENA, writes[0]
        arguments = (*reads, (DST, writes[0]))
        self.step(
            node,
            ("onednn", desc.implementation),
            ((*[operand for _, operand in reads], *tied), tuple(writes)),
            PrimitiveWork(desc, arguments),
            scratch_bytes=desc.scratchpad_bytes,
            share=[(writes[0], source, kind) for source, kind in share],
        )

    def native(
        self,
        node: Node,
        kernel: tuple[str, NativeKernel | Callable[[str], NativeKernel]],
        reads: Sequence[Operand],
        writes: Sequence[Operand],
        *,
        in_place: Sequence[tuple[Operand, Operand]] = (),
    ) -> None:
        """Add a step of a named native kernel, or of one that a function makes for a node's name.

        Operands are `reads`, `writes`; `in_place` lists outputs with inputs that they may replace.
        """
        make = None if isinstance(kernel[1], NativeKernel) else kernel[1]
        made = kernel[1] if isinstance(kernel[1], NativeKernel) else kernel[1](node.name)
        check_reach(made, (*reads, *writes))
        self.step(
            node,
            ("native", kernel[0]),
            (tuple(reads), tuple(writes)),
            NativeWork(made, (*reads, *writes), make),
            scratch_bytes=made.scratch_bytes(self.threads),
            share=[(target, source, AliasKind.IN_PLACE) for target, source in in_place],
        )

    def step(
        self,
        node: Node,
        how: tuple[KernelKind, str],
        operands: tuple[tuple[Operand, ...], tuple[Operand, ...]],
        work: Work,
        *,
        scratch_bytes: int = 0,
        share: Sequence[tuple[Operand, Operand, AliasKind]] = (),
        dynamic_reason: str | None = None,
    ) -> None:
        """Add a step; `share` lists outputs with inputs, and how they may share bytes.

        An input is not overwritten if the step also reads it through a view, or if it is a part of
        another value.
        """
        reads, writes = operands
        sharing = tuple(
            Sharing(target.slot, source.slot, kind)
            for target, source, kind in share
            if target.space is Space.ARENA
            and source.space is Space.ARENA
            and self._is_whole(source)
            and not any(_is_view(operand, source) for operand in reads)
        )
        operator = "+".join([node.operator, *[fused.operator for fused in node.fused]])
        self.records.steps.append(
            LoweredStep(
                node.name, operator, *how, reads, writes, work, scratch_bytes, sharing,
                dynamic_reason,
            )
        )  # fmt: skip

    def finish(self) -> Lowered:
        """Return the program, with every graph output in the caller's memory."""
        outputs = {name: self._delivered(name) for name in dict.fromkeys(self.graph.outputs)}
        records = self.records
        return Lowered(
            tuple(records.steps), tuple(records.slots), tuple(records.weights.weights),
            self._inputs, outputs, records.objects, self.threads,
        )  # fmt: skip

    def _delivered(self, name: str) -> Operand:
        home = self.home(name)
        if home.space is Space.OBJECT:
            return home
        is_own = home.space is Space.EXTERNAL and self.records.slots[home.slot].name == name
        if is_own and name not in self._inputs:
            return home
        if 0 in home.shape:
            return self._external(self.value(name))
        if home.desc is not None and not self._present(name, row_major(home.shape, home.dtype)):
            target = self._external(self.value(name))
            self.reorder(home, target)
            return target
        source = self.dense(name)
        target = self._external(self.value(name))
        self.records.steps.append(copy_step(f"{name}.copy", source, target))
        return target


def _is_view(operand: Operand, source: Operand) -> bool:
    """Whether an operand is another value in the bytes of `source`."""
    place = (operand.space, operand.slot)
    return place == (source.space, source.slot) and operand.name != source.name
