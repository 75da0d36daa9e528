"""Rules that divide a text before tokens are joined, by the names that GGUF files give them.

Files name a rule and do not contain it. Each rule is a sequence of patterns: the first divides the
text into its matches and what lies between them, the next divides these parts further.
"""

from collections.abc import Mapping
from typing import NamedTuple

from tightship.errors import GraphError

_ENDINGS = r"(?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LINES = r"\s*[\r\n]+|\s+(?!\S)|\s+"


def _words(numbers: str, before: str = _ENDINGS + "|") -> str:
    """Return the pattern of words with one sign before them, and numbers by a pattern."""
    other = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
    return rf"{before}[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{numbers}|{other}|{_LINES}"


def _cased(numbers: str, endings: str) -> str:
    """Return the pattern of words that end where a capital letter follows a small one."""
    before, upper, lower = (
        r"[^\r\n\p{L}\p{N}]?",
        r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]",
        r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]",
    )
    words = f"{before}{upper}*{lower}+{endings}|{before}{upper}+{lower}*{endings}"
    return rf"{words}|{numbers}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|{_LINES}"


_SIGNS = (
    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"
    rf"| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_LINES}"
)
_HAN = "[\u4e00-\u9fa5\u3040-\u309f\u30a0-\u30ff]+"
_EAST_ASIAN = "[\u4e00-\u9fa5\u0800-\u4e00\uac00-\ud7ff]+"
_SENTENCE = "\u2026\u3002\uff0c\u3001\u0964\u06d4\u060c"
_CLAUSES = rf" ?[^(\s|.,!?{_SENTENCE})]+"
_THREES = r"\p{N}{1,3}"


class PreTokenizer(NamedTuple):
    """Rule for texts of byte-pair vocabularies.

    Attributes:
        patterns: Patterns that divide, in order.
        ignores_merges: Whether a part that is a token becomes it, however tokens are joined.
        adds_begin: Whether texts begin with the token for it, unless the file says otherwise.
    """

    patterns: tuple[str, ...]
    ignores_merges: bool = False
    adds_begin: bool = False


_ROWS: tuple[tuple[str, PreTokenizer], ...] = (
    (
        "gpt-2 phi-2 mpt olmo jais trillion granite-docling gigachat a.x-4.0 mellum modern-bert"
        " jina-es jina-de jina-v2-es jina-v2-de jina-v1-en jina-v2-code roberta-bpe exaone4",
        PreTokenizer((_GPT2,)),
    ),
    (
        "smollm starcoder refact command-r codeshell exaone minerva-7b mellum2",
        PreTokenizer((r"\p{N}", _GPT2)),
    ),
    (
        "llama-bpe llama3 llama-v3 falcon3 falcon-h1 pixtral midm-2.0 lfm2 jina-v5-nano",
        PreTokenizer((_words(_THREES),), ignores_merges=True, adds_begin=True),
    ),
    ("dbrx smaug-bpe chatglm-bpe", PreTokenizer((_words(_THREES),))),
    ("glm4 glm5", PreTokenizer((_words(_THREES),), ignores_merges=True)),
    (
        "qwen2 deepseek-r1-qwen kormo f2llmv2 megrez stablelm2 hunyuan solar-open grok-2",
        PreTokenizer((_words(r"\p{N}"),)),
    ),
    (
        "qwen35",
        PreTokenizer((
            rf"{_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?[\p{{L}}\p{{M}}]+|\p{{N}}"
            rf"| ?[^\s\p{{L}}\p{{M}}\p{{N}}]+[\r\n]*|{_LINES}",
        )),
    ),
    ("ufakzeka", PreTokenizer((_words(r"\p{N}", before=""),))),
    ("minicpm5", PreTokenizer((_THREES, _words(r"\p{N}+")), ignores_merges=True)),
    (
        "tekken",
        PreTokenizer((_cased(r"\p{N}", ""),), ignores_merges=True, adds_begin=True),
    ),
    ("gpt-4o llama4 kanana2 talkie minimax-m2", PreTokenizer((_cased(_THREES, f"{_ENDINGS}?"),))),
    ("deepseek-v3 hunyuan-dense joyai-llm hy_v4", PreTokenizer((_THREES, _HAN, _SIGNS))),
    (
        "deepseek-coder",
        PreTokenizer((r"[\r\n]", r"\s?\p{L}+", r"\s?\p{P}+", _EAST_ASIAN, r"\p{N}")),
    ),
    ("falcon", PreTokenizer((r"[\p{P}\$\+<=>\^~\|`]+", _GPT2, "[0-9][0-9][0-9]"))),
    ("bloom poro-chat gpt3-finnish", PreTokenizer((_CLAUSES,))),
    ("viking", PreTokenizer((_CLAUSES, r"\p{N}"))),
    (
        "seed-coder",
        PreTokenizer((
            rf"{_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}"
            rf"| ?[^\s\p{{L}}\p{{N}}\r\n]+|{_LINES}",
        )),
    ),
    (
        "default",
        PreTokenizer((r"[\p{P}\$\+<=>\^~\|]+", _GPT2, r"\p{N}+", "[0-9][0-9][0-9]")),
    ),
)  # fmt: skip
PRE_TOKENIZERS: Mapping[str, PreTokenizer] = {
    name: rule for names, rule in _ROWS for name in names.split()
}
"""Rules by name."""


def pre_tokenizer(name: str, path: str) -> PreTokenizer:
    """Return the rule of a name; files of old converters have no name.

    Args:
        name: Name in the file; empty if it has none.
        path: Name of the file in messages.

    Raises:
        GraphError: The name is unknown.
    """
    found = PRE_TOKENIZERS.get(name or "default")
    if found is None:
        raise GraphError(
            f"`{path}` divides texts by the rule `{name}`, which is not supported; supported are "
            f"{', '.join(sorted(PRE_TOKENIZERS))}. Give numbers of tokens, or use another model."
        )
    return found
