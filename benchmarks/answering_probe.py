"""Worker that has answered, in a module of its own: the worker imports this one, and no other."""

from tightship.cluster.worker import Probe


class AnsweringProbe(Probe):
    """Worker that has answered: Ray imports some 7 MB to write its first object."""

    def __init__(self) -> None:
        import ray

        super().__init__()
        ray.put(None)
