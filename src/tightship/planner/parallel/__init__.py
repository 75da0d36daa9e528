"""Plans for steps that run as soon as they can, several at once."""
