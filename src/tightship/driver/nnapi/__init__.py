"""Models of NNAPI operands and operations, translated to graphs."""

from tightship.driver.nnapi.translate import graph_of, routine_of, supported_operations

__all__ = ["graph_of", "routine_of", "supported_operations"]
