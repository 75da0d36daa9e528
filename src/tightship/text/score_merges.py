"""Tokens of SentencePiece vocabularies: neighbours are joined whose token has the highest score."""

from heapq import heapify, heappop, heappush

from tightship.errors import FormatError
from tightship.frontend.gguf.vocabulary import BYTE, Vocabulary

SPACE = "\u2581"
"""Letter that stands for a space in such vocabularies."""


class ScoreMerges:
    """Encoder of texts by scores; letters without a token become the tokens of their bytes.

    Merges by rank, as libraries have them, give other tokens where several have one score or where
    a token can be joined of different pairs, so that the scores themselves decide here.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        """Make the encoder.

        Raises:
            FormatError: The vocabulary has no scores.
        """
        if vocabulary.scores is None:
            raise FormatError(
                f"`{vocabulary.path}` has no `tokenizer.ggml.scores`, by which a vocabulary of the "
                "kind `llama` joins tokens. Convert the model again."
            )
        self._numbers = {token: number for number, token in enumerate(vocabulary.tokens)}
        self._scores = vocabulary.scores
        self._adds_space = vocabulary.flags.get("add_space_prefix", True)
        self._unknown = vocabulary.special.get("unknown", 0)
        types = vocabulary.types
        self._bytes = [
            number if number is not None and types[number] == BYTE else self._unknown
            for number in (self._numbers.get(f"<0x{byte:02X}>") for byte in range(256))
        ]

    def encode(self, text: str, *, is_first: bool) -> list[int]:
        """Return the tokens of a text without special ones.

        Args:
            text: The text.
            is_first: Whether nothing or a special token is before it, so that a space is prefixed
                if the vocabulary wants that.
        """
        prefix = SPACE if is_first and self._adds_space else ""
        parts = list(prefix + text.replace(" ", SPACE))
        self._join(parts)
        numbers, found = self._numbers, []
        for part in filter(None, parts):
            number = numbers.get(part)
            if number is not None:
                found.append(number)
            else:
                found += [self._bytes[byte] for byte in part.encode()]
        return found

    def _join(self, parts: list[str]) -> None:
        """Join parts in place: a part becomes empty when the one before it takes it in."""
        numbers, scores, count = self._numbers, self._scores, len(parts)
        before = list(range(-1, count - 1))
        after = [*range(1, count), -1]
        waiting: list[tuple[float, int, int, int]] = []
        for left in range(count - 1):
            number = numbers.get(parts[left] + parts[left + 1])
            if number is not None:
                size = len(parts[left]) + len(parts[left + 1])
                waiting.append((-scores[number], left, left + 1, size))
        heapify(waiting)
        while waiting:
            _, left, right, size = heappop(waiting)
            if not parts[left] or not parts[right] or len(parts[left]) + len(parts[right]) != size:
                continue  # one of them has been joined with another meanwhile
            parts[left] += parts[right]
            parts[right] = ""
            after[left] = following = after[right]
            if following >= 0:
                before[following] = left
            for first, second in ((before[left], left), (left, following)):
                if first < 0 or second < 0:
                    continue
                number = numbers.get(parts[first] + parts[second])
                if number is not None:
                    both = len(parts[first]) + len(parts[second])
                    heappush(waiting, (-scores[number], first, second, both))
