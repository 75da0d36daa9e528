"""The operator table: rows by domain and name, and the bodies that they name."""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final

from tightship.graph.ir import Node
from tightship.graph.operators.row import Operator

FAMILIES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "": "activations arithmetic comparisons movement reductions normalizations products windows"
        " quantized sources indexing control strings",
        "tightship": "fused",
        "tightship.training": "training",
    }
)
"""Modules of this package with the rows of each domain, as `ROWS`."""

PACKAGES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "shape": "graph.operators.shapes",
        "operands": "graph.operands",
        "known": "frontend.onnx",
        "lengths": "engine.template",
        "numpy": "engine.kernels",
        "objects": "engine.kernels",
        "native": "engine.lower.native",
        "sized": "engine.kernels",
        "onednn": "engine.lower.onednn",
        "quantized": "engine.lower.onednn",
        "gradient": "graph.backward",
    }
)
"""Packages of `tightship` with the modules that each column of bodies names."""

_UNKNOWN = Operator("")


@cache
def rows(domain: str = "") -> Mapping[str, Operator]:
    """Return the rows of a domain by name; none of a domain that has no table."""
    modules = [
        import_module(f"tightship.graph.operators.{family}")
        for family in FAMILIES.get(domain, "").split()
    ]
    return MappingProxyType({row.name: row for module in modules for row in module.ROWS})


def find(operator: str, domain: str = "") -> Operator:
    """Return an operator's row; one that says nothing, with an empty name, where there is none."""
    if domain not in FAMILIES:  # spares the cache what files make up
        return _UNKNOWN
    return rows(domain).get(operator, _UNKNOWN)


def row_of(node: Node) -> Operator:
    """Return the row of a node's operator, as `find`."""
    return find(node.operator, node.domain)


def body(column: str, operator: str, domain: str = "") -> Any:  # noqa: ANN401
    """Return an operator's body of a column; None where its row names none."""
    place = getattr(find(operator, domain), column)
    return _imported(PACKAGES[column], place) if isinstance(place, str) and place else None


def named(column: str, domain: str = "") -> frozenset[str]:
    """Return the operators of a domain whose rows name a body of a column."""
    return frozenset(
        name
        for name, row in rows(domain).items()
        if isinstance(getattr(row, column), str) and getattr(row, column)
    )


@cache
def _imported(package: str, place: str) -> Any:  # noqa: ANN401
    path, _, argument = place.partition(":")
    module, _, name = path.rpartition(".")
    found = getattr(import_module(f"tightship.{package}.{module}"), name)
    return found(argument) if argument else found
