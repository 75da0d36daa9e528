"""Table of the inputs and attributes that are read of ONNX's operators; others are refused.

The tests hold the words of the operator table against onnx's schemas, and against what each kind of
kernel reads.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Final

from tightship.graph.operators import find

IDLE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "consumed_inputs": "names inputs whose memory may be reused",
        "output_sequence": "says whether an output is asked for, which the node's outputs say",
        "sorted": "allows any order, so that the sorted one serves",
    }
)
"""Attributes that change no result, and why."""


@dataclass(frozen=True, slots=True)
class Consumed:
    """Inputs and attributes that are read of an operator's nodes, in any version.

    Attributes:
        inputs: Most inputs that a node may have; None for any number.
        attributes: Names of attributes that kernels, passes or type inference read.
        typed: Names among these that follow from shapes and types, so that kernels need not read
            them.
        only: Values by name of attributes that need not be read if they have one of these.
        idle: Names of attributes that change no result.
    """

    inputs: int | None
    attributes: frozenset[str]
    typed: frozenset[str]
    only: Mapping[str, tuple[int, ...]]
    idle: frozenset[str]

    @staticmethod
    def of(words: Sequence[str]) -> "Consumed":
        """Parse the words of a row, from the number of inputs on."""
        count, *names = words
        only = [name.partition("=") for name in names if "=" in name]
        return Consumed(
            None if count == "*" else int(count),
            frozenset(name.lstrip("@") for name in names if "=" not in name and name[0] != "~"),
            frozenset(name[1:] for name in names if name[0] == "@"),
            {name: tuple(map(int, values.split(","))) for name, _, values in only},
            frozenset(name[1:] for name in names if name[0] == "~"),
        )

    def refusal(
        self, inputs: Sequence[str], values: Mapping[str, object], element: int = 0
    ) -> str | None:
        """Return what of a node is not supported, and what is; None if all is read.

        Args:
            inputs: Names of the node's inputs.
            values: Its attributes.
            element: Element type of its first input, by ONNX's number; a `stash_type` of this type
                need not be read.
        """
        for place, name in enumerate(inputs):
            if self.inputs is not None and place >= self.inputs and name:
                return f"`{name}` as input {place}; {self.inputs} inputs are supported"
        for name, value in values.items():
            if name == "stash_type" and value == element:
                continue
            if name in self.only and value not in self.only[name]:
                allowed = " or ".join(map(str, self.only[name]))
                return f"`{name}` = {value}; only {allowed} is supported"
            if name not in self.attributes and name not in self.only and name not in self.idle:
                return f"the attribute `{name}`, which is not supported"
        return None


@cache
def consumed(operator: str) -> Consumed | None:
    """Return the row of an operator; None if only `onnx.reference` may know it.

    The words of a row are taken apart when they are asked for: all of them would take 0.3 MB.
    """
    row = find(operator)
    return Consumed.of(row.reads.split()) if row.name else None
