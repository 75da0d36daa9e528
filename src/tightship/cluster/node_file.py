"""Finds, prepares or receives the prepared file of a model on this node.

A file is found by the digest of the model's bytes, the settings and the processor, in the cache of
prepared models that `load(share=True)` keeps. Nodes with other processors have files of their own.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from os import fspath
from pathlib import Path

from tightship.cluster.replica_memory import ModelFile, Shapes
from tightship.engine.compile.compile_graph import Settings, name_of
from tightship.engine.library import open_library
from tightship.engine.stored.container import holds_prepared
from tightship.engine.stored.model import StoredModel
from tightship.errors import FormatError, InputError
from tightship.loading.prepared_once import about_of, identity_of, open_cache, read_prepared
from tightship.loading.restoring import verify_prepared
from tightship.prepared_cache import Identity, identify

CHUNK_BYTES = 8 << 20
"""Bytes of a file that are on their way between two nodes at once."""
DIGEST_SHOWN = 12
KEY_LENGTH = 32


@dataclass(frozen=True, slots=True)
class Source:
    """Model as a process named it, which every node has to find by the same bytes.

    Attributes:
        path: Path of the ONNX file or prepared model.
        digest: Digest of the bytes of its files.
        size_bytes: Total size of its files.
        shapes: Shapes for inputs whose dimensions are symbolic.
        threads: Threads of each kernel.
    """

    path: str
    digest: str
    size_bytes: int
    shapes: Shapes | None = None
    threads: int = 1

    @property
    def settings(self) -> Settings:
        """Settings that the prepared file depends on."""
        return Settings(self.shapes, self.threads)

    @property
    def key(self) -> str:
        """Name that models share whose prepared file on a node is the same."""
        shapes = sorted((self.shapes or {}).items())
        plain = [(name, each if isinstance(each, int) else tuple(each)) for name, each in shapes]
        text = repr((self.digest, plain, self.threads))
        return hashlib.sha256(text.encode()).hexdigest()[:KEY_LENGTH]


@dataclass(frozen=True, slots=True)
class NodeFile:
    """Prepared file on one node.

    Attributes:
        path: Path there.
        size_bytes: Size of the file.
        facts: Facts that another node must share to run the same file.
    """

    path: str
    size_bytes: int
    facts: tuple[tuple[str, str], ...]


def source_of(model: ModelFile, shapes: Shapes | None, threads: int) -> Source:
    """Identify a model on this node.

    Raises:
        InputError: The model's file cannot be read.
        UnusableCacheError: The cache's folder cannot be used.
    """
    path = str(Path(fspath(model)).absolute())
    identity = _identity(path)
    if holds_prepared(path):
        shapes = None  # the file has its own
    elif shapes:
        from tightship.loading.opening import open_for

        shapes = open_for(path, Settings(shapes, threads))[1].input_shapes
    return Source(path, identity.digest, identity.size_bytes, shapes, threads)


def find_file(source: Source, make: Callable[[Source, Path], None]) -> NodeFile | None:
    """Return the prepared file of a model on this node; None if the model's path is missing here.

    Args:
        source: The model.
        make: Function that prepares the model into a file that does not exist yet.

    Raises:
        FormatError: The prepared model is damaged, or was made for another processor.
        InputError: The path has other bytes here.
        UnusableCacheError: The cache cannot be used, or the model cannot be prepared.
    """
    if not Path(source.path).is_file():
        return None
    check_digest(source.path, source.digest, _identity(source.path))
    if holds_prepared(source.path):
        verify_prepared(source.path)
        return _described(source, Path(source.path))
    open_library()
    return read_prepared(
        source.path,
        source.settings,
        lambda path: make(source, path),
        lambda path, _: _described(source, path),
    )


def receive_file(source: Source, sent: NodeFile, digest: str, chunks: Iterator[bytes]) -> NodeFile:
    """Write a file that another node has prepared into this node's cache.

    One chunk is in memory at a time. The file counts as untrusted until its digest, its checksums
    and its plans are verified.

    Args:
        source: The model.
        sent: The file on the other node.
        digest: SHA-256 of its bytes, in hexadecimal.
        chunks: Its bytes in order.

    Raises:
        FormatError: The bytes are not those of the digest, or not a valid prepared model.
        InputError: It was prepared for another processor.
        UnusableCacheError: The cache cannot be used.
    """
    open_library()
    about = about_of(source.digest, source.size_bytes, source.settings, source.path)
    here = tuple(sorted(about.facts.items()))
    if here != sent.facts:
        raise InputError(
            f"`{source.path}` is missing on this node, and the node that has it prepared it for "
            f"{_listed(sent.facts)}; here it is {_listed(here)}. Put the model in a folder that "
            "every node can read."
        )

    def write(path: Path) -> None:
        found = hashlib.sha256()
        with path.open("wb") as file:
            for chunk in chunks:
                found.update(chunk)
                file.write(chunk)
        if found.hexdigest() != digest:
            raise FormatError(f"`{source.path}` arrived with other bytes than were sent.")
        verify_prepared(path)

    return open_cache().read(about, write, lambda path: _described(source, path))


def _identity(path: str) -> Identity:
    folder = open_cache().folder
    if Path(path).is_file() and holds_prepared(path):
        return identify(Path(path), tuple, folder)  # it is one file
    return identity_of(path, folder)


def check_source(source: Source) -> None:
    """Check that this node has the bytes of a model.

    Raises:
        InputError: The model is missing here, or has others.
    """
    if not Path(source.path).is_file():
        raise InputError(
            f"`{source.path}` is missing on this node. Put the model in a folder that every node "
            "can read, or share the weights, which are sent to nodes that lack them."
        )
    check_digest(source.path, source.digest, _identity(source.path))


def check_digest(path: str, digest: str, here: Identity) -> None:
    """Check that a model has the bytes here that it had where it was named.

    Raises:
        InputError: It has others.
    """
    if here.digest != digest:
        raise InputError(
            f"`{path}` differs between nodes: its digest is {here.digest[:DIGEST_SHOWN]} "
            f"here and {digest[:DIGEST_SHOWN]} where it was named. Give every node the same "
            "file."
        )


def _described(source: Source, path: Path) -> NodeFile:
    """Describe a file whose header and program section are valid."""
    StoredModel(path)
    about = about_of(source.digest, source.size_bytes, source.settings, name_of(source.path))
    return NodeFile(str(path), path.stat().st_size, tuple(sorted(about.facts.items())))


def _listed(facts: tuple[tuple[str, str], ...]) -> str:
    return ", ".join(f"{name} {value}" for name, value in facts)
