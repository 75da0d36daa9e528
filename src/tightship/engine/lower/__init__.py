"""A graph becomes kernels: passes over the graph, then kernels, layouts and scratch.

Nothing is imported here: a process that runs a prepared model lowers none.
"""
