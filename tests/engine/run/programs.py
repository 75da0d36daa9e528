"""Programs made ready to run, with an arena each."""

from tests.engine.graphs import arena_of, built, graph_of, prepared
from tightship._core import StopFlag
from tightship.engine.program.program import Space
from tightship.engine.run.executor import execute
from tightship.engine.run.limits import Limits
from tightship.model import feeds


class Loaded:
    """A program with an arena to run it in."""

    def __init__(self, placement):
        self.program = placement.lowered
        self.executable = built(placement)
        self.arena = arena_of(self.executable)

    def __call__(self, inputs, **limits):
        bound = feeds.bind(self.program, inputs, {})
        stop = limits.pop("stop", StopFlag())
        execute(self.executable, self.arena, bound.external, bound.objects, Limits(stop, **limits))
        self.objects = bound.objects
        return {
            name: bound.objects[name] if o.space is Space.OBJECT else bound.external[o.slot]
            for name, o in self.program.outputs.items()
        }


def loaded(text, without=(), **weights):
    graph = graph_of(text, **weights)
    return Loaded(prepared(graph, without).placement), graph
