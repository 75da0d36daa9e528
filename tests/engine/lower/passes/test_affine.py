import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.models import filled
from tightship.engine.lower.passes.affine import Scaled, flat, identity, normalization, small
from tightship.graph import Inline

N = 5


def inline(array):
    return Inline(np.asarray(array, np.float32))


class Counted(Inline):
    """Counts how often it is read and released."""

    def __init__(self, value):
        super().__init__(value)
        self.__dict__["reads"] = self.__dict__["releases"] = 0

    def array(self):
        self.__dict__["reads"] += 1
        return super().array()

    def release(self):
        self.__dict__["releases"] += 1


def apply(affine, x):
    return x * flat(affine.scale) + flat(affine.shift)


def test_the_identity_changes_nothing_and_takes_no_memory():
    x = filled(3, N)
    np.testing.assert_array_equal(apply(identity(N), x), x)
    assert identity(1 << 40).channels == 1 << 40


STEP = st.tuples(st.sampled_from(["scaled", "shifted"]), st.booleans(), st.integers(0, 99))


@given(st.lists(STEP, max_size=5))
def test_a_chain_does_what_its_steps_do_one_after_the_other(steps):
    affine, x = identity(N), filled(3, N)
    wanted = x
    for what, single, seed in steps:
        number = np.random.default_rng(seed).standard_normal(1 if single else N)
        constant = inline(number.reshape(-1, 1, 1))
        if what == "scaled":
            affine, wanted = affine.then_scaled(constant), wanted * number.astype(np.float32)
        else:
            affine, wanted = affine.then_shifted(constant), wanted + number.astype(np.float32)
    np.testing.assert_allclose(apply(affine, x), wanted, rtol=1e-4, atol=1e-5)
    assert affine.channels == N


def test_a_normalization_is_what_its_definition_says():
    scale, shift, mean = filled(3, N)
    variance = np.abs(filled(N))
    affine = normalization(*map(inline, (scale, shift, mean, variance)), 0.25)
    x = filled(3, N)
    wanted = (x - mean) / np.sqrt(variance + 0.25) * scale + shift
    np.testing.assert_allclose(apply(affine, x), wanted, rtol=1e-5, atol=1e-6)


def test_nothing_is_read_before_it_is_asked_for_and_all_is_released():
    constants = [Counted(np.abs(filled(N))) for _ in range(5)]
    *parameters, factor = constants
    affine = normalization(*parameters, 1e-5).then_scaled(factor)
    assert [c.reads for c in constants] == [0] * 5
    affine.shift.array()
    affine.shift.release()
    assert min(c.reads for c in constants) == 1
    assert min(c.releases for c in constants) == 1


def test_a_scaled_weight_multiplies_each_slice_of_its_first_axis():
    source = Counted(filled(4, 3, 2, 2))
    scaled = Scaled(source, inline(filled(4)))
    wanted = np.stack([filled(4, 3, 2, 2)[i] * filled(4)[i] for i in range(4)])
    np.testing.assert_array_equal(scaled.array(), wanted)
    assert (scaled.dtype, scaled.shape) == (source.dtype, (4, 3, 2, 2))
    scaled.release()
    assert source.releases == 1


def test_a_scalar_is_a_float32_of_rank_zero():
    assert small(0.5).array().shape == ()
    assert small(0.5).array().dtype == np.float32
