"""Translation of NNAPI models of operands and operations to graphs."""

from tightship.driver.nnapi.translate import (
    check_open,
    graph_of,
    is_open,
    routine_of,
    supported_operations,
)

__all__ = ["check_open", "graph_of", "is_open", "routine_of", "supported_operations"]
