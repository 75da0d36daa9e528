"""Errors for nodes that cannot be translated, with the line of the user's source."""

import re
from pathlib import Path

import torch

from tightship.errors import GraphError

_FRAME = re.compile(r'File "([^"]+)", line (\d+), in (\S+)\n\s*([^\n]*)')

_LIBRARY = f"{Path(torch.__file__).parent}/"
"""Folder of torch's own modules, which call operators for the user."""

ADVICE = {
    "aten._local_scalar_dense.default": "keep it a tensor, or compute it before the model",
    "aten.nonzero.default": "use `torch.where` with three operands, whose shape is fixed",
    "aten.masked_select.default": "use `torch.where` with three operands, whose shape is fixed",
    "aten.native_dropout.default": "call `model.eval()` before the export",
    "aten.bernoulli.p": "call `model.eval()` before the export",
    "aten._native_batch_norm_legit_functional.default": "call `model.eval()` before the export",
}


def refused(node: torch.fx.Node, why: str, advice: str | None = None) -> GraphError:
    """Return an error with the node's name, operator, source line and a remedy."""
    target = operator_name(node)
    usual = "write it with other operators, or leave it outside the exported program"
    help_ = advice or ADVICE.get(target, usual)
    where = f"`{target}`{_part(node)}{_place(node)}"
    return GraphError(f"Node `{node.name}` ({where}) {why}; {help_}.")


def operator_name(node: torch.fx.Node) -> str:
    """Return torch's name of an operator and its overload, such as `aten.add.Tensor`."""
    target = node.target
    if isinstance(target, str):
        return target
    if isinstance(target, torch._ops.OperatorBase):
        return str(target)
    return f"{target.__module__.lstrip('_')}.{target.__name__}"


def _part(node: torch.fx.Node) -> str:
    """Return the part of the module that calls an operator, if it has a name."""
    parts = [each for each in (node.meta.get("nn_module_stack") or {}).values() if each[0]]
    if not parts:
        return ""
    name, kind = parts[-1]
    kind = kind if isinstance(kind, str) else kind.__name__
    return f" in `{name}` ({kind.rpartition('.')[2]})"


def _place(node: torch.fx.Node) -> str:
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    if not frames:
        return ""
    own = [frame for frame in frames if not frame[0].startswith(_LIBRARY)]
    file, line, _, code = (own or frames)[-1]
    return f", {file}:{line}" + (f": `{code.strip()}`" if code.strip() else "")
