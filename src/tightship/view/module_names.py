"""Modules of a model by the names that exporters give to nodes and weights."""

_REORDER = ".reorder"


def module_of(name: str) -> str:
    """Return the module in a name: `/encoder/layer.0` of `/encoder/layer.0/MatMul`; empty if none.

    Nodes are separated by slashes or dots, weights by dots. A change of layout, as
    `/encoder/x.acdb.reorder`, is of the module of its tensor.
    """
    if name.endswith(_REORDER):
        name = name.removesuffix(_REORDER).rpartition(".")[0]
    for separator in ("/", "."):
        module, found, _ = name.rstrip(separator).rpartition(separator)
        if found:
            return module
    return ""
