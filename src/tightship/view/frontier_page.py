"""Makes a self-contained HTML page of a frontier: the picture and a table of its plans."""

from tightship.quantity import format_bytes
from tightship.view.frontier_svg import STYLE, FrontierPicture, frontier_svg
from tightship.view.still_page import still_page


def frontier_page(picture: FrontierPicture) -> str:
    """Make the HTML document, without scripts and without requests to the network."""
    rows = (
        (
            format_bytes(point.peak_bytes) + (" (chosen)" if point.is_chosen else ""),
            f"{point.peak_bytes / max(picture.given_bytes, 1):.1%}",
            f"+{point.added_share:.2%}",
            point.again,
        )
        for point in picture.points
    )
    titles = ("peak", "of the order given", "operations", "runs again")
    title = f"{picture.title}, {picture.subtitle}"
    return still_page(title, frontier_svg(picture), STYLE, titles, rows)
