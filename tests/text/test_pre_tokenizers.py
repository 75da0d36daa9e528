"""Rules that divide texts, in the library that applies them."""

import pytest
from tokenizers import Regex, pre_tokenizers

from tightship.errors import GraphError
from tightship.text.pre_tokenizers import PRE_TOKENIZERS, pre_tokenizer

TEXT = "I'Ve 1234 café  \n x=y;\tÉa\u0301 你好。"


def divided(name: str, text: str = TEXT) -> list[str]:
    parts = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated")
            for pattern in pre_tokenizer(name, "m.gguf").patterns
        ]
    )
    return [part for part, _ in parts.pre_tokenize_str(text)]


@pytest.mark.parametrize("name", sorted(PRE_TOKENIZERS))
def test_every_rule_is_one_that_the_library_takes_and_loses_nothing(name: str) -> None:
    assert "".join(divided(name)) == TEXT


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("gpt-2", ["I", "'", "Ve", " 1234", " café", "  \n", " x", "=", "y", ";", "\t", "Éa"]),
        ("smollm", ["I", "'", "Ve", " ", "1", "2", "3", "4", " café", "  \n", " x", "="]),
        ("llama-bpe", ["I", "'Ve", " ", "123", "4", " café", "  \n", " x", "=y", ";", "\tÉa"]),
        ("qwen2", ["I", "'Ve", " ", "1", "2", "3", "4", " café", "  \n", " x", "=y", ";", "\tÉa"]),
        ("qwen35", ["I", "'Ve", " ", "1", "2", "3", "4", " café", "  \n", " x", "=y", ";",
                    "\tÉa\u0301"]),
        ("ufakzeka", ["I", "'Ve", " ", "1"]),
        ("deepseek-v3", ["I", "'Ve", " ", "123", "4", " café"]),
        ("viking", ["I'Ve", " ", "1", "2", "3", "4", " café"]),
    ],
)  # fmt: skip
def test_rules_divide_as_their_models_were_trained(name: str, parts: list[str]) -> None:
    assert divided(name)[: len(parts)] == parts


def test_words_end_before_capital_letters_with_some_rules() -> None:
    assert divided("gpt-4o", "camelCase HTTPServer's") == ["camel", "Case", " HTTPServer's"]
    assert divided("tekken", "Don't 12") == ["Don", "'t", " ", "1", "2"]


def test_files_without_a_name_have_the_rule_of_old_converters() -> None:
    assert pre_tokenizer("", "m.gguf") is PRE_TOKENIZERS["default"]


def test_an_unknown_rule_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(GraphError, match=r"the rule `kimi-k2`, which is not supported; .*qwen2"):
        pre_tokenizer("kimi-k2", "m.gguf")
