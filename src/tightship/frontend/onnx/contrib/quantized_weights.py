"""Products and gathers by weights stored as small integers, decomposed into dequantized ones."""

from dataclasses import dataclass

from onnx import TensorProto

from tightship.frontend.onnx.contrib.pattern import Pattern
from tightship.frontend.onnx.contrib.translation import REQUIRED, Translation, Value
from tightship.frontend.onnx.types import element_name

BITS = (2, 4, 8)
BLOCK_MIN = 16
TABLES = (TensorProto.INT4, TensorProto.UINT4, TensorProto.UINT8)
"""Element types of tables that are gathered from."""
INT8_ACTIVATIONS = 4
"""Accuracy level that allows activations to be rounded to 8 bits."""
LEVEL_MAX = 4


@dataclass(frozen=True, slots=True)
class BlockForm:
    """Matrix of integers of some bits, in blocks of `size` elements of a row."""

    rows: int
    depth: int
    bits: int
    size: int

    @property
    def blocks(self) -> int:
        """Blocks of a row."""
        return -(-self.depth // self.size)


def matmul_by_blocks(s: Pattern) -> None:
    """Decompose a product by weights of 2, 4 or 8 bits, with a scale for each block of a row.

    With zero points that are no integers, ONNX Runtime does not round activations at any level.
    """
    form = block_form(s, "N", "K")
    level = s.integer("accuracy_level")
    if not 0 <= level <= LEVEL_MAX:
        raise s.refusal(f"`accuracy_level` = {level}", f"it must be 0 to {LEVEL_MAX}")
    has_real_zeros = bool(s.input(3)) and s.dtype(s.input(3)) != TensorProto.UINT8
    mode = "int8" if level == INT8_ACTIVATIONS and not has_real_zeros else "exact"
    check_shape(s, 1, "weights", [form.rows, form.blocks, form.size * form.bits // 8])
    check_shape(s, 2, "scales", [form.rows, form.blocks])
    matrix = real_matrix(s, form, s.dtype(s.input(0)), (1, 2, 3), mode)
    product = s("MatMul", s.input(0), s("Transpose", matrix, perm=[1, 0]))
    s.give(0, s("Add", product, s.input(5)) if s.input(5) else product)


def gather_by_blocks(s: Pattern) -> None:
    """Decompose a gather from a quantized table into a gather from the table of real numbers.

    These are of float32, so that the rows alone are rounded to scales of 16 bits.
    """
    data, scales, zeros = s.input(0), s.input(2), s.input(3)
    rank = len(s.shape(data))
    size, bits = _block_size(s), _bits(s)
    gathered, quantized = (_axis(s, name, rank) for name in ("gather_axis", "quantize_axis"))
    if gathered == quantized:
        raise s.refusal(
            f"`gather_axis` = `quantize_axis` = {gathered}", "blocks must lie along another axis"
        )
    if s.dtype(data) not in TABLES:
        raise s.refusal(
            f"a table of {element_name(s.dtype(data))}", "it must be of int4, uint4 or uint8"
        )
    if s.dtype(data) != TensorProto.UINT8:
        wide = _cast(s, scales, s.dtype(scales), TensorProto.FLOAT)
        table = s("DequantizeLinear", data, wide, zeros, axis=quantized, block_size=size)
        rows = s("Gather", table, s.input(1), axis=gathered)
        s.give(0, _cast(s, rows, TensorProto.FLOAT, s.dtype(scales)))
        return
    if (rank, gathered, quantized) != (2, 0, 1):
        raise s.refusal(
            f"a table of uint8 with {rank} axes, `gather_axis` = {gathered} and "
            f"`quantize_axis` = {quantized}",
            "it must have 2 axes, be gathered along axis 0 and quantized along axis 1",
        )
    form = BlockForm(s.length(data, 0), s.length(data, 1) * 8 // bits, bits, size)
    if form.depth % size:
        raise s.refusal(f"rows of {form.depth} elements", f"`block_size` = {size} must divide them")
    check_shape(s, 2, "scales", [form.rows, form.blocks])
    table = real_matrix(s, form, TensorProto.FLOAT, (0, 2, 3), "exact")
    rows = s("Gather", table, s.input(1), axis=0)
    s.give(0, _cast(s, rows, TensorProto.FLOAT, s.dtype(scales)))


def _cast(s: Pattern, value: str, element: int, wanted: int) -> str:
    """Return a value of an element type as one of another."""
    return value if element == wanted else s("Cast", value, to=wanted)


def _axis(s: Pattern, name: str, rank: int) -> int:
    axis = s.integer(name)
    if not -rank <= axis < rank:
        raise s.refusal(f"`{name}` = {axis}", f"it must be in [{-rank}, {rank - 1}]")
    return axis % rank


def _bits(s: Pattern) -> int:
    bits = s.integer("bits")
    if bits not in BITS:
        raise s.refusal(f"`bits` = {bits}", "it must be 2, 4 or 8")
    return bits


def _block_size(s: Pattern) -> int:
    size = s.integer("block_size")
    if size < BLOCK_MIN or size & (size - 1):
        raise s.refusal(f"`block_size` = {size}", f"it must be a power of two from {BLOCK_MIN} on")
    return size


def block_form(s: Pattern, rows: str, depth: str) -> BlockForm:
    """Return the form that a node's attributes tell; `rows` and `depth` are names of two."""
    return BlockForm(s.count(rows), s.count(depth), _bits(s), _block_size(s))


def real_matrix(
    s: Pattern, form: BlockForm, element: int, places: tuple[int, int, int], mode: str
) -> str:
    """Write the matrix of real numbers, [rows, depth].

    Args:
        s: The node.
        form: Form of the integers.
        element: ONNX's number of the result's element type.
        places: Inputs with integers, scales and zero points.
        mode: Activations that a product may use, `exact` or `int8`.
    """
    stored, scales, zeros = map(s.input, places)
    if zeros and s.dtype(zeros) == TensorProto.UINT8:
        check_shape(s, places[2], "zero points", [form.rows, -(-form.blocks * form.bits // 8)])
    elif zeros:
        check_shape(s, places[2], "zero points", [form.rows, form.blocks])
    return s.own(
        "DequantizeBlocks", (element, (form.rows, form.depth)), stored, scales, zeros,
        rows=form.rows, depth=form.depth, bits=form.bits, block_size=form.size, mode=mode,
    )  # fmt: skip


def check_shape(s: Pattern, place: int, what: str, shape: list[int]) -> None:
    """Refuse an operand that has neither this shape nor its elements in a row.

    Raises:
        GraphError: It has another shape.
    """
    name = s.input(place)
    found = [s.length(name, axis) for axis in range(len(s.shape(name)))]
    flat = 1
    for length in shape:
        flat *= length
    if found not in (shape, [flat]):
        raise s.refusal(
            f"{what} `{name}` of the shape {found}", f"the shape must be {shape} or [{flat}]"
        )


def lstm(s: Pattern) -> None:
    """Decompose an LSTM with integer weights; inputs and states stay real numbers."""
    weights = [_real(s, index, scale) for index, scale in ((1, 8), (2, 10))]
    others = (s.input(index) for index in range(3, 8))
    count = len(s.node.output)
    outputs = s.many("LSTM", count, s.input(0), *weights, *others, **s.present(*_LSTM))
    for index, name in enumerate(outputs):
        s.give(index, name)


def _real(s: Pattern, index: int, scale: int) -> str:
    """Dequantize and transpose weights [directions, from, to] for LSTM."""
    parts = [s("Cast", s.input(index), to=TensorProto.FLOAT)]
    directions = s.length(s.input(index), 0)
    aside = s.constant([directions, 1, -1])
    if s.input(scale + 1):
        zero = s("Cast", s.input(scale + 1), to=TensorProto.FLOAT)
        parts = [s("Sub", parts[0], s("Reshape", zero, aside))]
    real = s("Mul", parts[0], s("Reshape", s.input(scale), aside))
    return s("Transpose", real, perm=[0, 2, 1])


_LSTM: dict[str, Value] = {
    "activation_alpha": None, "activation_beta": None, "activations": None, "clip": None,
    "direction": "forward", "hidden_size": None, "input_forget": 0,
}  # fmt: skip
QUANTIZED_WEIGHTS = {
    "DynamicQuantizeLSTM": Translation(
        lstm,
        "X W R B? sequence_lens? initial_h? initial_c? P? W_scale W_zero_point R_scale "
        "R_zero_point",
        "Y? Y_h? Y_c?",
        _LSTM,
    ),
    "GatherBlockQuantized": Translation(
        gather_by_blocks,
        "data indices scales zero_points?",
        "output",
        {"bits": 4, "block_size": 128, "gather_axis": 0, "quantize_axis": 1},
    ),
    "MatMulNBits": Translation(
        matmul_by_blocks,
        "A B scales zero_points? !g_idx bias?",
        "Y",
        {"K": REQUIRED, "N": REQUIRED, "accuracy_level": 0, "bits": 4, "block_size": REQUIRED},
        only={"weight_prepacked": (0,)},
    ),
}
"""Translations by operator."""
