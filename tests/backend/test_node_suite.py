"""ONNX's node suite, which every operator of the standard is in, through our backend."""

import importlib.util
import string
from collections.abc import Mapping

import pytest
from onnx.backend.test.case.test_case import TestCase

import tightship.backend
from tests.backend.comparison import assert_similar, value_of
from tightship.errors import TightshipError

PASSING_MIN = 1860
NODE_CASES = 1884
"""Of onnx 1.23."""

UNREPEATABLE = frozenset(
    f"test_bernoulli{kind}"
    for kind in ("", "_double", "_double_expanded", "_expanded", "_seed", "_seed_expanded")
)
"""Draw numbers from a generator that the standard leaves open: only types are compared."""

EXPECTED_FAILURES: dict[str, str] = {}
IMAGE_CASES = tuple(
    f"test_image_decoder_decode_{kind}"
    for kind in (
        "bmp_rgb",
        "jpeg2k_rgb",
        "jpeg_bgr",
        "jpeg_grayscale",
        "jpeg_rgb",
        "png_rgb",
        "pnm_rgb",
        "tiff_rgb",
        "webp_rgb",
    )
)
if importlib.util.find_spec("PIL") is None:
    EXPECTED_FAILURES |= dict.fromkeys(
        IMAGE_CASES, "decodes an image, for which `onnx.reference` needs Pillow"
    )


def failure_of(case: TestCase) -> str | None:
    """Why a case fails; None where it passes."""
    try:
        rep = tightship.backend.prepare(case.model)
        for inputs, expected in case.data_sets:
            outputs = rep.run([value_of(stored) for stored in inputs])
            wanted = tuple(value_of(stored) for stored in expected)
            atol = 1.0 if case.name in UNREPEATABLE else case.atol
            assert_similar(outputs, wanted, case.rtol, atol)
    except (AssertionError, TightshipError) as error:
        return " ".join(f"{type(error).__name__}: {error}".split())[:300]
    return None


@pytest.mark.parametrize("initial", string.ascii_lowercase)
def test_operators_give_what_onnx_expects(initial: str, node_cases: Mapping[str, TestCase]) -> None:
    names = [name for name in node_cases if name.startswith(f"test_{initial}")]
    failures = {}
    for name in names:
        failure = failure_of(node_cases[name])
        if failure is not None:
            failures[name] = failure
    surprises = {name: why for name, why in failures.items() if name not in EXPECTED_FAILURES}
    passing = [name for name in names if name in EXPECTED_FAILURES and name not in failures]
    assert not surprises, "\n".join(f"{name}: {why}" for name, why in surprises.items())
    assert not passing, f"listed as failing, but they pass: {', '.join(passing)}"


def test_every_case_is_of_one_group_and_every_exception_is_a_case(
    node_cases: Mapping[str, TestCase],
) -> None:
    assert {name[len("test_")] for name in node_cases} <= set(string.ascii_lowercase)
    assert EXPECTED_FAILURES.keys() | UNREPEATABLE <= node_cases.keys()


def test_enough_of_the_suite_passes(node_cases: Mapping[str, TestCase]) -> None:
    if len(node_cases) < NODE_CASES:
        pytest.skip(f"onnx is older than the one that has {NODE_CASES} cases")
    assert len(node_cases) - len(EXPECTED_FAILURES) - len(UNREPEATABLE) >= PASSING_MIN
