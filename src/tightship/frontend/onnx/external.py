"""Tensors in files beside the model."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath, PureWindowsPath

from google.protobuf.message import Message  # type: ignore[import-untyped]
from onnx import TensorProto

from tightship.errors import FormatError
from tightship.frontend.onnx.text import utf8
from tightship.graph import MappedFile


@dataclass(frozen=True, slots=True)
class ExternalFiles:
    """Data files of a model, each mapped once.

    No file outside the model's folder is opened. If the model is a symbolic link, the folder of its
    target is allowed as well.

    Attributes:
        given: Files by the names used in a model without a folder.
    """

    model: Path | None
    given: Mapping[str, MappedFile] = field(default_factory=dict)
    _mapped: dict[Path, MappedFile] = field(default_factory=dict)

    def find(self, tensor: TensorProto, size_bytes: int) -> tuple[MappedFile, int]:
        """Return the file and the offset of a tensor's `size_bytes` bytes.

        Raises:
            FormatError: The location is not allowed, the file is missing, or the range exceeds it.
        """
        entries = {
            utf8(entry.key, "key"): utf8(entry.value, "external data")
            for entry in tensor.external_data
        }
        location = entries.get("location", "")
        file = self._file(tensor.name, location)
        offset = _byte_count(tensor.name, "offset", entries.get("offset", "0"))
        length = _byte_count(tensor.name, "length", entries.get("length", str(size_bytes)))
        if length != size_bytes:
            raise FormatError(
                f"Tensor `{tensor.name}` has {length} bytes in `{location}`, but its type and "
                f"shape need {size_bytes}."
            )
        if offset + length > file.size_bytes:
            raise FormatError(
                f"Tensor `{tensor.name}` needs bytes [{offset}, {offset + length}) of "
                f"`{location}`, which has {file.size_bytes}."
            )
        return file, offset

    def files_of(self, model: Message) -> tuple[Path, ...]:
        """Return the files that tensors within a message name, in order of appearance.

        Raises:
            FormatError: A location is not allowed.
        """
        return tuple(dict.fromkeys(self.named_files_of(model).values()))

    def named_files_of(self, model: Message) -> dict[str, Path]:
        """Return `files_of` by their names in the message."""
        if self.model is None:
            return {}
        return {
            _location(tensor): _resolve(self.model, tensor.name, _location(tensor))
            for tensor in _outside(model)
        }

    def _file(self, tensor_name: str, location: str) -> MappedFile:
        if self.model is None:
            if location in self.given:
                return self.given[location]
            raise FormatError(
                f"Tensor `{tensor_name}` is stored in `{location}`, but the model was given as "
                "bytes and has no folder; read it from its path."
            )
        path = _resolve(self.model, tensor_name, location)
        if path not in self._mapped:
            self._mapped[path] = _mapped(path, tensor_name, location)
        return self._mapped[path]


def _outside(message: Message) -> Iterator[TensorProto]:
    """Yield the tensors within a message, or the message itself, that are external."""
    if isinstance(message, TensorProto):
        if message.data_location == TensorProto.EXTERNAL:
            yield message
        return
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None:
            for part in (value,) if isinstance(value, Message) else value:
                yield from _outside(part)


def _location(tensor: TensorProto) -> str:
    found = (entry.value for entry in tensor.external_data if entry.key == "location")
    return utf8(next(found, ""), "external data")


def _resolve(model: Path, tensor_name: str, location: str) -> Path:
    """Return the path of a location, with symbolic links followed."""
    parts = (*PurePosixPath(location).parts, *PureWindowsPath(location).parts)
    absolute = location.startswith("/") or PureWindowsPath(location).is_absolute()
    if not location or "\0" in location or absolute or ".." in parts:
        raise FormatError(
            f"Tensor `{tensor_name}` is stored in {location!r}; external data must be named by a "
            "relative path without `..`."
        )
    path = Path(os.path.realpath(model.parent / location))
    folder = Path(os.path.realpath(model.parent))
    linked_folder = Path(os.path.realpath(model)).parent
    if not (path.is_relative_to(folder) or path.is_relative_to(linked_folder)):
        raise FormatError(
            f"Tensor `{tensor_name}` is stored in `{location}`, which leads to `{path}`, outside "
            f"the model's folder `{model.parent}`."
        )
    return path


def _mapped(path: Path, tensor_name: str, location: str) -> MappedFile:
    try:
        if path.is_file():
            return MappedFile(path)
        reason = "which is not a file" if path.exists() else "which does not exist"
    except OSError as error:
        reason = f"which cannot be opened: {error.strerror}"
    raise FormatError(f"Tensor `{tensor_name}` is stored in `{location}`, {reason}.")


def _byte_count(tensor_name: str, key: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 20):
        raise FormatError(
            f"Tensor `{tensor_name}` has the external {key} {text[:40]!r}; it must be a number "
            "of bytes."
        )
    return int(text)
