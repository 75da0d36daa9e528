"""Reading of a GGUF header, number by number, within the bytes that the file has."""

import struct
from dataclasses import dataclass

from tightship._core import gguf_texts_bytes
from tightship.errors import FormatError

U32, U64 = struct.Struct("<I"), struct.Struct("<Q")


@dataclass(slots=True)
class Cursor:
    """Place in the bytes of a file.

    Attributes:
        data: Bytes of the file, mapped.
        path: Name of the file in messages.
        place: Next byte.
    """

    data: memoryview
    path: str
    place: int = 0

    @property
    def left(self) -> int:
        """Bytes behind the place."""
        return len(self.data) - self.place

    def u32(self, what: str) -> int:
        """Read an unsigned number of 32 bits.

        Raises:
            FormatError: The file ends before it.
        """
        return int(U32.unpack_from(self.data, self._take(U32.size, what))[0])

    def u64(self, what: str) -> int:
        """Read an unsigned number of 64 bits.

        Raises:
            FormatError: The file ends before it.
        """
        return int(U64.unpack_from(self.data, self._take(U64.size, what))[0])

    def text(self, what: str, most_bytes: int) -> str:
        """Read a text of at most so many bytes.

        Raises:
            FormatError: It is longer, not UTF-8, or the file ends before its end.
        """
        size = self.u64(f"the length of {what}")
        if size > most_bytes:
            raise self.refusal(
                f"{what} has {size} bytes; it must have at most {most_bytes}", is_cut=False
            )
        start = self._take(size, what)
        return decoded(self.data[start : start + size], what, self.path)

    def skip(self, count: int, size_bytes: int, what: str) -> int:
        """Step over some elements of a size; return the place of the first.

        Raises:
            FormatError: The file ends before their end.
        """
        return self._take(count * size_bytes, what)

    def skip_texts(self, count: int, what: str) -> int:
        """Step over some texts; return the place of the first.

        Raises:
            FormatError: The file ends before their end.
        """
        start = self.place
        size = gguf_texts_bytes(self.data[start:], count)
        if size is None:
            raise self.refusal(f"the file ends within {what}")
        self.place = start + size
        return start

    def bounded(self, count: int, least_bytes: int, most: int, what: str) -> int:
        """Return a count of parts that the bytes behind the place can hold.

        Args:
            count: Count that the file states.
            least_bytes: Bytes that each part takes at least.
            most: Largest count.
            what: Name of the count in messages.

        Raises:
            FormatError: There are more.
        """
        if count > most:
            raise self.refusal(f"{what} is {count}; it must be at most {most}", is_cut=False)
        if count * least_bytes > self.left:
            raise self.refusal(f"{what} is {count}, for which {self.left} bytes are too few")
        return count

    def refusal(self, problem: str, *, is_cut: bool = True) -> FormatError:
        """Return the error for what is wrong at the place.

        Args:
            problem: What is wrong.
            is_cut: Whether a file whose header has not arrived in whole has this problem too.
        """
        remedy = "Download the file again, or more of it if its download has only begun."
        if not is_cut:
            remedy = "Download or convert the model again."
        return FormatError(
            f"`{self.path}` is not a valid GGUF file: {problem} (byte {self.place} of "
            f"{len(self.data)}). {remedy}"
        )

    def _take(self, size: int, what: str) -> int:
        if size > self.left:
            raise self.refusal(f"the file ends within {what}")
        start = self.place
        self.place += size
        return start


def decoded(raw: memoryview, what: str, path: str) -> str:
    """Return a text of a file.

    Raises:
        FormatError: It is not UTF-8.
    """
    try:
        return str(raw, "utf-8")
    except UnicodeDecodeError as error:
        raise FormatError(
            f"`{path}` is not a valid GGUF file: {what} is not UTF-8 ({error.reason} at byte "
            f"{error.start}). Download or convert the model again."
        ) from None
