"""Client of a driver in another process."""
