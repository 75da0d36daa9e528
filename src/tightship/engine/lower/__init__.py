"""Lower a graph to kernels: rewrite it by passes, then choose kernels, layouts and scratch memory.

Names are imported on first use, because a process that runs a prepared model lowers nothing.
"""

from typing import TYPE_CHECKING

from tightship.late_names import late_names

if TYPE_CHECKING:
    from tightship.engine.lower.passes.recognize_activation import recognize_activation
    from tightship.engine.lower.passes.recognize_normalization import recognize_normalization
    from tightship.engine.lower.pipeline import pass_names
    from tightship.engine.lower.selection import rewritten, select
else:
    __getattr__ = late_names(
        __name__,
        **{
            "passes.recognize_activation": "recognize_activation",
            "passes.recognize_normalization": "recognize_normalization",
            "pipeline": "pass_names",
            "selection": "rewritten select",
        },
    )

__all__ = ["pass_names", "recognize_activation", "recognize_normalization", "rewritten", "select"]
