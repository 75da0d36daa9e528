"""Makes a self-contained HTML page of a replay: the picture and a table of its figures."""

from tightship.quantity import format_bytes
from tightship.view.replay_picture import STYLE, Panel, ReplayPicture, replay_svg
from tightship.view.still_page import still_page

_TITLES = ("resource", "peak held", "of live", "ns/operation", "refused")


def replay_page(picture: ReplayPicture) -> str:
    """Make the HTML document of a replay, without scripts and without requests to the network."""
    rows = (_row(picture, panel) for panel in picture.panels)
    return still_page(f"{picture.title}, replayed", replay_svg(picture), STYLE, _TITLES, rows)


def _row(picture: ReplayPicture, panel: Panel) -> tuple[str, ...]:
    held_bytes = max(panel.held_bytes, default=0)
    ratio = held_bytes / picture.peak_live_bytes if picture.peak_live_bytes else 1.0
    return (
        panel.name, format_bytes(held_bytes), f"{ratio:.3f}x",
        f"{panel.ns_per_operation:.0f}", f"{panel.refused_count:,}",
    )  # fmt: skip
