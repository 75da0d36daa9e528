"""Strides, dilations and padding of convolutions and pooling, in oneDNN's convention."""

from dataclasses import dataclass, replace

from tightship.graph import Node

Window4 = tuple[list[int], list[int], list[int], list[int]]


@dataclass(frozen=True, slots=True)
class Window:
    """Window over spatial axes: its size, steps, dilations and padding before and after."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    begin: tuple[int, ...]
    end: tuple[int, ...]

    @property
    def parts(self) -> Window4:
        """Strides, dilations less one, padding before and after: oneDNN's arguments."""
        spread = [dilation - 1 for dilation in self.dilations]
        return list(self.strides), spread, list(self.begin), list(self.end)

    def turned(self, axes: tuple[int, ...]) -> "Window":
        """Return the window with its axes in another order."""
        parts = self.kernel, self.strides, self.dilations, self.begin, self.end
        return Window(*(tuple(part[axis] for axis in axes) for part in parts))


def turned_axes(window: Window, before: tuple[int, ...], after: tuple[int, ...]) -> tuple[int, ...]:
    """Return the order of spatial axes in which a convolution is fastest and no element moves.

    oneDNN computes several pixels along the last axis at once. If that has a single pixel, it is
    put first.
    """
    last = len(before) - 1
    order = tuple(range(last + 1))
    is_one = window.kernel[last:] == before[last:] == after[last:] == (1,)
    if is_one and window.begin[last] == window.end[last] == 0 and max(after) > 1:
        return (last, *order[:-1])
    return order


def window_of(
    node: Node, kernel: tuple[int, ...], before: tuple[int, ...], after: tuple[int, ...]
) -> Window:
    """Compute the window of a node with spatial sizes `before` and `after`.

    Padding at the end follows from the sizes, which covers `auto_pad` and `ceil_mode`.
    """
    rank = len(kernel)
    strides = _ints(node, "strides", (1,) * rank)
    dilations = _ints(node, "dilations", (1,) * rank)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    total = [(o - 1) * s + r - i for o, s, r, i in zip(after, strides, reach, before, strict=True)]
    auto = node.attributes.get("auto_pad", "NOTSET")
    if auto == "SAME_UPPER":
        begin = tuple(max(t, 0) // 2 for t in total)
    elif auto == "SAME_LOWER":
        begin = tuple(max(t, 0) - max(t, 0) // 2 for t in total)
    else:
        begin = _ints(node, "pads", (0,) * (2 * rank))[:rank]
    end = tuple(t - b for t, b in zip(total, begin, strict=True))
    return Window(kernel, strides, dilations, begin, end)


def transposed_window_of(
    node: Node, kernel: tuple[int, ...], before: tuple[int, ...], after: tuple[int, ...]
) -> Window:
    """Compute the window of a transposed convolution, which slides over the output.

    Pads that are not given are the excess size; the smaller half comes first only for `SAME_UPPER`.
    """
    rank = len(kernel)
    auto = node.attributes.get("auto_pad", "NOTSET")
    if auto == "VALID":
        return window_of(_padded(node, (0,) * rank), kernel, after, before)
    if auto == "NOTSET" and "output_shape" not in node.attributes:
        return window_of(node, kernel, after, before)
    strides, dilations = _ints(node, "strides", (1,) * rank), _ints(node, "dilations", (1,) * rank)
    extra = _ints(node, "output_padding", (0,) * rank)
    total = [
        (i - 1) * s + e + (k - 1) * d + 1 - o
        for i, s, e, k, d, o in zip(before, strides, extra, kernel, dilations, after, strict=True)
    ]
    begin = tuple((max(each, 0) + (auto != "SAME_UPPER")) // 2 for each in total)
    return window_of(_padded(node, begin), kernel, after, before)


def _padded(node: Node, begin: tuple[int, ...]) -> Node:
    """Set these pads before; those after follow from the sizes."""
    pads = (*begin, *(0 for _ in begin))
    return replace(node, attributes={**node.attributes, "auto_pad": "NOTSET", "pads": pads})


def _ints(node: Node, name: str, default: tuple[int, ...]) -> tuple[int, ...]:
    value = node.attributes.get(name, default)
    assert isinstance(value, tuple)
    return tuple(int(v) for v in value)
