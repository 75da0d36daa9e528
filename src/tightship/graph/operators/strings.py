"""Rows of operators on strings and encoded images."""

from functools import partial

from tightship.graph.operators.row import NOT_REAL, UNWRITTEN, Operator

_row = partial(Operator, gradient=NOT_REAL)

ROWS = (
    _row("ImageDecoder", "1 pixel_format"),
    _row("RegexFullMatch", "1 pattern"),
    _row("StringConcat", "2", objects="strings.string_concat"),
    _row("StringNormalizer", "1 case_change_action is_case_sensitive locale stopwords"),
    _row("StringSplit", "1 delimiter maxsplit", objects="strings.split"),
    _row("TfIdfVectorizer",
        "1 max_gram_length max_skip_count min_gram_length mode ngram_counts ngram_indexes "
        "pool_int64s pool_strings weights", gradient=UNWRITTEN),
)  # fmt: skip
