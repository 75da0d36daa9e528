"""Passes from graph to graph, and their shared helpers."""
