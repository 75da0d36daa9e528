"""Error for a length without a value."""


class UnboundLengthError(Exception):
    """A length was asked for its value after its trace was sealed, with no values bound."""
