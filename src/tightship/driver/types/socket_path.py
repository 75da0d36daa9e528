"""Path of the driver's socket, the same for the driver and its clients."""

from pathlib import Path

from tightship.resource.private_folder import runtime_folder


def socket_path() -> Path:
    """The path by default: `driver.sock` in this user's folder for running programs.

    Raises:
        InputError: The folder is not the user's own, or others can enter it.
    """
    return runtime_folder() / "driver.sock"
