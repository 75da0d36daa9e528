"""Texts of language models: tokens, templates of chats, choice of tokens, and answers.

A session's `generate` uses it; needs the extra `tightship[text]`.
"""

from tightship.text.generation import Generation
from tightship.text.sampling import Sampling
from tightship.text.tokenizer import Tokenizer

__all__ = ["Generation", "Sampling", "Tokenizer"]
