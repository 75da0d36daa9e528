"""Copy a libdnnl so that it uses our OpenMP runtime and meets no other libdnnl in a process.

    python bundle_onednn.py LIBDNNL RUNTIME COPY

The dynamic section changes in place, each name to one that is not longer:

- `libgomp.so.1` becomes the name of our runtime, and each function of OpenMP becomes ours.
- `mprotect` becomes `tsm_seal` of our runtime, which frees the unused pages of generated code.
- `__gmon_start__`, which the library calls before its other code, becomes `tsm_on_load`, by which
  its code becomes resident in small ranges.
- The library's own name becomes `libtsdnnl.so`, so that a program that loads `libdnnl.so.3` does
  not get it.
- The library looks up its own functions in itself first (DT_SYMBOLIC), not in another libdnnl.
"""

import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

NEEDED, SONAME, SYMBOLIC, BIND_NOW, FLAGS, FLAGS_1 = 1, 14, 16, 24, 30, 0x6FFFFFFB
STRING_TAGS = {NEEDED, SONAME, 15, 29}
"""Tags of the dynamic section whose values are names; the last two are search paths."""
IS_SYMBOLIC, IS_NOW = 2, 1
DYNAMIC_SECTION, DYNSYM_SECTION, VERNEED_SECTION = 6, 11, 0x6FFFFFFE
OPENMP = "libgomp.so.1"
OWN_NAME = "libtsdnnl.so"
PREFIXES = {"GOMP_": "TSMP_", "omp_": "tsm_"}
"""Prefixes of OpenMP's functions, and of ours; equally long, because names share endings."""
REPLACED = {"mprotect": "tsm_seal", "__gmon_start__": "tsm_on_load"}
"""Functions of the C library, and ours in their place."""


class BundleError(Exception):
    """The library cannot be changed as needed."""


@dataclass(frozen=True, slots=True)
class Section:
    """Section of an ELF file; `link` is the number of the section with its names."""

    kind: int
    offset: int
    size: int
    link: int


class Elf:
    """Dynamic part of a 64-bit little-endian library, changed in place."""

    def __init__(self, content: bytes) -> None:
        """Find the sections that a loader reads.

        Raises:
            BundleError: The file is not such a library, or lacks a section.
        """
        if content[:6] != b"\x7fELF\x02\x01":
            raise BundleError("it is not a 64-bit little-endian ELF file")
        self.content = bytearray(content)
        (start,) = struct.unpack_from("<Q", content, 40)
        size, count = struct.unpack_from("<HH", content, 58)
        self._sections = [self._section(start + index * size) for index in range(count)]
        self._names = self._sections[self._only(DYNSYM_SECTION).link]

    def _section(self, at: int) -> Section:
        _, kind, _, _, offset, size, link = struct.unpack_from("<IIQQQQI", self.content, at)
        return Section(kind, offset, size, link)

    def _only(self, kind: int) -> Section:
        found = [section for section in self._sections if section.kind == kind]
        if len(found) != 1:
            raise BundleError(f"it has {len(found)} sections of kind {kind:#x} instead of 1")
        return found[0]

    def name(self, offset: int) -> str:
        """Return the name at an offset in the section of names."""
        start = self._names.offset + offset
        return self.content[start : self.content.index(0, start)].decode()

    def symbols(self) -> Iterator[tuple[int, bool]]:
        """Yield the offset of each symbol's name, and whether the library defines the symbol."""
        table = self._only(DYNSYM_SECTION)
        for at in range(table.offset, table.offset + table.size, 24):
            name, _, _, section = struct.unpack_from("<IBBH", self.content, at)
            yield name, section != 0

    def entries(self) -> Iterator[tuple[int, int, int]]:
        """Yield position, tag and value of each entry of the dynamic section."""
        table = self._only(DYNAMIC_SECTION)
        for at in range(table.offset, table.offset + table.size, 16):
            tag, value = struct.unpack_from("<qQ", self.content, at)
            if tag == 0:
                return
            yield at, tag, value

    def needed_versions(self) -> Iterator[int]:
        """Yield the offsets of the names of needed libraries and of their versions."""
        if not any(section.kind == VERNEED_SECTION for section in self._sections):
            return
        at = self._only(VERNEED_SECTION).offset
        while True:
            _, count, file, first, following = struct.unpack_from("<HHIII", self.content, at)
            yield file
            version = at + first
            for _ in range(count):
                _, _, _, name, step = struct.unpack_from("<IHHII", self.content, version)
                yield name
                version += step
            if following == 0:
                return
            at += following

    def uses(self) -> Iterator[int]:
        """Yield the offset of every name that a loader reads."""
        yield from (name for name, _ in self.symbols())
        yield from (value for _, tag, value in self.entries() if tag in STRING_TAGS)
        yield from self.needed_versions()

    def rename(self, offset: int, new: str) -> None:
        """Replace the name at `offset`.

        Raises:
            BundleError: The new name is longer, or another name shares the old one's ending.
        """
        old = self.name(offset)
        if len(new) > len(old):
            raise BundleError(f"`{new}` is longer than `{old}`")
        others = {use: self.name(use) for use in self.uses() if use != offset}
        start = self._names.offset + offset
        self.content[start : start + len(old)] = new.encode().ljust(len(old), b"\0")
        changed = [name for use, name in others.items() if self.name(use) != name]
        if changed:
            raise BundleError(f"`{old}` cannot be renamed without `{changed[0]}`")

    def rename_library(self, tag: int, old: str, new: str) -> None:
        """Replace the name of a library.

        Raises:
            BundleError: No entry of that tag has the old name, or several do.
        """
        found = {value for _, each, value in self.entries() if each == tag}
        found = {value for value in found if self.name(value) == old}
        if len(found) != 1:
            raise BundleError(f"it names `{old}` {len(found)} times instead of once")
        self.rename(found.pop(), new)

    def look_up_in_itself_first(self) -> None:
        """Set DT_SYMBOLIC, in place of a DT_BIND_NOW that the flags repeat.

        Raises:
            BundleError: The section has no entry to replace.
        """
        entries = {tag: (at, value) for at, tag, value in self.entries()}
        if FLAGS in entries:
            at, value = entries[FLAGS]
            struct.pack_into("<qQ", self.content, at, FLAGS, value | IS_SYMBOLIC)
        elif BIND_NOW in entries and entries.get(FLAGS_1, (0, 0))[1] & IS_NOW:
            struct.pack_into("<qQ", self.content, entries[BIND_NOW][0], SYMBOLIC, 0)
        elif SYMBOLIC not in entries:
            raise BundleError("its dynamic section has no place for DT_SYMBOLIC")


def bundled(library: bytes, runtime: bytes, runtime_name: str) -> bytes:
    """Return the library changed to use the runtime `runtime_name`.

    Raises:
        BundleError: The library is not as expected, or the runtime lacks a function.
    """
    elf, own = Elf(library), Elf(runtime)
    offered = {own.name(name) for name, is_defined in own.symbols() if is_defined}
    for offset, is_defined in list(elf.symbols()):
        old = elf.name(offset)
        new = _replacement(old)
        if new is None or is_defined:
            continue
        if new not in offered:
            raise BundleError(f"it calls `{old}`, and the runtime has no `{new}`")
        elf.rename(offset, new)
    elf.rename_library(NEEDED, OPENMP, runtime_name)
    elf.rename_library(SONAME, "libdnnl.so.3", OWN_NAME)
    elf.look_up_in_itself_first()
    return bytes(elf.content)


def _replacement(name: str) -> str | None:
    """Return the function of our runtime that replaces `name`; None if none does."""
    for prefix, own in PREFIXES.items():
        if name.startswith(prefix):
            return own + name.removeprefix(prefix)
    return REPLACED.get(name)


def main(library: str, runtime: str, copy: str) -> None:
    """Write the copy, or exit with the reason."""
    source, own = Path(library), Path(runtime)
    try:
        content = bundled(source.read_bytes(), own.read_bytes(), own.name)
    except BundleError as error:
        sys.exit(f"{source} cannot be bundled: {error}.")
    Path(copy).write_bytes(content)


if __name__ == "__main__":
    main(*sys.argv[1:])
