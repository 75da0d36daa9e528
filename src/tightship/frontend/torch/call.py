"""Call of a torch operator that is being written."""

from dataclasses import dataclass
from typing import Any

import torch

from tightship.frontend.writer import TranslationContext


@dataclass(frozen=True, slots=True)
class Call(TranslationContext):
    """Call of a torch operator, with arguments by the names of its schema.

    Tensors among the arguments are operands; `types` are those of its results.
    """

    node: torch.fx.Node
    arguments: dict[str, Any]

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401
        return self.arguments[name]
