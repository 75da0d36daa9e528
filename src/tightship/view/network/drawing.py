"""Draws the network of a plan as a page or a still picture, or returns it as JSON values."""

from tightship.view.network.as_json import network_json
from tightship.view.network.levels import levels_of
from tightship.view.network.network import network_of
from tightship.view.network.page import network_page
from tightship.view.network.svg import network_svg
from tightship.view.picture import Picture


def network_text(picture: Picture, form: str, step: int | None = None) -> str:
    """Draw the network of a plan.

    Args:
        picture: The plan, with what its steps read and write.
        form: `.html` for a page, or `.svg`.
        step: Step whose state is drawn, or shown first; None for the whole plan.
    """
    network = network_of(picture)
    draw = network_page if form == ".html" else network_svg
    return draw(network, levels_of(network), step)


def network_values(picture: Picture) -> dict[str, object]:
    """Return the network of a plan as JSON values."""
    network = network_of(picture)
    return network_json(network, levels_of(network))
