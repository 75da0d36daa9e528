"""Parameters of calls that load and unload models."""

from collections.abc import Mapping

from tightship.driver.oip.refusal import OipError
from tightship.driver.printable import printable

CONFIG = "config"
FILE_PREFIX = "file:"
UNLOAD_DEPENDENTS = "unload_dependents"


def config_given(name: str, parameters: Mapping[str, object]) -> str | None:
    """Return the configuration in JSON that a load call gives; None if it gives none.

    Raises:
        OipError: The configuration is not text, or a parameter is not known.
    """
    for key in parameters:
        if key.startswith(FILE_PREFIX):
            raise OipError(
                f"failed to load '{name}': files in a call, such as '{printable(key)}', are not "
                "supported; write them into the model repository"
            )
        if key != CONFIG:
            raise OipError(
                f"failed to load '{name}': unknown parameter '{printable(key)}'; '{CONFIG}' is "
                "supported"
            )
    config = parameters.get(CONFIG)
    if config is not None and not isinstance(config, str):
        raise OipError(
            f"failed to load '{name}': parameter '{CONFIG}' must be a text with a configuration in "
            "JSON"
        )
    return config


def check_unload(name: str, parameters: Mapping[str, object]) -> None:
    """Check the parameters of an unload call; models have no dependents, so none changes anything.

    Raises:
        OipError: One is unknown.
    """
    for key in parameters:
        if key != UNLOAD_DEPENDENTS:
            raise OipError(
                f"failed to unload '{name}': unknown parameter '{printable(key)}'; "
                f"'{UNLOAD_DEPENDENTS}' is supported"
            )
