"""Tokens that are found in a text as they are written, before it is divided."""

from collections.abc import Iterator, Sequence

import numpy as np

from tightship.frontend.gguf.vocabulary import CONTROL, UNKNOWN, USER_DEFINED, Vocabulary

ENDS = frozenset({
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>",
    "<end_of_turn>", "<|endoftext|>", "</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]",
    "<|end_of_text|>", "<end_of_utterance>", "<eos>", "<turn|>", "<|tool_response>", "[e~[",
    "<\uff5cend\u2581of\u2581sentence\uff5c>",
    "<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]", "<|fim_repo|>", "<|repo_name|>",
    "<fim-repo>", "<REPO>", "<reponame>", "<|file_sep|>",
})  # fmt: skip
"""Tokens that end an answer wherever a vocabulary has them, because files name one or none."""
SPACES = " \t\n\v\f\r"


class SpecialTokens:
    """Special tokens of a vocabulary.

    Attributes:
        ends: Numbers of tokens that end an answer.
        control: Numbers of tokens that are not part of a text.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        """Find the special tokens of a vocabulary."""
        types, special = vocabulary.types, vocabulary.special
        tokens = vocabulary.tokens
        named = {n for text in ENDS.intersection(tokens) for n in _places(tokens, text)}
        named = _without_normal(named, vocabulary)
        given = {special[role] for role in ("eos", "eot", "eom") if role in special}
        self.ends = frozenset(named | given)
        kinds = np.array(types)
        is_control = (kinds == CONTROL) | (kinds == UNKNOWN)
        self.control = frozenset({*np.flatnonzero(is_control).tolist(), *named})
        added = np.flatnonzero(kinds == USER_DEFINED).tolist()
        every = sorted(self.control.union(added))
        found = [(tokens[n], n, n in self.control) for n in every if tokens[n]]
        self._found = sorted(found, key=lambda each: -len(each[0].encode()))
        self._swallows = _swallowing(vocabulary, self._found)

    def divided(self, text: str, *, with_control: bool) -> Iterator[str | int]:
        """Divide a text into special tokens, by number, and texts between them.

        Longer tokens are looked for first.

        Args:
            text: The text.
            with_control: Whether control tokens are found too, rather than read as text.
        """
        parts: list[str | int] = [text] if text else []
        for token, number, is_control in self._found:
            if (is_control and not with_control) or token not in text:
                continue
            divided: list[str | int] = []
            for part in parts:
                if isinstance(part, int):
                    divided.append(part)
                else:
                    divided += self._around(part, token, number)
            parts = divided
        yield from parts

    def _around(self, part: str, token: str, number: int) -> Iterator[str | int]:
        """Divide a text at each occurrence of a token."""
        first, *others = part.split(token)
        if first:
            yield first
        for each in others:
            yield number
            left = each.lstrip(SPACES) if number in self._swallows else each
            if left:
                yield left


def _places(tokens: Sequence[str], text: str) -> Iterator[int]:
    """Yield the numbers of the tokens with a text."""
    place = -1
    for _ in range(tokens.count(text)):
        place = tokens.index(text, place + 1)
        yield place


def _without_normal(ends: set[int], vocabulary: Vocabulary) -> set[int]:
    """Return the numbers of tokens that end answers, without those that a model uses otherwise."""
    texts = {vocabulary.tokens[n] for n in ends}
    used = set()
    if {"<|return|>", "<|call|>"} <= texts or {"<|calls|>", "<|flush|>"} <= texts:
        used.add("<|end|>")
    if "<|tool_response>" in texts or "<|plamo:eos|>" in texts:
        used.add("</s>")
    return {n for n in ends if vocabulary.tokens[n] not in used}


def _swallowing(vocabulary: Vocabulary, found: list[tuple[str, int, bool]]) -> frozenset[int]:
    """Return the numbers of tokens that take in spaces behind them, which files do not say."""
    name = vocabulary.name.lower()
    if "phi-3" not in name and "phi3" not in name:
        return frozenset()
    plain = {"<unk>", "<s>", "<|endoftext|>"}
    return frozenset(number for token, number, _ in found if token not in plain)
