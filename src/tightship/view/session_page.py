"""Makes a self-contained HTML page of sessions: the picture and a table of their peaks."""

from tightship.quantity import format_bytes
from tightship.view.session_picture import SessionPicture
from tightship.view.session_svg import STYLE, session_svg
from tightship.view.still_page import still_page


def session_page(picture: SessionPicture) -> str:
    """Make the HTML document, without scripts and without requests to the network."""
    titles = ("context", *picture.contexts[0].parts, "state of a session",
              *(f"peak x{count}" for count in picture.sessions))  # fmt: skip
    rows = (
        (
            f"{each.context:,}",
            *map(format_bytes, each.parts.values()),
            format_bytes(each.state_bytes),
            *(format_bytes(each.peak_bytes(count)) for count in picture.sessions),
        )
        for each in picture.contexts
    )
    return still_page(f"{picture.title}, sessions", session_svg(picture), STYLE, titles, rows)
