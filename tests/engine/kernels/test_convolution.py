import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.kernels.typed import Typed, typed
from tightship.engine.kernels import convolution


@st.composite
def convolutions(draw: Any) -> dict[str, Any]:
    rank = draw(st.integers(1, 3))

    def each(low: int, high: int) -> list[int]:
        return draw(st.lists(st.integers(low, high), min_size=rank, max_size=rank))

    kernel, strides, dilations = each(1, 3), each(1, 3), each(1, 2)
    begins, ends = each(0, 2), each(0, 2)
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    image = [span + more for span, more in zip(spans, each(0, 4), strict=True)]
    groups, channels, filters = (
        draw(st.integers(1, 2)),
        draw(st.integers(1, 2)),
        draw(st.integers(1, 2)),
    )
    random = np.random.default_rng(draw(st.integers(0, 99)))
    return {
        "x": random.standard_normal((2, groups * channels, *image)).astype(np.float32),
        "kernel": kernel,
        "channels": channels,
        "filters": filters,
        "random": random,
        "attributes": {
            "group": groups,
            "strides": strides,
            "dilations": dilations,
            "pads": [*begins, *ends],
        },
    }


def direct(x: Any, w: Any, bias: Any, attributes: Any) -> Any:
    """The definition of a convolution, element by element."""
    rank, groups = x.ndim - 2, attributes["group"]
    pads, strides = attributes["pads"], attributes["strides"]
    padded = np.pad(x, [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:], strict=True)])
    each = w.shape[0] // groups
    spans = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], attributes["dilations"], strict=True)]
    lengths = [(n - s) // t + 1 for n, s, t in zip(padded.shape[2:], spans, strides, strict=True)]
    out = np.zeros((x.shape[0], w.shape[0], *lengths), np.float32)
    for place in itertools.product(*(range(n) for n in lengths)):
        window = tuple(
            slice(p * t, p * t + s, d)
            for p, t, s, d in zip(place, strides, spans, attributes["dilations"], strict=True)
        )
        for f in range(w.shape[0]):
            first = f // each * w.shape[1]
            part = padded[(slice(None), slice(first, first + w.shape[1]), *window)]
            out[(slice(None), f, *place)] = (part * w[f]).reshape(x.shape[0], -1).sum(1) + bias[f]
    return out


@settings(max_examples=60)
@given(convolutions())
def test_any_geometry_agrees_with_the_definition(given_: dict[str, Any]):
    groups = given_["attributes"]["group"]
    shape = (groups * given_["filters"], given_["channels"], *given_["kernel"])
    w = given_["random"].standard_normal(shape).astype(np.float32)
    bias = given_["random"].standard_normal(shape[0]).astype(np.float32)
    (result,) = typed("Conv", given_["x"], w, bias, **given_["attributes"]).run()
    expected = direct(given_["x"], w, bias, given_["attributes"])
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-4)


@settings(max_examples=60)
@given(convolutions())
def test_a_transposed_convolution_is_the_adjoint(given_: dict[str, Any]):
    """Sums of products with any y and x agree: <conv(x), y> = <x, transposed(y)>."""
    groups = given_["attributes"]["group"]
    shape = (groups * given_["filters"], given_["channels"], *given_["kernel"])
    x, w = given_["x"], given_["random"].standard_normal(shape).astype(np.float32)
    (out,) = typed("Conv", x, w, **given_["attributes"]).run()
    y = given_["random"].standard_normal(out.shape).astype(np.float32)
    (back,) = typed("ConvTranspose", y, w, like=[x], **given_["attributes"]).run()
    left, right = float(np.vdot(out, y)), float(np.vdot(x, back))
    assert math.isclose(left, right, rel_tol=1e-3, abs_tol=1e-2)


def _strip(**attributes: Any) -> Typed:
    random = np.random.default_rng(1)
    x = random.standard_normal((1, 2, 9, 7)).astype(np.float32)
    return typed("Conv", x, random.standard_normal((3, 2, 3, 3)).astype(np.float32), **attributes)


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER", "VALID"])
@pytest.mark.parametrize("stride", [1, 2])
def test_automatic_padding_agrees_with_the_reference(mode: str, stride: int):
    case = _strip(auto_pad=mode, strides=[stride, stride])
    np.testing.assert_allclose(case.run()[0], case.reference()[0], rtol=1e-4, atol=1e-5)


def test_tiles_change_nothing(monkeypatch: pytest.MonkeyPatch):
    whole = _strip(pads=[1, 1, 1, 1]).run()[0]
    monkeypatch.setattr(convolution, "TILE_BYTES", 1)
    case = _strip(pads=[1, 1, 1, 1])
    assert case.kernel.scratch_bytes == 2 * 9 * 7 * 4
    np.testing.assert_allclose(case.run()[0], whole, rtol=1e-6, atol=1e-6)


def test_a_pointwise_convolution_needs_no_scratch():
    x, w = np.ones((2, 3, 4, 4), np.float32), np.ones((5, 3, 1, 1), np.float32)
    assert typed("Conv", x, w).kernel.scratch_bytes == 0


@pytest.mark.parametrize("shape", [(0, 3, 4, 4), (2, 3, 4, 4)])
def test_an_empty_batch_works(shape: tuple[int, ...]):
    x, w = np.ones(shape, np.float64), np.ones((5, 3, 2, 2), np.float64)
    (result,) = typed("Conv", x, w).run()
    assert result.shape == (shape[0], 5, 3, 3)
    assert (result == 12).all()
