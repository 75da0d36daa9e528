"""Training: a step of forward, backward and updates, planned whole and run in one arena."""
