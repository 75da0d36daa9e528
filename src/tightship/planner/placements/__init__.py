"""Placement algorithms: each maps a problem to an offset for each buffer, ignoring the capacity."""
