"""What others have written, in lines of ours."""


def printable(text: str) -> str:
    """The text on one line; what would move or colour what is around it is a question mark."""
    return "".join(each if each.isprintable() else "?" for each in text)
