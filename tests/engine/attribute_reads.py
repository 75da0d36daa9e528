"""Attributes that code reads if it takes a node: passes, each kind of kernel, evaluators."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from tightship.engine.lower import selection as select
from tightship.frontend.onnx import reader
from tightship.graph import Node

SELECTORS = (
    "_moves_nothing",
    "_quantized",
    "split",
    "streamed",
    "_onednn",
    "_native",
    "emit_numpy",
)
"""Functions of kernel selection that take a node, or say that they do not."""

_log: set[str] = set()


class Recording(dict[str, Any]):
    """Attributes that note which of them are read; a copy of all of them is no reading."""

    def get(self, key: str, default: Any = None) -> Any:
        _log.add(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        _log.add(key)
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        _log.add(str(key))
        return super().__contains__(key)


@dataclass(slots=True)
class Reads:
    """Names of attributes that code had of nodes that it took, and of those that it read."""

    taken: dict[str, tuple[set[str], set[str]]] = field(default_factory=dict)
    """Attributes read, by kind of code."""
    before_runs: set[str] = field(default_factory=set)
    in_runs: set[str] = field(default_factory=set)

    def note(self, kind: str, node: Node, read: set[str]) -> None:
        """Add a node that has been taken."""
        had, found = self.taken.setdefault(kind, (set(), set()))
        had.update(node.attributes)
        found.update(read)

    def loaded(self) -> None:
        """End the phase before runs."""
        self.before_runs |= _log
        _log.clear()

    def unread(self, names: set[str]) -> dict[str, set[str]]:
        """Return which of these attributes code had of its node and did not read.

        NumPy's kernels may read them as they run. An attribute that no node has any more must
        have been read by what rewrote its node.
        """
        found = {kind: names & had - read for kind, (had, read) in self.taken.items()}
        if "numpy" in found:
            found["numpy"] -= self.in_runs
        had = set[str]().union(*(each for each, _ in self.taken.values()))
        found["passes"] = names - had - self.before_runs - self.in_runs
        return {kind: left for kind, left in found.items() if left}


def _recording(post_init: Callable[[Node], None]) -> Callable[[Node], None]:
    def record(node: Node) -> None:
        post_init(node)
        object.__setattr__(node, "attributes", Recording(node.attributes))

    return record


@contextmanager
def _apart() -> Iterator[set[str]]:
    """Collect what is read within the block by itself."""
    outer, inner = set(_log), set[str]()
    _log.clear()
    try:
        yield inner
    finally:
        inner |= _log
        _log.update(outer)


def _selecting(reads: Reads, kind: str, select_: Callable[..., bool]) -> Callable[..., bool]:
    def watched(builder: Any, node: Node) -> bool:
        with _apart() as read:
            is_taken = select_(builder, node)
        if is_taken:
            reads.note(kind, node, read)
        return is_taken

    return watched


def _evaluating(reads: Reads, evaluate: Callable[..., Any]) -> Callable[..., Any]:
    def watched(node: Node, *rest: Any) -> Any:
        with _apart() as read:
            found = evaluate(node, *rest)
        if found is not None:
            reads.note("evaluated", node, read)
        return found

    return watched


def _by_reference(reads: Reads, emit: Callable[..., None]) -> Callable[..., None]:
    def watched(builder: Any, node: Node, *rest: Any) -> None:
        reads.note("reference", node, set(node.attributes))
        emit(builder, node, *rest)

    return watched


@contextmanager
def recorded() -> Iterator[Reads]:
    """Record within the block what takes nodes, and what it reads."""
    reads = Reads()
    with ExitStack() as stack:
        enter = stack.enter_context
        enter(patch.object(Node, "__post_init__", _recording(Node.__post_init__)))
        for name in SELECTORS:
            kind = name.strip("_").removeprefix("emit_")
            watched = _selecting(reads, kind, getattr(select, name))
            enter(patch.object(select, name, watched))
        for name in ("evaluate", "foresee"):
            enter(patch.object(reader, name, _evaluating(reads, getattr(reader, name))))
        enter(patch.object(select, "emit_objects", _by_reference(reads, select.emit_objects)))
        _log.clear()
        yield reads
        reads.in_runs |= _log
