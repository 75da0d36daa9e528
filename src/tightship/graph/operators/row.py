"""A row of the operator table: the facts about one operator, and the places of its bodies."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from tightship.graph.ir import AttributeValue
from tightship.graph.layout import DType


class Category(Enum):
    """Relation between the bytes of outputs and inputs."""

    OTHER = auto()
    """Outputs are apart from inputs."""
    ELEMENTWISE = auto()
    """Operators whose output elements depend on the input elements at the same position."""
    NORMALIZING = auto()
    """Operators that read rows of the first input before they write them."""
    REPLACING = auto()
    """The output is the first input with some elements replaced."""
    LOSS = auto()
    """The second output, logarithms of probabilities, is made of rows of the first input."""
    RESHAPING = auto()
    """Operators whose output is the first input's bytes."""
    CUTTING = auto()
    """Outputs are intervals of the first input, if all axes outside have length 1."""
    JOINING = auto()
    """Inputs are intervals of the output, if all axes outside have length 1."""
    UPDATING = auto()
    """A weight and its state are written over what they were."""


class Half(Enum):
    """Treatment of float16 and bfloat16 in a model with products."""

    FLOAT32 = auto()
    """The operator computes in float32."""
    MOVED = auto()
    """The operator moves elements, which may be float32 by then."""


ALLOCATES = "it runs in a kernel that allocates, in the type that is declared"
CONVERTS = "it converts, as the pass does around it"
HANDS_ON = "bodies, sequences and optionals have the types that are declared"
MAKES = "it reads no half that has been computed"
QUANTIZED = "its kernels take scales of the type that is declared"
ROUNDED = "it asks for what is equal, infinite or undefined among halves"


@dataclass(frozen=True, slots=True)
class NoGradient:
    """Reason why an operator has no gradient rule.

    Attributes:
        reason: As the list of operators has it.
        is_zero: Whether the gradient is zero everywhere, so that the way back ends here.
    """

    reason: str
    is_zero: bool = False


STEPS = NoGradient("results do not change with a small change of inputs", is_zero=True)
OF_SHAPES = NoGradient("reads no element", is_zero=True)
NOT_REAL = NoGradient("results are not real numbers")
DRAWN = NoGradient("results are drawn at random")
SETTINGS = NoGradient("inputs are settings")
REINTERPRETED = NoGradient("bits have another meaning in the result")
UNWRITTEN = NoGradient("no rule yet")


@dataclass(frozen=True, slots=True)
class Eltwise:
    """oneDNN's algorithm for an activation, and what alpha and beta are without attributes."""

    algorithm: str
    alpha: float = 0.0
    beta: float = 0.0


Type = tuple[DType, tuple[int, ...]]
"""Type and shape of a static value."""
Attributes = Mapping[str, AttributeValue]
Infer = Callable[[Sequence[Type | None], Attributes], list[Type]]
"""Function from the types of inputs, None if left out, and attributes to those of all outputs."""


@dataclass(frozen=True, slots=True)
class Signature:
    """Operands of an operator that no standard defines.

    Attributes:
        inputs: Their names; a question mark says that one may be absent.
        outputs: Their names.
        infer: Types of the outputs.
        in_place: Pairs (output index, input index) that may be one buffer.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    infer: Infer
    in_place: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Operator:
    """All that is known of one operator, in any version.

    A body is text: `module.name` in the package that `PACKAGES` has for its column, or
    `module.name:argument` where `name` makes the body of the argument. It is imported at its first
    use, because a process runs few of the operators there are.

    Attributes:
        name: Without the domain.
        reads: The most inputs that a node may have (`*` for any number), and its attributes:
            `@name` is said by the shapes or types of inputs and outputs as well, `~name` changes
            no result, `name=1,2` is supported for these values alone.
        domain: `""` is ONNX's own.
        category: Relation between the bytes of outputs and inputs.
        half: Treatment of halves, or the reason why they stay as they are; empty where the
            operator takes none.
        operations: Operations for each element of the first input; None for one for each element
            that is written.
        is_product: Whether it multiplies matrices, which BLAS and oneDNN do.
        is_random: Whether results may differ from run to run.
        trims: Whether outputs after the first may be left out.
        eltwise: oneDNN's algorithm, if the operator can follow a product in one primitive.
        binary: oneDNN's algorithm for two operands, likewise.
        signature: Operands, of an operator that ONNX does not have.
        shape: Shapes of outputs from shapes of inputs, which may be symbolic.
        operands: Relations between operands that ONNX's inference does not check.
        known: Evaluation of small constants while a file is read.
        lengths: Evaluation of small constants that hold symbolic lengths.
        numpy: Maker of NumPy kernels.
        objects: Maker of kernels that allocate what they return.
        native: Emitter of kernels of the native core.
        sized: Maker of the core's operators on arrays whose shapes only the run knows.
        onednn: Emitter of oneDNN primitives.
        quantized: Emitter of oneDNN primitives on 8-bit integers.
        gradient: Writer of gradient nodes, or the reason why there is none.
    """

    name: str
    reads: str = "*"
    domain: str = ""
    category: Category = Category.OTHER
    half: Half | str = ""
    operations: int | None = None
    is_product: bool = False
    is_random: bool = False
    trims: bool = False
    eltwise: Eltwise | None = None
    binary: str = ""
    signature: Signature | None = None
    shape: str = ""
    operands: str = ""
    known: str = ""
    lengths: str = ""
    numpy: str = ""
    objects: str = ""
    native: str = ""
    sized: str = ""
    onednn: str = ""
    quantized: str = ""
    gradient: str | NoGradient = ""
