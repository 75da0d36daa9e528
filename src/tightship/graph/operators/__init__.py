"""The operator table: a row for each operator, which says what it is and who has its bodies."""

from tightship.graph.operators.row import (
    OF_SHAPES,
    Attributes,
    Category,
    Half,
    NoGradient,
    Operator,
    Signature,
    Type,
)
from tightship.graph.operators.table import body, find, named, row_of, rows

__all__ = [
    "OF_SHAPES",
    "Attributes",
    "Category",
    "Half",
    "NoGradient",
    "Operator",
    "Signature",
    "Type",
    "body",
    "find",
    "named",
    "row_of",
    "rows",
]
