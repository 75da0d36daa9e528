"""Configurations of models in protobuf's text format and in JSON, valid, wrong and hostile."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tightship.driver.oip.config_text import NOT_SUPPORTED, TEXT_BYTES_MAX, read_json, read_text
from tightship.driver.oip.model_config import DynamicBatching, ModelConfig, TensorConfig
from tightship.errors import InputError
from tightship.graph import DType

WHOLE = """
# what examples of Triton have
name: "densenet"
platform: "onnxruntime_onnx"
max_batch_size : 8
input [
  { name: "x", data_type: TYPE_FP32, format: FORMAT_NCHW, dims: [ 3, -1 ] },
  { name: 'words' data_type: TYPE_STRING dims: 1 dims: 2 }
]
output { name: "y" data_type: TYPE_INT64 dims: [ 10 ] }
version_policy: { specific { versions: [3, 1] } }
instance_group [ { count: 2 kind: KIND_CPU }, { kind: KIND_AUTO } ]
dynamic_batching { preferred_batch_size: [ 4, 8 ] max_queue_delay_microseconds: 100 }
default_model_filename: "other.onnx"
parameters { key: "max_memory" value: { string_value: "1GiB" } }
parameters: { key: "own", value: { string_value: "\\x41" } }
model_transaction_policy { decoupled: false }
response_cache { enable: false }
"""


def test_all_supported_fields_are_read():
    found = read_text(WHOLE)
    assert (found.name, found.platform, found.max_batch_size) == ("densenet", PLATFORM, 8)
    words = TensorConfig("words", DType.STRING, (1, 2))
    assert found.inputs == (TensorConfig("x", DType.FLOAT32, (3, -1)), words)
    assert found.outputs == (TensorConfig("y", DType.INT64, (10,)),)
    assert found.policy.chosen([1, 2, 3]) == [1, 3]
    assert found.instance_count == 3
    assert found.batching == DynamicBatching((4, 8), 100)
    assert found.file_name == "other.onnx"
    assert (found.parameter("max_memory"), found.unused) == ("1GiB", ("own",))


PLATFORM = "onnxruntime_onnx"


def test_json_says_the_same_as_text():
    said = {
        "platform": PLATFORM,
        "max_batch_size": 8,
        "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [3, "-1"]}],
        "version_policy": {"latest": {"num_versions": 2}},
        "parameters": {"own": {"string_value": "A"}},
    }
    text = f'platform: "{PLATFORM}" max_batch_size: 8'
    text += ' input {name: "x" data_type: TYPE_FP32 dims: [3, -1]}'
    text += ' version_policy {latest {num_versions: 2}} parameters {key: "own" value '
    text += '{string_value: "A"}}'
    assert read_json(json.dumps(said)) == read_text(text)
    assert read_json("{}") == read_text("") == ModelConfig()


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("sequence_batching { max_sequence_idle_microseconds: 1 }", "`sequence_batching`.*support"),
        ("ensemble_scheduling { step [] }", "`ensemble_scheduling`.*one ONNX file"),
        ("foo: 1", "unknown field `foo` in ModelConfig; its fields are name, platform"),
        ('input { name: "x" reshape { shape: [] } }', "`reshape` .ModelInput.*not supported"),
        ('input { name: "x" size: 1 }', "unknown field `size` in ModelInput"),
        ('platform: "tensorrt_plan"', "`platform` is `tensorrt_plan`.*Export the model to ONNX"),
        ('backend: "python"', "`backend` is `python`.*`onnxruntime`, `tightship`"),
        ("max_batch_size: -1", "`max_batch_size` is -1"),
        ("max_batch_size: 99999999999", "out of range"),
        ("instance_group { kind: KIND_GPU }", "KIND_GPU; models run on processors"),
        ("instance_group { count: -1 }", "`count` of `instance_group` is -1"),
        ("instance_group { kind: 9 }", "`kind` is 9; it must be one of KIND_AUTO"),
        ("model_transaction_policy { decoupled: true }", "one response"),
        ("response_cache { enable: true }", "`response_cache`"),
        ("version_policy { latest { num_versions: 0 } }", "at least 1"),
        ("version_policy { specific { versions: [0] } }", "versions from 1"),
        ("version_policy { specific {} }", "versions from 1"),
        ("version_policy { all {} latest {} }", "another member of oneof"),
        ('input { name: "x" dims: 0 }', r"dims \[0\]; each must be at least 1, or -1"),
        ("input { dims: 1 }", "An input of the configuration has no `name`"),
        ('output { name: "y" } output { name: "y" }', "output `y` more than once"),
        ('input { name: "x" data_type: 99 }', "`data_type` is 99; it must be one of TYPE_INVALID"),
        ('default_model_filename: "../secret.onnx"', "without `/`"),
        ('default_model_filename: ".."', "without `/`"),
        ("max_batch_size: 4 dynamic_batching { preferred_batch_size: 5 }", "has 5; it must be"),
        ("dynamic_batching { max_queue_delay_microseconds: 60000001 }", "at most 60000000"),
        ('name: "a" name: "b"', "should not have multiple"),
        ("input [" * 9999, "cannot be read"),
        ('name: "', "cannot be read"),
        ("[a.b] { }", "cannot be read"),
        ('name: "\\377"', "cannot be read"),
    ],
)
def test_what_is_wrong_or_not_supported_is_named(text, match):
    with pytest.raises(InputError, match=match):
        read_text(text)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ('{"sequence_batching": {}}', "`sequence_batching`.*not supported"),
        ('{"foo": 1}', "unknown field `foo`"),
        ('{"max_batch_size": "many"}', "cannot be read"),
        ('{"max_batch_size": 1.5}', "cannot be read"),
        ('{"input": 3}', "cannot be read"),
        ('{"input": [{"name": "x", "dims": [1.5]}]}', "cannot be read"),
        ("[]", "not JSON"),
        ("{", "not JSON"),
        ("\ud800", "not JSON"),
        ('{"input": ' * 5000, "not JSON"),
        (" " * (TEXT_BYTES_MAX + 1), "more than"),
    ],
)
def test_wrong_json_is_named(text, match):
    with pytest.raises(InputError, match=match):
        read_json(text)


def test_every_field_that_is_refused_is_one_of_clients():
    """Fields of theirs are all read or refused: none is taken for an unknown one."""
    theirs = pytest.importorskip("tritonclient.grpc.model_config_pb2").DESCRIPTOR
    from tightship.driver.oip.schema import message_classes

    for name, refused in NOT_SUPPORTED.items():
        known = {field.name for field in theirs.message_types_by_name[name].fields}
        read = {field.name for field in message_classes()[name].DESCRIPTOR.fields}
        assert refused.keys() | read == known, name


PIECES = st.sampled_from(
    [
        *("name", "input", "output", "dims", "data_type", "version_policy", "specific", "all"),
        *("versions", "parameters", "key", "value", "string_value", "max_batch_size", "kind"),
        *(":", "{", "}", "[", "]", "<", ">", ",", ";", '"', "'", "\\", "#", "\n", " ", "-", "."),
        *("1", "-1", "0x7f", "1e999", "nan", "99999999999999999999", "TYPE_FP32", "true", "\0"),
    ]
)


def is_read_or_refused(read, text):
    """Return whether a text is a configuration, or refused by a message that a log may have."""
    try:
        return isinstance(read(text), ModelConfig)
    except InputError as error:
        return str(error).isprintable()


@given(st.lists(PIECES, max_size=30).map("".join) | st.text(max_size=60))
@example("dynamic_batching{max_queue_delay_microseconds:18446744073709551615}")
def test_any_text_is_read_or_refused(text):
    assert is_read_or_refused(read_text, text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(PIECES, inner, max_size=3),
    max_leaves=8,
)


@given(JSON)
def test_any_json_is_read_or_refused(said):
    assert is_read_or_refused(read_json, json.dumps(said))
