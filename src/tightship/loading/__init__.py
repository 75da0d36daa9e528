"""Loads and plans models: from a file, or a program, to a model that runs.

entry            `load` and `plan`: choose the path for a model
unprepared       ONNX files, and programs of torch or jax
restoring        prepared files, without the modules that read ONNX
shared           files that were prepared once for this user (`prepared_once`)
apart            ONNX files that another process plans, and hands over (`handing_over`)
reading_process  reads and prepares a model for the process that loads it
preparing        writes prepared files
opening          reads, places and measures a file; checks it against a `budget`
first_shapes     shapes for serving a model whose file leaves lengths open
tuning           chooses layouts by running
further_shapes   shapes that a prepared file has no program for
"""

from tightship.loading.entry import load, load_graph, load_open_graph, plan

__all__ = ["load", "load_graph", "load_open_graph", "plan"]
