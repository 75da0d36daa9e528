"""A caller of a driver in another process."""
