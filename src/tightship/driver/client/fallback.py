"""Model that runs in a driver while one serves it, and in this process otherwise."""

import os
from collections.abc import Sequence

from numpy.typing import ArrayLike

from tightship.deprecated import takes_old_parameters
from tightship.driver.client.client import Client
from tightship.driver.client.remote import RemoteModel
from tightship.driver.client.segment import Array
from tightship.driver.types.status import ErrorStatus
from tightship.errors import DriverError
from tightship.loading import load
from tightship.model import Model
from tightship.public_calls import public_methods

REFUSALS = frozenset(
    {
        ErrorStatus.DEVICE_UNAVAILABLE,
        ErrorStatus.GENERAL_FAILURE,
        ErrorStatus.RESOURCE_EXHAUSTED_TRANSIENT,
        ErrorStatus.RESOURCE_EXHAUSTED_PERSISTENT,
    }
)
"""Statuses of a driver that cannot serve or is gone; others are raised to the caller."""


@public_methods
class FallbackModel:
    """ONNX or prepared model, for one thread at a time.

    Once a driver has refused it or has died, it stays in this process.

    Attributes:
        refusal: Error of the driver; None while it serves.
    """

    @takes_old_parameters("FallbackModel")
    def __init__(
        self, model: bytes | str | os.PathLike[str], socket: str | os.PathLike[str] | None = None
    ) -> None:
        """Prepare the model in a driver or load it here.

        Args:
            model: As for `tightship.load`.
            socket: Path of a driver's socket; None for the default.

        Raises:
            DriverError: INVALID_ARGUMENT, MISSED_DEADLINE_TRANSIENT and the like.
            TightshipError: As from `tightship.load`, if no driver serves it.
        """
        self._source = model
        self._client: Client | None = None
        self._remote: RemoteModel | None = None
        self._local: Model | None = None
        self.refusal: DriverError | None = None
        try:
            self._client = Client(socket)
            self._remote = self._client.prepare(model)
        except DriverError as error:
            self._fall_back(error)

    def execute(self, inputs: Sequence[ArrayLike]) -> tuple[Array, ...]:
        """Run on an array for each input.

        Returns:
            A new array for each output.

        Raises:
            DriverError: With a status that is not among `REFUSALS`.
            InputError: An array does not fit.
            TightshipError: As from `tightship.load`, if the driver has just gone.
        """
        if self._remote is not None:
            try:
                return tuple(each for each in self._remote.execute(inputs) if each is not None)
            except DriverError as error:
                self._fall_back(error)
        assert self._local is not None
        return tuple(
            self._local.run(dict(zip(self._local.input_names, inputs, strict=True))).values()
        )

    def _fall_back(self, error: DriverError) -> None:
        if error.status not in REFUSALS:
            self.close()
            raise error
        self.close()
        self.refusal = error
        self._local = load(self._source)

    def close(self) -> None:
        """Release everything. Harmless when repeated."""
        if self._client is not None:
            self._client.close()
        if self._local is not None:
            self._local.close()
        self._client = self._remote = None

    def __enter__(self) -> "FallbackModel":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
