"""Texts of many lengths."""

import random

from tests.frontend.gguf.encoders import WORDS

KNOWN = [word for word in WORDS if word[0] != "#"]


def texts(count: int = 60, words_max: int = 62, seed: int = 1) -> list[str]:
    """Return texts of 1 to `words_max` words of the vocabulary."""
    source = random.Random(seed)
    return [" ".join(source.choices(KNOWN, k=source.randint(1, words_max))) for _ in range(count)]
