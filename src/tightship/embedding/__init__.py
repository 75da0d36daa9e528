"""Vectors of texts, and scores of pairs of texts, by encoders such as MiniLM or BERT.

Needs the extra `tightship[text]`.
"""

from typing import TYPE_CHECKING

from tightship.late_names import late_names

if TYPE_CHECKING:
    from tightship.embedding.embedder import Embedder
    from tightship.embedding.encoded_texts import Encoded
    from tightship.embedding.reranker import Reranker
else:  # the files of a model are looked at without what runs it
    __getattr__ = late_names(
        __name__, embedder="Embedder", encoded_texts="Encoded", reranker="Reranker"
    )

__all__ = ["Embedder", "Encoded", "Reranker"]
