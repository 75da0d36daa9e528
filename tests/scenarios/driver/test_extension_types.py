"""ONNX models whose inputs and outputs are of elements that NNAPI has no type for."""

import numpy as np
import onnxruntime
import pytest

from tests.driver.native_driver import driver
from tests.models import parse
from tightship.driver import CompilationCache, ModelBuilder, tensor_type
from tightship.driver.types.operand_type import EXTENSION, OperandType, ValueType
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError, InputError

ELEMENTS = {"int64": "int64", "uint64": "uint64", "float64": "double", "uint32": "uint32"}
RANKED = "twice ({kind}[{length}] x) => ({kind}[{length}] y) {{ y = Add(x, x) }}"
SCALAR = "twice ({kind} x) => ({kind} y) {{ y = Add(x, x) }}"
BERT = """bert (int64[n, s] input_ids, int64[n, s] attention_mask, float[50, 8] words)
    => (float[n, 8] pooled, int64[n] lengths)
    {
        rows = Gather(words, input_ids)
        axes = Constant<value = int64[1] {1}>()
        last = Constant<value = int64[1] {2}>()
        mask = Cast<to = 1>(attention_mask)
        wide = Unsqueeze(mask, last)
        kept = Mul(rows, wide)
        pooled = ReduceSum<keepdims = 0>(kept, axes)
        lengths = ReduceSum<keepdims = 0>(attention_mask, axes)
    }"""


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with driver(tmp_path_factory.mktemp("driver")) as running, running.client() as connected:
        yield connected


def largest(element):
    """Values that half as many bytes cannot hold, and whose sum with themselves can be held."""
    info = np.finfo if np.dtype(element).kind == "f" else np.iinfo
    return np.array([info(element).max // 2, 1, info(element).max // 3], element)


@pytest.mark.parametrize("length", ["3", "n"])
@pytest.mark.parametrize("element", ELEMENTS)
def test_values_come_and_go_as_they_are(client, element, length):
    source = parse(RANKED.format(kind=ELEMENTS[element], length=length)).SerializeToString()
    x = largest(element)
    with client.prepare(source) as model, model.burst() as burst:
        (kind,) = model.interface.inputs
        assert kind.operand_type == OperandType[f"TENSOR_{element.upper()}"]
        for results in (model.execute([x]), burst.execute([x]), model.execute([x])):
            assert results[0].dtype == x.dtype
            np.testing.assert_array_equal(results[0], x + x)
        with pytest.raises(InputError, match=f"takes {element}"):
            model.execute([np.zeros(3, np.float32)])


@pytest.mark.parametrize("element", ["int64", "uint64", "float64"])
def test_scalars_do_too(client, element):
    x = largest(element)[0]
    with client.prepare(parse(SCALAR.format(kind=ELEMENTS[element])).SerializeToString()) as model:
        (result,) = model.execute([x])
    assert result.shape == ()
    assert result == x + x


def test_a_model_of_words_is_run_on_the_ids_that_onnxruntime_takes(client, tmp_path):
    path = tmp_path / "bert.onnx"
    path.write_bytes(parse(BERT).SerializeToString())
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    random = np.random.default_rng(0)
    words = random.standard_normal((50, 8)).astype(np.float32)
    with client.prepare(path) as model:
        for shape in [(1, 4), (2, 7), (1, 4)]:
            ids, mask = random.integers(0, 50, shape), random.integers(0, 2, shape)
            names = {"input_ids": ids, "attention_mask": mask, "words": words}
            for result, wanted in zip(
                model.execute([ids, mask, words]), session.run(None, names), strict=True
            ):
                assert result.dtype == wanted.dtype
                np.testing.assert_allclose(result, wanted, 1e-5, 1e-5)


def test_a_buffer_holds_them_from_run_to_run(client):
    source = parse(RANKED.format(kind="int64", length="3")).SerializeToString()
    with client.prepare(source) as model:
        one, other = (client.allocate(inputs=[(model, 0)], outputs=[(model, 0)]) for _ in "ab")
        one.copy_from(largest("int64") // 2)
        model.execute([one.of()], [other.of()])
        np.testing.assert_array_equal(other.value(), largest("int64") // 2 * 2)


def test_a_cache_keeps_a_model_that_has_them(client, tmp_path):
    source = parse(RANKED.format(kind="int64", length="3")).SerializeToString()
    with open(tmp_path / "cache", "w+b") as file:
        cache = CompilationCache(bytes(32), (file.fileno(),))
        client.prepare(source, cache=cache).close()
        with client.prepare_from_cache(cache) as model:
            (result,) = model.execute([largest("int64")])
    np.testing.assert_array_equal(result, 2 * largest("int64"))


def test_a_model_of_operands_has_none(client):
    with pytest.raises(DriverError, match="tensor of int64"):
        tensor_type("i8", (3,))
    builder, kind = ModelBuilder(), ValueType(EXTENSION + 1, (3,))
    builder.operation(19, [builder.input(kind)], [builder.output(kind)])
    with pytest.raises(DriverError, match="types are 0 to 15") as caught:
        client.prepare(builder)
    assert caught.value.status == ErrorStatus.INVALID_ARGUMENT
