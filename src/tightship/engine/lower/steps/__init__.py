"""Steps as lowering writes them: operands, layouts, weights, and what selection may choose."""
