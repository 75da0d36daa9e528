"""Answers that follow a JSON schema."""

import json
from typing import Any

import numpy as np
import pytest

import tightship
from tests.frontend.gguf.decoders import decoder
from tests.text.vocabularies import chat_fields
from tightship.errors import InputError
from tightship.text import Tokenizer
from tightship.text.schema_guide import GuidedVocabulary, SchemaGuide, schema_text

SIGNS = [*'{}[]":,.-+_\\ \n', *"0123456789", *"ABCDEFGHIJKLMNOPQRSTUVWXYZ"]
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


def fields() -> dict[str, Any]:
    """Keys of a file whose vocabulary can write JSON: single signs, and joined ones."""
    known = chat_fields()
    tokens = known["tokenizer.ggml.tokens"]
    joined = ['{"', '":', '",', '"}', "true", "false", "null"]
    known["tokenizer.ggml.tokens"] = tokens = [*tokens, *SIGNS, *joined]
    types = known["tokenizer.ggml.token_type"]
    known["tokenizer.ggml.token_type"] = [*types, *[1] * (len(tokens) - len(types))]
    known["tokenizer.ggml.scores"] = [-float(number) for number in range(len(tokens))]
    return known


@pytest.fixture(scope="module")
def model() -> Any:
    count = len(fields()["tokenizer.ggml.tokens"])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.frontend.gguf.decoders.VOCABULARY", count)
        data = decoder(layers=1).written(fields())
    with tightship.load(data) as found:
        yield found


@pytest.mark.parametrize("temperature", [0, 1.5])
def test_answers_of_any_model_follow_a_schema(model: Any, temperature: float) -> None:
    for seed in range(3):
        with model.session(context=64) as session:
            answer = session.generate(
                "the", schema=PERSON, temperature=temperature, seed=seed, min_p=0, top_p=1
            )
            text = answer.text()
        if answer.finish_reason == "stop":
            found = json.loads(text)
            assert set(found) == {"name", "age"}
            assert isinstance(found["age"], int)
            assert len(found["name"]) <= 8
        else:
            assert text.lstrip().startswith("{")


def test_an_answer_ends_where_nothing_may_follow(model: Any) -> None:
    with model.session(context=64) as session:
        answer = session.generate("a", schema='{"enum": ["then", 12]}', seed=1)
        assert json.loads(answer.text()) in ("then", 12)
        assert answer.finish_reason == "stop"
        plain = session.generate("a", max_tokens=2)
        assert len(plain.tokens) <= 2


def test_special_tokens_are_not_part_of_a_text(model: Any) -> None:
    tokenizer: Tokenizer = model.tokenizer
    followed = tokenizer.follow('{"type": "string"}')
    logits = np.zeros(tokenizer.size + 5, np.float32)
    quote = fields()["tokenizer.ggml.tokens"].index('"')
    assert np.isfinite(followed.masked(logits)[quote])
    followed.take(quote)
    masked = followed.masked(logits)
    assert not np.isfinite(masked[[0, 1, 2]]).any()  # <unk>, <s>, </s>
    assert not np.isfinite(masked[tokenizer.size :]).any()
    assert np.isfinite(masked[tokenizer.encode("x", begin=False)[-1]])
    assert (logits == 0).all()
    with pytest.raises(InputError, match="does not follow the schema"):
        followed.take(1)


@pytest.mark.parametrize(
    ("schema", "said"),
    [('{"type": "sun"}', "cannot be followed"), ("{", "cannot be followed"),
     ("3", "cannot be followed"), ({"type": "string", "pattern": "("}, "cannot be followed")],
)  # fmt: skip
def test_a_schema_that_cannot_be_followed_is_refused(model: Any, schema: Any, said: str) -> None:
    with model.session(context=64) as session, pytest.raises(InputError, match=said):
        session.generate("a", schema=schema)


def test_a_vocabulary_without_an_end_is_refused() -> None:
    vocabulary = GuidedVocabulary("m.gguf", [b"a"], [], [], lambda _: [0])
    with pytest.raises(InputError, match="no token that ends an answer"):
        SchemaGuide(vocabulary)


def test_few_schemas_stay_compiled(model: Any) -> None:
    for number in range(40):
        model.tokenizer.follow(json.dumps({"const": number}))
    assert len(model.tokenizer._guide._compiled) == 32


def test_a_schema_is_a_mapping_or_its_text() -> None:
    assert schema_text(None) is None
    assert schema_text("{}") == schema_text({}) == "{}"
