"""Records and helpers of lowering: operands, layouts, weights and options of selection."""
