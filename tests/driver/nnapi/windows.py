"""Windows over images: the operands that describe them, and their meaning."""

from dataclasses import dataclass

from hypothesis import assume
from hypothesis import strategies as st

from tests.driver.nnapi import reference


@dataclass(frozen=True)
class Geometry:
    """Pairs are (height, width); `pads` are explicit if `scheme` is 0."""

    image: tuple
    kernel: tuple
    strides: tuple
    dilations: tuple
    scheme: int
    pads: tuple
    is_channels_first: bool
    has_tail: bool

    @property
    def terms(self):
        return self.kernel, self.strides, self.dilations, self.pads

    def arguments(self, middle, activation):
        """List the operands after the tensors in NNAPI's order; layout and dilations if needed."""
        (top, bottom), (left, right) = self.pads
        padding = (self.scheme,) if self.scheme else (left, right, top, bottom)
        found = [*padding, self.strides[1], self.strides[0], *middle, activation]
        if self.is_channels_first or self.has_tail or self.dilations != (1, 1):
            found.append(self.is_channels_first)
        if self.dilations != (1, 1):
            found += [self.dilations[1], self.dilations[0]]
        return found


def pairs(low, high):
    return st.tuples(st.integers(low, high), st.integers(low, high))


@st.composite
def geometries(draw, *, is_dilated=True):
    """Explicit padding of convolutions may be wider than what the kernel reaches."""
    image, kernel = draw(pairs(1, 7)), draw(pairs(1, 3))
    strides = draw(pairs(1, 3))
    dilations = draw(pairs(1, 2)) if is_dilated else (1, 1)
    scheme = draw(st.integers(0, 2))
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    if scheme:
        pads = tuple(
            reference.padding_of(scheme, *each)
            for each in zip(image, kernel, strides, dilations, strict=True)
        )
    else:
        most = [r - 1 + 2 * is_dilated for r in reach]
        pads = tuple((draw(st.integers(0, m)), draw(st.integers(0, m))) for m in most)
    assume(all(n + sum(p) >= r for n, p, r in zip(image, pads, reach, strict=True)))
    return Geometry(
        image, kernel, strides, dilations, scheme, pads, draw(st.booleans()), draw(st.booleans())
    )
