"""The gradient of a Resize that repeats elements: the sum over the places of each."""

from collections.abc import Iterator, Mapping

from tightship.graph.backward.site import Rule, Site

_HALF_PIXEL = {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel"}
_ROUNDED = {"round_prefer_floor", "round_prefer_ceil"}


def _resize(at: Site) -> Iterator[tuple[int, str]]:
    """Nearest neighbours by whole factors, where an element's places are next to each other."""
    if not at.wants(0):
        return
    shape, whole = at.shape(at.x()), at.shape(at.dy)
    if not _is_repetition(at) or any(n % m for m, n in zip(shape, whole, strict=True)):
        raise at.refusal(
            "is known for the nearest elements and whole factors only: `mode` nearest, with half "
            "pixels rounded or `asymmetric` ones floored"
        )
    apart = [part for m, n in zip(shape, whole, strict=True) for part in (m, n // m)]
    axes = [axis for axis in range(1, len(apart), 2) if apart[axis] > 1]
    yield 0, at.reshaped(at.summed(at.reshaped(at.dy, apart), axes), shape)


def _is_repetition(at: Site) -> bool:
    mode, place, rounding = (
        _text(at, name, default)
        for name, default in (
            ("mode", "nearest"),
            ("coordinate_transformation_mode", "half_pixel"),
            ("nearest_mode", "round_prefer_floor"),
        )
    )
    by_half = place in _HALF_PIXEL and rounding in _ROUNDED
    return mode == "nearest" and (by_half or (place, rounding) == ("asymmetric", "floor"))


def _text(at: Site, name: str, default: str) -> str:
    value = at.node.attributes.get(name, default)
    return value.decode() if isinstance(value, bytes) else str(value)


RESIZES: Mapping[str, Rule] = {"Resize": _resize}
