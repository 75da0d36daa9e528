"""From a file, or a program, to a model that runs; and what it would take, without.

entry            `load` and `plan`: which way a model comes
unprepared       from an ONNX file, or a program of torch or jax
restoring        from a prepared file, without what reads ONNX
shared           from the file that was prepared once for this user (`prepared_once`)
preparing        writes prepared files
opening          a file read, placed and measured; held against a `budget`
first_shapes     shapes for a model to be served whose file leaves lengths open
tuning           layouts chosen by running
further_shapes   shapes that a prepared file has no program for
"""

from tightship.loading.entry import load, load_graph, load_open_graph, plan

__all__ = ["load", "load_graph", "load_open_graph", "plan"]
