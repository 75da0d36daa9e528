"""Bytes that a run takes from the heap, counted in a process of its own."""
