"""Constants of a model, mapped where they are."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tightship.driver.types.model import Lifetime, Model, Operand
from tightship.driver.types.operand_type import OperandType
from tightship.graph import DType, Mapped, MappedFile

DTYPES = {
    OperandType.FLOAT32: DType.FLOAT32,
    OperandType.INT32: DType.INT32,
    OperandType.UINT32: DType.UINT32,
    OperandType.TENSOR_FLOAT32: DType.FLOAT32,
    OperandType.TENSOR_INT32: DType.INT32,
    OperandType.TENSOR_QUANT8_ASYMM: DType.UINT8,
    OperandType.BOOL: DType.BOOL,
    OperandType.TENSOR_QUANT16_SYMM: DType.INT16,
    OperandType.TENSOR_FLOAT16: DType.FLOAT16,
    OperandType.TENSOR_BOOL8: DType.BOOL,
    OperandType.FLOAT16: DType.FLOAT16,
    OperandType.TENSOR_QUANT8_SYMM_PER_CHANNEL: DType.INT8,
    OperandType.TENSOR_QUANT16_ASYMM: DType.UINT16,
    OperandType.TENSOR_QUANT8_SYMM: DType.INT8,
    OperandType.TENSOR_QUANT8_ASYMM_SIGNED: DType.INT8,
}
"""Element types of operand types; a subgraph has none."""


@dataclass(frozen=True, slots=True)
class Constants:
    """Bytes of constants: those in the message, and pools."""

    values: MappedFile
    pools: tuple[MappedFile, ...]

    def constant(self, operand: Operand) -> Mapped | None:
        """Return a constant operand without copying or reading it; None for other operands."""
        location, value_type = operand.location, operand.value_type
        if operand.lifetime == Lifetime.CONSTANT_COPY:
            file = self.values
        elif operand.lifetime == Lifetime.CONSTANT_REFERENCE:
            file = self.pools[location.pool_index]
        else:
            return None
        dtype = DTYPES[OperandType(value_type.operand_type)]
        return Mapped(file, location.offset_bytes, dtype, value_type.dimensions)


def constants_of(model: Model, pools: Sequence[MappedFile]) -> Constants:
    """Return the constants of a model; `pools` are those it names, in its order."""
    assert len(pools) == len(model.pools), (len(pools), model.pools)
    values = MappedFile.of_bytes(model.operand_values, Path("operand values"))
    return Constants(values, tuple(pools))
