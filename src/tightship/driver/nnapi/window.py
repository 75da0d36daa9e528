"""Geometry of a window over an image: kernel, strides, dilations and padding."""

from dataclasses import dataclass

from tightship.driver.nnapi.emission import Tensor
from tightship.driver.nnapi.operation_context import OperationContext
from tightship.driver.types.operand_type import OperandType
from tightship.graph import AttributeValue

NCHW_OF_NHWC = (0, 3, 1, 2)
NHWC_OF_NCHW = (0, 2, 3, 1)

SAME, VALID = 1, 2
PADDED = 3
"""Number of additional arguments of explicit padding: four lengths instead of one scheme."""

Pair = tuple[int, int]
"""Values for height and width."""


@dataclass(frozen=True, slots=True)
class Arguments:
    """Arguments after an operation's tensors.

    Attributes:
        scheme: `SAME` or `VALID`; None with explicit padding.
        heads, tails: Explicit padding before and after.
        middle: Arguments between strides and activation, in order.
        activation_at: Position of the fused activation.
    """

    scheme: int | None
    heads: Pair
    tails: Pair
    strides: Pair
    middle: tuple[int, ...]
    activation_at: int
    is_channels_first: bool
    dilations: Pair

    @property
    def order(self) -> tuple[int, ...]:
        """Permutation of an image's axes to NCHW; empty if not needed."""
        return () if self.is_channels_first else NCHW_OF_NHWC


def read_arguments(
    context: OperationContext,
    first: int,
    middle: int,
    *,
    is_dilated: bool,
    is_middle_free: bool = False,
) -> Arguments:
    """Read arguments from position `first` on, `middle` of them between strides and activation.

    If the middle ones are free, those that are not constants are skipped. Explicit padding has
    three more arguments than a scheme; a type tells the forms apart, since both may end with layout
    and dilations.
    """
    least = first + 4 + middle
    is_longer = context.input_count > least
    is_explicit = is_longer and context.type_of(least).operand_type == OperandType.INT32
    least += PADDED * is_explicit
    context.check_count(*((least, least + 1, least + 3) if is_dilated else (least, least + 1)))
    at = first + 4 if is_explicit else first + 1
    left, right, top, bottom = (
        (context.number(first + each) for each in range(4)) if is_explicit else (0, 0, 0, 0)
    )
    end = at + 2 + middle
    dilations = (1, 1)
    if context.input_count > end + 2:
        dilations = context.number(end + 3), context.number(end + 2)
    return Arguments(
        None if is_explicit else context.number(first),
        (top, left),
        (bottom, right),
        (context.number(at + 1), context.number(at)),
        tuple(
            context.number(position)
            for position in range(at + 2, end)
            if not is_middle_free or context.is_constant(position)
        ),
        end,
        context.input_count > end + 1 and context.flag(end + 1),
        dilations,
    )


@dataclass(frozen=True, slots=True)
class Window:
    """Checked window over an image."""

    kernel: Pair
    strides: Pair
    dilations: Pair
    heads: Pair
    tails: Pair
    lengths: Pair
    """Height and width of the output."""

    def attributes(self, *, is_dilated: bool) -> dict[str, AttributeValue]:
        """Return the attributes of a node."""
        found: dict[str, AttributeValue] = {
            "kernel_shape": self.kernel,
            "strides": self.strides,
            "pads": (*self.heads, *self.tails),
        }
        return found | {"dilations": self.dilations} if is_dilated else found


def window_over(
    context: OperationContext, image: tuple[int, ...], kernel: Pair, arguments: Arguments
) -> Window:
    """Return the window of a kernel over an image, with the padding of the scheme."""
    if min(*kernel, *arguments.strides, *arguments.dilations) < 1:
        raise context.broken(
            f"its kernel {kernel}, strides {arguments.strides} and dilations "
            f"{arguments.dilations} (height, width) must be at least 1"
        )
    axes = [_axis(context, image[each], kernel[each], arguments, each) for each in (0, 1)]
    heads, tails, lengths = (tuple(column) for column in zip(*axes, strict=True))
    return Window(
        kernel,
        arguments.strides,
        arguments.dilations,
        (heads[0], heads[1]),
        (tails[0], tails[1]),
        (lengths[0], lengths[1]),
    )


def four_axes(context: OperationContext, position: int, order: tuple[int, ...]) -> Tensor:
    """Return an argument of four axes in float32 and this order."""
    rank = len(context.tensor(position).shape)
    if rank != 4:
        raise context.broken(f"{context.name_of(position)} has {rank} axes; NNAPI requires 4")
    return context.real(position, order)


def finished_image(context: OperationContext, image: Tensor, arguments: Arguments) -> Tensor:
    """Activate an NCHW result in float32 and convert it to the output's type and layout."""
    made = context.finished(image, arguments.activation_at)
    return made if arguments.is_channels_first else context.emission.transposed(made, NHWC_OF_NCHW)


def _axis(
    context: OperationContext, length: int, kernel: int, arguments: Arguments, axis: int
) -> tuple[int, int, int]:
    stride, reach = arguments.strides[axis], (kernel - 1) * arguments.dilations[axis] + 1
    head, tail = arguments.heads[axis], arguments.tails[axis]
    if arguments.scheme == SAME:
        needed = max(0, (-(-length // stride) - 1) * stride + reach - length)
        head, tail = needed // 2, needed - needed // 2
    elif arguments.scheme not in {None, VALID}:
        raise context.broken(
            f"its padding scheme is {arguments.scheme}; it must be 1 (SAME) or 2 (VALID)"
        )
    if min(head, tail) < 0:
        raise context.broken(
            f"its padding is {head} and {tail} along an axis; it must be at least 0"
        )
    if length + head + tail < reach:
        raise context.broken(
            f"its kernel spans {reach} along an axis of {length + head + tail}, padding included"
        )
    return head, tail, (length + head + tail - reach) // stride + 1
