"""Default path of the driver's socket, for the driver and its clients."""

from pathlib import Path

from tightship.resource.private_folder import runtime_folder


def socket_path() -> Path:
    """Return the default path: `driver.sock` in this user's runtime folder.

    Raises:
        InputError: The folder is not the user's own, or others can enter it.
    """
    return runtime_folder() / "driver.sock"
