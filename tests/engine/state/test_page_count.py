"""Pages without a cap are counted all the same."""

from tightship.engine.state.page_count import PageCount
from tightship.engine.state.page_pool import PagePool


class Holder:
    """Anything that has pages."""


def test_counts_follow_what_is_taken_given_and_moved() -> None:
    holder, pool = Holder(), PagePool(8, evicts=False)
    for giver in (None, pool):
        one, other = PageCount(giver, holder), PageCount(giver, holder)
        one.take(5)
        one.take(0)
        one.move(2, other)
        one.give(1)
        assert (one.count, other.count) == (2, 2)
        assert giver is None or giver.used == 4
        one.give_all()
        one.give_all()
        assert (one.count, other.count) == (0, 2)
    assert pool.used == 2
    del holder
    assert pool.used == 0
