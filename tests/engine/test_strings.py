"""Strings of any bytes through every operator that runs on strings."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

import tightship
from tightship.errors import GraphError
from tightship.graph.texts import decoded, encoded, joined, with_texts

STRING, ML = TensorProto.STRING, "ai.onnx.ml"


def texts(*elements, shape=None):
    array = np.empty(len(elements), object)
    array[:] = elements
    return array.reshape(shape or (len(elements),))


X = texts(b"\xff\xd8\xff\xe0\0", b"a\0", b"\xc3\xa9", b"", b"\x80", b"zz", shape=(2, 3))
K = texts(b"\xfe\0", shape=(1, 1))
PLACED = X.copy()
PLACED[1, 1] = K[0, 0]


def node(operator, inputs="x k", *, domain="", **attributes):
    return helper.make_node(operator, inputs.split(), ["y"], domain=domain, **attributes)


def integers(*elements):
    return np.array(elements, np.int64)


CASES = {
    "Identity": (node("Identity", "x"), {"x": X}, X),
    "Concat": (node("Concat", axis=1), {"x": X, "k": X}, np.concatenate([X, X], 1)),
    "Transpose": (node("Transpose", "x"), {"x": X}, X.T),
    "Reshape": (node("Reshape"), {"x": X, "k": integers(6)}, X.reshape(6)),
    "Gather": (node("Gather", axis=1), {"x": X, "k": integers(2, 0)}, X[:, [2, 0]]),
    "Expand": (node("Expand"), {"x": X, "k": integers(2, 2, 3)}, np.stack([X, X])),
    "Tile": (node("Tile"), {"x": X, "k": integers(2, 1)}, np.tile(X, (2, 1))),
    "Equal": (node("Equal"), {"x": X, "k": texts(b"\x80")}, X == b"\x80"),
    "Where": (node("Where", "c x k"), {"x": X, "k": K, "c": PLACED == X}, PLACED),
    "ScatterND": (
        node("ScatterND", "x i k"),
        {"x": X, "i": integers(1, 1).reshape(1, 1, 2), "k": K.reshape(1, 1)},
        PLACED,
    ),
    "Pad": (
        node("Pad", "x p k"),
        {"x": X, "p": integers(0, 0, 0, 1), "k": K.reshape(())},
        np.concatenate([X, np.repeat(K, 2, 0)], 1),
    ),
    "Compress": (
        node("Compress", axis=1),
        {"x": X, "k": np.array([True, False, True])},
        X[:, [0, 2]],
    ),
    "Cast": (node("Cast", "x", to=STRING), {"x": X}, X),
    "to float": (node("Cast", "x", to=1), {"x": texts(b"1.5", b"-2")}, np.float32([1.5, -2])),
    "CastLike": (node("CastLike"), {"x": X, "k": K}, X),
    "StringConcat": (
        node("StringConcat"),
        {"x": X, "k": K},
        texts(*(each + b"\xfe\0" for each in X.ravel()), shape=X.shape),
    ),
    "RegexFullMatch": (
        node("RegexFullMatch", "x", pattern=".*[a-z]+"),
        {"x": texts(b"\xff\0z", b"\xff")},
        np.array([True, False]),
    ),
    "StringNormalizer": (
        node("StringNormalizer", "x", case_change_action="UPPER", stopwords=[b"\xfe"]),
        {"x": texts(b"\xff\0a\0", b"\xfe", b"b\0")},
        texts(b"\xff\0A\0", b"B\0"),
    ),
    "Unique": (
        node("Unique", "x"),
        {"x": texts(b"\xff", b"a\0", b"a", b"\xff")},
        texts(b"a", b"a\0", b"\xff"),
    ),
    "TfIdfVectorizer": (
        node(
            "TfIdfVectorizer",
            "x",
            mode="TF",
            min_gram_length=1,
            max_gram_length=1,
            max_skip_count=0,
            ngram_counts=[0],
            ngram_indexes=[0, 1],
            pool_strings=[b"\x80\0", b"zz"],
        ),
        {"x": texts(b"\x80\0", b"zz", b"zz", b"\x80")},
        np.float32([1, 2]),
    ),
    "LabelEncoder": (
        node(
            "LabelEncoder",
            "x",
            domain=ML,
            keys_strings=[b"\x80", b"zz"],
            values_strings=[b"\x81\0", b"\xff"],
            default_string=b"\xdd",
        ),
        {"x": texts(b"zz", b"\x80", b"\x80\0")},
        texts(b"\xff", b"\x81\0", b"\xdd"),
    ),
    "OneHotEncoder": (
        node("OneHotEncoder", "x", domain=ML, cats_strings=[b"\x80", b"zz"]),
        {"x": texts(b"\x80", b"zz")},
        np.eye(2, dtype=np.float32),
    ),
}


def tensor(name, array):
    if array.dtype != object:
        return numpy_helper.from_array(array, name)
    proto = TensorProto(data_type=STRING, dims=array.shape, name=name)
    proto.string_data.extend(array.ravel())
    return proto


def info(name, array):
    is_text = array.dtype == object
    number = STRING if is_text else helper.np_dtype_to_tensor_dtype(array.dtype)
    return helper.make_tensor_value_info(name, number, array.shape)


def loaded(nodes, inputs, constants, outputs):
    graph = helper.make_graph(
        nodes,
        "g",
        [info(*each) for each in inputs.items()],
        outputs,
        [tensor(*each) for each in constants.items()],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(ML, 3)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    return tightship.load(model.SerializeToString())


def as_bytes(array):
    """Strings as their bytes; each must be a `str`."""
    if array.dtype != object:
        return array
    return texts(*map(encoded, array.ravel()), shape=array.shape)


def output(name, array):
    """An output whose shape data may decide."""
    found = info(name, array)
    if name == "y":
        found.type.tensor_type.shape.Clear()
        for at in range(array.ndim):
            found.type.tensor_type.shape.dim.add(dim_param=f"d{at}")
    return found


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("is_constant", [False, True])
def test_an_operator_keeps_every_byte(name, is_constant):
    made, feeds, wanted = CASES[name]
    inputs = {"x": feeds["x"]} if is_constant else feeds
    constants = {key: each for key, each in feeds.items() if key not in inputs}
    model = loaded([made], inputs, constants, [output("y", wanted)])
    with_str = {k: with_texts(v) if v.dtype == object else v for k, v in inputs.items()}
    for given_as in (inputs, with_str):
        result = np.asarray(model.run(given_as)["y"])
        assert np.array_equal(as_bytes(result), wanted)


def test_parts_keep_every_byte():
    x = texts(b"\xff,a\0", b"b")
    split = helper.make_node("StringSplit", ["x"], ["y", "n"], delimiter=",")
    pieces = texts(b"\xff", b"a\0", b"b", b"", shape=(2, 2))
    model = loaded([split], {"x": x}, {}, [output("y", pieces), info("n", integers(2, 1))])
    result = model.run({"x": x})
    assert np.array_equal(as_bytes(result["y"]), pieces)
    assert np.array_equal(result["n"], integers(2, 1))


def test_the_seam_of_two_strings_may_be_within_a_letter():
    nodes = [
        helper.make_node("StringConcat", ["x", "k"], ["z"]),
        helper.make_node("Equal", ["z", "w"], ["y"]),
    ]
    constants = {"k": texts(b"\xa9"), "w": texts(b"\xc3\xa9")}
    model = loaded(nodes, {"x": texts(b"\xc3")}, constants, [info("y", np.array([True]))])
    assert model.run({"x": texts(b"\xc3")})["y"].tolist() == [True]
    assert model.run({"x": texts(b"\xc4")})["y"].tolist() == [False]


@pytest.mark.parametrize("attribute", ["value_string", "value_strings"])
def test_a_constant_of_an_attribute_keeps_every_byte(attribute):
    value = b"\xfe\0" if attribute == "value_string" else [b"\xfe\0"]
    nodes = [helper.make_node("Constant", [], ["k"], **{attribute: value}), node("Equal")]
    model = loaded(nodes, {"x": texts(b"\xfe\0")}, {}, [info("y", np.array([True]))])
    assert model.run({"x": texts(b"\xfe\0")})["y"].tolist() == [True]
    assert model.run({"x": texts(b"\xfe")})["y"].tolist() == [False]


def test_a_letter_that_stands_for_a_byte_in_a_kernel_is_refused():
    made, feeds, wanted = CASES["OneHotEncoder"]
    model = loaded([made], {"x": feeds["x"]}, {}, [output("y", wanted)])
    with pytest.raises(GraphError, match=r"private characters U\+10DC7F"):
        model.run({"x": texts("\U0010dc80", b"zz")})


@given(st.binary(), st.binary())
def test_bytes_are_one_string_each(one, other):
    assert encoded(decoded(one)) == one
    assert (decoded(one) == decoded(other)) == (one == other)
    assert joined(decoded(one), decoded(other)) == decoded(one + other)
