"""JSON requests that arrive in parts: the same arrays and refusals as when they are read whole."""

import json
import tracemalloc

import numpy as np
import pytest

from tightship.cluster.json_arrays import MARK, JsonArrays, TextTooLargeError
from tightship.driver.oip.infer_request import decode
from tightship.driver.oip.refusal import OipError
from tightship.driver.oip.tensors import from_bytes, from_list

TEXT_MAX = 4096
MANY = 1 << 20


def read(body, step, numbers=MANY):
    found = JsonArrays(numbers, TEXT_MAX)
    for start in range(0, len(body), step):
        found.feed(body[start : start + step])
    return found.request()


def body_of(*inputs, **rest):
    return json.dumps({"inputs": list(inputs), **rest}).encode()


def entry(data, shape, datatype="FP32", name="x"):
    return {"name": name, "data": data, "shape": shape, "datatype": datatype}


def array_of(tensor):
    if isinstance(tensor.content, list):
        return from_list(tensor.name, tensor.dtype, tensor.shape, tensor.content)
    return from_bytes("m", tensor.name, tensor.dtype, tensor.shape, tensor.content)


BODIES = [
    body_of(entry([0.5, -1e-30, 1e300, 7], [4])),
    body_of(entry([[1, 2], [3, 4], [5, 6]], [3, 2], "INT8"), entry([[[1.5]]], [1, 1, 1], name="y")),
    body_of(entry([True, False], [2], "BOOL"), id='"data": [1, 2', parameters={"a": "]"}),
    body_of(entry(["a]", '"data": [1', ""], [3], "BYTES"), entry([3], [], name="y")),
    body_of(entry([2**64 - 1, 0], [2], "UINT64"), entry([], [0], name="y")),
    b' {"inputs" : [{"data" \n :\t[ 1 ,\n [ 2 ] ], "name":"x", "shape":[1,2],'
    b' "datatype":"INT32"}]}',
]


@pytest.mark.parametrize("step", [1, 7, 1000])
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_requests_in_parts_are_those_read_whole(body, step):
    found, whole = read(body, step), decode(body, None)
    assert found.identifier == whole.identifier
    assert [each.name for each in found.inputs] == [each.name for each in whole.inputs]
    for here, there in zip(found.inputs, whole.inputs, strict=True):
        assert np.array_equal(array_of(here), array_of(there))


REFUSED = [
    (body_of(entry([1.5], [1], "INT32")), "not INT32"),
    (body_of(entry([True], [1])), "not FP32"),
    (body_of(entry([1], [1], "BYTES")), "not BYTES"),
    (body_of(entry([300], [1], "INT8")), "INT8 cannot hold"),
    (body_of(entry([[[1]]], [1, 1])), "not FP32"),
    (body_of(entry([1, 2, 3], [2])), "2 elements are needed, 3 were given"),
    (body_of(entry([1], [1], "FP16")), "FP16 data via JSON is not supported"),
    (body_of(entry([1, None], [2])), "not all numbers"),
    (body_of(entry([1, "a"], [2])), "not all numbers|not FP32"),
    (b'{"inputs":[{"data":[1,,2]}]}', "failed to parse"),
    (b'{"inputs":[{"data":[,2]}]}', "failed to parse"),
    (b'{"inputs":[{"data":[1,]}]}', "failed to parse"),
    (b'{"inputs":[{"data":[1 2]}]}', "failed to parse"),
    (b'{"inputs":[{"data":[1 [2]]}]}', "misplaced"),
    (b'{"inputs":[{"data":[[1] [2]]}]}', "misplaced"),
    (b'{"inputs":[{"data":[1, 2', "does not end"),
    (b'{"inputs":[{"data":[1, 2]', "failed to parse"),
    (b"[1]", "not an object"),
]


@pytest.mark.parametrize("step", [1, 1000])
@pytest.mark.parametrize(("body", "message"), REFUSED)
def test_requests_that_are_not_valid_are_refused(body, message, step):
    with pytest.raises(OipError, match=message):
        [array_of(each) for each in read(body, step).inputs]


def test_text_besides_numbers_is_bounded():
    with pytest.raises(TextTooLargeError):
        read(b" " * (TEXT_MAX + 1), 100)
    with pytest.raises(TextTooLargeError):
        read(b'{"data": [' + b"1" * (TEXT_MAX + 1), 100)
    blank = b'{"inputs":[{"name":"x","datatype":"FP32","shape":[1],"data":['
    read(blank + b" " * (2 * TEXT_MAX) + b"1]}]}", 100)


def test_more_numbers_than_a_model_takes_are_counted_only():
    with pytest.raises(OipError, match="100000 were given"):
        read(body_of(entry([1] * 100_000, [2])), 5000, numbers=2)


def test_a_mark_in_a_request_names_its_own_arrays_alone():
    first, mark = entry([1.5], [1]), entry([MARK + "0"], [1], name="y")
    inputs = read(body_of(first, mark, entry([MARK + "7"], [1])), 1000).inputs
    assert array_of(inputs[0]) == 1.5
    for tensor, content in zip(inputs[1:], ["0", "7"], strict=True):
        assert tensor.content == [MARK + content]
        with pytest.raises(OipError, match="not FP32"):
            array_of(tensor)


def test_a_request_takes_few_bytes_for_each_number():
    count = 200_000
    body = body_of(entry(np.random.default_rng(0).standard_normal(count).tolist(), [count]))
    tracemalloc.start()
    try:
        assert len(read(body, 1 << 16).inputs) == 1
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 13 * count + (1 << 20)  # read whole it takes more than 50 for each
