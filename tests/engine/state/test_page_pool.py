"""Pages under a cap: refused, or taken from the holder that was idle longest."""

import gc

import pytest

from tightship.engine.state.page_count import PageCount
from tightship.engine.state.page_pool import PagePool
from tightship.errors import CapacityError


class Holder:
    """Holder of pages."""

    def __init__(self, pool: PagePool, *, busy: bool = False) -> None:
        self.pages, self.busy, self.idle_since = PageCount(pool, self), busy, 0
        pool.add(self)

    def evict(self) -> bool:
        if self.busy or not self.pages.count:
            return False
        self.pages.give_all()
        return True


def test_pages_are_counted_until_their_holder_is_gone() -> None:
    pool = PagePool(10, evicts=False)
    one, other = Holder(pool), Holder(pool)
    one.pages.take(4)
    other.pages.take(6)
    with pytest.raises(CapacityError, match='or one with `at_cap="evict"`') as refused:
        one.pages.take(1)
    assert refused.value.needed_bytes - refused.value.limit_bytes == 4096
    assert (one.pages.count, pool.used) == (4, 10)
    other.pages.move(2, one.pages)
    one.pages.give(1)
    assert (one.pages.count, other.pages.count, pool.used) == (5, 4, 9)
    del other
    gc.collect()
    assert pool.used == 5


def test_the_holder_that_was_idle_longest_loses_its_pages() -> None:
    pool = PagePool(10, evicts=True)
    holders = [Holder(pool) for _ in range(3)]
    for since, holder in enumerate((holders[1], holders[2], holders[0])):
        holder.pages.take(3)
        holder.idle_since = since
    holders[1].busy = True
    last = Holder(pool)
    last.pages.take(4)
    assert [holder.pages.count for holder in holders] == [3, 3, 0]
    assert pool.evictions == 1
    last.busy = True
    pool.remove(holders[0])
    with pytest.raises(CapacityError, match="or make a larger pool\\."):
        last.pages.take(6)
    with pytest.raises(CapacityError):
        Holder(pool).pages.take(11)
    assert [holder.pages.count for holder in holders] == [3, 3, 0]
    assert pool.evictions == 1
