"""Passes from graph to graph, and what they share."""
