"""Plans memory for steps that run as soon as their inputs are ready, several at once."""
