"""Actor class of the keeper, by a path that config files of Ray Serve can name.

A file of `serve build` has the path of an actor's class and its arguments as plain values. Serve
imports the path and needs an actor class there, not the class beneath.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import ray

from tightship.cluster.keeper import Keeper
from tightship.cluster.node_file import Source
from tightship.cluster.weights_bookings import Holding


@ray.remote
class KeeperActor(Keeper):
    """Keeper whose arguments are plain values."""

    def __init__(
        self, holdings: Sequence[Mapping[str, Any]], anchors: Mapping[str, int], model: str
    ) -> None:
        """Start anchors and book weights, as `Keeper`.

        Args:
            holdings: Weights of the models, as `plain_holding` returns them.
            anchors: Memory of an anchor by node.
            model: Names of the models in reports.
        """
        super().__init__([holding_of(each) for each in holdings], anchors, model)


def plain_holding(holding: Holding) -> dict[str, Any]:
    """Return the fields of weights as values that YAML can hold: mappings, lists and numbers."""
    return {"source": _plain_source(holding.source), "weights_bytes": holding.weights_bytes}


def holding_of(plain: Mapping[str, Any]) -> Holding:
    """Return weights from plain values."""
    return Holding(_source_of(plain["source"]), plain["weights_bytes"])


def _plain_source(source: Source) -> dict[str, Any]:
    """Return the fields of a source as values that YAML can hold: mappings, lists and numbers."""
    shapes = source.shapes and {name: _plain_shape(each) for name, each in source.shapes.items()}
    return {**asdict(source), "shapes": shapes}


def _source_of(plain: Mapping[str, Any]) -> Source:
    shapes = plain["shapes"] and {
        name: each if isinstance(each, int) else tuple(each)
        for name, each in plain["shapes"].items()
    }
    return Source(**{**plain, "shapes": shapes})


def _plain_shape(shape: Sequence[int] | int) -> list[int] | int:
    return int(shape) if not isinstance(shape, Sequence) else [int(each) for each in shape]
