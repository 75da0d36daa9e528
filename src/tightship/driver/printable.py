"""Text of clients made safe for our log."""


def printable(text: str) -> str:
    """Return the text with every unprintable character replaced by a question mark."""
    return "".join(each if each.isprintable() else "?" for each in text)
