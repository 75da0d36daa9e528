"""Equal prefixes of texts: rows that sessions of a user's processes compute once and share."""

import contextlib
import fcntl
import os
import threading
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import gcd, lcm
from pathlib import Path

import numpy as np

from tightship._core import version
from tightship.engine.library import library_key
from tightship.engine.state.cache_rows import CacheRows
from tightship.engine.state.cache_runs import PAGE, CacheRuns
from tightship.engine.state.page_count import PageGiver
from tightship.engine.state.shared_rows import SEALS, SharedRows
from tightship.errors import CapacityError, InputError, OutOfMemoryError
from tightship.model.feeds import Array
from tightship.model.step_programs import StepPrograms
from tightship.resource.private_folder import private, runtime_folder
from tightship.sha256 import sha256

FOLDER = "prefixes"
_opened: "weakref.WeakValueDictionary[object, SharedRows]" = weakref.WeakValueDictionary()
_opening = threading.Lock()


@dataclass(slots=True)
class Prefixes:
    """Prefixes of one session, in blocks of tokens.

    A file of memory has the rows of consecutive blocks. A link in a folder of the user leads from
    the digest of a block, and of all tokens before it, to the file in a process that has it open;
    so a prefix is found as long as one session that has it lives. A file's name repeats what it is,
    because numbers of processes and descriptors come again.

    Attributes:
        start: Digest of what rows depend on besides tokens.
        block: Tokens of a block, a multiple of the largest program's.
        chunk: Tokens of this program.
        published: Tokens whose rows others can find, or were found.
        whole: First tokens that ran in whole chunks, and whose rows are so the same in each
            session.
    """

    start: bytes
    block: int
    chunk: int
    published: int = 0
    whole: int = 0
    _folder: Path = field(default_factory=lambda: private(runtime_folder() / FOLDER))

    @staticmethod
    def of(programs: StepPrograms, inputs: Mapping[str, Array]) -> "Prefixes":
        """Return those of sessions over programs.

        Raises:
            InputError: Pages of the caches do not end with rows, or programs write over all rows.
        """
        runs, context = CacheRuns.of(programs.decoder.caches), programs.decoder.context
        rows = lcm(*(PAGE // gcd(PAGE, int(size)) for size in np.unique(runs.row_bytes)))
        if not programs.appends:
            raise InputError(
                f"`{programs.name}` writes its caches otherwise than by appending, and sessions "
                "cannot share a prefix; leave out `share_prefix`."
            )
        if np.any(runs.starts % PAGE):
            raise InputError(
                f"With a context of {context}, heads share pages of the caches, and sessions "
                f"cannot share a prefix; choose a multiple of {rows}."
            )
        return Prefixes(_digest(programs, runs, inputs), lcm(rows, programs.chunk), programs.chunk)

    def again(self) -> "Prefixes":
        """Return those of another session over the same programs."""
        return Prefixes(self.start, self.block, self.chunk, self.published, self.whole)

    def keys(self, tokens: Array, count: int) -> list[str]:
        """Return the digests of the first `count` blocks, each of all tokens up to its end."""
        found, digest = [], self.start
        for index in range(count):
            part = tokens[:, index * self.block : (index + 1) * self.block]
            digest = sha256(digest, np.ascontiguousarray(part).tobytes()).digest()
            found.append(digest.hex())
        return found

    def adopt(self, tokens: Array, rows: CacheRows, giver: PageGiver | None) -> int:
        """Show the rows of as many first tokens as others have, but not of the last token.

        Args:
            tokens: All tokens, `[batch, count, ...]`.
            rows: Rows of a session, none of which was reached.
            giver: Counts pages.

        Returns:
            The number of tokens.
        """
        keys = self.keys(tokens, (tokens.shape[1] - 1) // self.block)
        found, blocks = self._found(keys, rows.runs, giver)
        count = blocks * self.block
        if not count or not rows.adopt(found, count):
            return 0
        self.published = self.whole = count
        return count

    def _found(
        self, keys: list[str], runs: CacheRuns, giver: PageGiver | None
    ) -> tuple[list[SharedRows], int]:
        """Return the files of the longest prefix that is there as a whole, and its blocks."""
        for last in range(len(keys), 0, -1):
            files: list[SharedRows] = []
            stop = last
            while stop:
                opened = self._opened(keys[stop - 1], runs, giver)
                if opened is None or opened[1] >= stop:
                    break
                files.insert(0, opened[0])
                stop = opened[1]
            if not stop:
                return files, last
        return [], 0

    def _opened(
        self, key: str, runs: CacheRuns, giver: PageGiver | None
    ) -> tuple[SharedRows, int] | None:
        """Open the file that has a block; return it with the number of its first block."""
        try:
            file = os.open(self._folder / key, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError:
            return None
        try:
            words = os.readlink(f"/proc/self/fd/{file}").split()
            is_ours = words[:2] == ["/memfd:tightship", "prefix"] and len(words) >= 5
            if not is_ours or fcntl.fcntl(file, fcntl.F_GET_SEALS) & SEALS != SEALS:
                return None
            start, stop = int(words[2]), int(words[3])
            low, high = (runs.whole(each * self.block) for each in (start, stop))
            if words[4] != self._tag() or os.fstat(file).st_size != PAGE * int((high - low).sum()):
                return None
            with _opening:
                place = _place(file, giver)
                shared = _opened.get(place)
                if shared is None:
                    shared = SharedRows.opened(os.dup(file), low, high, giver)
                    _opened[place] = shared
        except (OSError, ValueError, CapacityError):
            return None
        finally:
            os.close(file)
        return shared, start

    def _tag(self) -> str:
        return self.start.hex()[:32]

    def computed(self, start: int, count: int) -> None:
        """Note that tokens behind the first `start` have run in one step."""
        if start == self.whole:
            self.whole += count // self.chunk * self.chunk

    def cut(self, length: int) -> None:
        """Note that the first tokens alone are left."""
        self.published = min(self.published, length // self.block * self.block)
        self.whole = min(self.whole, length // self.chunk * self.chunk)

    def publish(self, tokens: Array, rows: CacheRows, giver: PageGiver | None) -> None:
        """Let others find the rows of whole blocks that are not published yet.

        Where the system refuses memory for it, the rows stay the session's own.
        """
        first, last = self.published // self.block, self.whole // self.block
        if first >= last:
            return
        self.published = last * self.block
        keys = self.keys(tokens, last)
        name = f"tightship prefix {first} {last} {self._tag()}"
        with contextlib.suppress(OutOfMemoryError):
            shared = rows.publish(first * self.block, self.published, name)
            if shared is not None:
                with _opening:
                    _opened[_place(shared.file, giver)] = shared
                target = f"/proc/{os.getpid()}/fd/{shared.file}"
                missing = [k for k in keys[first:] if self._opened(k, rows.runs, None) is None]
                links = [self._folder / key for key in missing]
                for link in links:
                    _link(link, target)
                weakref.finalize(shared, _unlink, links, target)


def _place(file: int, giver: PageGiver | None) -> object:
    """Return the key of a file that is open, whose pages a giver counts."""
    return os.fstat(file).st_ino, id(giver)


def _digest(programs: StepPrograms, runs: CacheRuns, inputs: Mapping[str, Array]) -> bytes:
    """Return a digest of all that rows depend on besides tokens."""
    found = sha256(programs.digest.encode())
    made = programs.program(programs.chunk).first_lowered
    steps = [(step.name, step.implementation) for step in made.steps]
    layout = runs.row_bytes.tolist(), [c.dtype.value for c in programs.decoder.caches]
    settings = programs.settings.threads, sorted(programs.settings.without)
    found.update(
        repr((version(), library_key(), programs.chunk, programs.last, programs.decoder.batch,
              steps, layout, settings)).encode()
    )  # fmt: skip
    for name, array in sorted(inputs.items()):
        found.update(repr((name, array.dtype.str, array.shape)).encode() + array.tobytes())
    return found.digest()


def _link(link: Path, target: str) -> None:
    """Make a link, in place of one that leads elsewhere."""
    with contextlib.suppress(OSError):
        link.unlink(missing_ok=True)
        link.symlink_to(target)


def _unlink(links: list[Path], target: str) -> None:
    """Remove the links to a file that this process closed; a forked child leaves its parent's."""
    own = target.startswith(f"/proc/{os.getpid()}/")
    for link in links if own else ():
        with contextlib.suppress(OSError):
            if os.readlink(link) == target:
                link.unlink()
