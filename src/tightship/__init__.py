"""Know a model's peak memory, run it in exactly that."""
