"""Draws the network of a plan, for `tightship view --graph` and `tightship cost --graph`."""

from pathlib import Path

from tightship.atomic_file import write_text
from tightship.cli.drawing import check_drawing
from tightship.errors import InputError
from tightship.view.network.network import has_network
from tightship.view.picture import Picture


def check_graph(path: Path | None, step: int | None, *, is_graph: bool) -> None:
    """Check the options of a picture before anything is planned.

    Raises:
        InputError: A step is given without `--graph`, or the suffix is neither .html nor .svg.
    """
    if step is not None and not is_graph:
        raise InputError("`--step` is for `--graph`; give it too, or leave this out.")
    if path is not None:
        check_drawing(path)


def draw_graph(picture: Picture, path: Path, step: int | None) -> None:
    """Write the network of a plan in the form that the suffix of the file names.

    Raises:
        InputError: The plan has no network, or no such step.
        OSError: The file cannot be written; an older file is then untouched.
    """
    from tightship.view.network.drawing import network_text  # few plans are drawn so

    check_network(picture, step)
    write_text(path, network_text(picture, path.suffix, step))


def graph_json(picture: Picture, step: int | None) -> dict[str, object]:
    """Return the network of a plan as JSON values.

    Raises:
        InputError: The plan has no network, or no such step.
    """
    from tightship.view.network.drawing import network_values

    check_network(picture, step)
    return network_values(picture)


def check_network(picture: Picture, step: int | None) -> None:
    """Check that a plan says what its steps read and write, and that it has a step.

    Raises:
        InputError: It does not, or has not.
    """
    if picture.steps and not has_network(picture):
        raise InputError(
            f"The plan `{picture.title}` was written by an earlier version, without what each step "
            "reads and writes; write it again with `tightship plan MODEL -o plan.json`."
        )
    if not picture.steps:
        raise InputError(
            f"`{picture.title}` has no steps, so it has no network to draw; `--graph` takes a "
            "model, or a plan of one that `tightship plan MODEL -o plan.json` wrote."
        )
    if step is not None and step >= len(picture.steps):
        last = len(picture.steps) - 1
        raise InputError(f"Step {step} does not exist; `{picture.title}` has steps 0 to {last}.")
