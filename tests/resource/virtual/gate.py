"""A stream whose work ends when the test says so."""

from tightship.resource.virtual import PythonStream


class Gate:
    """Shut until it is opened; a fence and the maker of streams behind it."""

    def __init__(self) -> None:
        self.is_open = False

    def stream(self) -> PythonStream:
        return PythonStream(lambda: None if self.is_open else self)

    def is_signalled(self) -> bool:
        return self.is_open


class AwaitedGate(Gate):
    """Opens after so many polls that a thread must be waiting for it."""

    LOOKS = 20

    def __init__(self) -> None:
        super().__init__()
        self._looks = 0

    def is_signalled(self) -> bool:
        self._looks += 1
        self.is_open = self._looks > self.LOOKS
        return self.is_open
