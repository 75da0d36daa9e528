"""Placement algorithms: a problem in, an offset for each buffer out. None looks at capacity."""
