"""Gradients of operators that run graphs: If, and loops of a known number of iterations."""

from collections.abc import Iterator
from dataclasses import replace

from tightship.graph.backward.gradient_context import GradientContext, GradientPath
from tightship.graph.ir import Graph


def if_rule(at: GradientContext, gradient_path: GradientPath) -> Iterator[tuple[str, str]]:
    """Write an If of the branches' gradients, which recompute what they read of the branches.

    It reads the condition, and what the branches read.
    """
    node, tape = at.node, at.tape
    wanted = at.captures(node.subgraphs)
    given = {place: tape.final(name) for place, name in enumerate(at.gradients) if name}
    branches = {}
    for attribute, branch in node.attributes.items():
        assert isinstance(branch, Graph), (node.name, attribute)
        ends = [(branch.outputs[place], name) for place, name in given.items()]
        made = gradient_path(at.within(branch, wanted), ends, wanted)
        assert made.inputs == tuple(given.values()), (made.inputs, given)
        captures = (*made.captures, *(name for name in made.inputs if name in made.used))
        branches[attribute] = replace(made, inputs=(), captures=captures)
    found = tape.write("If", node.inputs, [at.type(name) for name in wanted], branches)
    yield from zip(wanted, found, strict=True)
