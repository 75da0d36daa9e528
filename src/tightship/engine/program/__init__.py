"""Programs: steps, slots and weights that lowering produces and a run executes."""
