"""Programs: the steps, slots and weights that lowering writes and a run executes."""
