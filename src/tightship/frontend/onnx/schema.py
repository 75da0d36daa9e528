"""Operators as the installed onnx defines them, each looked up once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import onnx
from onnx.defs import OpSchema, SchemaError
from onnx.helper import VERSION_TABLE

from tightship.errors import FormatError, GraphError
from tightship.frontend.onnx.text import utf8


@dataclass(frozen=True, slots=True)
class Opsets:
    """Opset version of each domain; the default domain is `""`."""

    versions: Mapping[str, int]
    protos: list[onnx.OperatorSetIdProto]


_IR_VERSION_WITH_OPSETS = 3
_OPSET_MAX = (1 << 31) - 1

_NEWEST_KNOWN = {
    domain: max(row[column] for row in VERSION_TABLE if len(row) > column)
    for column, domain in ((2, ""), (3, "ai.onnx.ml"), (4, "ai.onnx.preview.training"))
}


def normal_domain(domain: str) -> str:
    """Return the unique name of a domain: the default one has two."""
    return "" if domain == "ai.onnx" else domain


def read_opsets(imports: Sequence[onnx.OperatorSetIdProto], owner: str) -> Opsets:
    """Return the opset versions that a model or function imports.

    Raises:
        GraphError: A domain is imported in two versions, or in one that is too new.
    """
    versions: dict[str, int] = {}
    for entry in imports:
        domain = normal_domain(utf8(entry.domain, "domain"))
        version = versions.setdefault(domain, entry.version)
        newest = _NEWEST_KNOWN.get(domain, _OPSET_MAX)
        if version != entry.version:
            raise GraphError(
                f"{owner} imports opset {version} and opset {entry.version} of domain {domain!r}."
            )
        if not 1 <= version <= newest:
            raise GraphError(
                f"{owner} imports opset {version} of domain {domain!r}; the installed onnx "
                f"{onnx.__version__} knows 1 to {newest}."
            )
    protos = [onnx.helper.make_opsetid(domain, version) for domain, version in versions.items()]
    return Opsets(versions, protos)


def model_opsets(model: onnx.ModelProto) -> Opsets:
    """Return the opset versions of a model; one too old to import any has opset 1.

    Raises:
        FormatError: The IR version is newer than the installed onnx, or no opset is imported.
        GraphError: An opset version is unknown.
    """
    if model.ir_version > onnx.IR_VERSION:
        raise FormatError(
            f"The model has IR version {model.ir_version}; the installed onnx "
            f"{onnx.__version__} knows up to {onnx.IR_VERSION}."
        )
    if not model.opset_import and model.ir_version < _IR_VERSION_WITH_OPSETS:
        return read_opsets([onnx.helper.make_opsetid("", 1)], "The model")
    if not model.opset_import:
        raise FormatError("The model imports no opset, or its file is truncated.")
    return read_opsets(model.opset_import, "The model")


@dataclass(frozen=True, slots=True)
class Schemas:
    """Schemas found so far, by operator, domain and opset version."""

    _found: dict[tuple[str, str, int], OpSchema] = field(default_factory=dict)

    def find(self, node: onnx.NodeProto, domain: str, opsets: Opsets) -> OpSchema:
        """Return the schema that defines a node.

        Raises:
            GraphError: The domain is not imported, or lacks the operator.
        """
        operator = utf8(node.op_type, "operator")
        version = opsets.versions.get(utf8(domain, "domain"))
        if version is None:
            raise GraphError(
                f"Node {label(node)} uses domain {domain!r}, which the model does not import."
            )
        key = (operator, domain, version)
        schema = self._found.get(key)
        if schema is None:
            try:
                schema = onnx.defs.get_schema(operator, version, domain)
            except SchemaError:
                raise GraphError(
                    f"Node {label(node)} uses operator `{node.op_type}`, which domain {domain!r} "
                    f"does not have in opset {version} (onnx {onnx.__version__})."
                ) from None
            self._found[key] = schema
        return schema


def label(node: onnx.NodeProto) -> str:
    """Return the name of a node in messages: its own or its first output's, and its operator."""
    name = node.name or next((output for output in node.output if output), "")
    return f"`{name}` ({node.op_type})"
