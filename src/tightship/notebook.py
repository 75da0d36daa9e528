"""Progress bars of long work, in notebooks and terminals (`tightship[notebook]`)."""

from types import TracebackType
from typing import Any, Self

from tightship.errors import LibraryError

__all__ = ["ProgressBar"]

_SILENT_SECONDS = 0.5
"""Time in which nothing is shown, as most work is done then."""


class ProgressBar:
    """A bar for the argument `progress` of `load`, `prepare` and others, as long as they work.

        with ProgressBar("packing weights") as progress:
            model = tightship.load("model.onnx", progress=progress)

    Nothing is shown in the first half second. The bar goes when the statement ends.
    """

    def __init__(self, label: str = "") -> None:
        """Make a bar; its label stands before it.

        Raises:
            LibraryError: tqdm is not installed.
        """
        try:
            import tqdm.auto
        except ImportError:
            raise LibraryError("`tqdm` is not installed; install `tightship[notebook]`.") from None
        self._make = tqdm.auto.tqdm
        self._label = label
        self._bar: Any = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __call__(self, done: int, total: int) -> None:
        """Show that so much of the work is done.

        Args:
            done: Bytes, or other units, that are done.
            total: Those in all; 0 while that is not known yet.
        """
        if total <= 0:
            return
        if self._bar is None:
            self._bar = self._make(
                total=total, desc=self._label or None, delay=_SILENT_SECONDS, leave=False,
                unit="B", unit_scale=True, unit_divisor=1024,
            )  # fmt: skip
        if self._bar.total != total:
            self._bar.total = total
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        """Take the bar away; another call shows a new one."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None
