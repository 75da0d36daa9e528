"""Training: a step of forward pass, backward pass and updates, planned as one, run in one arena."""
