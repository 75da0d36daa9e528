"""Order in which workers of `pytest -n` take the files of tests."""

from xdist.scheduler import LoadFileScheduling

RAY = "tests/cluster/"


class RayFirst(LoadFileScheduling):
    """Gives each file to one worker, and all tests with Ray to one worker before the other files.

    One cluster of Ray runs at a time: workers that share its tests would wait for one another. They
    take the longest time of one piece, so that they begin first.
    """

    def _split_scope(self, nodeid: str) -> str:
        return RAY if nodeid.startswith(RAY) else super()._split_scope(nodeid)

    def _assign_work_unit(self, node) -> None:
        if RAY in self.workqueue:
            self.workqueue.move_to_end(RAY, last=False)
        super()._assign_work_unit(node)
