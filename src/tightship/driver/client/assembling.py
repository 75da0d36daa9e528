"""Assembly of builders into a model: subgraphs are numbered, constants laid out."""

from dataclasses import dataclass, field, replace

from tightship.driver.client.building import ModelBuilder
from tightship.driver.types.model import DataLocation, Lifetime, Model, Operand, Subgraph
from tightship.driver.types.status import COPIED_CONSTANT_BYTES_MAX, REQUEST_ALIGNMENT_BYTES


@dataclass(frozen=True, slots=True)
class Assembled:
    """Model whose larger constants are not in a pool yet.

    Attributes:
        gathered: Larger constants, one after another.
    """

    subgraphs: tuple[Subgraph, ...]
    values: bytes
    gathered: bytes
    pools: tuple[int, ...]

    def model(self, gathered_pool: int | None) -> Model:
        """Return the model, given the pool of `gathered`; None if that is empty."""
        pools = self.pools if gathered_pool is None else (*self.pools, gathered_pool)
        return Model(self.subgraphs[0], self.subgraphs[1:], self.values, pools)


def assembled(builder: ModelBuilder) -> Assembled:
    """Assemble the model whose main subgraph is that of a builder."""
    found = _Assembly()
    found.add(builder)
    return found.done()


@dataclass(slots=True)
class _Assembly:
    """Numbered subgraphs and laid out constants."""

    builders: list[ModelBuilder] = field(default_factory=list)
    values: bytearray = field(default_factory=bytearray)
    gathered: bytearray = field(default_factory=bytearray)
    pools: list[int] = field(default_factory=list)

    def add(self, builder: ModelBuilder) -> None:
        """Add a builder and those that it refers to."""
        self.builders.append(builder)
        for inner in builder.subgraphs.values():
            if not any(inner is each for each in self.builders):
                self.add(inner)
        for number in builder.pools.values():
            if number not in self.pools:
                self.pools.append(number)

    def done(self) -> Assembled:
        """Return the model with all subgraphs and constants located."""
        subgraphs = tuple(self._subgraph(builder) for builder in self.builders)
        return Assembled(subgraphs, bytes(self.values), bytes(self.gathered), tuple(self.pools))

    def _subgraph(self, builder: ModelBuilder) -> Subgraph:
        operands = tuple(
            self._located(builder, index, operand) for index, operand in enumerate(builder.operands)
        )
        ends = [
            tuple(index for index, each in enumerate(operands) if each.lifetime == lifetime)
            for lifetime in (Lifetime.SUBGRAPH_INPUT, Lifetime.SUBGRAPH_OUTPUT)
        ]
        return Subgraph(operands, tuple(builder.operations), ends[0], ends[1])

    def _located(self, builder: ModelBuilder, index: int, operand: Operand) -> Operand:
        if index in builder.subgraphs:
            inner = builder.subgraphs[index]
            number = next(at for at, each in enumerate(self.builders) if each is inner)
            return replace(operand, location=DataLocation(0, number - 1))
        if index in builder.pools:
            pool = self.pools.index(builder.pools[index])
            return replace(operand, location=replace(operand.location, pool_index=pool))
        data = builder.constants.get(index)
        if data is None:
            return operand
        if len(data) <= COPIED_CONSTANT_BYTES_MAX:
            alignment = 4 if len(data) >= 4 else 2 if len(data) >= 2 else 1
            offset = _append(self.values, data, alignment)
            return replace(operand, location=DataLocation(0, offset, len(data)))
        offset = _append(self.gathered, data, REQUEST_ALIGNMENT_BYTES)
        location = DataLocation(len(self.pools), offset, len(data))
        return replace(operand, lifetime=Lifetime.CONSTANT_REFERENCE, location=location)


def _append(room: bytearray, data: bytes, alignment: int) -> int:
    room.extend(bytes(-len(room) % alignment))
    room.extend(data)
    return len(room) - len(data)
