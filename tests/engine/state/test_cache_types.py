"""Types of caches: what rows take in them, and which caches can have them."""

import pytest

from tightship.engine.state.cache_types import check_cache_type, chosen_type, with_type
from tightship.engine.state.decoder import Cache
from tightship.engine.state.pairs import CachePair
from tightship.errors import GraphError, InputError
from tightship.graph import DType

PLAIN = Cache(CachePair("past", "present", 2), DType.FLOAT32, (1, 2, 16, 8), True)


def test_a_cache_of_another_type_has_other_elements_and_int8_scales() -> None:
    half, bytes_ = with_type(PLAIN, "float16"), with_type(PLAIN, "int8")
    assert (half.dtype, half.shape, half.file_shape) == (
        DType.FLOAT16, (1, 2, 16, 8), PLAIN.shape,
    )  # fmt: skip
    assert (bytes_.dtype, bytes_.shape, bytes_.file_shape) == (
        DType.INT8, (1, 2, 16, 12), PLAIN.shape,
    )  # fmt: skip
    assert with_type(PLAIN, None) is PLAIN
    own = PLAIN._replace(dtype=DType.FLOAT16)
    assert with_type(own, "float16") is own
    assert with_type(own, "bfloat16").stored == "bfloat16"


def test_what_has_no_type_for_it_is_refused_by_name() -> None:
    with pytest.raises(GraphError, match="`past` has elements of int64 and cannot be stored as i"):
        with_type(PLAIN._replace(dtype=DType.INT64), "int8")
    turned = PLAIN._replace(pair=CachePair("past", "present", 3))
    with pytest.raises(GraphError, match="Axis 3 of the cache `past`, its last, is that of tokens"):
        with_type(turned, "int8")
    assert with_type(turned, "bfloat16").shape == PLAIN.shape
    check_cache_type(None)
    with pytest.raises(InputError, match="'int4'; it must be 'float32', 'float16', 'bfloat16', "):
        check_cache_type("int4")


def test_float32_is_the_files_own_type_where_no_input_has_halves() -> None:
    floats, halves = (DType.INT64, DType.FLOAT32), (DType.INT64, DType.FLOAT16)
    assert chosen_type(None, None, floats) is chosen_type("float32", None, floats) is None
    assert chosen_type(None, "float16", floats) == "float16"
    assert chosen_type("float32", "float16", floats) is None
    assert chosen_type("int8", "float16", floats) == "int8"
    assert chosen_type("float32", None, halves) == "float32"
    own = PLAIN._replace(dtype=DType.FLOAT16)
    with pytest.raises(GraphError, match="`past` has elements of float16 in the model, and"):
        with_type(own, "float32")
    assert with_type(PLAIN, "float32") is PLAIN
